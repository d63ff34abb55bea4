"""What the predictors of arrivals and load are asked for: the truth about (t, t + k], for training and scoring."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.history import PoolHistory


def arrivals_within(history: PoolHistory, ticks_s: ArrayLike, horizons_s: ArrayLike) -> NDArray[np.bool_]:
    """Whether any job arrives in (t, t + k]. SIA, section 5.2, WillJobsArrive.

    Parameters
    ----------
    history : events of one pool, up to t + k at least
    ticks_s, horizons_s : (T,) instants from the epoch and (H,) horizons, in seconds

    Returns
    -------
    (T, H) bool.

    >>> none = np.empty(0)
    >>> pool = PoolHistory(np.array([60.0]), np.array([2.0]), none, none, none, none)
    >>> arrivals_within(pool, [0, 60], [59, 60]).tolist()
    [[False, True], [False, False]]
    """
    first, last = _edges(history, ticks_s, horizons_s)
    return last > first


def load_within(history: PoolHistory, ticks_s: ArrayLike, horizons_s: ArrayLike) -> NDArray[np.float64]:
    """GPUs of the jobs that arrive in (t, t + k]. SIA, section 5.2, NewLoadEstimate.

    Parameters and shape as `arrivals_within`.

    >>> none = np.empty(0)
    >>> pool = PoolHistory(np.array([60.0, 61.0]), np.array([2.0, 4.0]), none, none, none, none)
    >>> load_within(pool, [0, 60], [60, 61]).tolist()
    [[2.0, 6.0], [4.0, 4.0]]
    """
    first, last = _edges(history, ticks_s, horizons_s)
    # Differences are exact, for GPUs are whole numbers.
    total = np.concatenate(([0.0], np.cumsum(history.arrival_gpus)))
    return total[last] - total[first]


def _edges(
    history: PoolHistory, ticks_s: ArrayLike, horizons_s: ArrayLike
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number of arrivals up to t, (T, 1), and up to t + k, (T, H)."""
    ticks = np.asarray(ticks_s, np.float64)[:, None]
    # Open at t, closed at t + k: the instant itself is known, its window's end is asked about.
    until = ticks + np.asarray(horizons_s, np.float64)[None, :]
    times = history.arrival_s
    return np.searchsorted(times, ticks, side="right"), np.searchsorted(times, until, side="right")
