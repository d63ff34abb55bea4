"""Finished curves in the scale of the families, thinned to few points: what priors are learned from.

What a metric is like: whether it rises or falls, and the best value that it can have.

Usual progress: the share of a run's whole rise that is reached by a share of its epochs.

Runs are planned for their length: learning rates are annealed towards the declared last epoch, and people stop where
little is to come. So the share of the epochs tells more about what is left than their number does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TrainingError
from jobcast.models.curves.prior import TIME_SPAN
from jobcast.traces.learning_curves import LearningCurve

KNOTS = 201
"""Of a progress, at equal shares of the epochs from 0 to 1."""
USUAL_RATE = 9.5
"""Rate of an exponential rise over a run: .85 of it are reached at a fifth of the run, .99 at half."""
LEVEL_SHARE = 0.05
"""Share of the epochs at the end whose mean is taken as where a run ended."""


def usual_progress(rate: float = USUAL_RATE) -> Floats:
    """(KNOTS,) share of the rise by shares of the epochs from 0 to 1: 0 at 0, 1 at 1.

    >>> np.round(usual_progress()[[0, 40, 100, 200]], 2).tolist()
    [0.0, 0.85, 0.99, 1.0]
    """
    return np.asarray(np.expm1(-rate * np.linspace(0.0, 1.0, KNOTS)) / np.expm1(-rate))


def end_level(metric: Floats) -> float:
    """Mean of the last values of a whole curve."""
    return float(np.mean(metric[-max(1, round(LEVEL_SHARE * metric.size)) :]))


UNBOUNDED = 1.0
"""A metric outside of [0, 100] may move on as far as its size, or as it has moved, whichever is more."""


def prefix_directions(metric: Floats) -> Floats:
    """(n,) 1 where what is seen rises, -1 where it falls, 0 where it does neither.

    Decided by the mean of the last third against the first value, of metric (n, L) with NaN where nothing is known.

    >>> prefix_directions(np.array([[0.2, 0.5, np.nan], [9.0, 4.0, 5.0], [1.0, np.nan, np.nan]])).tolist()
    [1.0, -1.0, 0.0]
    """
    known = ~np.isnan(metric)
    # Counts measured values only, wherever gaps are.
    order = np.cumsum(known, axis=1)
    count = order[:, -1]
    # At least the last value, at most the last third.
    late = known & (order > np.minimum(count - 1, (2 * count + 2) // 3)[:, None])
    held = np.where(known, metric, 0.0)
    first = held[np.arange(len(metric)), known.argmax(axis=1)]
    found: Floats = np.sign((held * late).sum(axis=1) / np.maximum(late.sum(axis=1), 1) - first)
    return np.where(count > 1, found, 0.0)


def bounds(metric: Floats, direction: Floats) -> Floats:
    """(n,) best value: 0 or 1 where all seen lie in [0, 1], 0 or 100 where in [0, 100], else as far as it may move.

    >>> bounds(np.array([[0.2, 0.5], [90.0, 40.0], [-3.0, -2.0]]), np.array([1.0, -1.0, 1.0])).tolist()
    [1.0, 0.0, 1.0]
    """
    low, high = np.nanmin(metric, axis=1), np.nanmax(metric, axis=1)
    # A share, else percent.
    top = np.where(high <= 1.0, 1.0, 100.0)
    inside = (low >= 0.0) & (high <= 100.0)
    reach = UNBOUNDED * np.maximum(np.maximum(np.abs(low), np.abs(high)), high - low)
    open_bound = np.where(direction > 0, high + reach, low - reach)
    falling = np.where(low >= 0.0, 0.0, open_bound)
    return np.where(direction > 0, np.where(inside, top, open_bound), falling)


def limits(metric: Floats) -> tuple[Floats, Floats]:
    """(n,) least and largest possible values: [0, 1] or [0, 100] where all seen lie in it, none where some are below 0.

    A metric of at least 0 and above 100 has no upper limit.
    """
    low, high = np.nanmin(metric, axis=1), np.nanmax(metric, axis=1)
    top = np.where(high <= 1.0, 1.0, np.where(high <= 100.0, 100.0, np.inf))
    return np.where(low >= 0.0, 0.0, -np.inf), np.where(low >= 0.0, top, np.inf)


MOST_POINTS = 15
LEAST_POINTS = 3
"""Values of a curve below which it says nothing about any shape."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishedCurves:
    """Whole curves, scaled.

    Attributes
    ----------
    apps : names, ascending
    app : (n,) index of each curve's
    x : (n, MOST_POINTS) 1 at the first value, 101 at the last; padded by 1
    v : (n, MOST_POINTS) 1 at the first value, 2 where the curve ended; padded by 0
    seen : (n, MOST_POINTS) False where padded
    """

    apps: tuple[str, ...]
    app: NDArray[np.intp]
    x: Floats
    v: Floats
    seen: NDArray[np.bool_]

    @classmethod
    def of(cls, curves: Sequence[LearningCurve]) -> "FinishedCurves":
        """Scale and thin curves; left out are those of fewer than `LEAST_POINTS` values, or that end where they began.

        Raises
        ------
        TrainingError
            None is left.
        """
        used = [
            curve
            for curve in curves
            # The scale divides by end less beginning.
            if len(curve.epoch) >= LEAST_POINTS and end_level(curve.metric) != float(curve.metric[0])
        ]
        if not used:
            raise TrainingError(
                f"learning curves: none of {len(curves)} has {LEAST_POINTS} values and ends elsewhere than it began; "
                "give longer curves"
            )
        apps = tuple(sorted({curve.app for curve in used}))
        x, v = np.ones((len(used), MOST_POINTS)), np.zeros((len(used), MOST_POINTS))
        seen = np.zeros(x.shape, np.bool_)
        for row, curve in enumerate(used):
            places, values = thinned(*scaled(curve))
            x[row, : len(places)], v[row, : len(places)], seen[row, : len(places)] = places, values, True
        return cls(apps, np.array([apps.index(curve.app) for curve in used], np.intp), x, v, seen)


def scaled(curve: LearningCurve) -> tuple[Floats, Floats]:
    """x and v of a whole curve, each (n,)."""
    epoch, first = curve.epoch.astype(np.float64), float(curve.metric[0])
    x = 1 + TIME_SPAN * (epoch - epoch[0]) / (epoch[-1] - epoch[0])
    return x, 1 + (curve.metric - first) / (end_level(curve.metric) - first)


def thinned(x: Floats, v: Floats, most: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """Means over bins that are evenly spaced in log x, at most `most`; a curve with no more values stays as it is."""
    if len(x) <= most:
        return x, v
    place = np.log(x)
    # The last value lies on the upper edge of the last bin.
    bins = np.minimum((place - place[0]) / (place[-1] - place[0]) * most, most - 1).astype(np.intp)
    kept, which = np.unique(bins, return_inverse=True)
    count = np.bincount(which, minlength=len(kept))
    return np.exp(np.bincount(which, weights=place) / count), np.bincount(which, weights=v) / count
