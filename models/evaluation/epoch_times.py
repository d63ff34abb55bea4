"""How good forecasts of epoch times are: figures of `evaluate epoch-time`, beside rules without a model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TrainingError
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.models.epoch_time.fitting import NORMAL_90, forecast_log
from jobcast.models.epoch_time.jobs import MOST_POINTS, Places, ProfiledJob, draw_points, pick_points

Rows = NDArray[np.intp]
ENDS = (0.05, 0.95)
"""Of the spread over random draws of points."""
TAIL = 0.9


class Scored(NamedTuple):
    """Forecasts of one job's configurations that were left out, (n,) each.

    Attributes
    ----------
    model : its application
    plan : by which its points were picked
    points : how many
    gpu_type : of each configuration
    error : forecast over truth, less 1
    inside : whether the truth is in the interval
    baselines : name -> error of a rule without a model
    """

    model: str
    plan: str
    points: int
    gpu_type: NDArray[np.str_]
    error: Floats
    inside: NDArray[np.bool_]
    baselines: Mapping[str, Floats]


def score_epoch_times(
    jobs: Sequence[ProfiledJob],
    twin_of: Callable[[str], EpochTime],
    points: int = MOST_POINTS,
    plan: str | None = None,
    spread: str | None = None,
    draws: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """Figures over all configurations of some jobs but their few points.

    Parameters
    ----------
    jobs : measured
    twin_of : application -> the model that forecasts it
    points : known of each job and GPU type, at most 3
    plan : which, see `plans.PLANS`; None: the model's own
    spread : of batch sizes, see `EpochTime.forecast`
    draws : of points at random, beside the plan
    seed : of these

    Returns
    -------
    jobs, points, configurations : how many were scored; points are those that were known
    mape, p90_ape : mean and 90 % quantile of absolute errors, as shares of the truth
    coverage_90 : share of the truths inside the intervals
    mape_by_gpu_type, mape_by_model, baselines : the mean by each
    plans : plan -> jobs whose points were picked by it
    random_points : mean and ends (5 %, 95 %) of the figure over draws; None without any

    Raises TrainingError where nothing is left out.
    """
    # One training an application, not one a job.
    twins = {model: twin_of(model) for model in dict.fromkeys(job.model for job in jobs)}
    found = planned(jobs, twins, points, plan, spread)
    if not found:
        raise TrainingError(f"all configurations are among the {points} points of each job; profile more of them")
    rng = np.random.default_rng(seed)
    random = [_drawn(jobs, twins, points, spread, rng) for _ in range(draws)]
    return {**figures(found), "random_points": _spread_of(random)}


def figures(found: Sequence[Scored]) -> dict[str, Any]:
    """What `score_epoch_times` tells of scored jobs."""
    error = np.abs(np.concatenate([one.error for one in found]))
    types = np.concatenate([one.gpu_type for one in found])
    models = np.concatenate([np.full(len(one.error), one.model) for one in found])
    rules = found[0].baselines
    plans = [one.plan for one in found]
    return {
        "jobs": len(found),
        "points": sum(one.points for one in found),
        "configurations": len(error),
        "mape": float(error.mean()),
        "p90_ape": float(np.quantile(error, TAIL)),
        "coverage_90": float(np.concatenate([one.inside for one in found]).mean()),
        "mape_by_gpu_type": _by(types, error),
        "mape_by_model": _by(models, error),
        "baselines": {
            name: float(np.abs(np.concatenate([one.baselines[name] for one in found])).mean()) for name in rules
        },
        "plans": {name: plans.count(name) for name in dict.fromkeys(plans)},
    }


def linear(known: ProfiledJob, asked: Places) -> Floats:
    """(n,) seconds an epoch: the point on the fewest GPUs of the type, over the GPUs; of the nearest batch size."""
    fewest = {kind: known.places.gpus[known.places.kind == kind].min() for kind in np.unique(known.places.kind)}
    least = known.places.gpus == np.array([fewest[kind] for kind in known.places.kind])
    return _scaled(known.at(np.flatnonzero(least)), asked)


def nearest(known: ProfiledJob, asked: Places) -> Floats:
    """(n,) seconds an epoch: the nearest point of the type, by log batch size and log GPUs, scaled by the GPUs."""
    return _scaled(known, asked)


BASELINES: Mapping[str, Callable[[ProfiledJob, Places], Floats]] = {"linear": linear, "nearest": nearest}
"""Rules without a model: (points, configurations) -> seconds an epoch."""


def _scaled(known: ProfiledJob, asked: Places) -> Floats:
    at = known.places
    size = np.log(asked.batch_size)[:, None] - np.log(at.batch_size)
    gpus = np.log(asked.gpus)[:, None] - np.log(at.gpus)
    # Other types are infinitely far.
    distance = np.where(asked.kind[:, None] == at.kind, np.hypot(size, gpus), np.inf)
    row = np.argmin(distance, axis=1)
    return np.asarray(known.epoch_s[row] * at.gpus[row] / asked.gpus)


def planned(
    jobs: Sequence[ProfiledJob],
    twins: Mapping[str, EpochTime],
    points: int = MOST_POINTS,
    plan: str | None = None,
    spread: str | None = None,
) -> list[Scored]:
    """Jobs of which more was measured than the plan's points; see `score_epoch_times`, `twins` by application."""
    chosen = [(job, plan or twins[job.model].plan_) for job in jobs]
    return _all_scored([(job, name, pick_points(job, name, points)) for job, name in chosen], twins, spread)


def _all_scored(
    picked: Sequence[tuple[ProfiledJob, str, Rows]], twins: Mapping[str, EpochTime], spread: str | None
) -> list[Scored]:
    """Of jobs, names of plans and rows that are known: those of which something is left to be scored on."""
    return [
        _scored(job, twins[job.model], plan, rows, spread) for job, plan, rows in picked if len(rows) < len(job.epoch_s)
    ]


def _scored(job: ProfiledJob, model: EpochTime, plan: str, rows: Rows, spread: str | None) -> Scored:
    rest = np.setdiff1d(np.arange(len(job.epoch_s)), rows)
    known, asked, truth = job.at(rows), job.places.at(rest), job.epoch_s[rest]
    mean, sd = forecast_log(model.fit_job(known, job.gpu_types, spread), asked)
    off = np.log(truth) - mean
    return Scored(
        model=job.model,
        plan=plan,
        points=len(rows),
        gpu_type=np.array(job.gpu_types)[asked.kind],
        # Forecast over truth, less 1.
        error=np.expm1(-off),
        inside=np.abs(off) <= model.widening_ * NORMAL_90 * sd,
        baselines={name: rule(known, asked) / truth - 1.0 for name, rule in BASELINES.items()},
    )


def _drawn(
    jobs: Sequence[ProfiledJob],
    twins: Mapping[str, EpochTime],
    points: int,
    spread: str | None,
    rng: np.random.Generator,
) -> float:
    drawn = _all_scored([(job, "drawn", draw_points(job, rng, points)) for job in jobs], twins, spread)
    return float(np.abs(np.concatenate([one.error for one in drawn])).mean())


def _spread_of(random: Sequence[float]) -> dict[str, float] | None:
    if not random:
        return None
    low, high = np.quantile(random, ENDS)
    return {"draws": len(random), "mape": float(np.mean(random)), "mape_p5": float(low), "mape_p95": float(high)}


def _by(names: NDArray[np.str_], error: Floats) -> dict[str, float]:
    return {str(name): float(error[names == name].mean()) for name in np.unique(names)}
