"""`jobcast evaluate`: the contract's figures, and that they are those of the trace."""

import json
from copy import deepcopy

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError, MemoryLimitError
from jobcast.domain.memory import memory_limit
from jobcast.features.arrivals import feature_names
from jobcast.models.predictor import Known
from jobcast.models.registry import open_registry
from jobcast.pipelines.lifecycle.evaluation import evaluate_known
from jobcast.pipelines.lifecycle.evaluation_files import IDLE_NOTE, evaluation_table
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.pipelines.lifecycle.predictors.life import Wishes
from jobcast.pipelines.lifecycle.predictors.traces import Scoring, scored_pools, unscored
from jobcast.pipelines.report.formatting import number
from jobcast.traces.readers import read_trace
from tests.shared import refused

FROM_S = 1704412800.0  # 2024-01-05, where training ended
TOP = {
    "predictor", "version", "aliases", "bootstrap", "algorithm", "pools", "window", "trained", "overlap_allowed",
    "inputs", "notes", "simulated", "jobcast",
}  # fmt: skip
DETECTION = {"precision", "recall", "f1"}


def figures_of(reference, trace, from_s, until_s, **how):
    return evaluate_known(reference, Known(trace, {}, from_s, until_s), **how).result


@pytest.fixture(scope="module")
def trace(run):
    return read_trace(run.trace)


@pytest.fixture(scope="module")
def told(run, trace):
    """Figures of all predictors over the part after training."""
    names = ("will-jobs-arrive", "new-load", "job-duration")
    return {name: figures_of((name, None), trace, None, None, home=run.home) for name in names}


def test_arrivals_have_the_contracts_figures(told):
    figures = told["will-jobs-arrive"]
    assert set(figures) >= {*TOP, "horizons"}
    assert list(figures["horizons"]) == ["5min", "60min"]
    plain = {"n", "base_rate", *DETECTION, "pr_auc", "roc_auc", "ece", "threshold", "idle", "gate"}
    for block in figures["horizons"].values():
        assert set(block) >= {*plain, "baselines", "by_pool"}
        assert set(block["baselines"]) >= {"always", "persistence", "yesterday", "trailing_rate", "paper_recipe"}
        assert set(block["intervals"]) >= {"f1", "pr_auc", "ece", "precision", "recall", "miss_rate"}
        assert set(block["by_pool"]) == set(figures["pools"])
        for one in block["by_pool"].values():
            assert set(one) == plain
        assert sum(one["n"] for one in block["by_pool"].values()) == block["n"]


def test_loads_have_the_contracts_figures(told):
    figures = told["new-load"]
    assert set(figures) >= {*TOP, "horizons"}
    contract = {"coverage", "coverage_nonzero", "over", "missed", "worst_pool"}
    for block in figures["horizons"].values():
        assert set(block) >= {*contract, "n", "baselines", "by_pool"}
        assert 0 <= block["worst_pool"] <= block["coverage"] <= 1
        assert block["worst_pool"] == min(one["coverage"] for one in block["by_pool"].values())
        assert {"persistence", "yesterday", "max_of_10", "max_of_week"} <= set(block["baselines"])
    assert figures["horizons"]["5min"]["n"] == told["will-jobs-arrive"]["horizons"]["5min"]["n"]


def test_loads_are_scored_behind_the_champions_gate_too(told, shell, run):
    total = told["new-load"]["total"]
    assert (total["arrivals"], total["note"]) == ("will-jobs-arrive:1", None)
    for horizon, block in total["horizons"].items():
        alone = told["new-load"]["horizons"][horizon]
        assert block["n"] == alone["n"]
        assert block["base_rate"] == pytest.approx(told["will-jobs-arrive"]["horizons"][horizon]["base_rate"])
        assert block["over"] <= alone["over"]
        assert block["coverage"] <= alone["coverage"]
        assert block["reserved"]["over"] <= block["over"]
    lines = evaluation_table(told["new-load"]).splitlines()
    assert "gate (will-jobs-arrive:1) x estimate" in lines
    assert sum(line.startswith("  SIA reserves") for line in lines) == 2


def test_the_largest_of_n_windows_needs_the_training_time(told, run, trace):
    for block in told["new-load"]["horizons"].values():
        assert block["baselines"]["max_of_n"]["windows"] >= 1
    later = figures_of(("new-load", None), trace.between(FROM_S, None), None, None, home=run.home)
    assert "max_of_n" not in later["horizons"]["5min"]["baselines"]


def test_no_gate_no_total_and_why(shell, store, run, trace):
    load = store.resolve("new-load")
    end_s = float(trace.submit_s[-1]) + 1.0

    def why(registry, from_s=FROM_S):
        data = Scoring(trace, load, from_s, end_s, tuple(trace.pools), Wishes(draws=0), registry=registry)
        predictor = find_predictor("new-load")
        predictor.model_ = store.load(load)
        figures, _ = predictor.figures(data)
        assert "horizons" not in figures["total"]
        return figures["total"]["note"]

    assert "no model 'will-jobs-arrive' in " in why(open_registry(shell.home / "empty"))
    early = why(store, FROM_S - 1.0)
    assert early.startswith("will-jobs-arrive:1, the champion, was trained until 2024-01-05T00:00:00Z, which")
    shell.works("train", "will-jobs-arrive", "--trace", run.trace, "--horizons", "15,60", "--until", run.trained_until,
                "--algorithm", "logistic", "--min-jobs", "50")  # fmt: skip
    store.promote("will-jobs-arrive", 2)
    assert why(store) == "will-jobs-arrive:2, the champion, forecasts other horizons: 15min, 60min"
    out = shell.works("evaluate", "new-load", "--trace", run.trace).out
    assert "\ngate x estimate is not scored: will-jobs-arrive:2, the champion, forecasts other horizons" in out


def test_durations_have_the_contracts_figures_at_the_top_with_the_rule_beside_them(told, trace):
    figures = told["job-duration"]
    assert set(figures) >= {*TOP, "accuracy", "macro_f1", "log_loss", "ece", "under_predicted", "baselines"}
    for rule in figures["baselines"].values():
        assert set(rule) >= {"accuracy", "macro_f1", "under_predicted"}
    later = trace.between(FROM_S, None)
    ended = later.end_s <= trace.submit_s[-1] + 1.0
    assert (figures["n"], figures["unknown"]) == (ended.sum(), (~ended).sum())
    bins = np.searchsorted([300.0, 3600.0], later.duration_s[ended])
    assert {name: one["n"] for name, one in figures["by_bin"].items()} == dict(
        zip(("<=5min", "5-60min", ">60min"), np.bincount(bins, minlength=3).tolist(), strict=True)
    )


def test_what_comes_after_until_changes_nothing(run, trace):
    until_s = FROM_S + 86400.0
    for name in ("will-jobs-arrive", "new-load", "job-duration"):
        given = ((name, 1), trace.between(None, until_s), None, until_s)
        whole = ((name, 1), trace, None, until_s)
        short, full = (figures_of(*words, home=run.home) for words in (given, whole))
        assert short == full


def test_only_pools_with_a_hundred_training_jobs_are_scored(trace):
    assert scored_pools(trace, trace.submit_s[0], FROM_S) == tuple(trace.pools)
    counts = trace.between(None, trace.submit_s[599]).jobs["pool"].value_counts()
    big = sorted(counts.filter(counts["count"] >= 100)["pool"])
    assert list(scored_pools(trace, trace.submit_s[0], trace.submit_s[599])) == big
    assert scored_pools(trace, 0.0, 1.0) == tuple(trace.pools)  # a trace without the training time


def test_what_is_not_scored_is_told(trace):
    assert unscored(trace, trace.pools) == {}
    told = unscored(trace, trace.pools[1:])["unscored"]
    jobs = int((trace.jobs["pool"] == trace.pools[0]).sum())
    assert told == {"jobs": {trace.pools[0]: jobs}, "share": jobs / len(trace)}
    table = evaluation_table(
        {"predictor": "job-duration", "version": 1, "window": {"from": "a", "until": "b"}, "pools": [], "n": 0}
        | {"baselines": {}, "unscored": {"jobs": {"c": 30, "d": 20, "e": 10, "f": 1}, "share": 0.25}}
    )
    assert table.endswith(
        "\nnote: 25.0 % of the window's jobs are not scored, those of 4 pools with fewer than 100 jobs in the training "
        "time: c 30, d 20, e 10 and 1 more"
    )


def test_the_table_shows_the_model_beside_its_baselines(told, shell, run):
    out = shell.works("evaluate", "will-jobs-arrive", "--trace", run.trace).out
    assert out.startswith("will-jobs-arrive 1 on 2024-01-05T00:00:00Z to ")
    for word in ("base_rate", "5min", "60min", "always", "persistence", "yesterday", "gate: misses"):
        assert word in out
    assert "accuracy" in evaluation_table(told["job-duration"])
    assert "coverage" in evaluation_table(told["new-load"])


def test_without_is_told_by_every_predictor_and_checked(run, trace):
    pool = trace.pools[0]
    wishes = Wishes(without=(pool,), paper_recipe=False, draws=0)
    for name in ("will-jobs-arrive", "new-load", "job-duration"):
        told = figures_of((name, None), trace, None, None, home=run.home, wishes=wishes)
        assert told["without"]["pools"] == [pool]
        blocks = told["without"].get("horizons", {"all": told["without"]})
        whole = told.get("horizons", {"all": told})
        for horizon, block in blocks.items():
            assert 0 < block["n"] < whole[horizon]["n"]
            assert "paper_recipe" not in block["baselines"]
    nobody = Wishes(without=tuple(trace.pools))
    for wrong, message in ((Wishes(without=("nowhere",)), "--without nowhere: is no pool"), (nobody, "leaves no pool")):
        refused(ConfigError, message, figures_of, ("new-load", None), trace, None, None, home=run.home, wishes=wrong)


def test_an_ablation_needs_the_training_time_and_something_to_take_away(run, trace):
    wishes = Wishes(ablation=True)
    with pytest.raises(ConfigError, match="--ablation: new-load has none; it is for will-jobs-arrive and job-duration"):
        figures_of(("new-load", None), trace, None, None, home=run.home, wishes=wishes)
    later = trace.between(FROM_S, None)
    with pytest.raises(ConfigError, match=r"--ablation trains anew on 2024-01-01T.* which this trace does not hold"):
        figures_of(("will-jobs-arrive", None), later, None, None, home=run.home, wishes=wishes)
    told = figures_of(("will-jobs-arrive", None), later, None, None, home=run.home)
    assert "paper_recipe" not in told["horizons"]["5min"]["baselines"]


@pytest.mark.slow
def test_an_ablation_stands_in_json_table_files_and_mlflow(shell, store, run, tmp_path):
    words = ("evaluate", "will-jobs-arrive", "--trace", run.trace, "--ablation", "--draws", "20", "--log")
    done = shell.works(*words, "--out", tmp_path / "kept", "--json", tmp_path / "told.json")
    told = json.loads((tmp_path / "told.json").read_text())
    whole = [sets["+ all others"]["pr_auc"] for sets in told["ablation"]["horizons"].values()]
    assert whole == pytest.approx([block["pr_auc"] for block in told["horizons"].values()], abs=1e-9)
    assert "trained anew on" in done.out
    assert max(map(len, done.out.splitlines())) <= 120
    files = {path.name for path in (tmp_path / "kept").iterdir()}
    assert {"evaluation.json", "tables.md", "what_features_add.csv", "pool_by_pool.csv", "reliability.svg"} <= files
    assert {"recall_per_pool_hour.svg", "recall_by_pool.svg"} <= files
    assert {"precision_recall_60min.svg", "ablation_60min.svg"} <= files
    kept = json.loads((tmp_path / "kept/evaluation.json").read_text())
    assert {**kept, "run_id": told["run_id"], "command": told["command"]} == told
    with store.store.client() as client:
        logged = client.get_run(told["run_id"])
    assert logged.data.metrics["horizons/60min/f1"] == told["horizons"]["60min"]["f1"]
    assert (logged.data.tags["model_version"], logged.data.tags["jobcast.kind"]) == ("1", "evaluation")
    assert logged.data.tags["mlflow.parentRunId"] == store.resolve("will-jobs-arrive").run_id


def test_a_scoring_takes_the_memory_of_a_scoring(run, trace, told):
    block = told["will-jobs-arrive"]["horizons"]
    instants = 1 + (block["5min"]["n"] // len(told["will-jobs-arrive"]["pools"]))
    # Of one corpus: float32 features and loads and a truth, at each horizon.
    corpus = instants * len(told["will-jobs-arrive"]["pools"]) * len(block) * (4 * len(feature_names()) + 5)
    how = {"home": run.home, "wishes": Wishes(paper_recipe=False, draws=0)}
    with memory_limit(6 * corpus):
        assert figures_of(("will-jobs-arrive", None), trace, None, None, **how)["horizons"].keys() == block.keys()
        twins = how | {"wishes": Wishes(paper_recipe=False, draws=0, ablation=True)}
        refused(MemoryLimitError, "features of", figures_of, ("will-jobs-arrive", None), trace, None, None, **twins)


def test_columns_of_many_rows_stay_apart(told):
    figures = deepcopy(told["will-jobs-arrive"])
    groups = figures["horizons"]["5min"]["by_duration_group"]
    for group in groups.values():
        group["n"] = 1_854_680
    lines = evaluation_table(figures).splitlines()
    cells = [line.split() for line in lines if line.startswith("5min ") and "1,854,680" in line]
    assert [[int(line[2]), line[3]] for line in cells] == [[len(one["pools"]), "1,854,680"] for one in groups.values()]
    # Figures stand below the ends of their headings.
    head = next(line for line in lines if line.startswith("by pools' mean duration"))
    assert all(line[: head.index(" n ") + 2].endswith("1,854,680") for line in lines if "1,854,680" in line)


def test_the_idle_class_is_shown_and_explained(told):
    lines = evaluation_table(told["will-jobs-arrive"]).splitlines()
    assert lines[1].split()[-1] == "idle_f1"
    rows = {line.split()[0]: line.split()[-1] for line in lines if line.startswith("  ")}
    block = told["will-jobs-arrive"]["horizons"]["60min"]
    assert rows["persistence"] == number(block["baselines"]["persistence"]["idle"]["f1"])
    assert "persistence" in IDLE_NOTE
    assert IDLE_NOTE.splitlines()[0] in lines
