"""Families, rates and cuts of the learning rate: values by hand, gradients by differences."""

import numpy as np
import pytest

from jobcast.models.curves.finished import bounds, limits, prefix_directions
from jobcast.models.curves.fitting import parameter_counts
from jobcast.models.curves.forecast import FIRST_CUTS, cuts_of, stretch_of, untold_sd
from jobcast.models.curves.kernels import fit_families, value_and_gradient
from jobcast.models.curves.points import Families, Points
from jobcast.models.curves.prior import FAMILIES, NAMES, WIDEST, CurvePrior
from jobcast.models.curves.rates import RATES, Rates, median_place, rises_ahead, weigh_rates
from jobcast.models.curves.scaling import CENTER, LEVEL, SCALE_WIDTH
from tests.models.curves.formulas import FORMULAS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("x", [1.0, 7.0, 101.0])
def test_values_are_the_papers_and_gradients_are_those_of_the_values(name, x):
    row, family = NAMES.index(name), FAMILIES[name]
    p, slope = np.zeros(WIDEST), np.zeros(WIDEST)
    p[: len(family.mean)] = family.mean
    assert value_and_gradient(row, x, np.log(x), p, slope) == pytest.approx(FORMULAS[name](np, x, p))
    for column in range(len(family.mean)):
        step = np.zeros(WIDEST)
        step[column] = 1e-6
        change = FORMULAS[name](np, x, p + step) - FORMULAS[name](np, x, p - step)
        assert slope[column] == pytest.approx(change / 2e-6, abs=1e-6)


def fitted(name, values, x):
    prior = CurvePrior.default()
    mean, precision, _ = prior.arrays()
    parameters, factor = np.zeros((1, len(NAMES), WIDEST)), np.zeros((1, len(NAMES), WIDEST, WIDEST))
    points = Points(np.array([x.size]), x[None], np.log(x)[None], values[None], np.full((1, x.size), 1e4))
    families = Families(parameter_counts(), mean, precision)
    fit_families(points, families, parameters, factor, np.zeros((1, len(NAMES))))
    row = NAMES.index(name)
    return parameters[0, row], factor[0, row], mean[row], precision[row]


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_finds_what_a_slow_optimiser_finds(name):
    from scipy.optimize import least_squares

    x = np.geomspace(1, 60, 14)
    used = len(FAMILIES[name].mean)
    truth = np.array(FAMILIES[name].mean) + 0.3 * np.array(FAMILIES[name].sd)
    values = FORMULAS[name](np, x, truth)
    found, factor, mean, precision = fitted(name, values, x)

    def off(p):
        data = 100 * (values - FORMULAS[name](np, x, p))
        return np.concatenate([data, np.sqrt(precision[:used]) * (p - mean[:used])])

    best = least_squares(off, mean[:used])
    assert (off(found[:used]) ** 2).sum() < 2 * best.cost * 1.05 + 0.01
    jacobian = best.jac
    curvature = np.tril(factor)[:used, :used] @ np.tril(factor)[:used, :used].T
    assert curvature == pytest.approx(jacobian.T @ jacobian, rel=0.3, abs=60)


def test_direction_is_that_of_what_is_seen():
    table = np.array([[0.1, 0.3, 0.2], [3.0, 2.0, 2.5], [1.0, np.nan, np.nan], [1.0, 1.0, 1.0]])
    assert prefix_directions(table).tolist() == [1.0, -1.0, 0.0, 0.0]


def test_bounds_are_those_of_shares_and_of_percent():
    table = np.array([[0.1, 0.3], [10.0, 20.0], [0.1, 0.3], [150.0, 140.0]])
    assert bounds(table, np.array([1.0, 1.0, -1.0, -1.0])).tolist() == [1.0, 100.0, 0.0, 0.0]
    low, high = limits(np.vstack([table, [-1.0, 0.0]]))
    assert low.tolist() == [0.0, 0.0, 0.0, 0.0, -np.inf]
    assert high.tolist() == [1.0, 100.0, 1.0, np.inf, np.inf]


def test_a_cut_at_the_last_epoch_seen_is_still_to_come():
    assert stretch_of(30, 90, (60, 30)) == (0, 30)
    cuts = cuts_of([30], [90], [(60, 30)], np.ones(1), (0.3, 0.1), (0.0, 0.0))
    assert cuts.after.tolist() == [[30.0, 60.0]]
    metric, _, jump_sd = cuts.added(np.array([[30.0, 60.0, 90.0]]), np.full((1, 3), 0.5), np.zeros((1, 3)), np.ones(1))
    assert metric[0] == pytest.approx([0.5, 0.5 + 0.3 * 0.5, 0.65 + 0.1 * 0.35])
    assert jump_sd.tolist() == [[0.0, 0.0, 0.0]]


USUAL, TEMPER = 9.5, 0.3


def points_of(rate, until, count=12, sd=0.02):
    """An exact exponential rise from 1 to 1.8 over a share of the run; and the mean of its last three, and their p."""
    p = np.linspace(0, until, count)
    v = 1 + 0.8 * np.expm1(-rate * p) / np.expm1(-rate * until)
    x = 1 + 100 * p
    points = Points(np.array([count]), x[None], np.log(x)[None], v[None], np.full((1, count), sd**-2.0))
    return points, float(v[-3:].mean()), float(p[-3:].mean())


def median_rate(rate, until, temper=TEMPER):
    points, level, center = points_of(rate, until)
    grid = Rates(*(np.empty(RATES) for _ in range(3)))
    weigh_rates(points, 0, level, center, USUAL, temper, grid)
    assert grid.share.sum() == pytest.approx(1)
    return float(np.exp(np.interp(median_place(grid.share), np.arange(RATES), np.log(grid.rate))))


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
    points = Points(np.array([1]), *(np.array([[value]]) for value in (1.0, 0.0, 1.5, 2500.0)))
    grid = Rates(*(np.empty(RATES) for _ in range(3)))
    weigh_rates(points, 0, 1.5, 0.0, USUAL, TEMPER, grid)
    assert grid.rate[7] == pytest.approx(USUAL)
    assert median_place(grid.share) == pytest.approx(7)
    assert grid.share == pytest.approx(grid.share[::-1])


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
    points, level, center = points_of(3.0, 0.6, count=16, sd=0.005)
    scale = np.zeros((1, SCALE_WIDTH))
    scale[0, LEVEL], scale[0, CENTER] = level, center
    share, mean, variance = np.array([[0.6, 0.8, 1.0]]), np.empty((1, 3)), np.empty((1, 3))
    rises_ahead(points, scale, USUAL, TEMPER, share, mean, variance)
    rise = 0.8 / -np.expm1(-3.0 * 0.6)
    assert mean[0] == pytest.approx(rise * (np.exp(-3.0 * center) - np.exp(-3.0 * share[0])), abs=0.02)
    assert (np.diff(mean[0]) > 0).all()
    assert (np.diff(variance[0]) > 0).all()


SIZES = (0.4, 0.15, 0.05)


def test_the_upper_end_by_hand():
    """All of a run ahead: a jump with probability .2; .75 of such jumps are less than 1 + .5 x .6745 of the usual one.

    The usual one is 1 - .6 x .85 x .95 = .5155 of the way.
    """
    found = untold_sd(np.array([0.0]), np.array([[1.0]]), SIZES)
    assert 1.6449 * found[0, 0] == pytest.approx(0.5155 * (1 + 0.5 * 0.6745), rel=1e-4)


def test_as_long_as_fewer_than_one_in_twenty_jumped_nothing_is_added():
    """One in twenty is a quarter of .2: reached where a quarter of the first cuts have come."""
    begin, until = FIRST_CUTS
    place = begin + np.array([-1.0, 0.24, 0.6]) * (until - begin)
    found = untold_sd(np.array([0.1]), place[None], SIZES)[0]
    assert found[:2].tolist() == [0.0, 0.0]
    assert found[2] > 0


def test_it_falls_with_what_was_seen_and_rises_with_time():
    seen, share = np.array([0.1, 0.4, 0.5, 0.7, 0.8]), np.linspace(0.3, 1.0, 15)
    found = untold_sd(seen, np.tile(share, (5, 1)), SIZES)
    assert (np.diff(found, axis=1) >= 0).all()
    assert (np.diff(found[:, -1]) <= 0).all()
    assert found[0, -1] > 3 * found[2, -1]
    assert (found[3:] == 0).all()


def test_larger_jumps_of_other_jobs_widen_it():
    share = np.array([[1.0]])
    assert untold_sd(np.array([0.2]), share, (0.8, 0.1, 0.1)) > untold_sd(np.array([0.2]), share, SIZES)
