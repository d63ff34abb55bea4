"""Rows of single jobs: their figures by hand, and what draws of days make of them."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.evaluation.curves import score_curves
from jobcast.models.evaluation.intervals import DayDraws, days_of
from jobcast.models.evaluation.regimes import crps
from jobcast.models.predictors import PREDICTORS, answers_of, ours_for
from jobcast.pipelines.lifecycle.drift_verdict import FINE, RETRAIN, WATCH, findings, settled, verdict_of
from jobcast.pipelines.lifecycle.forecast_rows import ArrivalRows, DurationRows, LoadRows, Sample, known_of_both
from jobcast.pipelines.lifecycle.job_rows import (
    CurveRows,
    GainRows,
    IntervalRows,
    LogRows,
    RegimeRows,
    ShareRows,
    curve_table_rows,
)
from jobcast.pipelines.lifecycle.standards import LIVES, judged
from jobcast.traces.learning_curves import CurveTable, LearningCurve
from jobcast.traces.table import Trace, ends_known_after
from tests.scenarios import frame_of

DAY_S = 86400.0
TIME_S = np.array([0.0, DAY_S])
POOLS = np.array(["a", "b"])


def test_regimes_by_hand():
    rows = RegimeRows(
        TIME_S, TIME_S, POOLS, np.array([0.1, 0.3]), np.array([0.5, 0.3]), np.array([1.0, 0.0]),
        np.array([4.0, 8.0]), np.array([10.0, 20.0]),
    )  # fmt: skip
    assert rows.figures() == {
        "n": 2, "crps": 0.2, "restatement_crps": 0.4, "skill": 0.5, "coverage_90": 0.5, "regime_error": 6.0,
        "time_error": 15.0,
    }  # fmt: skip
    assert rows.of(rows.pool == "b").figures()["skill"] == 0.0


def test_epoch_times_by_hand():
    rows = ShareRows(TIME_S, TIME_S, POOLS, np.array([0.1, 0.2]), np.array([0.3, 0.3]), np.array([1.0, 0.8]))
    told = rows.figures()
    assert told["mape"] == pytest.approx(0.15)
    assert told["skill"] == pytest.approx(0.5)
    assert told["coverage_90"] == pytest.approx(0.9)


def test_gains_by_hand():
    rows = GainRows(TIME_S, TIME_S, POOLS, np.array([50.0, 400.0]), np.array([100.0, 200.0]))
    assert rows.figures() == {
        "n": 2, "speedup": pytest.approx(1.0), "slowed": 0.5, "mean_jct_s": 225.0, "baseline_jct_s": 150.0
    }  # fmt: skip
    drawn = rows.main_draws(DayDraws(days_of(rows.time_s), 50))
    assert set(np.round(drawn, 9)) <= {2.0, 1.0, 0.5}


def waits(at_s, wait_s, median_s, bound_s, rule_s=None):
    """Waits of jobs of pool a that were asked about at instants; the rule's are the medians where none are given."""
    rule_s, bound_s = median_s if rule_s is None else rule_s, bound_s * np.ones(len(at_s))
    off, rule_off = (np.abs(np.log10(wait_s / told_s)) for told_s in (median_s, rule_s))
    covered = (wait_s <= bound_s).astype(float)
    told = (told_s * np.ones(len(at_s)) for told_s in (median_s, rule_s))
    return LogRows(at_s, at_s + wait_s, np.full(len(at_s), "a"), off, rule_off, covered, at_s, *told, bound_s)


def verdict(rows, predictor, nominal, begins_s, until_s):
    """On rows of jobs, by the limits of a predictor."""
    return verdict_of(findings({"jobs": rows}, LIVES[answers_of(predictor)].limits, nominal, begins_s, until_s))


WAITS = {"coverage_90": 0.9, "mae_log10": np.log10(2.0)}
"""What was promised of waits."""


def test_who_waits_on_beyond_the_bound_has_broken_it_by_hand():
    """Median 10 s, rule 50 s, bound 100 s, asked at 0 s: three that start after 20 s and 400 s, and never."""
    rows = waits(np.zeros(3), np.array([20.0, 400.0, np.inf]), 10.0, 100.0, 50.0)
    # The bound has not passed: only who started is known.
    assert rows.as_of(100.0).known_s.tolist() == rows.known_s.tolist()
    then = rows.as_of(200.0)
    assert then.known_s.tolist() == [20.0, 100.0, 100.0]
    assert then.covered.tolist() == [1.0, 0.0, 0.0]
    assert then.error.tolist() == pytest.approx(np.log10([2.0, 20.0, 20.0]).tolist())
    assert then.rule_error.tolist() == pytest.approx(np.log10([2.5, 4.0, 4.0]).tolist())
    assert rows.as_of(500.0).error.tolist() == pytest.approx(np.log10([2.0, 40.0, 50.0]).tolist())


def test_a_queue_in_which_nothing_starts_any_longer_is_told():
    """An hour's wait is told as twice and at most thrice that; from the second week on nobody starts."""
    at_s = np.arange(0.0, 14 * DAY_S, 7200.0)
    rows = waits(at_s, np.where(at_s >= 7 * DAY_S, np.inf, 3600.0), 7200.0, 3 * 3600.0)
    for begins_s, says in (([0.0], FINE), ([0.0, 7 * DAY_S], RETRAIN)):
        assert verdict(rows, "queue-wait", WAITS, begins_s, begins_s[-1] + 7 * DAY_S).says == says


def test_a_bound_is_judged_once_it_has_passed_and_does_not_wait_for_who_waits_on():
    """Told two hours and at most three; from the second week on all wait for six days: of few that is known as yet."""
    at_s, now_s = np.arange(0.0, 14 * DAY_S, 7200.0), 14 * DAY_S
    rows = waits(at_s, np.where(at_s >= 7 * DAY_S, 6 * DAY_S, 3600.0), 7200.0, 3 * 3600.0)
    # Errors of the last six days are of those alone that had started: they wait. Bounds do so for three hours.
    assert settled(rows, now_s, "mae_log10").time_s.max() == 8 * DAY_S
    bounds = settled(rows, now_s, "coverage_90")
    assert (bounds.time_s.max(), bounds.covered.mean()) == (now_s - 4 * 3600.0, pytest.approx(84 / 167))
    said = verdict(rows, "queue-wait", WAITS, [0.0, 7 * DAY_S], now_s)
    assert said.says == RETRAIN
    assert {one.figure for one in said.off} == {"coverage_90"}


def test_of_two_versions_who_broke_one_bound_counts_for_both_by_hand():
    """Asked at 0 s, looked at at 500 s: a job started at 50 s, two wait on, of bounds of 100 and of 1000 s."""
    wait_s = np.array([50.0, np.inf, np.inf])
    bold, careful = (
        waits(np.zeros(3), wait_s, 10.0, bound_s) for bound_s in (np.array([100.0, 100.0, 1000.0]), 1000.0)
    )
    ours, theirs = known_of_both({"jobs": bold}, {"jobs": careful}, 500.0)
    assert ours["jobs"].covered.tolist() == [1.0, 0.0]
    assert theirs["jobs"].covered.tolist() == [1.0, 1.0]
    for rows in (ours["jobs"], theirs["jobs"]):
        assert rows.error.tolist() == pytest.approx(np.log10([5.0, 50.0]).tolist())
    alone, nobody = known_of_both({"jobs": careful}, {}, 500.0)
    assert (len(alone["jobs"]), nobody) == (1, {})


def test_what_runs_on_beyond_all_ends_loses_by_what_it_has_run_by_hand():
    """Told 10 s and 2 to 50 s; looked at after 5, 20 and 100 s, where ends weigh .05 and .95."""
    begun_s, one = np.array([95.0, 80.0, 0.0]), np.ones(3)
    ends, shares = np.tile([2.0, 50.0], (3, 1)), np.tile([0.05, 0.95], (3, 1))
    rows = IntervalRows(
        begun_s, np.inf * one, np.full(3, "a"), one, one, one, begun_s, 10 * one, 10 * one, 50 * one, one, ends, shares
    )
    then = rows.as_of(100.0)
    assert then.known_s.tolist() == [np.inf, np.inf, 50.0]
    assert then.covered.tolist() == [1.0, 1.0, 0.0]
    # until it has run for the median it may still come to that
    by_hand = [0.05 * np.log(5) + 0.05 * np.log(5), 0.05 * np.log(10) + 0.05 * np.log(2.5)]
    by_hand.append(0.05 * np.log(50) + 0.95 * np.log(2))
    assert then.pinball.tolist() == pytest.approx([total / 2 for total in by_hand])


@pytest.mark.parametrize("predictor", ["job-size", "completion-time"])
def test_jobs_that_never_end_have_outlived_their_interval(predictor):
    """A job an hour of 10 to 20 min on two GPUs; of a second day half never end, and ends are told a day late."""
    hours = np.arange(48.0)
    minutes = np.where((hours >= 24) & (hours % 2 == 0), None, 10.0 + hours % 11)
    lasts = [None if one is None else 60.0 * one for one in minutes]
    frame = frame_of(3600.0 * hours, gpus=2, start_time=3600.0 * hours, duration=lasts)
    with ends_known_after(DAY_S):
        trace = Trace.from_frame(frame, name="endless")
    model = PREDICTORS[predictor]().fit(trace, 0.0, 2 * DAY_S)
    end_s = 2 * DAY_S
    # after half a day nothing can be told of those that began less than a day before
    for days, known in ((0.5, 12), (4, 24)):
        sample = Sample(trace=trace, from_s=DAY_S, until_s=end_s, known_s=end_s + days * DAY_S, pools=["a"])
        rows = judged(predictor).forecasts(model, sample)["jobs"]
        assert (len(rows), rows.covered.mean()) == (known, 0.5)
    late = rows.covered == 0.0
    so_far_s = 6 * DAY_S - DAY_S - rows.time_s[late]
    assert rows.error[late] == pytest.approx(np.log10(so_far_s / rows.told_s[late]))


def test_nothing_tells_nothing():
    none = np.empty(0)
    for kind, columns in ((RegimeRows, 5), (CurveRows, 4), (ShareRows, 3), (GainRows, 2)):
        told = kind(none, none, np.empty(0, "U1"), *(none for _ in range(columns))).figures()
        assert told.pop("n") == 0
        assert set(told.values()) == {None}


class Straight:
    """Goes on to its last value plus 1, give or take 1."""

    family_finals: dict = {}  # noqa: RUF012

    def forecast(self, prefixes, epochs):
        self.final_mean = np.array([curve.metric[-1] + 1.0 for curve in prefixes])
        return self

    def interval(self, level, epoch):
        middle = np.broadcast_to(self.final_mean[:, None], epoch.shape)
        return middle - 1.0, middle + 1.0


def test_curves_have_the_figures_of_evaluate_and_flat_ones_are_left_out():
    epoch = np.arange(1, 11)
    curves = [LearningCurve("a", size, epoch, np.cumsum(np.full(10, 0.1 * size))) for size in (1, 2, 3)]
    curves.append(LearningCurve("b", 1, epoch, np.ones(10)))
    table = CurveTable("c.csv", "", 40, tuple(curves), (None,) * 4)
    for name, rows in curve_table_rows(Straight(), table).items():
        theirs = score_curves(Straight(), curves, {"20% seen": 0.2, "50% seen": 0.5}[name])
        told = rows.figures()
        assert told["n"] == theirs["curves"] == 3
        for figure in ("mae", "mae_last_value", "coverage_90"):
            assert told[figure] == pytest.approx(theirs[figure])
        assert rows.pool.tolist() == ["a"] * 3
        assert (rows.time_s / DAY_S).tolist() == [0.0, 1.0, 2.0]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=8), st.floats(-100, 100), st.floats(-50, 50))
def test_the_score_of_a_distribution(values, truth, off):
    """Never negative, moves with its values and the truth, and is least of all for the truth itself."""
    x, weights = np.array(values), np.full(len(values), 1.0 / len(values))
    score = crps(x, weights, truth)
    assert score >= -1e-9
    assert crps(x + off, weights, truth + off) == pytest.approx(score, abs=1e-6)
    assert crps(np.full(len(values), truth), weights, truth) == pytest.approx(0.0, abs=1e-9)
    assert score <= np.abs(x - truth).mean() + 1e-9


KINDS = {
    "will-jobs-arrive": ArrivalRows,
    "new-load": LoadRows,
    "job-duration": DurationRows,
    "regime": RegimeRows,
    "accuracy-curve": CurveRows,
    "epoch-time": ShareRows,
    "goodput": ShareRows,
    "completion-time": IntervalRows,
    "job-size": LogRows,
    "queue-wait": LogRows,
    "mlf-policy": GainRows,
    "device-rl": GainRows,
}


def drawn(kind, n, rng):
    """Rows of a kind, eight a day."""
    times = DAY_S / 8 * np.arange(n)
    own = dict.fromkeys(("truth", "forecast", "chosen", "least"), lambda: rng.integers(0, 3, n))
    own |= dict.fromkeys(("arrives", "declared", "passed"), lambda: rng.random(n) < 0.5)
    own |= {"time_s": lambda: times, "known_s": lambda: times, "pool": lambda: np.full(n, "a")}
    if kind is DurationRows:
        own["probability"] = lambda: rng.dirichlet(np.ones(3), n)
    if kind is IntervalRows:
        own |= dict.fromkeys(("ends_s", "shares"), lambda: rng.uniform(0.1, 1.0, (n, 4)))
    return kind(**{one.name: own.get(one.name, lambda: rng.uniform(0.1, 1.0, n))() for one in fields(kind)})


@pytest.mark.parametrize("predictor", [ours_for(question) for question in LIVES])
def test_every_figure_that_has_a_limit_is_a_ratio_of_sums_that_drift_can_judge(predictor):
    """Else a version that is as bad as can be would be told to be fine."""
    limits, rows = LIVES[answers_of(predictor)].limits, drawn(KINDS[predictor], 80, np.random.default_rng(0))
    parts, figures = rows.parts(), rows.figures()
    for limit in limits:
        above, below = parts[limit.figure]
        assert above.sum() / below.sum() == pytest.approx(figures[limit.figure])
    nothing = rows.of(np.zeros(80, bool)).parts()
    assert all(len(above) == len(below) == 0 for above, below in nothing.values())


ONE = np.ones(80)


def alike(kind, **columns):
    """Ten days of rows that are all alike, eight a day: ones where nothing is given."""
    times = DAY_S / 8 * np.arange(80)
    columns = {"time_s": times, "known_s": times, "pool": np.full(80, "a")} | columns
    given = {one.name: columns.get(one.name, 1.0) for one in fields(kind)}
    return kind(**{name: value if np.ndim(value) else value * ONE for name, value in given.items()})


@pytest.mark.parametrize(
    ("predictor", "columns", "nominal", "says"),
    [
        ("regime", {"error": 0.8, "covered": 0.88, "regime_error": 9.0}, {"coverage_90": 0.9}, FINE),
        ("regime", {"error": 1.1, "covered": 0.9, "regime_error": 9.0}, {"coverage_90": 0.9}, RETRAIN),
        ("accuracy-curve", {"error": 0.2, "covered": 7.0, "later": 10.0}, {"coverage_90": 0.9, "mae": 0.2}, RETRAIN),
        ("accuracy-curve", {"error": 0.2, "covered": 9.0, "later": 10.0}, {"coverage_90": 0.9, "mae": 0.2}, FINE),
        ("epoch-time", {"error": 0.14, "covered": 0.9}, {"coverage_90": 0.9, "mape": 0.1}, RETRAIN),
        ("epoch-time", {"error": 0.125, "covered": 0.9}, {"coverage_90": 0.9, "mape": 0.1}, FINE),
        ("mlf-policy", {"jct_s": 100.0, "baseline_jct_s": 99.0}, {"speedup": 1.0}, FINE),
        ("device-rl", {"jct_s": 100.0, "baseline_jct_s": 90.0}, {"speedup": 1.0}, RETRAIN),
    ],
)
def test_ten_days_of_each_predictor_are_judged(predictor, columns, nominal, says):
    """Rows that are all alike: what they tell is beyond doubt."""
    assert verdict(alike(KINDS[predictor], **columns), predictor, nominal, [0.0], 10 * DAY_S).says == says


@pytest.mark.parametrize(
    ("validated", "error", "says"),
    [(0.3, 0.99, FINE), (0.3, 1.01, RETRAIN), (-0.03, 1.07, FINE), (-0.03, 1.09, RETRAIN), (None, 1.01, RETRAIN)],
)
def test_what_saved_nothing_when_it_was_trained_may_save_nothing(validated, error, says):
    """Errors of 1 by the rule; a validation that was 3 % worse lets .05 more pass."""
    metrics = {"validation/mae_log10": error} | ({} if validated is None else {"validation/skill": validated})
    ends = np.ones((80, 2))
    rows = alike(IntervalRows, error=error, covered=0.9, ends_s=ends, shares=ends)
    nominal = LIVES[answers_of("completion-time")].promised(None, metrics)
    assert verdict(rows, "completion-time", nominal, [0.0], 10 * DAY_S).says == says


@pytest.mark.parametrize(("predictor", "most"), [("queue-wait", 0.2), ("completion-time", 0.1)])
def test_the_error_of_waits_may_wander_twice_as_far_as_that_of_run_times(predictor, most):
    """By a validation that was off by .3, with a rule that is no better; all days are alike."""
    nominal = LIVES[answers_of(predictor)].promised(None, {"validation/mae_log10": 0.3})

    def says(error):
        rows = alike(LogRows, error=error, rule_error=error, covered=0.9)
        return verdict(rows, predictor, nominal, [0.0], 10 * DAY_S).says

    assert (says(0.3 + most - 0.01), says(0.3 + most + 0.01)) == (FINE, RETRAIN)


def test_a_speedup_that_is_lost_on_most_days_is_watched():
    """Of ten days all lose 2.8 %, give or take: beyond the limit, but not clearly beyond what matters."""
    days = np.repeat(0.972 + 0.02 * (np.arange(10) % 2 * 2 - 1), 8)
    rows = alike(GainRows, jct_s=100.0, baseline_jct_s=100.0 * days)
    assert verdict(rows, "mlf-policy", {"speedup": 1.0}, [0.0], 10 * DAY_S).says == WATCH


def test_each_predictor_is_judged_by_policies_that_ask_for_it():
    for question, life in LIVES.items():
        assert life.judges or life.bounds
        assert all(ours_for(question) in judge.asks for judge in life.judges)
