"""Remaining run time in Optimus' manner: iterations until convergence over steps a second. Sections 3.1 and 3.2."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.models.curves.convergence import Convergence

Floats = NDArray[np.float64]
THRESHOLD = 0.01
"""An epoch that takes less than this share of the largest loss off it adds to the epochs of a converged job."""
PATIENCE = 3
"""Epochs in a row; Optimus says several."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """When a job counts as converged.

    Attributes
    ----------
    threshold : above 0, reduction of the loss in an epoch, a share of the largest loss so far
    patience : epochs in a row below it
    """

    threshold: float = THRESHOLD
    patience: int = PATIENCE


DEFAULT = Stopping()


def remaining_iterations(
    fitted: Convergence,
    done: ArrayLike,
    epoch_iterations: ArrayLike = 1.0,
    most: ArrayLike = np.inf,
    rule: Stopping = DEFAULT,
) -> Floats:
    """Iterations left until convergence, (n_jobs,), at least 0.

    Parameters
    ----------
    fitted : losses of n_jobs
    done : iterations that each has run
    epoch_iterations : iterations an epoch
    most : iterations declared by the user, after which a job ends in any case
    rule : when a job counts as converged
    """
    ends = np.minimum(fitted.converged_at(rule.threshold, epoch_iterations, rule.patience), most)
    left: Floats = np.maximum(ends - np.asarray(done, np.float64), 0.0)
    return left


def remaining_run_time_s(iterations: ArrayLike, steps_per_s: ArrayLike) -> Floats:
    """Seconds that so many iterations take at a speed; arguments broadcast; infinite where the speed is 0."""
    left, speed = np.broadcast_arrays(np.asarray(iterations, np.float64), np.asarray(steps_per_s, np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds: Floats = np.where(left > 0, left / speed, 0.0)
    return seconds


def as_loss(metric: ArrayLike, best: ArrayLike, rises: ArrayLike) -> Floats:
    """A metric as a loss that falls towards 0.

    Parameters
    ----------
    metric : of validation
    best : what a perfect model reaches where the metric rises: 1 for accuracies, 100 for percentages
    rises : whether more is better
    """
    values = np.asarray(metric, np.float64)
    return np.where(np.asarray(rises), np.asarray(best, np.float64) - values, values)
