# jobcast: every target does its own set-up.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(abspath $(BIN)):$(PATH)
export MLFLOW_DISABLE_TELEMETRY := true
export OMP_WAIT_POLICY := passive
# Empty is unset: without files of bytecode each of many processes would compile all that it imports anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install run test test-slow repro experiments stale lint bench notebooks docs reproduce-shockwave reproduce-pcs reproduce-mlfs reproduce-andreas reproduce-sia lock clean

help:  ## show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

# The stamp names the checkout's own folder: a checkout that was moved makes its environment anew, since scripts in it
# hold the old path.
STAMP := $(VENV)/.installed
HERE := $(CURDIR)

install: $(STAMP)  ## create .venv and install the locked dependencies (uv where it is there, else venv and pip)
	@grep -qxF "$(HERE)" $(STAMP) || { rm -rf $(VENV); $(MAKE) --no-print-directory $(STAMP); }

$(STAMP): requirements.lock pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
	    uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
	    uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock && \
	    uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
	    $(PYTHON) -m venv $(VENV) && \
	    echo "installing locked dependencies with pip (a few minutes)" && \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
	@echo "compiling what is compiled, once" && $(BIN)/python .ci/compile
	@echo "$(HERE)" > $(STAMP)

run: install  ## the main job on the embedded trace: train, register, backtest, report
	@$(BIN)/python -m jobcast run

test: install  ## the whole test suite
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-slow: install  ## fuzzing with many examples, random workloads through every engine
	@$(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder -m slow

lint: install  ## ruff and mypy
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy -p jobcast && $(BIN)/mypy -p papers

repro: install  ## the same stages through DVC
	@$(BIN)/dvc repro

experiments: install  ## experiments of DVC: headlines and what is trained
	@$(BIN)/dvc exp show --no-pager --drop '/|^(domain|traces|features|models|simulator|schedulers|pipelines)$$|^(skill|coverage_90)$$|^(prepare|featurize|enrich|learn|schedule|backtest|promote)[.]'

stale: install  ## warn where dvc.lock is of other code or parameters than these
	@$(BIN)/python .ci/stale

bench: install  ## the bars: features, predictions, simulations (JOBCAST_DATA names the folder of traces)
	@for b in benchmarks/bench_*.py; do echo "== $$b"; PYTHONPATH=. $(BIN)/python $$b || exit 1; done

notebooks: install  ## execute the notebooks (their outputs lie in notebooks/executed/)
	@$(BIN)/python notebooks/execute.py

docs: install  ## the documentation as a site that needs no network, in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo site/index.html

reproduce-shockwave: install  ## the tables and figures of Shockwave into docs/shockwave/ (JOBCAST_DATA names the folder of traces)
	@$(BIN)/python -m papers.shockwave

reproduce-pcs: install  ## the figures of PCS into docs/pcs/ (JOBCAST_DATA names the folder of traces)
	@$(BIN)/python -m papers.pcs

reproduce-mlfs: install  ## the figures of MLFS into docs/mlfs/ (JOBCAST_DATA names the folder of traces)
	@$(BIN)/python -m papers.mlfs

reproduce-andreas: install  ## the figures and tables of ANDREAS into docs/andreas/ (JOBCAST_DATA names the folder of traces)
	@$(BIN)/python -m papers.andreas

reproduce-sia: install  ## the figures and tables of SIA into docs/sia/ (JOBCAST_DATA names the folder of traces)
	@$(BIN)/python -m papers.sia

lock:  ## renew requirements.lock from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --python-version 3.11 --universal --extra bayes --extra gym --extra market --extra search --extra dvc --extra postgres --extra notebooks --extra docs --extra dev \
	    --generate-hashes --no-header --no-annotate --no-emit-index-url -q -o requirements.lock

clean:  ## remove the environment and caches; traces, models and reports stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis site
