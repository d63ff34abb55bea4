"""How well regimes and run times of training jobs are forecast while they run. Shockwave, section 5 and Figure 5.

The sample: every training job at 0, 5, ..., 95 % of its epochs, observed as it would report itself there. The mean is
over all pairs of a job and a point.

- regime error: mean over the job's regimes of |forecast - true epochs|, in % of the job's epochs; regimes are
  matched by order, those that only one side has count as 0 epochs on the other, and the mean is over as many as the
  longer side has
- misplaced: half of the sum of the same differences, in % of the job's epochs: what is forecast at a wrong place
- total accuracy: 100 - |forecast - true run time| in % of the true one
- remaining accuracy: the same of what is left, the forecast of it being the total less the time spent
- coverage: share of intervals that hold the true remaining time; `open` counts only those of more than a point
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes.trajectories import POINTS, progress_at

LEVEL = 0.9
TINY = 1e-6
"""Of a job's run time: an interval that is shorter is a point, and a difference below it none."""


class Rule(Protocol):
    """What is scored."""

    def trajectory(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """All regimes of a job from its beginning on."""


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Figures of one rule, (n_jobs, n_points) each.

    Attributes
    ----------
    regime_error, misplaced, total, remaining : in %; see the module
    covered, width : of intervals, 1 or 0, and their width in % of the run time; NaN where the rule gives none
    """

    regime_error: Floats
    misplaced: Floats
    total: Floats
    remaining: Floats
    covered: Floats
    width: Floats

    def figures(self, rows: NDArray[np.bool_]) -> dict[str, Any]:
        """Means over jobs and points."""
        result: dict[str, Any] = {
            "regime_error": float(self.regime_error[rows].mean()),
            "misplaced": float(self.misplaced[rows].mean()),
            "total_accuracy": float(self.total[rows].mean()),
            "remaining_accuracy": float(self.remaining[rows].mean()),
            "coverage": None,
            "coverage_open": None,
            "open": None,
        }
        if np.isfinite(self.covered).all():
            covered, opened = self.covered[rows], self.width[rows] > 100 * TINY
            result["coverage"] = float(100 * covered.mean())
            result["open"] = float(100 * opened.mean())
            result["coverage_open"] = float(100 * covered[opened].mean()) if opened.any() else None
        return result

    def by_point(self, rows: NDArray[np.bool_]) -> dict[str, list[float]]:
        """Means over jobs at each point of progress."""
        names = ("regime_error", "misplaced", "total", "remaining")
        return {name: getattr(self, name)[rows].mean(axis=0).tolist() for name in names}


def jittered(regimes: Sequence[Regime], sigma: float, rng: np.random.Generator) -> tuple[Regime, ...]:
    """Regimes of other lengths: all but the last times a log-normal factor, then scaled to the same epochs in all.

    Parameters
    ----------
    regimes : of a job
    sigma : standard deviation of the factor's logarithm; its median is 1
    rng : one draw for each regime but the last
    """
    epochs = np.array([regime.epochs for regime in regimes])
    # The last regime takes what the others leave.
    factors = np.append(np.exp(sigma * rng.standard_normal(len(epochs) - 1)), 1.0)
    scaled = epochs * factors * (epochs.sum() / (epochs * factors).sum())
    return tuple(replace(regime, epochs=float(one)) for regime, one in zip(regimes, scaled, strict=True))


def score_regimes(
    rule: Rule, jobs: Sequence[Job], truth: Sequence[Sequence[Regime]], points: Sequence[int] = POINTS
) -> Scores:
    """Score a rule on jobs at points of progress.

    Parameters
    ----------
    rule : with `remaining_time` where intervals are to be scored
    jobs : (n_jobs,) training jobs
    truth : (n_jobs,) the regimes that they run through
    points : (n_points,) progress in % of the epochs
    """
    # Rules in closed form know no intervals.
    interval = getattr(rule, "remaining_time", None)
    rows = [
        [_point(rule, interval, job, regimes, point) for point in points]
        for job, regimes in zip(jobs, truth, strict=True)
    ]
    table = np.array(rows, np.float64)
    return Scores(*(table[:, :, column] for column in range(table.shape[2])))


def _point(
    rule: Rule, interval: Callable[..., Any] | None, job: Job, truth: Sequence[Regime], point: int
) -> tuple[float, ...]:
    training = job.training
    if training is None:
        raise ValueError(f"job {job.job_id}: is no training job")
    progress = progress_at(truth, training.epochs * point / 100)
    forecast = rule.trajectory(training, progress)
    total_s, spent_s = training.run_time_s(tuple(truth)), training.run_time_s(progress.regimes)
    forecast_s = training.run_time_s(forecast)
    left_s = total_s - spent_s
    away = _differences(forecast, truth)
    covered = width = float("nan")
    if interval is not None:
        held = interval(job, progress, LEVEL)
        # A point that is right but for rounding counts as held.
        tolerance = TINY * total_s
        covered = float(held.low_s - tolerance <= left_s <= held.high_s + tolerance)
        width = 100 * (held.high_s - held.low_s) / total_s
    return (
        100 * float(away.mean()) / training.epochs,
        50 * float(away.sum()) / training.epochs,
        100 - 100 * abs(forecast_s - total_s) / total_s,
        100 - 100 * abs(max(0.0, forecast_s - spent_s) - left_s) / left_s,
        covered,
        width,
    )


def crps(values: Floats, weights: Floats, truth: float) -> float:
    """Continuous ranked probability score of a discrete distribution, in the unit of its values; 0 = sure and right.

    E|X - y| - E|X - X'| / 2. Gneiting & Raftery, Strictly proper scoring rules (2007), equation 21. Of a single point
    it is the absolute error, so that rules without a distribution can stand beside.

    Parameters
    ----------
    values, weights : (n,); weights add up to 1

    Examples
    --------
    >>> crps(np.array([3.0]), np.ones(1), 5.0)
    2.0
    >>> crps(np.array([4.0, 6.0]), np.array([0.5, 0.5]), 5.0)
    0.5
    """
    apart = np.abs(values[:, None] - values)
    return float(weights @ np.abs(values - truth) - weights @ apart @ weights / 2)


def _differences(forecast: Sequence[Regime], truth: Sequence[Regime]) -> Floats:
    # Regimes that one side lacks count as 0 epochs there.
    pairs = zip_longest(*([regime.epochs for regime in side] for side in (forecast, truth)), fillvalue=0.0)
    return np.array([abs(one - other) for one, other in pairs])


def compare_rules(
    rules: Mapping[str, Rule], jobs: Sequence[Job], truth: Sequence[Sequence[Regime]]
) -> dict[str, dict[str, Any]]:
    """Figures of several rules: all jobs, and those that change, each with their numbers."""
    changes = np.array([len(regimes) > 1 for regimes in truth])
    groups = {"all": np.ones(len(jobs), bool), "changing": changes}
    scores = {name: score_regimes(rule, jobs, truth) for name, rule in rules.items()}
    return {
        group: {
            "jobs": int(rows.sum()),
            "rules": {name: {**one.figures(rows), "by_progress": one.by_point(rows)} for name, one in scores.items()},
        }
        for group, rows in groups.items()
        if rows.any()
    }


def knowing(jobs: Sequence[Job], truth: Sequence[Sequence[Regime]]) -> tuple[Job, ...]:
    """The same jobs whose users declared the number of regimes that they run through: K known."""
    return tuple(
        job if job.training is None else replace(job, training=replace(job.training, max_regimes=len(regimes)))
        for job, regimes in zip(jobs, truth, strict=True)
    )
