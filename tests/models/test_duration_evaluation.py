"""Figures of duration bins: by hand, and what is told beside them."""

import json
import math

import numpy as np
import polars as pl
import pytest

from jobcast.domain.errors import TrainingError
from jobcast.models.evaluation import evaluate_durations
from jobcast.models.evaluation.durations import _confident, duration_intervals, tag_ablation
from jobcast.models.evaluation.intervals import days_of
from jobcast.models.job_duration import JobDuration
from jobcast.models.scores import bin_scores
from jobcast.traces.generators import generate
from jobcast.traces.table import Trace
from tests.models.drawn_days import drawn_intervals, near

DAY_S = 86400.0
RULE = {"algorithm": "tag-pool-width"}


def durations(rows):
    """Trace of (submit_s, duration_s, pool), one GPU each."""
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("submit_time", "duration", "pool"))}
    frame = pl.DataFrame(columns).with_columns(
        gpus=pl.lit(1), job_id=pl.int_range(pl.len()).cast(pl.String).str.zfill(4)
    )
    return Trace.from_frame(frame, name="test")


@pytest.fixture
def few():
    return durations(
        [
            (0.0, 60.0, "a"),
            (0.0, 1000.0, "a"),
            (0.0, 1000.0, "b"),
            (2000.0, 60.0, "b"),  # forecast 5-60min: over-predicted
            (2100.0, 4000.0, "b"),  # one of 60 s, one of 1000 s has finished: the longer of equals, too short still
            (2200.0, 1000.0, "a"),  # one of each: 5-60min, right
            (2300.0, 9000.0, "a"),  # not finished at 10000
        ]
    )


def test_by_hand(few):
    model = JobDuration(**RULE).fit(few, 1500.0)
    told = evaluate_durations(model, few, 1500.0, 10_000.0)
    assert told["n"] == 3
    assert told["unknown"] == 1
    assert told["accuracy"] == told["under_predicted"] == told["over_predicted"] == pytest.approx(1 / 3)
    assert {"macro_f1", "log_loss", "ece", "by_bin", "confident_half"} <= set(told)
    assert told["by_pool"]["a"]["accuracy"] == 1.0
    assert told["by_pool"]["b"]["n"] == told["by_width"]["1"]["n"] - 1 == 2
    assert set(told["intervals"].values()) == {None}  # of one day
    assert json.dumps(told, allow_nan=False)
    assert evaluate_durations(model, few, 1500.0, 10_000.0, pools=["b"])["n"] == 2


def test_jobs_of_a_window_are_submitted_in_it_and_known_to_have_ended(few):
    model = JobDuration(**RULE).fit(few, 1500.0)
    told = evaluate_durations(model, few, 2000.0, 3200.0)  # the ends of 2060 and 3200 s, and two to come
    assert (told["n"], told["unknown"]) == (2, 2)


@pytest.mark.parametrize(("count", "n", "accuracy", "least"), [(4, 2, 0.5, 0.6), (2, 1, 1.0, 0.9), (1, 1, 1.0, 0.9)])
def test_the_surer_half_is_scored_by_itself(count, n, accuracy, least):
    truth, forecast = np.array([0, 1, 0, 0])[:count], np.array([0, 0, 0, 1])[:count]
    probability = np.array([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.5, 0.5]])[:count]
    assert _confident(truth, forecast, probability) == {"n": n, "accuracy": accuracy, "least": least}


def test_where_tags_tell_run_times_they_are_worth_it():
    """Of a pool and width every second job is short, as its tag says."""
    rows = [(100.0 * i, 60.0 if i % 2 else 2000.0, "a") for i in range(40)]
    trace = durations(rows)
    tagged = Trace.from_frame(trace.jobs.with_columns(tag=pl.Series(["long", "short"] * 20)), name="test")
    model = JobDuration(**RULE).fit(tagged, 3000.0)
    told = tag_ablation(model, tagged, 3000.0, 10_000.0)
    assert list(told) == ["with tags", "without tags"]
    assert told["with tags"]["accuracy"] == told["with tags"]["rule"]["accuracy"] == 1.0
    assert told["without tags"]["accuracy"] == told["without tags"]["rule"]["accuracy"] == 0.5


def test_baselines_by_hand(few):
    model = JobDuration(**RULE).fit(few, 1500.0)
    told = evaluate_durations(model, few, 1500.0, 10_000.0)["baselines"]
    assert set(told) == {"majority", "last_finished", "last_20_pool_width", "tag_pool_width"}
    # The last job finished before each: 1000 s, 60 s, 1000 s; the truth 60 s, 4000 s, 1000 s.
    assert told["last_finished"]["accuracy"] == pytest.approx(1 / 3)
    assert told["last_finished"]["under_predicted"] == pytest.approx(1 / 3)
    assert told["majority"]["accuracy"] == pytest.approx(1 / 3)
    # Training: 1 of 3 up to 5 minutes, 2 of 3 up to an hour, none longer.
    tiny = np.finfo(np.float64).tiny
    assert told["majority"]["log_loss"] == pytest.approx(-(math.log(1 / 3) + math.log(tiny) + math.log(2 / 3)) / 3)
    figures = ("accuracy", "macro_f1", "log_loss", "ece", "under_predicted")
    own = evaluate_durations(model, few, 1500.0, 10_000.0)
    assert [told["tag_pool_width"][name] for name in figures] == [own[name] for name in figures]


def test_what_a_scheduler_is_told_is_scored(few):
    model = JobDuration(**RULE, under_cost=1e6).fit(few, 1500.0)
    told = evaluate_durations(model, few, 1500.0, 10_000.0)["choose"]
    # No bin beyond an hour has a probability: 60 s is told too long, 4000 s too short, 1000 s right.
    assert told == {"under_cost": 1e6, "accuracy": 1 / 3, "under_predicted": 1 / 3, "over_predicted": 1 / 3}


def test_what_cannot_be_scored_is_refused():
    trace = durations([(0.0, 60.0, "a"), (100.0, 5000.0, "a")])
    with pytest.raises(TrainingError, match="test: no job of the window ended in it"):
        evaluate_durations(JobDuration(**RULE).fit(trace, 100.0), trace, 100.0, 200.0)


def test_intervals_are_of_the_figures_of_drawn_days():
    rng = np.random.default_rng(1)
    probability = rng.dirichlet(np.ones(4), 200)
    truth, forecast = rng.integers(0, 3, 200), probability.argmax(axis=1)  # the last bin is forecast alone
    submit_s = np.sort(rng.uniform(0, 10 * DAY_S, 200))

    def figures(rows):
        told = bin_scores(truth[rows], forecast[rows], probability[rows], list("abcd"))
        return {name: told[name] for name in ("accuracy", "under_predicted", "log_loss", "macro_f1", "ece")}

    told = duration_intervals(truth, forecast, probability, submit_s, draws=20)
    assert near(told, drawn_intervals(days_of(submit_s), 20, 0, figures))
    assert duration_intervals(truth, forecast, probability, submit_s, draws=0) == {}


@pytest.mark.slow
def test_tags_raise_accuracy_where_jobs_of_a_tag_are_alike():
    """Run times of a generated campus hang together within tags."""
    trace, _ = generate("campus", seed=1, settings={"jobs": "6000", "weeks": "3"})
    begin = float(trace.submit_s[0])
    model = JobDuration(algorithm="lightgbm").fit(trace, begin + 14 * DAY_S)
    told = tag_ablation(model, trace, begin + 14 * DAY_S, begin + 21 * DAY_S)
    tags, none = told["with tags"], told["without tags"]
    assert tags["accuracy"] > none["accuracy"]
    assert tags["log_loss"] < none["log_loss"] - 0.01
    assert tags["rule"]["accuracy"] > none["rule"]["accuracy"]
