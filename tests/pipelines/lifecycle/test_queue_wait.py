"""queue-wait by its commands, of a table of snapshots and of a simulated trace: trained, asked, scored, compared."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jobcast as jc
from jobcast.features.queue_state import Queue
from jobcast.models.predictor import Known
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.pipelines.report.figure_lines import evaluation_table, training_table
from jobcast.pipelines.report.formatting import iso
from jobcast.traces.readers import read_trace
from tests.pipelines.conftest import typed
from tests.queue_cases import snapshot_frame
from tests.scenarios import frame_of

UNTIL, AT = "2021-05-15T00:00:00Z", "2021-05-20T18:00:00Z"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A home with two versions, and the converted table of 24 days."""
    root = tmp_path_factory.mktemp("waits")
    snapshot_frame(24, 30).write_parquet(root / "table.parquet")
    typed("trace", "convert", "queue-snapshots", root / "table.parquet", "--out", root / "waits.parquet")
    for until in (UNTIL, "2021-05-12T00:00:00Z"):
        typed("train", "queue-wait", "--trace", root / "waits.parquet", "--until", until, home=root / "home")
    return root


@pytest.fixture
def shell_home(trained):
    return trained / "home"


@pytest.fixture
def trace(trained):
    return trained / "waits.parquet"


def test_a_version_is_scored_beside_rules(shell, trace):
    told = shell.json("evaluate", "queue-wait", "--trace", trace, "--from", UNTIL)
    assert (told["n"], told["unknown"], told["version"]) == (10 * 30, 0, 1)
    keys = {"mse_log10", "within_2x", "within_3x", "median_factor", "coverage_90", "bound_median_s", "wait_median_s"}
    assert keys <= set(told)
    assert keys <= set(told["groups"]["gpu"])
    assert told["mse_log10"] < told["baselines"]["pool_median"]["mse_log10"]
    assert told["against"]["lightgbm_l1"]["gpu"]["interval"][0] <= told["against"]["lightgbm_l1"]["gpu"]["interval"][1]
    assert [week["from"] for week in told["weeks"]] == ["2021-05-15T00:00:00Z", "2021-05-22T00:00:00Z"]
    assert sum(week["n"] for week in told["weeks"]) == told["n"]


def test_training_anew_each_week_needs_no_version_and_keeps_none(shell, trace):
    asked = ("evaluate", "queue-wait", "--trace", trace, "--from", UNTIL, "--retrain", "weekly", "--no-paper-recipe")
    told = shell.json(*asked)
    assert (told["n"], told["version"], told["trained"]["until"]) == (300, None, [UNTIL, "2021-05-22T00:00:00Z"])
    assert evaluation_table(told).startswith("queue-wait trained anew for each stretch on 2021-05-15")
    assert set(told["baselines"]) == {"pool_median"}
    listed = shell.json("models", "list")
    assert {one["version"] for one in listed["models"] if one["name"] == "queue-wait"} == {1, 2}
    assert shell.refuses(*asked, "--log").startswith("--log: keeps figures beside a version")


def test_what_was_trained_later_is_refused(shell, trace):
    line = shell.refuses("evaluate", "queue-wait", "--trace", trace, "--from", "2021-05-10")
    assert "was trained on data until 2021-05-15" in line


def test_pending_jobs_are_answered_from_the_last_snapshot_on(shell, trace):
    told = shell.json("predict", "queue-wait", "--trace", trace, "--at", AT)
    assert told["from"] == "2021-05-20T12:00:00Z"
    queue = Queue.of(read_trace(trace))
    at_s = 1621533600.0
    still = (queue.start_s > at_s) & (queue.seen_s == at_s - 6 * 3600)
    assert 0 < len(told["jobs"]) == still.sum()
    for row in told["jobs"].values():
        ends = [row[name] for name in ("low_90_s", "low_50_s", "wait_s", "high_50_s", "bound_90_s", "high_90_s")]
        assert ends == sorted(ends)
    assert "bound_90_s" in shell.works("predict", "queue-wait", "--trace", trace, "--at", AT).out
    # without --at: the last snapshot, with all that it holds
    now = shell.json("predict", "queue-wait", "--trace", trace)
    assert now["at"] == now["from"] > told["from"]
    assert len(now["jobs"]) == (queue.seen_s == queue.seen_s.max()).sum()


def test_jobs_that_wait_since_an_earlier_snapshot_are_counted_and_told(shell, trace):
    """A trace has a row a job, so that of those seen before nothing is known of their place in the last snapshot."""
    queue = Queue.of(read_trace(trace))
    counts = {at_s: int(((queue.start_s > at_s) & (queue.seen_s < at_s)).sum()) for at_s in np.unique(queue.seen_s)}
    at_s, older = max(counts.items(), key=lambda one: one[1])
    assert older > 0
    asked = ("predict", "queue-wait", "--trace", trace, "--at", iso(at_s))
    assert shell.json(*asked)["unanswered"] == older
    assert f"note: {older} job" in shell.works(*asked).out


def test_a_frame_of_answers_is_of_waits_as_the_command_tells_them(shell, trace, trained):
    for at in (AT, None):
        told = shell.json("predict", "queue-wait", "--trace", trace, *(("--at", at) if at else ()))
        frame = jc.forecast("queue-wait", trace, at=at, home=trained / "home")
        assert frame["cutoff"].unique().tolist() == [pd.Timestamp(told["at"])]
        said = {name: row["wait_s"] for name, row in told["jobs"].items()}
        assert dict(zip(frame["unique_id"], frame["y_pred"], strict=True)) == said


def test_versions_are_watched_and_compared_on_rows(shell, trace):
    told = shell.json("drift", "queue-wait", "--trace", trace)
    block = told["weeks"][0]["blocks"]["jobs"]
    assert {"coverage_90", "skill", "mae_log10"} <= set(block)
    assert block["n"] > 0
    # The second version saw three days less.
    answer = shell("models", "promote", "queue-wait:2", "--trace", trace, "--from", UNTIL)
    assert answer.code == 2
    assert "queue-wait:2 is worse than champion 1" in answer.err
    assert "mae_log10" in answer.err


def test_pools_that_came_after_the_training_time_are_not_named(trace):
    table = read_trace(trace)
    until_s = float(table.seen_s[len(table) // 2])
    late = pl.Series(table.submit_s >= until_s)
    jobs = table.jobs.with_columns(pool=pl.when(late).then(pl.lit("later")).otherwise("pool"))
    known = Known(replace(table, jobs=jobs), until_s=until_s)
    assert "later" not in find_predictor("queue-wait").data(known).pools


def test_a_bound_that_did_not_hold_in_validation_is_told_and_kept(shell, tmp_path):
    """An hour's wait of a job each half hour that takes four days in the last of four, sooner than queues show."""
    hours = np.arange(8 * 48) / 2
    submit_s = 3600.0 * hours
    waits_h = np.exp(np.random.default_rng(0).normal(0.0, 0.4, len(hours))) * np.where(hours > 6 * 24, 96.0, 1.0)
    path = tmp_path / "later.csv"
    frame_of(submit_s, start_time=submit_s + 3600.0 * waits_h).write_csv(path)
    told = shell.json("train", "queue-wait", "--trace", path)
    assert told["validation"]["coverage_90"] < 0.2
    (line,) = told["weak_validation"]
    assert line.startswith("90 % intervals held")
    assert training_table(told).splitlines()[-1] == f"warning: {line}"
    (card,) = [one.read_text() for one in shell.home.rglob("model_card.md") if f"warning: {line}" in one.read_text()]
    assert "later" in card


def test_options_of_others_are_refused(shell, trace):
    line = shell.refuses("evaluate", "job-size", "--trace", trace, "--retrain", "weekly")
    assert line == "--retrain: goes with the predictor queue-wait, not with job-size; leave it out"
    assert "does not go with" in shell.refuses("train", "queue-wait", "--trace", trace, "--horizons", "5")


def test_a_simulated_trace_teaches_as_well_and_one_without_starts_is_refused(shell, tmp_path):
    room = tmp_path
    shell.works("trace", "generate", "campus", "--out", room / "plain.parquet", "--pools-out", room / "pools.csv",
                "--set", "weeks=2", "--set", "pools=2", "--set", "jobs=400")  # fmt: skip
    line = shell.refuses("train", "queue-wait", "--trace", room / "plain.parquet")
    assert "column start_time missing, so that no wait is known" in line
    shell.works("simulate", "--trace", room / "plain.parquet", "--policy", "fcfs", "--gpus", 4, "--drop-too-wide",
                "--baseline", "none", "--out", room / "ran.parquet")  # fmt: skip
    told = shell.json("train", "queue-wait", "--trace", room / "ran.parquet")
    assert json.dumps(told["validation"])
    assert told["training"]["calibrated_rows"] > 0
    assert told["training"]["by_drain"] in (True, False)
