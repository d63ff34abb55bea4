"""Horizons and duration bins: the geometrically increasing quanta that forecasts speak in."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from jobcast.domain.rounding import rounded

DEFAULT_HORIZONS_MIN: tuple[int, ...] = (5, 60, 720)
"""Quanta of SIA, section 5.4.1, in minutes."""


def duration_bin(duration_s: float, horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN) -> int:
    """Index of the bin (0, k1], (k1, k2], ..., (kn, inf) that holds a duration. SIA, footnote 4.

    >>> [duration_bin(s) for s in (1, 300, 300.5, 3600, 43200, 43201)]
    [0, 0, 1, 1, 2, 3]
    """
    # Bins are closed at their right, and a sum of seconds that misses an edge by dust is on it.
    return bisect_left([60.0 * k for k in horizons_min], rounded(duration_s))


def bin_labels(horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN) -> list[str]:
    """Names of the duration bins.

    >>> bin_labels()
    ['<=5min', '5-60min', '60-720min', '>720min']
    """
    edges = [f"{k:g}" for k in horizons_min]
    return [f"<={edges[0]}min", *(f"{a}-{b}min" for a, b in pairwise(edges)), f">{edges[-1]}min"]


def horizon_label(horizon_min: float) -> str:
    """Name of a horizon in files and tables.

    >>> horizon_label(5)
    '5min'
    """
    return f"{horizon_min:g}min"
