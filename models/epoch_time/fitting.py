"""The likeliest shape behind a job's few points, and forecasts from it: Laplace's approximation around it.

Parameters have a normal prior, residuals a Gaussian process's: the maximum is found by Levenberg and Marquardt's
steps, and what is linear around it is solved exactly. Rasmussen and Williams, Gaussian Processes, sections 2.2, 2.7.
"""

from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.models.epoch_time.jobs import Places, ProfiledJob
from jobcast.models.epoch_time.prior import COUNT, SCALE, Residual, StepPrior, log_step_s

STEPS = 60
DAMPING, EASED, RAISED, MOST_DAMPED = 1e-3, 5.0, 5.0, 1e9
"""Of Levenberg and Marquardt's steps: at first, by what it falls and rises, and where there is no way down."""
SMALL = 1e-9
"""A relative gain at which they end."""


class Fit(NamedTuple):
    """A job's points and the shape behind them.

    Attributes
    ----------
    prior, residual, spread : that it was fitted with
    gpu_types : of the job; some may have no point
    places : (n,) of the points
    middle : log of the samples a GPU that count as b_0
    mean : (n_types x COUNT,) prior mean, with a scale that fits the points
    best : (n_types x COUNT,) likeliest parameters
    value, slope : (n,), (n, n_types x COUNT) of the shape there
    log_step : (n,) measured, log of seconds a step times samples an epoch
    evidence : log of the points' density, as far as it depends on prior and spread
    """

    prior: StepPrior
    residual: Residual
    spread: str
    gpu_types: tuple[str, ...]
    places: Places
    middle: float
    mean: Floats
    best: Floats
    value: Floats
    slope: Floats
    log_step: Floats
    evidence: float


def fit_points(
    job: ProfiledJob, spread: str, prior: StepPrior, residual: Residual, gpu_types: tuple[str, ...] | None = None
) -> Fit:
    """The likeliest shape behind what was measured of a job.

    Parameters
    ----------
    job : its points, at least one
    spread : whether batch sizes are a GPU's or the job's, see `jobs.SPREADS`
    prior, residual : before the points are seen
    gpu_types : of the forecasts to come, where there are more than the job has; its own come first
    """
    types = gpu_types or job.gpu_types
    local = job.places.log_local(spread)
    middle = 0.5 * float(local.min() + local.max())
    log_step = np.log(job.epoch_s) + job.places.log_samples(spread)
    mean = prior.means(types).ravel()
    mean[SCALE::COUNT] += np.mean(log_step - _shape(mean, job.places, middle, spread)[0])
    noisy = residual.covariance(job.places, job.places, spread) + residual.noise**2 * np.eye(len(log_step))
    covariance = prior.covariance(len(types))
    precision, sure = (np.asarray(np.linalg.inv(one), np.float64) for one in (covariance, noisy))
    best, loss = _descend(mean, precision, sure, log_step, job.places, middle, spread)
    value, slope = _shape(best, job.places, middle, spread)
    whole = slope @ covariance @ slope.T + noisy
    evidence = -0.5 * (loss + float(np.linalg.slogdet(whole)[1]))
    return Fit(
        prior, residual, spread, types, job.places, middle, mean, best, value, slope, log_step, evidence
    )  # fmt: skip


def forecast_log(fit: Fit, places: Places) -> tuple[Floats, Floats]:
    """Mean and standard deviation, (n,) each, of log(seconds an epoch) at configurations, as they would be measured."""
    value, slope = _shape(fit.best, places, fit.middle, fit.spread)
    covariance, kernel = fit.prior.covariance(len(fit.gpu_types)), fit.residual.covariance
    noise = fit.residual.noise**2
    back = fit.mean - fit.best
    known = fit.slope @ covariance @ fit.slope.T + kernel(fit.places, fit.places, fit.spread)
    known += noise * np.eye(len(fit.log_step))
    across = slope @ covariance @ fit.slope.T + kernel(places, fit.places, fit.spread)
    weights = np.linalg.solve(known, across.T).T
    mean = value + slope @ back + weights @ (fit.log_step - fit.value - fit.slope @ back)
    own = np.einsum("ij,jk,ik->i", slope, covariance, slope) + fit.residual.by_size**2 + fit.residual.by_place**2
    variance = np.maximum(own - (weights * across).sum(axis=1), 0.0) + noise
    return mean - places.log_samples(fit.spread), np.sqrt(variance)


def _shape(parameters: Floats, places: Places, middle: float, spread: str) -> tuple[Floats, Floats]:
    """(n,) log steps and (n, n_types x COUNT) their derivatives."""
    by_type = parameters.reshape(-1, COUNT)
    value, own = log_step_s(by_type[places.kind], places.log_local(spread) - middle, places.gpus)
    slope = np.zeros((len(value), *by_type.shape))
    slope[np.arange(len(value)), places.kind] = own
    return value, slope.reshape(len(value), -1)


def _descend(
    mean: Floats, precision: Floats, sure: Floats, log_step: Floats, places: Places, middle: float, spread: str
) -> tuple[Floats, float]:
    """Likeliest parameters and the loss there: squared distances from points and prior mean."""

    def look(at: Floats) -> tuple[float, Floats, Floats]:
        value, slope = _shape(at, places, middle, spread)
        off, away = log_step - value, at - mean
        return float(off @ sure @ off + away @ precision @ away), off, slope

    at, damping = mean, DAMPING
    loss, off, slope = look(at)
    for _ in range(STEPS):
        curvature = slope.T @ sure @ slope + precision
        downhill = slope.T @ sure @ off - precision @ (at - mean)
        tried = at + np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), downhill)
        found = look(tried)
        if found[0] < loss:
            gain = loss - found[0]
            at, (loss, off, slope), damping = tried, found, damping / EASED
            if gain < SMALL * (1.0 + loss):
                break
        elif damping > MOST_DAMPED:
            break
        else:
            damping *= RAISED
    return at, loss
