import numpy as np
import pytest

from jobcast.models.curves.finished import bounds, limits, prefix_directions
from jobcast.models.curves.fitting import parameter_counts
from jobcast.models.curves.kernels import STEPS, fit_families, value_and_gradient
from jobcast.models.curves.milestones import cuts_of, stretch_of
from jobcast.models.curves.prior import FAMILIES, NAMES, WIDEST, CurvePrior

FORMULAS = {
    "pow3": lambda x, p: p[0] - np.exp(p[1]) * x ** -np.exp(p[2]),
    "pow4": lambda x, p: p[0] - (np.exp(p[1]) * x + np.exp(p[2])) ** -np.exp(p[3]),
    "loglog": lambda x, p: np.log(np.exp(p[0]) * np.log(x) + np.exp(p[1])),
    "vapor": lambda x, p: np.exp(p[0] + p[1] / x + p[2] * np.log(x)),
    "hill3": lambda x, p: np.exp(p[0]) * x ** np.exp(p[1]) / (np.exp(p[2]) ** np.exp(p[1]) + x ** np.exp(p[1])),
    "mmf": lambda x, p: p[0] - (p[0] - p[1]) / (1 + (np.exp(p[2]) * x) ** np.exp(p[3])),
    "exp4": lambda x, p: p[0] - np.exp(p[3] - np.exp(p[1]) * x ** np.exp(p[2])),
    "janoschek": lambda x, p: p[0] - (p[0] - p[1]) * np.exp(-np.exp(p[2]) * x ** np.exp(p[3])),
    "weibull": lambda x, p: p[0] - (p[0] - p[1]) * np.exp(-((np.exp(p[2]) * x) ** np.exp(p[3]))),
    "log_power": lambda x, p: np.exp(p[0]) / (1 + (x / np.exp(p[1])) ** -np.exp(p[2])),
    "ilog2": lambda x, p: p[0] - np.exp(p[1]) / np.log(x + 1),
}
"""Domhan, Springenberg and Hutter (IJCAI 2015), table 1."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("x", [1.0, 7.0, 101.0])
def test_values_are_the_papers_and_gradients_are_those_of_the_values(name, x):
    row, family = NAMES.index(name), FAMILIES[name]
    p, slope = np.zeros(WIDEST), np.zeros(WIDEST)
    p[: len(family.mean)] = family.mean
    assert value_and_gradient(row, x, np.log(x), p, slope) == pytest.approx(FORMULAS[name](x, p))
    for column in range(len(family.mean)):
        step = np.zeros(WIDEST)
        step[column] = 1e-6
        change = FORMULAS[name](x, p + step) - FORMULAS[name](x, p - step)
        assert slope[column] == pytest.approx(change / 2e-6, abs=1e-6)


def fitted(name, values, x):
    prior = CurvePrior.default()
    mean, precision, _ = prior.arrays()
    parameters, factor = np.zeros((1, len(NAMES), WIDEST)), np.zeros((1, len(NAMES), WIDEST, WIDEST))
    weight = np.full((1, x.size), 1e4)
    fit_families(
        np.array([x.size]), x[None], np.log(x)[None], values[None], weight, parameter_counts(), mean, precision,
        STEPS, parameters, factor, np.zeros((1, len(NAMES))),
    )  # fmt: skip
    row = NAMES.index(name)
    return parameters[0, row], factor[0, row], mean[row], precision[row]


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_finds_what_a_slow_optimiser_finds(name):
    from scipy.optimize import least_squares

    x = np.geomspace(1, 60, 14)
    used = len(FAMILIES[name].mean)
    truth = np.array(FAMILIES[name].mean) + 0.3 * np.array(FAMILIES[name].sd)
    values = FORMULAS[name](x, truth)
    found, factor, mean, precision = fitted(name, values, x)

    def off(p):
        data = 100 * (values - FORMULAS[name](x, p))
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
