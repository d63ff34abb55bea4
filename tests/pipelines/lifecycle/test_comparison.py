"""The verdict on two versions: figures on the same rows, and when one is worse."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.predictors import answers_of
from jobcast.pipelines.lifecycle.comparison import compare_rows, main_mean, why_slower, why_worse
from jobcast.pipelines.lifecycle.forecast_rows import ArrivalRows, LoadRows
from jobcast.pipelines.lifecycle.standards import LIVES

DAY_S = 86400.0
NAMES = ("ours", "theirs")


def loads(estimates, load=2.0, per_day=4):
    n = len(estimates)
    time_s = DAY_S * (np.arange(n) // per_day)
    return LoadRows(time_s, time_s + 300.0, np.array(["a"] * n), np.full(n, load), np.asarray(estimates, float))


def test_pinball_by_hand():
    """Load 2: an estimate of 1 costs 0.95 x 1, one of 4 costs 0.05 x 2; over the load of 4 that came."""
    assert loads([1.0, 4.0]).figures()["pinball"] == pytest.approx((0.95 + 0.1) / 4)
    assert loads([2.0, 2.0]).figures()["pinball"] == 0.0


def test_a_version_against_itself_differs_by_nothing():
    rng = np.random.default_rng(0)
    n = 8 * 50
    time_s, probability, arrives = DAY_S * (np.arange(n) // 50), rng.random(n), rng.random(n) < 0.4
    rows = ArrivalRows(time_s, time_s, np.array(["a"] * n), arrives, probability, probability > 0.5, probability > 0.1)
    told = compare_rows({"5min": rows}, {"5min": rows}, NAMES)
    assert (told["difference"], told["interval"]) == (0.0, [0.0, 0.0])
    assert (told["figure"], told["less_is_better"]) == ("pr_auc", False)


def test_a_version_that_is_better_on_every_day_is_so_beyond_doubt():
    """Paired by day: the versions differ less than the days do, and the interval sees it."""
    rng = np.random.default_rng(1)
    noise = np.repeat(rng.uniform(0.0, 20.0, 10), 4)  # days differ
    told = compare_rows({"5min": loads(3.0 + noise)}, {"5min": loads(4.0 + noise)}, NAMES)
    low, high = told["interval"]
    assert low < told["difference"] < high < 0
    assert told["difference"] == pytest.approx(-0.05 * 1.0 / 2.0)
    assert told["difference"] == pytest.approx(main_mean(told, "ours") - main_mean(told, "theirs"))


def test_few_days_have_no_interval_and_blocks_of_one_side_do_not_count():
    told = compare_rows({"5min": loads([3.0] * 8), "60min": loads([1.0])}, {"5min": loads([4.0] * 8)}, NAMES)
    assert list(told["blocks"]) == ["5min"]
    assert told["interval"] is None
    assert told["difference"] < 0


def test_the_mean_is_over_blocks():
    ours = {"5min": loads([3.0] * 40), "60min": loads([2.0] * 40)}
    theirs = {"5min": loads([2.0] * 40), "60min": loads([6.0] * 40)}
    told = compare_rows(ours, theirs, NAMES)
    assert told["difference"] == pytest.approx((0.05 * 1 / 2 - 0.05 * 4 / 2) / 2)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.integers(0, 10), st.integers(0, 10))
def test_rows_cut_in_time_and_joined_again_are_the_rows(estimates, one, other):
    rows, (low, high) = loads(estimates), sorted((one, other))
    edges = [-np.inf, DAY_S * low, DAY_S * high, np.inf]
    parts = [rows.between(a, b) for a, b in pairwise(edges)]
    joined = LoadRows.joined(parts)
    assert joined.estimate_gpus.tolist() == rows.estimate_gpus.tolist()
    assert joined.figures() == rows.figures()


def figures(difference, interval, loss=True, candidate=0.5, champion=0.4):
    blocks = {"60min": {"candidate": {"figure": candidate}, "champion": {"figure": champion}}}
    return {
        "figure": "figure", "less_is_better": loss, "blocks": blocks, "difference": difference, "interval": interval,
        "confidence": 0.95,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("difference", "interval", "loss", "worse"),
    [
        (0.1, [0.05, 0.15], True, True),
        (0.1, [-0.05, 0.25], True, False),
        (-0.1, [-0.15, -0.05], True, False),
        (-0.1, [-0.15, -0.05], False, True),
        (0.1, [0.05, 0.15], False, False),
        (0.019, None, True, False),  # 5 % of the champion's 0.4 is 0.02
        (0.021, None, True, True),
        (-0.021, None, False, True),
        (None, None, True, False),
    ],
)
def test_the_main_figure_counts_where_there_is_no_doubt(difference, interval, loss, worse):
    assert bool(why_worse(figures(difference, interval, loss))) == worse


@pytest.mark.parametrize(
    ("slowed", "speedup", "reasons"),
    [(1.0, 10.0, 0), (1.5, 9.5, 0), (1.51, 10.0, 1), (1.0, 9.49, 1), (3.0, 5.0, 2), (0.0, 20.0, 0)],
)
def test_the_schedule_counts_beyond_its_tolerance(slowed, speedup, reasons):
    """Half a percentage point of jobs slowed, five percent of the speedup."""
    theirs = {"slowed_pct": 1.0, "speedup_gmean": 10.0}
    assert len(why_slower({"slowed_pct": slowed, "speedup_gmean": speedup}, theirs)) == reasons


@pytest.mark.parametrize(
    ("predictor", "ours", "theirs", "reasons"),
    [
        ("regime", {"unfair_pct_105": 3.0}, {"unfair_pct_105": 2.0}, ["treats 3.00 % of the jobs "]),
        ("regime", {"makespan_s": 1060.0}, {"makespan_s": 1000.0}, ["makespan 1,060 s against "]),
        ("regime", {"makespan_s": 1040.0}, {"makespan_s": 1000.0}, []),
        ("accuracy-curve", {"deadline_ratio": 0.8}, {"deadline_ratio": 0.9}, ["keeps 80.0 % of the deadl"]),
        ("epoch-time", {"total_eur": 11.0}, {"total_eur": 10.0}, ["costs 11.0 EUR against 10"]),
        ("epoch-time", {"total_eur": 9.0, "slowed_pct": 50.0}, {"total_eur": 10.0, "slowed_pct": 0.0}, []),
        ("mlf-policy", {"speedup_gmean": None}, {"speedup_gmean": 1.0}, []),
        ("device-rl", {"speedup_gmean": 0.9}, {"speedup_gmean": 1.0}, ["speedup 0.900 against 1.0"]),
    ],
)  # fmt: skip
def test_each_judge_is_bound_by_its_own_goal(predictor, ours, theirs, reasons):
    found = why_slower(ours, theirs, LIVES[answers_of(predictor)].judges[0].bounds)
    assert [reason[: len(told)] for reason, told in zip(found, reasons, strict=True)] == reasons


def test_durations_are_judged_by_who_lends_and_by_who_ranks():
    assert [judge.policy for judge in LIVES[answers_of("job-duration")].judges] == ["sia", "ssf"]
