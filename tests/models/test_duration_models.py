"""What forecasts of duration bins learn from how jobs turn out: by hand, and what it is worth."""

import json
import math

import numpy as np
import pytest

from jobcast.domain.errors import TrainingError
from jobcast.models.calibration_rates import (
    FORECASTS,
    FORGOTTEN,
    HEAD_START,
    LEAST_TEMPER,
    MOST_TEMPER,
    SHIFT_RATE,
    TEMPER_RATE,
    TRUST_RATE,
)
from jobcast.models.duration_booster import DurationSettings, cheapest_bin, log_loss, overstays_h
from jobcast.models.duration_calibration import Calibration, calibrated_proba, steps_of
from jobcast.models.duration_data import DurationData, OutOfFold, out_of_fold, selection_table
from jobcast.models.duration_selection import FALLBACK, select, tune_durations
from jobcast.models.evaluation import evaluate_durations
from jobcast.models.evaluation.durations import _confident, duration_intervals, tag_ablation
from jobcast.models.evaluation.intervals import days_of
from jobcast.models.job_duration import ALGORITHMS, JobDuration
from jobcast.models.scores import bin_scores
from jobcast.traces.generators import generate
from jobcast.traces.table import Trace
from tests.models.drawn_days import drawn_intervals, near
from tests.scenarios import frame_of, trace_of

K = len(FORECASTS)
DAY_S = 86400.0


def parts(booster, rules):
    """The booster's probabilities, and the same of each rule."""
    return np.array([booster, *[rules] * (K - 1)])


def test_before_anything_is_known_the_booster_counts_most():
    known = Calibration.untaught(2).known("a")
    assert known[0] == pytest.approx(math.exp(HEAD_START) / (math.exp(HEAD_START) + K - 1))
    assert known[K:].tolist() == [1.0, 0.0, 0.0]
    told = calibrated_proba(parts([0.9, 0.1], [0.5, 0.5])[None], known[None])
    assert told[0] == pytest.approx(known[0] * np.array([0.9, 0.1]) + (1 - known[0]) * 0.5)


@pytest.mark.parametrize("far", [-2000.0, 2000.0])
def test_what_all_weights_or_all_shifts_have_in_common_changes_nothing(far):
    calibration = Calibration.untaught(2)
    calibration.state[:K] += far
    calibration.state[K + 1 :] = far
    known = calibration.known("a")
    assert known[:K] == pytest.approx(Calibration.untaught(2).known("a")[:K])
    told = parts([0.9, 0.1], [0.9, 0.1])
    assert calibrated_proba(told[None], known[None])[0] == pytest.approx([0.9, 0.1])


def test_another_pool_has_shifts_of_its_own():
    calibration = Calibration.untaught(2)
    for _ in range(100):
        calibration.learn(parts([0.5, 0.5], [0.5, 0.5]), 1, 1.0, "a")
    a, b = (calibration.known(pool)[K + 1 :] for pool in ("a", "b"))
    assert a[1] - a[0] == pytest.approx(2 * (b[1] - b[0]))
    assert set(calibration.shifts) == {"a"}


def softmax(values):
    exp = np.exp(values - values.max())
    return exp / exp.sum()


def after_one_job(told, which, step, state, shifts):
    """State and shifts of the pool after a step down the log loss, in vectors."""
    log_weights, power, common = state[:K], state[K], state[K + 1 :]
    mixed = softmax(log_weights) @ told
    miss = softmax(power * np.log(mixed) + common + shifts) - np.eye(told.shape[1])[which]
    head_start = HEAD_START * (np.arange(K) == 0)
    weights = log_weights + step * (TRUST_RATE * np.log(told[:, which]) - FORGOTTEN * (log_weights - head_start))
    steeper = power - step * (TEMPER_RATE * miss @ np.log(mixed) + FORGOTTEN * (power - 1.0))
    of_all, of_pool = (one - step * (SHIFT_RATE * miss + FORGOTTEN * one) for one in (common, shifts))
    return np.concatenate([weights, [np.clip(steeper, LEAST_TEMPER, MOST_TEMPER)], of_all]), of_pool


@pytest.mark.parametrize("seed", range(5))
def test_a_job_moves_all_that_is_known_one_step_down_the_log_loss(seed):
    rng = np.random.default_rng(seed)
    calibration = Calibration.untaught(3)
    calibration.state[:] = rng.normal(0.5, 1.0, K + 4)
    calibration.state[K] = (0.7, 1.0, 1.4, LEAST_TEMPER, MOST_TEMPER)[seed]
    calibration.shifts["a"] = rng.normal(0.0, 0.5, 3)
    told, which, step = rng.dirichlet(np.ones(3), K), int(rng.integers(3)), 0.5
    state, shifts = after_one_job(told, which, step, calibration.state.copy(), calibration.shifts["a"].copy())
    calibration.learn(told, which, step, "a")
    assert calibration.state == pytest.approx(state, rel=1e-12)
    assert calibration.shifts["a"] == pytest.approx(shifts, rel=1e-12)


def test_rows_are_calibrated_each_by_what_was_known():
    rng = np.random.default_rng(3)
    n = 2 * K
    told, known = rng.dirichlet(np.ones(3), (n, K)), rng.normal(0.0, 1.0, (n, K + 4))
    known[:, :K] = rng.dirichlet(np.ones(K), n)
    expected = [softmax(one[K] * np.log(one[:K] @ part) + one[K + 1 :]) for part, one in zip(told, known, strict=True)]
    assert calibrated_proba(told, known) == pytest.approx(np.array(expected), rel=1e-12)


def test_what_is_settled_at_a_submission_is_known_to_it():
    told = np.full((3, K, 2), 0.5)
    submit_s, settled_s = np.array([0.0, 10.0, 20.0]), np.array([10.0, 20.5, 30.0])
    calibration = Calibration.untaught(2)
    known = calibration.replayed(
        told, submit_s, np.arange(3), settled_s, np.array([1, 1, 1]), np.zeros(3, np.int64), np.array(["a"] * 3)
    )
    fresh, once = Calibration.untaught(2), Calibration.untaught(2)
    once.learn(told[0], 1, steps_of(np.arange(3), np.zeros(3, np.int64))[0], "a")
    for found, expected in zip(known, (fresh, once, once), strict=True):
        assert np.array_equal(found, expected.known("a"))


def test_a_replay_is_one_job_after_another():
    rng = np.random.default_rng(1)
    n = 60
    told = rng.dirichlet(np.ones(3), (n, K))
    submit_s, bins, burst = np.sort(rng.uniform(0, 10 * DAY_S, n)), rng.integers(0, 3, n), rng.integers(0, 20, n)
    pool, settled_s = rng.choice(["a", "b"], n), submit_s + DAY_S
    lessons = np.arange(n)
    replayed = Calibration.untaught(3)
    known = replayed.replayed(told, submit_s, lessons, settled_s, bins, burst, pool)
    single, taught, steps = Calibration.untaught(3), 0, steps_of(lessons, burst)
    for job in range(n):
        while settled_s[taught] <= submit_s[job]:
            single.learn(told[taught], int(bins[taught]), steps[taught], str(pool[taught]))
            taught += 1
        assert np.array_equal(known[job], single.known(str(pool[job])))
    assert 0 < taught < n
    for job in range(taught, n):
        single.learn(told[job], int(bins[job]), steps[job], str(pool[job]))
    assert np.array_equal(replayed.state, single.state)


def test_jobs_teach_at_one_age_and_those_of_unseen_pools_whenever_they_ran():
    model = JobDuration(algorithm="tag-pool-width")
    model.pools_, model.trained_until_s_ = ("a",), 5 * DAY_S
    settled_s = [4 * DAY_S, 5 * DAY_S, 4 * DAY_S]
    assert model.teaches(["a", "a", "b"], settled_s).tolist() == [False, True, True]


# How an algorithm and settings are chosen: out of fold, in order of time.

HORIZONS = (5, 60, 720)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    n = 600
    submit = np.sort(rng.uniform(0, 20 * DAY_S, n)).round()
    pool = rng.choice(["a", "b"], n)
    duration = (np.where(pool == "a", 200.0, 2500.0) * rng.lognormal(0, 0.6, n)).round() + 1
    return DurationData.of(Trace.from_frame(frame_of(submit, duration=duration, pool=pool), name="two pools"), HORIZONS)


def test_forecasters_see_what_ended_before_their_fold(data):
    until_s, seen = 18 * DAY_S, []

    def forecaster(known, scored, from_s):
        seen.append((known.known_s.max(), from_s, scored.submit_s.min(), scored.known_s.max()))
        return np.full((len(scored), 4), 0.25)

    parts = out_of_fold(data.known(until_s), until_s, {"even": forecaster})
    assert all(last < from_s <= first and end < until_s for last, from_s, first, end in seen)
    assert len(seen) == 3
    assert parts.fold.tolist() == sorted(parts.fold.tolist())
    assert log_loss(parts.proba["even"], parts.bins) == pytest.approx(np.log(4))


def test_the_table_begins_with_the_least_log_loss():
    bins, fold = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    proba = {"coin": np.full((4, 2), 0.5), "oracle": np.eye(2)[bins]}
    table = selection_table(OutOfFold(proba, bins, fold), (5,))
    assert [(row["algorithm"], row["fold"]) for row in table] == [
        (name, fold) for name in ("oracle", "coin") for fold in ("0", "1", "all")
    ]
    assert table[0]["log_loss"] == 0.0
    assert table[5]["log_loss"] == pytest.approx(np.log(2))


def test_all_algorithms_are_compared(data):
    chosen = select(data, 18 * DAY_S)
    overall = {row["algorithm"]: row["log_loss"] for row in chosen.table if row["fold"] == "all"}
    assert set(overall) == set(ALGORITHMS)
    assert chosen.algorithm == "blended"
    assert overall["blended"] < min(overall.values()) + 0.05


def test_without_folds_the_rule_is_taken(data):
    chosen = select(data.among(np.arange(len(data)) < 30), 18 * DAY_S)
    assert (chosen.algorithm, chosen.table) == (FALLBACK, [])


def test_a_search_is_repeatable_and_no_worse_than_the_defaults(data):
    settings, trials = tune_durations(data, 18 * DAY_S, 3, seed=5)
    again, same = tune_durations(data, 18 * DAY_S, 3, seed=5)
    assert settings == again
    assert trials == same
    assert [trial["trial"] for trial in trials] == [0, 1, 2]
    assert {trials[0][name] for name in ("trees", "leaves")} == {DurationSettings().trees, DurationSettings().leaves}
    complete = [trial["value"] for trial in trials if trial["state"] == "complete"]
    best = next(trial for trial in trials if trial["value"] == min(complete))
    assert best["trees"] == settings.trees
    assert min(complete) <= trials[0]["value"]


def test_what_comes_later_does_not_change_a_search(data):
    before = data.among(data.known_s < 18 * DAY_S)
    assert tune_durations(data, 18 * DAY_S, 1) == tune_durations(before, 18 * DAY_S, 1)


def test_no_search_without_folds(data):
    assert tune_durations(data.among(np.arange(len(data)) < 30), 18 * DAY_S, 3) == (DurationSettings(), [])


HOURS = np.triu(np.array([[0.0, 0.5, 3.0, 40.0], [0.0, 0.0, 2.0, 39.0], [0.0, 0.0, 0.0, 28.0], [0.0] * 4]))


def test_costs_may_differ_by_job():
    """Against the costs summed up one by one."""
    proba = np.random.default_rng(1).dirichlet(np.ones(4), 200)
    costs = np.random.default_rng(2).uniform(0.0, 3.0, 200)
    told = cheapest_bin(proba, HOURS, costs)
    for row, cost, chosen in zip(proba, costs, told, strict=True):
        expected = [sum(p * (max(i - j, 0) + cost * HOURS[i, j]) for j, p in enumerate(row)) for i in range(4)]
        assert chosen == min(range(4), key=expected.__getitem__)


def test_the_dearer_overstaying_the_longer_the_bin():
    proba = np.random.default_rng(3).dirichlet(np.ones(4), 200)
    told = np.array([cheapest_bin(proba, HOURS, cost) for cost in (0.0, 0.1, 1.0, 10.0, 1e6)])
    assert (np.diff(told, axis=0) >= 0).all()
    assert (told[0] == 0).all()  # what costs nothing is risked
    assert (told[-1] == 3).all()


def test_how_long_jobs_overstay():
    # Bins up to 5 and 60 minutes; run times of 1 and 3 minutes, of none, of 2 and 4 hours.
    told = overstays_h(np.array([60.0, 180.0, 7200.0, 14400.0]), np.array([0, 0, 2, 2]), (5, 60))
    assert told == pytest.approx(np.array([[0.0, 0.0, 3 - 1 / 12], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))


# Figures of duration bins: by hand, and what is told beside them.

RULE = {"algorithm": "tag-pool-width"}


def durations(rows):
    """Trace of (submit_s, duration_s, pool), one GPU each."""
    return trace_of("submit_time duration pool", rows)


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
    tagged = trace_of("submit_time duration pool", rows, tag=["long", "short"] * 20)
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
