"""Empirical distribution functions, thinned to what a plot can show."""

from dataclasses import dataclass

import numpy as np

from jobcast.traces.table import Floats

MOST_POINTS = 200
"""Steps of half a percent: finer than a plot shows."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of a distribution function: a share `y` of the values is at most `x`, both ascending."""

    x: tuple[float, ...]
    y: tuple[float, ...]


def cdf(values: Floats) -> Curve:
    """Empirical distribution function of the finite values, at most `MOST_POINTS` points of it.

    >>> cdf(np.array([3.0, 1.0, np.nan]))
    Curve(x=(1.0, 3.0), y=(0.5, 1.0))
    """
    known = np.sort(values[np.isfinite(values)])
    if not len(known):
        return Curve((), ())
    points = min(len(known), MOST_POINTS)
    rank = -(-np.arange(1, points + 1) * len(known) // points)
    return Curve(tuple(known[rank - 1].tolist()), tuple((rank / len(known)).tolist()))
