"""What other jobs teach: the prior of the shape, whose batch sizes are a GPU's, which points to profile, how far off.

The prior by expectation and maximisation over the likeliest shapes (Laplace's approximation); a guess of our own
weighs as much as `GUESS` jobs.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.models.epoch_time.fitting import Fit, fit_points, forecast_log
from jobcast.models.epoch_time.jobs import PLANS, SPREADS, ProfiledJob, pick_points
from jobcast.models.epoch_time.prior import ANY_SCALE, COUNT, SCALE, Residual, StepPrior

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
    told = [_shares(fit) for fit in fits]
    n = len(fits)
    job = np.array([one.job for one in told])
    mean = (n * (prior.mean + job.mean(axis=0)) + GUESS * guess.mean) / (n + GUESS)
    mean[SCALE] = 0.0
    spread = (job - (mean - prior.mean)) ** 2 + np.array([one.job_variance for one in told])
    sd_job = np.sqrt((GUESS * guess.sd_job**2 + spread.sum(axis=0)) / (GUESS + n))
    sd_job[SCALE] = ANY_SCALE
    types = np.concatenate([one.types for one in told])
    variances = np.concatenate([one.types_variance for one in told])
    sd_type = np.sqrt((GUESS * guess.sd_type**2 + (types**2 + variances).sum(axis=0)) / (GUESS + len(types)))
    return replace(
        prior, mean=mean, sd_job=sd_job, sd_type=sd_type, log_slower=_slower(prior, fits, told)
    )  # fmt: skip


def _slower(prior: StepPrior, fits: Sequence[Fit], told: Sequence[Shares]) -> dict[str, float]:
    """How much longer steps take on each type, from jobs that were measured on several; one more is taken for 0."""
    found: dict[str, list[float]] = {}
    for fit, one in zip(fits, told, strict=True):
        if len(fit.gpu_types) > 1:
            for name, departure in zip(fit.gpu_types, one.types[:, SCALE], strict=True):
                found.setdefault(name, []).append(float(departure))
    return {name: prior.log_slower.get(name, 0.0) + sum(off) / (len(off) + 1) for name, off in found.items()}


def _shares(fit: Fit) -> Shares:
    """How a job departs from the prior, and its types from it, given its points."""
    n_types = len(fit.gpu_types)
    by_type = fit.slope.reshape(len(fit.log_step), n_types, COUNT)
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
