"""The likeliest shape behind a job's few points, and forecasts from it: Laplace's approximation around it.

Parameters have a normal prior, residuals a Gaussian process's: the maximum is found by Levenberg and Marquardt's
steps, and what is linear around it is solved exactly. Rasmussen and Williams, Gaussian Processes, sections 2.2, 2.7.

What other jobs teach: the prior of the shape, whose batch sizes are a GPU's, which points to profile, how far off.

The prior by expectation and maximisation over the likeliest shapes (Laplace's approximation); a guess of our own
weighs as much as `GUESS` jobs.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.models.epoch_time.jobs import (
    ANY_SCALE,
    COUNT,
    PLANS,
    SCALE,
    SPREADS,
    Places,
    ProfiledJob,
    Residual,
    StepPrior,
    log_step_s,
    pick_points,
)

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
    # Nothing is assumed of a job's speed: its level is that of its points.
    mean[SCALE::COUNT] += np.mean(log_step - _shape(mean, job.places, middle, spread)[0])
    noisy = residual.covariance(job.places, job.places, spread) + residual.noise**2 * np.eye(len(log_step))
    covariance = prior.covariance(len(types))
    precision, sure = (np.asarray(np.linalg.inv(one), np.float64) for one in (covariance, noisy))
    best, loss = _descend(mean, precision, sure, log_step, job.places, middle, spread)
    value, slope = _shape(best, job.places, middle, spread)
    # Of the points themselves, parameters and residuals together.
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
    # The shape is linear around the best parameters, the prior's mean lies back from there.
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
            # A good step: less damping, closer to Gauss and Newton.
            at, (loss, off, slope), damping = tried, found, damping / EASED
            if gain < SMALL * (1.0 + loss):
                break
        elif damping > MOST_DAMPED:
            break
        else:
            damping *= RAISED
    return at, loss


GUESS = 3.0
ROUNDS = 6
FOLDS = 10
"""Applications are left out one by one up to so many, in so many groups beyond."""
LEVEL = 0.9
NORMAL_90 = 1.6448536269514722
"""Half the width of a normal distribution's middle 90 %, in standard deviations."""
UNSURE = 0.02
"""What each spread counts before any job was seen: a table's jobs agree in what their batch sizes mean."""
Tick = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""


class Shares(NamedTuple):
    """What a job and its GPU types tell of the prior: posterior means and variances of their departures from it."""

    job: Floats
    job_variance: Floats
    types: Floats
    types_variance: Floats


class Trial(NamedTuple):
    """Forecasts of configurations that were left out, in logs."""

    error: Floats
    sd: Floats


def learn_prior(jobs: Sequence[ProfiledJob], residual: Residual) -> tuple[StepPrior, dict[str, int]]:
    """The prior, and how many jobs have batch sizes of each spread."""
    guess = StepPrior()
    spreads = _spreads(jobs, guess, residual)
    prior = guess
    for _ in range(ROUNDS):
        # Expectation: the likeliest shapes under the prior so far.
        fits = [fit_points(job, spread, prior, residual) for job, spread in zip(jobs, spreads, strict=True)]
        prior = _updated(prior, guess, fits)
    return prior, {name: spreads.count(name) for name in SPREADS}


def _spreads(jobs: Sequence[ProfiledJob], prior: StepPrior, residual: Residual) -> list[str]:
    """Each job's spread: first by itself, then as one of a table whose jobs agree as a rule."""
    alone = [likelier(job, prior, residual).spread for job in jobs]
    others = [{name: (alone[:row] + alone[row + 1 :]).count(name) for name in SPREADS} for row in range(len(jobs))]
    return [likelier(job, prior, residual, counts).spread for job, counts in zip(jobs, others, strict=True)]


def likelier(
    job: ProfiledJob,
    prior: StepPrior,
    residual: Residual,
    counts: dict[str, int] | None = None,
    gpu_types: tuple[str, ...] | None = None,
) -> Fit:
    """The fit of the likelier spread, after jobs of which so many had each."""
    # Both ways of reading batch sizes; evidence and other jobs tell the likelier one.
    fits = [fit_points(job, spread, prior, residual, gpu_types) for spread in SPREADS]
    ahead = [np.log(UNSURE + (counts or {}).get(fit.spread, 0)) for fit in fits]
    return max(zip(fits, ahead, strict=True), key=lambda one: one[0].evidence + one[1])[0]


def trials(
    jobs: Sequence[ProfiledJob], residual: Residual, tick: Tick = lambda done, total: None
) -> dict[str, list[Trial]]:
    """By plan, forecasts of each application's configurations from its points, by what the others teach."""
    planned: dict[str, list[Trial]] = {plan: [] for plan in PLANS}
    groups = folds_of(jobs)
    for done, group in enumerate(groups):
        others = [job for job in jobs if job.model not in group]
        prior, counts = learn_prior(others, residual)
        for job in jobs:
            if job.model not in group:
                continue
            for plan in PLANS:
                planned[plan] += _trial(job, pick_points(job, plan), prior, residual, counts)
        tick(done + 1, len(groups))
    return planned


def folds_of(jobs: Sequence[ProfiledJob]) -> list[frozenset[str]]:
    """Applications that are left out together."""
    models = list(dict.fromkeys(job.model for job in jobs))
    if len(models) < 2:
        return []
    # Every count-th application: groups differ by one at most.
    count = min(FOLDS, len(models))
    return [frozenset(models[start::count]) for start in range(count)]


def mape(found: Sequence[Trial]) -> float:
    """Mean absolute error as a share of the truth; infinite where nothing was forecast."""
    return float(np.abs(np.expm1(np.concatenate([one.error for one in found]))).mean()) if found else np.inf


def widening(found: Sequence[Trial]) -> float:
    """By how much standard deviations must grow for normal intervals to hold 90 % of what was left out."""
    if not found:
        return 1.0
    off = np.concatenate([np.abs(one.error) / one.sd for one in found])
    return float(np.quantile(off, LEVEL)) / NORMAL_90


def _trial(
    job: ProfiledJob, rows: np.ndarray, prior: StepPrior, residual: Residual, counts: dict[str, int]
) -> list[Trial]:
    rest = np.setdiff1d(np.arange(len(job.epoch_s)), rows)
    if not len(rest):
        return []
    mean, sd = forecast_log(likelier(job.at(rows), prior, residual, counts), job.places.at(rest))
    return [Trial(mean - np.log(job.epoch_s[rest]), sd)]


def _updated(prior: StepPrior, guess: StepPrior, fits: Sequence[Fit]) -> StepPrior:
    """One step of expectation and maximisation."""
    rows = [_shares(fit) for fit in fits]
    n = len(fits)
    job = np.array([one.job for one in rows])
    mean = (n * (prior.mean + job.mean(axis=0)) + GUESS * guess.mean) / (n + GUESS)
    # Speeds differ freely, see ANY_SCALE; their mean means nothing.
    mean[SCALE] = 0.0
    spread = (job - (mean - prior.mean)) ** 2 + np.array([one.job_variance for one in rows])
    sd_job = np.sqrt((GUESS * guess.sd_job**2 + spread.sum(axis=0)) / (GUESS + n))
    sd_job[SCALE] = ANY_SCALE
    types = np.concatenate([one.types for one in rows])
    variances = np.concatenate([one.types_variance for one in rows])
    sd_type = np.sqrt((GUESS * guess.sd_type**2 + (types**2 + variances).sum(axis=0)) / (GUESS + len(types)))
    return replace(
        prior, mean=mean, sd_job=sd_job, sd_type=sd_type, log_slower=_slower(prior, fits, rows)
    )  # fmt: skip


def _slower(prior: StepPrior, fits: Sequence[Fit], value: Sequence[Shares]) -> dict[str, float]:
    """How much longer steps take on each type, from jobs that were measured on several; one more is taken for 0."""
    found: dict[str, list[float]] = {}
    for fit, one in zip(fits, value, strict=True):
        if len(fit.gpu_types) > 1:
            for name, departure in zip(fit.gpu_types, one.types[:, SCALE], strict=True):
                found.setdefault(name, []).append(float(departure))
    return {name: prior.log_slower.get(name, 0.0) + sum(off) / (len(off) + 1) for name, off in found.items()}


def _shares(fit: Fit) -> Shares:
    """How a job departs from the prior, and its types from it, given its points."""
    n_types = len(fit.gpu_types)
    by_type = fit.slope.reshape(len(fit.log_step), n_types, COUNT)
    # Departures of the job count for all of its types, those of a type for itself.
    design = np.concatenate([by_type.sum(axis=1), fit.slope], axis=1)
    loose = np.concatenate([fit.prior.sd_job**-2, np.tile(fit.prior.sd_type**-2, n_types)])
    noisy = fit.residual.covariance(fit.places, fit.places, fit.spread)
    sure = np.linalg.inv(noisy + fit.residual.noise**2 * np.eye(len(fit.log_step)))
    covariance = np.linalg.inv(design.T @ sure @ design + np.diag(loose))
    off = fit.log_step - fit.value + fit.slope @ (fit.best - fit.mean)
    departure = covariance @ (design.T @ (sure @ off))
    variance = np.diag(covariance)
    types = departure[COUNT:].reshape(n_types, COUNT), variance[COUNT:].reshape(n_types, COUNT)
    return Shares(departure[:COUNT], variance[:COUNT], *types)
