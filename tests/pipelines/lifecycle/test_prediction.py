"""`jobcast predict`: what a version says at an instant, from what was known then."""

from dataclasses import replace

import numpy as np
import pytest

from jobcast.models.predictor import Known
from jobcast.pipelines.lifecycle.evaluation import predict_known, prediction_table
from jobcast.traces.readers import read_trace

AT_S = 1704531600.0  # 2024-01-06T09:00:00Z
NAMES = ("will-jobs-arrive", "new-load", "job-duration")


@pytest.fixture(scope="module")
def trace(run):
    return read_trace(run.trace)


def answer(run, trace, name, at_s=AT_S):
    return predict_known((name, None), Known(trace, {}, None, at_s), {"at_s": at_s}, home=run.home)


def test_arrivals_come_by_pool_and_horizon(run, trace):
    told = answer(run, trace, "will-jobs-arrive")
    assert set(told["pools"]) == set(trace.pools)
    for by_horizon in told["pools"].values():
        assert list(by_horizon) == ["5min", "60min"]
        for one in by_horizon.values():
            assert 0 <= one["probability"] <= 1
            assert {type(one["arrives"]), type(one["gate"])} == {bool}
    assert (told["at"], told["version"], told["overlap"]) == ("2024-01-06T09:00:00Z", 1, False)


def test_declared_is_what_reaches_the_threshold_that_evaluate_tells(shell, run, trace):
    told = answer(run, trace, "will-jobs-arrive")
    figures = shell.json("evaluate", "will-jobs-arrive", "--trace", run.trace)["horizons"]
    for by_horizon in told["pools"].values():
        for horizon, one in by_horizon.items():
            assert one["arrives"] == (one["probability"] >= figures[horizon]["threshold"])
            assert one["gate"] == (one["probability"] >= figures[horizon]["gate"]["threshold"])


def test_durations_are_of_the_jobs_that_have_not_ended(run, trace):
    told = answer(run, trace, "job-duration")
    unfinished = (trace.submit_s <= AT_S) & (trace.end_s > AT_S)
    ids = trace.jobs["job_id"].to_numpy()
    assert list(told["jobs"]) == ids[unfinished].tolist() != []
    for one in told["jobs"].values():
        assert sum(one["probabilities"].values()) == pytest.approx(1.0)
        assert one["bin"] in one["probabilities"]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_after_the_instant_is_read(run, trace, name):
    """Jobs of later are not there, and what ends later could end at any time."""
    known = trace.between(None, float(np.nextafter(AT_S, np.inf)))
    assert answer(run, known, name) == answer(run, trace, name)
    longer = known.jobs.with_columns(duration=np.where(known.end_s > AT_S, known.duration_s + 5e5, known.duration_s))
    assert answer(run, replace(known, jobs=longer), name) == answer(run, trace, name)


def test_an_instant_within_the_training_time_is_answered_and_marked(shell, run):
    words = ("predict", "new-load", "--trace", run.trace, "--at", "2024-01-04")
    assert shell.json(*words)["overlap"] is True
    assert "trained on what comes after this instant" in shell.works(*words).out


@pytest.mark.parametrize("name", NAMES)
def test_whoever_was_trained_on_another_cluster_says_so(run, trace, name):
    assert "another_cluster" not in answer(run, trace, name)
    other = replace(trace, jobs=trace.jobs.with_columns(pool="elsewhere " + trace.jobs["pool"]))
    told = answer(run, other, name)
    line = f"{name} 1 was trained on another cluster ("
    assert [told["another_cluster"][0].startswith(line), len(told["another_cluster"])] == [True, 1]
    assert f"warning: {line}" in prediction_table({"predictor": name, **told})


def test_a_trace_that_ended_long_before_the_instant_is_told(run, trace):
    assert "silent_s" not in answer(run, trace, "new-load")
    last_s = float(trace.submit_s[-1])
    told = answer(run, trace, "new-load", last_s + 8 * 86_400)
    assert told["silent_s"] == 8 * 86_400
    line = "warning: no job was submitted in the 8.00 d before: has the trace what came of late?"
    assert prediction_table({"predictor": "new-load", **told}).endswith(line)


def test_tables_have_a_line_a_pool_or_job(shell, run, trace):
    words = ("--trace", run.trace, "--at", "2024-01-06T10:00:00+01:00")
    out = shell.works("predict", "will-jobs-arrive", *words).out
    assert out.splitlines()[0] == "will-jobs-arrive 1 at 2024-01-06T09:00:00Z"
    assert [line.split()[0] for line in out.splitlines()[1:]] == trace.pools
    out = shell.works("predict", "job-duration", *words).out
    assert len(out.splitlines()) == 1 + len(answer(run, trace, "job-duration")["jobs"])
    assert "GPUs" in shell.works("predict", "new-load", "--trace", run.trace, "--at", AT_S).out
