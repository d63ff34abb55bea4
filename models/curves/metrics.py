"""What a metric is like: whether it rises or falls, and the best value that it can have."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
UNBOUNDED = 1.0
"""A metric outside of [0, 100] may move on as far as its size, or as it has moved, whichever is more."""


def prefix_directions(metric: Floats) -> Floats:
    """(n,) 1 where what is seen rises, -1 where it falls, 0 where it does neither.

    Decided by the mean of the last third against the first value, of metric (n, L) with NaN where nothing is known.

    >>> prefix_directions(np.array([[0.2, 0.5, np.nan], [9.0, 4.0, 5.0], [1.0, np.nan, np.nan]])).tolist()
    [1.0, -1.0, 0.0]
    """
    known = ~np.isnan(metric)
    order = np.cumsum(known, axis=1)
    count = order[:, -1]
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
    top = np.where(high <= 1.0, 1.0, 100.0)
    inside = (low >= 0.0) & (high <= 100.0)
    reach = UNBOUNDED * np.maximum(np.maximum(np.abs(low), np.abs(high)), high - low)
    open_bound = np.where(direction > 0, high + reach, low - reach)
    falling = np.where(low >= 0.0, 0.0, open_bound)
    found: Floats = np.where(direction > 0, np.where(inside, top, open_bound), falling)
    return found


def limits(metric: Floats) -> tuple[Floats, Floats]:
    """(n,) least and largest possible values: [0, 1] or [0, 100] where all seen lie in it, none where some are below 0.

    A metric of at least 0 and above 100 has no upper limit.
    """
    low, high = np.nanmin(metric, axis=1), np.nanmax(metric, axis=1)
    top = np.where(high <= 1.0, 1.0, np.where(high <= 100.0, 100.0, np.inf))
    return np.where(low >= 0.0, 0.0, -np.inf), np.where(low >= 0.0, top, np.inf)
