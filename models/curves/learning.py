"""Learning a prior over the families' parameters from finished curves with PyMC.

Parameters of a curve are those of all applications, plus a deviation of its application, plus its own; noise has one
standard deviation a family, which takes up what the family cannot follow. All families are fitted in one model, by
mean-field variational inference (Kucukelbir et al., 2017): NUTS takes trees of depth 8 and minutes a family. A curve's
own parameters are whitened by Laplace's approximation, so that mean-field is close to the truth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError
from jobcast.models.curves.finished import FinishedCurves
from jobcast.models.curves.fitting import fit_all
from jobcast.models.curves.kernels import family_values
from jobcast.models.curves.points import Points
from jobcast.models.curves.prior import FAMILIES, WIDEST, CurvePrior
from jobcast.traces.learning_curves import LearningCurve

STEPS = 4000
LEARNING_RATE = 0.03
DRAWS = 400
NOISE = 0.03
"""Standard deviation of v about a curve, before any is seen."""
NOISE_WIDTH = 0.7
"""Of its logarithm."""
APART_APPS, APART_CURVES = 0.5, 0.3
"""Spread of applications and of an application's curves, as shares of the families' default standard deviations."""
WIDTH_WIDTH = 0.7
"""Of the logarithm of the latter."""
LEAST_SD = 0.1
"""Of a learned standard deviation, as a share of the default: few applications never make a prior certain."""
LEAST_LOSSES = 100
"""Steps between two tellings of progress."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """Every family's parameters of each curve as centre + spread @ z, z about standard normal; unused ones are z.

    Attributes
    ----------
    centre : (11, n_curves, WIDEST)
    spread : (11, n_curves, WIDEST, WIDEST)
    """

    centre: Floats
    spread: Floats


def learn_prior(
    curves: Sequence[LearningCurve],
    seed: int = 0,
    draws: int = DRAWS,
    progress: Progress | None = None,
    steps: int = STEPS,
) -> CurvePrior:
    """A prior of a new application's curves, from finished ones; equal seeds, equal priors.

    Parameters
    ----------
    curves : whole ones
    seed : of the fit and of the draws
    draws : from the posterior, of which means and spreads are taken
    progress : is told how many of all steps are done
    steps : of the stochastic gradient

    Raises
    ------
    ConfigError
        PyMC is not installed.
    TrainingError
        No curve can be used.
    """
    finished = FinishedCurves.of(curves)
    # After the curves were checked: importing PyMC takes seconds.
    pm = pymc()
    with _hierarchy(pm, finished):
        fit = pm.fit(
            steps,
            method="advi",
            random_seed=seed,
            progressbar=False,
            obj_optimizer=pm.adam(learning_rate=LEARNING_RATE),
            callbacks=[_telling(progress, steps)],
        )
        drawn = fit.sample(draws, random_seed=seed, return_inferencedata=False)
    values = {name: np.asarray(drawn[name], np.float64) for name in drawn.varnames}
    return _prior_of(values, finished)


def pymc() -> Any:
    """The library, imported here alone because that takes seconds, and silenced.

    Raises
    ------
    ConfigError
        It is not installed.
    """
    import logging

    try:
        import pymc as library
    except ImportError as error:
        raise ConfigError(
            "learning curves: PyMC is not installed; install jobcast with its extra: jobcast[bayes]"
        ) from error
    logging.getLogger("pymc").setLevel(logging.ERROR)
    return library


def _hierarchy(pm: Any, finished: FinishedCurves) -> Any:
    """All families side by side, (11, ..., WIDEST): in units of their default standard deviations, about the means."""
    from jobcast.models.curves.residuals import SquaredResiduals

    (mean, precision, _), used, whitened = CurvePrior.default().arrays(), _used(), _whitening(finished)
    families, apps = len(used), len(finished.apps)
    with pm.Model() as model:
        middle = pm.Normal("middle", 0, 1, shape=used.shape)
        apart = pm.HalfNormal("apart", APART_APPS, shape=used.shape)
        width = pm.LogNormal("width", np.log(APART_CURVES), WIDTH_WIDTH, shape=used.shape)
        app = pm.Normal("app", 0, 1, shape=(families, apps, WIDEST))
        noise = pm.LogNormal("noise", np.log(NOISE), NOISE_WIDTH, shape=families)
        # Flat, for the density of own parameters is added below as a potential.
        z = pm.Flat("z", shape=whitened.centre.shape, initval=np.zeros(whitened.centre.shape))
        own = pm.Deterministic("own", whitened.centre + (whitened.spread * z[:, :, None, :]).sum(-1))
        center = middle[:, None, :] + (apart[:, None, :] * app)[:, finished.app]
        off = ((own - mean[:, None]) * np.sqrt(precision)[:, None] - center) / width[:, None, :]
        pm.Potential("curves", (used[:, None] * (-0.5 * off**2 - pm.math.log(width)[:, None, :])).sum())
        # Parameters that a family lacks are standard normal and touch nothing.
        pm.Potential("unused", (-0.5 * (1 - used[:, None]) * z**2).sum())
        outputs: Any = SquaredResiduals(finished)(own)
        # As many log noise terms as values.
        values = finished.seen.sum(axis=1)
        each = -0.5 * outputs[0] / noise[:, None] ** 2 - values * pm.math.log(noise)[:, None]
        pm.Potential("values", each.sum())
    return model


def _used() -> Floats:
    """(11, WIDEST) 1 where a family has a parameter, else 0."""
    return np.array([[float(i < len(family.parameters)) for i in range(WIDEST)] for family in FAMILIES.values()])


def _whitening(finished: FinishedCurves) -> Whitening:
    """MAP of every family for every curve under the default prior, and the inverse of the Hessian's root there."""
    count, weight = finished.seen.sum(axis=1).astype(np.int64), np.where(finished.seen, NOISE**-2, 0.0)
    points = Points(count, finished.x, np.log(finished.x), finished.v, weight)
    fitted, factor, _ = fit_all(points, CurvePrior.default())
    used = _used()[None, :, :, None]
    # Unused rows become those of the identity, so that the factor can be inverted.
    lower = np.where(used * used.swapaxes(2, 3) > 0, np.tril(factor), np.eye(WIDEST))
    centre = np.where(used[..., 0] > 0, fitted, 0.0)
    return Whitening(centre.swapaxes(0, 1), np.linalg.inv(lower).swapaxes(2, 3).swapaxes(0, 1))


def _telling(progress: Progress | None, steps: int) -> Callable[[Any, Any, int], None]:
    def tell(_approximation: Any, _losses: Any, step: int) -> None:
        # The last step is always told.
        if progress is not None and (step % LEAST_LOSSES == 0 or step == steps):
            progress(step, steps)

    return tell


def _prior_of(values: dict[str, Floats], finished: FinishedCurves) -> CurvePrior:
    """Of a new application: the spread of what is common to all, of applications and of curves, together."""
    spread = np.sqrt(values["middle"].var(axis=0) + (values["apart"] ** 2 + values["width"] ** 2).mean(axis=0))
    middle, spread = values["middle"].mean(axis=0), np.maximum(spread, LEAST_SD)
    mean, sd = {}, {}
    for row, (name, family) in enumerate(FAMILIES.items()):
        unit, k = np.array(family.sd), len(family.parameters)
        mean[name] = tuple((np.array(family.mean) + unit * middle[row, :k]).tolist())
        sd[name] = tuple((unit * spread[row, :k]).tolist())
    return CurvePrior(mean, sd, _weights(values, finished))


def _weights(values: dict[str, Floats], finished: FinishedCurves) -> dict[str, float]:
    """Shares of the families: each counts once, and once more for every application, by how well it tells its curves.

    A family's share of a curve goes by its expected log density, the widely applicable information criterion
    (Watanabe, 2010), summed over the curve's values.
    """
    scores = np.stack([_log_density(row, values, finished) for row in range(len(FAMILIES))])
    share = np.exp(scores - scores.max(axis=0))
    share /= share.sum(axis=0)
    of_app = [share[:, finished.app == app].mean(axis=1) for app in range(len(finished.apps))]
    # Each family counts once before any curve is seen, and none is ever ruled out.
    counts = 1 + np.sum(of_app, axis=0)
    return dict(zip(FAMILIES, (counts / counts.sum()).tolist(), strict=True))


def _log_density(row: int, values: dict[str, Floats], finished: FinishedCurves) -> Floats:
    """(n_curves,)"""
    own, noise = np.ascontiguousarray(values["own"][:, row]), values["noise"][:, row, None, None]
    fitted = np.empty((len(own), *finished.x.shape))
    family_values(row, finished.x, own, fitted)
    each = -0.5 * ((finished.v - fitted) / noise) ** 2 - np.log(noise)
    # Log of a mean of exponentials, without overflow.
    highest = each.max(axis=0)
    expected = highest + np.log(np.exp(each - highest).mean(axis=0)) - each.var(axis=0)
    return np.asarray(np.where(finished.seen, expected, 0.0).sum(axis=1))
