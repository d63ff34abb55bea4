"""The command that makes MLFS's figures anew, on workloads of a few jobs."""

import json
from functools import partial

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.traces.generators import generate
from jobcast.traces.table_files import write_trace
from papers.bench import RUNS
from papers.driver import reproduce
from papers.mlfs import bars, bench, loads, priorities
from papers.mlfs.__main__ import PAPER, main
from papers.mlfs.bench import Workload
from tests.papers.conftest import answered

SETTINGS = (("widths", "1,2"), ("epochs", "3,6"), ("longest_h", 6), ("load", 0.05))
JOBS = {"1/4": 4, "1": 6, "3": 12}


@pytest.fixture
def small(data, monkeypatch):
    """Few jobs on two servers, whose arrivals are drawn, in place of Philly's."""
    drawn = generate("mlfs", 9, {"jobs": 200})[0]
    monkeypatch.setattr(bench, "write_arrivals", lambda data, out: write_trace(drawn, out))
    for module in (loads, bars):
        monkeypatch.setattr(module, "scaled", lambda x: Workload(f"x = {x}", JOBS[x], ((2, 4),), SETTINGS))
    monkeypatch.setattr(loads, "SCALES", JOBS)
    return data


run = partial(answered, main)


def test_orders_with_confidence_from_the_command(small, tmp_path):
    out = tmp_path / "out"
    run("bars", "--out", out, "--seeds", 2, "--policies", "mlf_h,tiresias", "--jobs", 1)
    page = (out / "results.md").read_text()
    assert page.startswith("# MLFS: what came out\n\nWritten by `make reproduce-mlfs`.\n\n## Orders of policies")
    assert "2 draws" in page
    assert "| MLF-H better than Tiresias |" in page
    assert "MLFS better than" not in page
    lines = [json.loads(line) for line in (out / RUNS).read_text().splitlines()]
    assert len(lines) == len({line["key"] for line in lines}) == 8
    assert len((out / "bars" / "bars.csv").read_text().splitlines()) == 9


@pytest.mark.slow
def test_figures_share_runs_and_go_on_where_they_stopped(small, tmp_path):
    out = tmp_path / "out"
    words = ("--out", out, "--seeds", 1, "--policies", "mlf_h", "--jobs", 1)
    run("bars", *words)
    begun = (out / RUNS).read_text()
    (out / RUNS).write_text(begun + begun[:100])  # a line that was cut
    said = run("figure4", "figure7", *words, "--resume")
    made = [(x, title) for x in JOBS for title in ("SRTF", "without bandwidth")]
    assert [line for line in said.splitlines() if "seed" in line] == [
        "  1/1 x = 1/4, seed 0, MLF-H",
        *(f"  {at}/6 x = {x}, seed 0, {title}" for at, (x, title) in enumerate(made, 1)),
    ]
    told = (out / RUNS).read_text()
    assert told.startswith(begun)
    assert len([json.loads(line) for line in told.splitlines()]) == 9
    assert "| with bandwidth: mean JCT better by | 5 to 15 % |" in (out / "figure7" / "figure7.md").read_text()
    assert (out / "figure4" / "figure4-jct.svg").is_file()
    assert "  2/2 x = 3, seed 0, MLF-H" in run("bars", *words)  # without --resume all is run anew
    assert len((out / RUNS).read_text().splitlines()) == 2


def test_pages_of_terms_and_estimates(small, tmp_path, monkeypatch):
    for name, few in {"JOBS": 6, "TESTBED": ((4, 4),), "LOADS": (0.05, 0.1), "LOAD": ("load", 0.05)}.items():
        monkeypatch.setattr(priorities, name, few)
    run("terms", "estimates", "--out", tmp_path, "--seeds", 1, "--jobs", 1)
    page = (tmp_path / "results.md").read_text()
    assert "| without waiting |" in page
    assert "load 0.05: beyond MLF-H" in page
    assert "half, sample runs" in page
    assert len((tmp_path / "terms" / "terms.csv").read_text().splitlines()) == 1 + 13 * 2


def test_an_unknown_policy_stops_before_anything_is_run(data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / RUNS).write_text("{}\n")
    with pytest.raises(ConfigError, match="--policies fifo: no such policy; choose from mlfs, "):
        reproduce(PAPER, ("bars",), out, data, policies="fifo")
    assert (out / RUNS).read_text() == "{}\n"
