"""Convergence of a training loss, fitted while the job runs: l(k) = 1 / (b0 k + b1) + b2.

Optimus (Peng et al., EuroSys 2018), section 3.1: losses are freed of outliers, divided by the largest one so far, and
fitted by non-negative least squares. What is not linear in it, b2, is searched on a grid that is refined once; for each
b2 the other two follow from a weighted linear fit, whose weights make its residuals those of the loss. Later losses
count more, as in the authors' program (scheduler/estimator.py).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
NEIGHBOURS = 3  # on each side, that tell whether a loss is an outlier
GRID = 33  # values of b2 in each of the two searches
SEGMENTS = 3  # of the seen points, equally long
RECENCY = 4.0  # by this factor a segment's errors are taken to be smaller than those of the one before
FLOOR_SHARE = 0.999  # of the smallest loss: b2 is never larger, or the weights would vanish
LEAST_POINTS = 3  # as many as coefficients
LEAST_SLOPE = 1e-12  # of b0, below which the loss stands still


@dataclass(frozen=True, slots=True, eq=False)
class Convergence:
    """Fitted losses of several jobs; every attribute is (n_jobs,).

    Attributes
    ----------
    slope, start, floor : b0, b1 and b2, all at least 0, of losses divided by `scale`
    scale : the largest loss that was seen
    """

    slope: Floats
    start: Floats
    floor: Floats
    scale: Floats

    def loss(self, iteration: ArrayLike) -> Floats:
        """Loss after an iteration; `iteration` broadcasts against (n_jobs,)."""
        with np.errstate(divide="ignore"):
            told: Floats = self.scale * (1 / (self.slope * np.asarray(iteration, np.float64) + self.start) + self.floor)
        return told

    def reduction(self, iteration: ArrayLike, ahead: ArrayLike = 1.0) -> Floats:
        """By how much the loss falls from an iteration to the one `ahead` iterations later."""
        now = np.asarray(iteration, np.float64)
        fallen: Floats = self.loss(now) - self.loss(now + np.asarray(ahead, np.float64))
        return fallen

    def converged_at(self, threshold: float, epoch_iterations: ArrayLike = 1.0, patience: int = 1) -> Floats:
        """Iteration at which training ends: `patience` epochs in a row lowered the loss by less than `threshold`.

        The fitted loss is convex, so what an epoch takes off it falls: the first such epoch begins at the root of a
        quadratic equation, is rounded up to a whole number of epochs, and `patience` epochs follow.

        Parameters
        ----------
        threshold : above 0, a share of the largest loss (Optimus normalises losses)
        epoch_iterations : iterations an epoch, broadcast against (n_jobs,)
        patience : epochs in a row

        Returns
        -------
        (n_jobs,) iterations from the beginning of training, whole epochs
        """
        step = np.asarray(epoch_iterations, np.float64)
        rise = np.maximum(self.slope * step, LEAST_SLOPE)
        reached = (np.sqrt(rise**2 + 4 * rise / threshold) - rise) / 2
        epochs = np.ceil(np.maximum((reached - self.start) / rise, 0.0))
        ended: Floats = (np.where(self.slope * step > LEAST_SLOPE, epochs, 0.0) + patience) * step
        return ended


def fit_convergence(iteration: ArrayLike, loss: ArrayLike, recency: float = RECENCY) -> Convergence:
    """Fit many jobs at once.

    Parameters
    ----------
    iteration : (n_points,) or (n_jobs, n_points), ascending
    loss : (n_jobs, n_points), positive; NaN where a job has no such point, at the end of its row. A job with fewer than
        `LEAST_POINTS` is told to stay at its last loss.
    recency : how many times smaller a third's errors are than those of the third before; 1 weighs all alike

    Returns
    -------
    Convergence
        of as many jobs as rows
    """
    losses = np.atleast_2d(np.asarray(loss, np.float64))
    at = np.broadcast_to(np.asarray(iteration, np.float64), losses.shape)
    seen = np.isfinite(losses)
    scale = np.nanmax(np.where(seen, losses, -np.inf), axis=1)
    told = np.where(seen, without_outliers(losses), 0.0) / scale[:, None]
    reach = np.maximum(np.max(np.where(seen, at, 0.0), axis=1), 1.0)
    place = np.where(seen, at, 0.0) / reach[:, None]
    floor, slope, start = _profiled(place, told, _weights(seen, recency))
    last = np.take_along_axis(told, seen.sum(axis=1)[:, None] - 1, axis=1)[:, 0]
    few = seen.sum(axis=1) < LEAST_POINTS
    return Convergence(
        np.where(few, 0.0, slope / reach), np.where(few, 1 / last, start), np.where(few, 0.0, floor), scale
    )


def without_outliers(loss: Floats, neighbours: int = NEIGHBOURS) -> Floats:
    """Losses with outliers replaced by the mean of their neighbours.

    As losses fall, one lies between the largest of the few before it and the smallest of the few after it; one that
    does not is an outlier. The first and the last have neighbours on one side alone and stay.

    Parameters
    ----------
    loss : (n_jobs, n_points); NaN where there is none
    neighbours : on each side
    """
    n_points = loss.shape[1]
    padded = np.pad(loss, ((0, 0), (neighbours, neighbours)), constant_values=np.nan)
    before = np.stack([padded[:, shift : shift + n_points] for shift in range(neighbours)])
    after = np.stack(
        [padded[:, neighbours + 1 + shift : neighbours + 1 + shift + n_points] for shift in range(neighbours)]
    )
    has = np.isfinite(before).any(axis=0) & np.isfinite(after).any(axis=0) & np.isfinite(loss)
    most = np.max(np.where(np.isfinite(before), before, -np.inf), axis=0)
    least = np.min(np.where(np.isfinite(after), after, np.inf), axis=0)
    around = np.concatenate([before, after])
    mean = np.nansum(around, axis=0) / np.maximum(np.isfinite(around).sum(axis=0), 1)
    return np.where(has & ((loss > most) | (loss < least)), mean, loss)


def _weights(seen: NDArray[np.bool_], recency: float) -> Floats:
    """Weights of squared errors, (n_jobs, n_points), 1 in the last segment, 0 where nothing was seen."""
    length = np.maximum(np.ceil(seen.sum(axis=1) / SEGMENTS), 1.0)[:, None]
    segment = np.arange(seen.shape[1]) // length
    return np.where(seen, recency ** (2 * (segment - SEGMENTS + 1)), 0.0)


def _profiled(place: Floats, loss: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """b2, b0 and b1 of the least squares of the loss, over a grid of b2 and a finer one around its best."""
    least = FLOOR_SHARE * np.min(np.where(weight > 0, loss, np.inf), axis=1)
    low, high = np.zeros_like(least), least
    for _ in range(2):
        floors = low + np.linspace(0, 1, GRID)[:, None] * (high - low)
        slope, start = _linear(place, loss, weight, floors)
        error = _squares(place, loss, weight, floors, slope, start)
        best = np.argmin(error, axis=0)
        jobs = np.arange(len(least))
        width = (high - low) / (GRID - 1)
        found = floors[best, jobs], slope[best, jobs], start[best, jobs]
        low, high = np.maximum(found[0] - width, 0.0), np.minimum(found[0] + width, least)
    return found


def _linear(place: Floats, loss: Floats, weight: Floats, floors: Floats) -> tuple[Floats, Floats]:
    """Non-negative (b0, b1) of u^2 (b0 k + b1) = u, with u = l - b2, each (n_floors, n_jobs), in closed form."""
    above = np.where(weight > 0, loss - floors[..., None], 0.0)
    left, right = weight * above**4, weight * above**3
    kk, k1, one = (left * place**2).sum(-1), (left * place).sum(-1), left.sum(-1)
    ky, y1 = (right * place).sum(-1), right.sum(-1)
    determinant = kk * one - k1**2
    with np.errstate(divide="ignore", invalid="ignore"):
        slope, start = (ky * one - y1 * k1) / determinant, (y1 * kk - ky * k1) / determinant
        flat, steep = y1 / one, ky / kk
    slope, start = np.nan_to_num(slope, nan=-1.0), np.nan_to_num(start, nan=-1.0)
    return (
        np.where(start < 0, steep, np.maximum(slope, 0.0)),
        np.where(start < 0, 0.0, np.where(slope < 0, flat, start)),
    )


def _squares(place: Floats, loss: Floats, weight: Floats, floors: Floats, slope: Floats, start: Floats) -> Floats:
    """Weighted sum of squared errors of the loss, (n_floors, n_jobs); infinite where a fitted loss is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fitted = 1 / (slope[..., None] * place + start[..., None]) + floors[..., None]
        error: Floats = np.where(weight > 0, weight * (fitted - loss) ** 2, 0.0).sum(-1)
    return np.nan_to_num(error, nan=np.inf)
