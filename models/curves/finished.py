"""Finished curves in the scale of the families, thinned to few points: what priors are learned from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import TrainingError
from jobcast.models.curves.families import TIME_SPAN
from jobcast.models.curves.shape import end_level
from jobcast.traces.learning_curves import LearningCurve

Floats = NDArray[np.float64]
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
    bins = np.minimum((place - place[0]) / (place[-1] - place[0]) * most, most - 1).astype(np.intp)
    kept, which = np.unique(bins, return_inverse=True)
    count = np.bincount(which, minlength=len(kept))
    return np.exp(np.bincount(which, weights=place) / count), np.bincount(which, weights=v) / count
