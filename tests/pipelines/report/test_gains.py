"""Paired gains: values by hand, and intervals that cover as often as they say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.pipelines.report.gains import paired_gains
from tests.shared import refused

DAY_S = 86400.0


def test_values_by_hand():
    # Ratios b / a are 2, 8 and 1: their geometric mean is 16 ** (1/3).
    times = [10.0, 10.0, 30.0], [20.0, 80.0, 30.0], [0.0, 5.0, DAY_S]
    gains = paired_gains(*times, seed=0, jct_baseline=[15.0, 10.0, 29.0])
    assert (gains["jobs"], gains["days"]) == (3, 2)
    assert gains["speedup"] == pytest.approx(16 ** (1 / 3))
    assert gains["mean_jct_change_s"] == pytest.approx(50 / 3 - 130 / 3)
    # a slows the third job alone, b all three.
    assert gains["slowed_change_pct"] is not None
    assert gains["slowed_change_pct"] == pytest.approx(100 * (1 - 3) / 3)


def test_bounds_by_hand():
    # Two days of one job each: a draw is day 0 twice (1/4), each once (1/2), day 1 twice (1/4).
    gains = paired_gains([1.0, 1.0], [2.0, 8.0], [0.0, DAY_S], seed=1, draws=2000)
    assert (gains["speedup_low"], gains["speedup"], gains["speedup_high"]) == pytest.approx((2.0, 4.0, 8.0))


def test_days_are_drawn_whole():
    # All jobs of a day gain alike, so 1000 jobs a day say no more than 1.
    ratio = np.array([1.0, 2.0, 4.0, 3.0])
    one = paired_gains(np.ones(4), ratio, DAY_S * np.arange(4), seed=3)
    many = paired_gains(np.ones(4000), np.repeat(ratio, 1000), DAY_S * np.repeat(np.arange(4), 1000), seed=3)
    assert (many["speedup_low"], many["speedup_high"]) == pytest.approx((one["speedup_low"], one["speedup_high"]))


def test_blocks_keep_neighbouring_days_together():
    # Alternating days: a block of two holds one of each, so that nothing varies.
    ratio = np.tile([1.0, 4.0], 10)
    alone = paired_gains(np.ones(20), ratio, DAY_S * np.arange(20), seed=0)
    paired = paired_gains(np.ones(20), ratio, DAY_S * np.arange(20), seed=0, block_days=2)
    assert alone["speedup_low"] < 1.9
    assert (paired["speedup_low"], paired["speedup_high"]) == pytest.approx((2.0, 2.0))


def test_one_day_gives_no_interval():
    figures = paired_gains([1.0, 2.0], [2.0, 2.0], [0.0, 1.0], seed=0)
    assert figures["speedup"] == pytest.approx(math.sqrt(2))
    assert figures["speedup_low"] is None
    assert figures["slowed_change_pct"] is None


def test_rounding_is_no_slowdown():
    base = np.array([1.0, 1.0])
    gains = paired_gains(base + 1e-9, base, [0.0, DAY_S], seed=0, jct_baseline=base)
    assert gains["slowed_change_pct"] is not None
    assert gains["slowed_change_pct"] == 0.0


@given(st.lists(st.tuples(st.floats(1, 1e5), st.floats(1, 1e5), st.integers(0, 9)), min_size=1, max_size=30))
def test_exchanging_the_two_inverts_the_gain(jobs):
    a, b, day = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    there = paired_gains(a, b, day * DAY_S, seed=0, draws=20)
    back = paired_gains(b, a, day * DAY_S, seed=0, draws=20)
    assert there["speedup"] * back["speedup"] == pytest.approx(1.0)
    assert there["mean_jct_change_s"] == pytest.approx(-back["mean_jct_change_s"])


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng, trials, days, jobs_a_day, truth = np.random.default_rng(42), 200, 40, 15, 0.5
    day = np.repeat(np.arange(days), jobs_a_day)
    covered = 0
    for trial in range(trials):
        log_ratio = truth + rng.normal(0, 0.3, days)[day] + rng.normal(0, 0.5, len(day))
        gains = paired_gains(np.ones(len(day)), np.exp(log_ratio), DAY_S * day, seed=trial, draws=400)
        covered += gains["speedup_low"] <= math.exp(truth) <= gains["speedup_high"]
    # Drawing jobs instead of days would cover some 65 % here: its standard error is 0.024 where 0.052 is right.
    assert 0.89 <= covered / trials <= 0.99


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1.0], [1.0, 2.0], "give the same jobs in the same order"),
        ([], [], "no jobs"),
        ([1.0, math.nan], [1.0, 1.0], r"jct_a\[1\]: nan is no completion time"),
        ([1.0, 1.0], [-1.0, 1.0], r"jct_b\[0\]: -1.0 is no completion time"),
    ],
)
def test_what_cannot_be_compared_is_refused(a, b, message):
    refused(ValueError, message, paired_gains, a, b, np.zeros(len(a)), seed=0)
