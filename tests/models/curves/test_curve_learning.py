"""Priors learned with PyMC, on the formulas and the compiled residuals that they stand on; one curve's posterior."""

import sys

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.models.curves.finished import FinishedCurves, scaled, thinned
from jobcast.models.curves.fitting import parameter_counts
from jobcast.models.curves.kernels import HUBER, family_values, fit_families, predict_families
from jobcast.models.curves.learning import learn_prior, pymc
from jobcast.models.curves.points import Families, Points
from jobcast.models.curves.prior import FAMILIES, NAMES, WIDEST, CurvePrior
from jobcast.traces.learning_curves import LearningCurve
from tests.models.curves.formulas import FORMULAS, curve
from tests.shared import refused

X = np.geomspace(1, 101, 7)


@pytest.mark.parametrize("name", NAMES)
def test_values_by_draws_are_those_of_the_formulas(name):
    rng, family = np.random.default_rng(NAMES.index(name)), FAMILIES[name]
    own = np.zeros((3, 2, WIDEST))
    own[..., : len(family.mean)] = np.array(family.mean) + rng.normal(0, 0.3, (3, 2, 1)) * np.array(family.sd)
    x, value = np.stack([X, X[::-1]]), np.empty((3, 2, len(X)))
    family_values(NAMES.index(name), x, own, value)
    assert value == pytest.approx(FORMULAS[name](np, x, np.moveaxis(own[..., None, :], -1, 0)), rel=1e-9)


def test_scaling_by_hand():
    x, v = scaled(curve("a", 1, np.array([90.0, 50.0, 30.0, 20.0, 10.0])))
    assert x.tolist() == [1.0, 26.0, 51.0, 76.0, 101.0]
    assert v.tolist() == pytest.approx([1.0, 1.5, 1.75, 1.875, 2.0])


def test_thinning_takes_means_of_bins_even_in_log_x():
    x = np.array([1.0, 10.0, 20.0, 80.0, 100.0])
    places, values = thinned(x, np.array([1.0, 3.0, 5.0, 7.0, 9.0]), most=2)
    # log 10 is half of log 100, so 10 opens the second bin
    assert values.tolist() == [1.0, 6.0]
    assert places.tolist() == pytest.approx([1.0, (10 * 20 * 80 * 100) ** 0.25])
    assert thinned(x, x, most=5)[0].tolist() == x.tolist()


def test_finished_curves_leave_out_what_says_nothing():
    rising, flat = np.linspace(0.1, 0.9, 40), np.full(10, 0.5)
    finished = FinishedCurves.of([curve("b", 1, rising), curve("a", 1, rising[:2]), curve("a", 2, flat)])
    assert finished.apps == ("b",)
    assert finished.x.shape == (1, 15)
    refused(TrainingError, "none of 1 has 3 values", FinishedCurves.of, [curve("a", 1, rising[:2])])


def test_without_pymc_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymc", None)
    refused(ConfigError, r"jobcast\[bayes\]", learn_prior, [curve("a", 1, np.linspace(0.1, 0.9, 9))])


def test_descents_are_those_of_the_squared_residuals():
    residuals = pytest.importorskip("jobcast.models.curves.residuals")
    rng = np.random.default_rng(0)
    own = np.zeros((len(NAMES), 2, WIDEST))
    for row, family in enumerate(FAMILIES.values()):
        own[row, :, : len(family.mean)] = family.mean
    x, v = np.tile(X, (2, 1)), 1 + rng.uniform(0, 1, (2, 7))
    seen = np.array([[True] * 7, [True] * 4 + [False] * 3])

    def squares(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        told, downhill = np.empty(at.shape[:2]), np.empty(at.shape)
        residuals.fill_squares(at, x, np.log(x), v, seen, told, downhill)
        return told, downhill

    downhill = squares(own)[1]
    for row, family in enumerate(FAMILIES.values()):
        for column in range(len(family.mean)):
            step = np.zeros(own.shape)
            step[row, :, column] = 1e-6
            numeric = (squares(own + step)[0] - squares(own - step)[0])[row] / 2e-6
            assert -2 * downhill[row, :, column] == pytest.approx(numeric, rel=1e-4, abs=1e-6)
        assert (downhill[row, :, len(family.mean) :] == 0).all()


@pytest.fixture(scope="module")
def janoschek_curves() -> list[LearningCurve]:
    """Three applications of four curves: rises 0.6 of the way to what is told, exponents about 0.74."""
    rng = np.random.default_rng(1)
    x = 1 + np.arange(60) / 59 * 100
    made = []
    for app in ("a", "b", "c"):
        rate = rng.normal(-0.9, 0.1)
        for size in range(4):
            kappa = rate + rng.normal(0, 0.1)
            v = FORMULAS["janoschek"](np, x, [2.0, 0.5, kappa, -0.3])
            made.append(curve(app, size + 1, 0.3 + 0.3 * v + rng.normal(0, 0.002, 60)))
    return made


@pytest.mark.slow
def test_a_prior_is_learned_that_tells_such_curves(janoschek_curves):
    pytest.importorskip("pymc")
    told: list[tuple[int, int]] = []
    prior = learn_prior(
        janoschek_curves, seed=3, draws=200, steps=2500, progress=lambda done, of: told.append((done, of))
    )
    assert told[-1] == (2500, 2500)
    # the families that hold the truth among their members are told from those that do not
    assert max(prior.weight, key=prior.weight.__getitem__) in ("janoschek", "weibull", "exp4")
    assert prior.weight["janoschek"] > prior.weight["ilog2"]
    x = np.array([5.0, 30.0, 101.0])
    truth = FORMULAS["janoschek"](np, x, [2.0, 0.5, -0.9, -0.3])
    start = FORMULAS["janoschek"](np, 1.0, [2.0, 0.5, -0.9, -0.3])
    expected = 1 + (truth - start) / (truth[-1] - start)
    learned = FORMULAS["janoschek"](np, x, prior.mean["janoschek"])
    assert learned == pytest.approx(expected, abs=0.05)
    assert all(after < before for after, before in zip(prior.sd["janoschek"], FAMILIES["janoschek"].sd, strict=True))


@pytest.mark.slow
def test_equal_seeds_give_equal_priors_and_libraries_report_no_error(janoschek_curves, caplog):
    pytest.importorskip("pymc")
    first, again = (learn_prior(janoschek_curves[:5], seed=7, draws=20, steps=60) for _ in range(2))
    assert first.as_dict() == again.as_dict()
    assert [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []


def test_residuals_of_other_curves_are_another_operation(janoschek_curves):
    residuals = pytest.importorskip("jobcast.models.curves.residuals")
    first, other = (
        residuals.SquaredResiduals(FinishedCurves.of(part)) for part in (janoschek_curves[:2], janoschek_curves[2:4])
    )
    assert first != other


@pytest.mark.slow
@pytest.mark.parametrize(("name", "narrower"), [("pow3", 0.15), ("hill3", 0.15), ("janoschek", 0.45)])
def test_laplace_is_close_to_nuts(name, narrower):
    """Nine values of the first fifth of a run; its metric at x = 31 and at the end, from draws and from Laplace.

    Exponents bend the posterior: means by Laplace lie up to a quarter of an interval off, and far ahead intervals are
    narrower by as much as is told here.
    """
    pytest.importorskip("pymc")
    prior, rng, sd = CurvePrior.default(), np.random.default_rng(0), 0.03
    x, ends = np.geomspace(1, 21, 9), np.array([31.0, 101.0])
    v = FORMULAS[name](np, x, prior.mean[name]) + rng.normal(0, sd, 9)
    draws, diverged = posterior_draws(name, x, v, np.full(9, sd), prior, draws=400)
    assert diverged <= 4
    later = FORMULAS[name](np, ends, [draws[:, i : i + 1] for i in range(draws.shape[1])])
    low, high = np.quantile(later, [0.05, 0.95], axis=0)
    mean, width = _laplace(name, x, v, sd, prior, ends)
    assert (np.abs(mean - later.mean(axis=0)) <= 0.25 * (high - low)).all()
    assert width[0] == pytest.approx(high[0] - low[0], rel=0.15)
    assert width[1] == pytest.approx(high[1] - low[1], rel=narrower)


def _laplace(name, x, v, sd, prior, ends) -> tuple[np.ndarray, np.ndarray]:
    """Means and widths of 90 % intervals."""
    (mean, precision, _), row = prior.arrays(), NAMES.index(name)
    fitted, factor = np.zeros((1, len(NAMES), WIDEST)), np.zeros((1, len(NAMES), WIDEST, WIDEST))
    points = Points(np.array([len(x)]), x[None], np.log(x)[None], v[None], np.full((1, len(x)), sd**-2.0))
    families = Families(parameter_counts(), mean, precision)
    fit_families(points, families, fitted, factor, np.zeros((1, len(NAMES))))
    value, variance = np.empty((2, 1, len(NAMES), len(ends)))
    predict_families(ends[None], parameter_counts(), fitted, factor, value, variance)
    return value[0, row], 2 * 1.645 * np.sqrt(variance[0, row])


def posterior_draws(
    family: str, x: np.ndarray, v: np.ndarray, sd: np.ndarray, prior: CurvePrior, draws: int, seed: int = 0
) -> tuple[np.ndarray, int]:
    """Draws of one family's parameters given one curve, by NUTS (Hoffman and Gelman, 2014) in two chains.

    Residuals are normal up to `kernels.HUBER` standard deviations and count linearly beyond, as in the online fit.

    Parameters
    ----------
    family : name
    x, v, sd : (n_points,) places, scaled metric and its standard deviation
    prior : of the parameters
    seed, draws : draws of each chain

    Returns
    -------
    (2 x draws, k) parameters, and how many transitions diverged
    """
    pm = pymc()
    with pm.Model():
        parameters = pm.Normal("parameters", np.array(prior.mean[family]), np.array(prior.sd[family]))
        fitted = FORMULAS[family](pm.math, x, [parameters[i] for i in range(len(prior.mean[family]))])
        off = pm.math.abs((v - fitted) / sd)
        cost = pm.math.switch(off > HUBER, HUBER * (2 * off - HUBER), off**2)
        pm.Potential("fit", -0.5 * cost.sum())
        sampled = pm.sample(
            draws,
            tune=draws,
            chains=2,
            cores=1,
            random_seed=seed,
            target_accept=0.95,
            progressbar=False,
            compute_convergence_checks=False,
        )
    values = np.asarray(sampled.posterior["parameters"], np.float64)
    return values.reshape(-1, values.shape[-1]), int(sampled.sample_stats["diverging"].sum())
