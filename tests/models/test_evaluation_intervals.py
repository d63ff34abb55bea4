from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from jobcast.models import scores
from jobcast.models.evaluation.intervals import (
    DayDraws,
    arrival_intervals,
    day_weights,
    days_of,
    duration_groups,
    interval,
    mean_durations_min,
    sums_by_day,
)
from tests.models.drawn_days import drawn_intervals, near

DAY_S = 86400.0


def test_the_interval_of_a_mean_is_that_of_its_days_not_of_its_rows():
    # 100 days of 50 equal rows: the mean has the standard error of 100 values, sd / 10, not of 5,000.
    of_day = np.random.default_rng(0).normal(0.0, 1.0, 100)
    value, day = np.repeat(of_day, 50), np.repeat(np.arange(100), 50)
    low, high = DayDraws(day, 2000).of_mean(value)
    assert high - low == pytest.approx(2 * 1.96 * of_day.std() / 10, rel=0.08)
    assert low < of_day.mean() < high


def test_equal_seeds_draw_equal_days_and_others_other_days():
    right, day = np.arange(40) % 3 == 0, np.arange(40) // 4
    told = [DayDraws(day, 50, seed).of_mean(right) for seed in (1, 1, 2)]
    assert told[0] == told[1] != told[2]
    assert np.array_equal(day_weights(5, 3), day_weights(5, 3, seed=0))


def test_no_days_few_days_and_undefined_figures_have_no_interval():
    assert DayDraws(np.arange(4), 20).of_mean(np.ones(4)) is None
    assert DayDraws(np.arange(5), 1).of_mean(np.ones(5)) == [1.0, 1.0]
    nine = DayDraws(np.arange(9), 20)
    assert nine.interval(nine.ratio(np.ones(9), np.zeros(9))) is None
    five = DayDraws(np.arange(5), 20)
    assert five.interval(five.ratio(np.ones(5), [1, 0, 0, 0, 0])) is not None
    assert DayDraws([], 20).of_mean([]) is None


@pytest.mark.parametrize(("known", "told"), [(5, [1.0, 1.0]), (4, None), (0, None)])
def test_a_figure_is_known_in_half_of_the_draws(known, told):
    assert interval([1.0] * known + [None] * (10 - known), days=5) == told


def test_the_middle_95_percent_of_the_draws():
    assert interval(range(1, 401), days=5) == pytest.approx([1 + 399 * 0.025, 1 + 399 * 0.975])


def test_pools_by_how_long_their_jobs_run():
    mean_min = {"a": 5.0, "b": 5.1, "c": 60.0, "d": 60.1, "e": 720.0, "f": 720.1}
    groups = {"<=5min": ("a",), "5-60min": ("b", "c"), "60-720min": ("d", "e"), ">720min": ("f",)}
    assert duration_groups([*"abcdef", "unknown"], mean_min) == groups


def test_a_pool_s_mean_is_of_the_jobs_that_ended():
    jobs, ended = pl.DataFrame({"pool": ["b", "a", "a", "a"]}), np.array([True, True, True, False])
    trace = SimpleNamespace(jobs=jobs, ended=ended, duration_s=np.array([30.0, 60.0, 180.0, np.nan]))
    assert mean_durations_min(trace) == {"a": 2.0, "b": 0.5}


@given(st.integers(0, 30), st.integers(1, 20), st.integers(0, 99))
def test_every_draw_has_as_many_days_as_there_are(days, draws, seed):
    weights = day_weights(days, draws, seed)
    assert weights.shape == (draws, days)
    assert (weights.sum(axis=1) == days).all()


def test_days_are_utc_days_and_sums_are_by_day():
    days, sums = sums_by_day(days_of([-1.0, 0.0, DAY_S, DAY_S + 1]), {"x": [1, 2, 3, 4]})
    assert days.tolist() == [-1, 0, 1]
    assert sums["x"].tolist() == [1.0, 2.0, 7.0]


@pytest.fixture(scope="module")
def rows():
    """Ten days of forecasts that tie often, and what came."""
    rng = np.random.default_rng(5)
    probability = rng.integers(0, 301, 4000) / 300
    return np.sort(rng.uniform(0, 10 * DAY_S, 4000)), probability, rng.random(4000) < probability**2


FEW = (DAY_S * np.arange(8), np.arange(8, 0, -1) / 9, np.arange(8) % 3 == 1)
"""A row a day; the last one has arrivals."""


@pytest.mark.parametrize("few", [False, True])
def test_each_draw_gives_what_the_weighted_rows_give(rows, few):
    tick_s, probability, arrives = FEW if few else rows
    day, count = days_of(tick_s), len(tick_s)
    days = DayDraws(day, draws=6, seed=3)
    weights = days.weights[:, day]
    expected = [average_precision_score(arrives, probability, sample_weight=weight) for weight in weights]
    assert days.pr_auc(arrives, probability) == pytest.approx(expected)
    whole = [np.repeat(np.arange(count), weight.astype(int)) for weight in weights]
    assert days.ece(arrives, probability) == pytest.approx(
        [scores.ece(arrives[picked], probability[picked]) for picked in whole]
    )
    assert days.ratio(arrives, np.ones(count)) == pytest.approx([arrives[picked].mean() for picked in whole])
    first = day == 0
    per_first = [len(picked) / (first[picked].sum() or np.nan) for picked in whole]
    assert days.ratio(np.ones(count), first) == pytest.approx(per_first, nan_ok=True)


class Counting(DayDraws):
    """Keeps of how many cells sums were asked."""

    cells: ClassVar[set[int]] = set()

    def histogram(self, cell, cells, weights):
        self.cells.add(cells)
        return super().histogram(cell, cells, weights)


def test_two_thousand_ranks_in_groups_are_near_the_exact_pr_auc():
    rng = np.random.default_rng(8)
    probability = rng.random(30_000)
    arrives, day = rng.random(30_000) < probability**3, np.arange(30_000) // 1440
    days = Counting(day, draws=2)
    expected = [average_precision_score(arrives, probability, sample_weight=one) for one in days.weights[:, day]]
    assert days.pr_auc(arrives, probability) == pytest.approx(expected, abs=1e-3)
    assert days.cells == {2000}


def test_intervals_are_of_the_figures_of_drawn_days(rows):
    tick_s, probability, arrives = rows

    def figures(some):
        came, told = arrives[some], probability[some]
        return {
            **scores.detection(came, told >= 0.5),
            "pr_auc": scores.pr_auc(came, told),
            "ece": scores.ece(came, told),
            "idle_f1": scores.idle_detection(came, told >= 0.5)["f1"],
            **scores.gate(came, told >= 0.2),
        }

    told = arrival_intervals(arrives, probability, 0.5, 0.2, tick_s, 20, 3)
    assert near(told, drawn_intervals(days_of(tick_s), 20, 3, figures))
    assert arrival_intervals(arrives, probability, 0.5, 0.2, tick_s, 0, 0) == {}


def test_a_chance_at_a_threshold_is_declared_and_passes():
    arrives, chances, tick_s = np.arange(10) % 2 == 0, np.full(10, 0.5), np.arange(10) * DAY_S
    low, at, high = (arrival_intervals(arrives, chances, one, one, tick_s, 50, 0) for one in (0.4, 0.5, 0.6))
    assert low == at != high
    assert (at["recall"], at["miss_rate"], high["freed_idle_share"]) == ([1.0, 1.0], [0.0, 0.0], [1.0, 1.0])
    days = DayDraws(days_of(tick_s), 50)
    sure = days.ece(arrives, np.ones(10))  # a chance of 1 belongs to the last bin
    assert sure == pytest.approx(1.0 - days.ratio(arrives, np.ones(10)))
