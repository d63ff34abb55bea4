"""Load that arrived in past windows: what a conservative estimate of new load is made from."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import MINUTE_S
from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import horizon_label
from jobcast.domain.memory import need_memory

ROOM_FOR_INSTANTS = 4096
"""Instants whose windows are held at once."""


def window_loads(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float, count: int) -> Floats:
    """GPUs that arrived in each of the last windows (t - (i + 1) k, t - i k], i = 0 .. count - 1.

    Parameters
    ----------
    history : events of one pool; may hold events after the instants
    ticks_s : (T,) instants, seconds from the epoch
    horizon_s : k, the width of a window in seconds
    count : number of windows, at least 1

    Returns
    -------
    (T, count) float64, the newest window first.

    Raises
    ------
    ValueError
        horizon_s or count is not positive.

    >>> none = np.empty(0)
    >>> pool = PoolHistory(np.array([0.0, 60.0, 61.0]), np.array([1.0, 2.0, 4.0]), none, none, none, none)
    >>> window_loads(pool, [60, 120], 60, 2).tolist()
    [[2.0, 1.0], [4.0, 2.0]]
    """
    if horizon_s <= 0 or count < 1:
        raise ValueError(f"horizon_s and count must be positive, got {horizon_s} and {count}")
    ticks = np.asarray(ticks_s, np.float64)
    edges_s = ticks[:, None] - horizon_s * np.arange(count + 1)
    # Min and max of nothing would raise.
    if not edges_s.size:
        return np.empty((0, count))
    # Only what arrived between the first and the last edge counts: live, that is little of a long history.
    first, last = np.searchsorted(history.arrival_s, (edges_s.min(), edges_s.max()), side="right")
    total = np.concatenate(([0.0], np.cumsum(history.arrival_gpus[first:last])))
    # Windows share their edges, so one look-up an edge is enough.
    before = total[_counts(history.arrival_s[first:last], edges_s, ticks, horizon_s)]
    return before[:, :-1] - before[:, 1:]


def _counts(arrival_s: Floats, edges_s: Floats, ticks: Floats, horizon_s: float) -> NDArray[np.int64]:
    """Arrivals by each edge."""
    low, given = edges_s.min(), np.append(ticks, horizon_s)
    step = int(np.gcd.reduce(np.append(np.diff(ticks), horizon_s).astype(np.int64)))
    if not np.array_equal(given, np.floor(given)) or np.ptp(edges_s) // step >= edges_s.size:
        return np.asarray(np.searchsorted(arrival_s, edges_s, side="right"))
    # Windows of whole seconds on a grid share their edges with those of other instants: each is looked up once.
    counts = np.searchsorted(arrival_s, np.arange(low, edges_s.max() + step, step), side="right")
    return np.asarray(counts[((edges_s - low) / step).astype(np.int64)])


def sliding_max(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float, count: int) -> Floats:
    """Largest load of the last `count` windows of width k, shape (T,). SIA, section 5.4.1, NewLoadEstimate.

    Parameters and errors as `window_loads`; MemoryLimitError as `need_windows`.
    """
    ticks = np.asarray(ticks_s, np.float64)
    need_windows(horizon_s, count, len(ticks))
    # Of 5-minute windows a week has 2,016.
    parts = np.split(ticks, range(ROOM_FOR_INSTANTS, len(ticks), ROOM_FOR_INSTANTS))
    return np.concatenate([window_loads(history, part, horizon_s, count).max(axis=1) for part in parts])


def need_windows(horizon_s: float, count: int, instants: int) -> None:
    """Raise MemoryLimitError where `sliding_max` would need more than it may take: a short horizon has many windows."""
    width = horizon_label(horizon_s / MINUTE_S)
    many = f"the largest of {count:,} windows of {width} before each of {instants:,} instants"
    remedy = "give a longer horizon (--horizons), a shorter time (--from and --until), or allow more with --memory"
    # At once: edges, arrivals by each edge, GPUs by then, loads.
    need_memory(4 * 8 * min(instants, ROOM_FOR_INSTANTS) * (count + 1), many, remedy)
