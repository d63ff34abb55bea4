"""Rates of prefixes: when the usual one yields."""

import numpy as np
import pytest

from jobcast.models.curves.rates import RATES, median_place, rises_ahead, weigh_rates
from jobcast.models.curves.scaling import CENTER, LEVEL, SCALE_WIDTH

USUAL, TEMPER = 9.5, 0.3


def points_of(rate, until, count=12, sd=0.02):
    """An exact exponential rise from 1 to 1.8 over a share of the run; and the mean of its last three, and their p."""
    p = np.linspace(0, until, count)
    v = 1 + 0.8 * np.expm1(-rate * p) / np.expm1(-rate * until)
    return 1 + 100 * p, v, np.full(count, sd**-2.0), float(v[-3:].mean()), float(p[-3:].mean())


def median_rate(rate, until, temper=TEMPER):
    x, v, weight, level, center = points_of(rate, until)
    grid, amplitude, share = (np.empty(RATES) for _ in range(3))
    weigh_rates(len(x), x, v, weight, level, center, USUAL, temper, grid, amplitude, share)
    assert share.sum() == pytest.approx(1)
    return float(np.exp(np.interp(median_place(share), np.arange(RATES), np.log(grid))))


def test_the_usual_rate_yields_to_a_prefix_that_is_slower():
    assert median_rate(3.0, 0.5) == pytest.approx(3.0, rel=0.15)
    assert median_rate(USUAL, 0.5) == pytest.approx(USUAL, rel=0.05)


def test_a_short_prefix_tells_less():
    assert 3.0 < median_rate(3.0, 0.5) < median_rate(3.0, 0.1) < USUAL


def test_a_faster_prefix_counts_as_much_as_the_power_says():
    slow, fast = USUAL / median_rate(USUAL / 2.5, 0.2), median_rate(USUAL * 2.5, 0.2) / USUAL
    assert slow > fast > 1
    assert median_rate(USUAL * 2.5, 0.2, temper=3.0) > median_rate(USUAL * 2.5, 0.2)


def test_one_value_leaves_the_usual_rate():
    x, v = np.array([1.0]), np.array([1.5])
    grid, amplitude, share = (np.empty(RATES) for _ in range(3))
    weigh_rates(1, x, v, np.array([2500.0]), 1.5, 0.0, USUAL, TEMPER, grid, amplitude, share)
    assert grid[7] == pytest.approx(USUAL)
    assert median_place(share) == pytest.approx(7)
    assert share == pytest.approx(share[::-1])


def test_places_of_medians():
    share = np.zeros(RATES)
    share[4] = 1.0
    assert median_place(share) == 4.0
    share[[4, 5]] = 0.5
    assert median_place(share) == 4.5
    share[:] = 0.0
    share[0] = 1.0
    assert median_place(share) == 0.0


def test_what_is_ahead_grows_with_time_and_is_right_where_the_rate_is_known():
    x, v, weight, level, center = points_of(3.0, 0.6, count=16, sd=0.005)
    scale = np.zeros((1, SCALE_WIDTH))
    scale[0, LEVEL], scale[0, CENTER] = level, center
    share, mean, variance = np.array([[0.6, 0.8, 1.0]]), np.empty((1, 3)), np.empty((1, 3))
    rises_ahead(np.array([16]), x[None], v[None], weight[None], scale, USUAL, TEMPER, share, mean, variance)
    rise = 0.8 / -np.expm1(-3.0 * 0.6)
    assert mean[0] == pytest.approx(rise * (np.exp(-3.0 * center) - np.exp(-3.0 * share[0])), abs=0.02)
    assert (np.diff(mean[0]) > 0).all()
    assert (np.diff(variance[0]) > 0).all()
