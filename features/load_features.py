"""What a pool's past says about the load to come: the features of its arrivals, and the loads of past windows."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import DAY_S, WEEK_S
from jobcast.domain.history import PoolHistory
from jobcast.features.arrivals import arrival_features, feature_names

PERIODS_S = (DAY_S, WEEK_S)
"""Load of the window so long ago, and of so long per k."""
MAXIMA: tuple[int, ...] = (2, 4, 8, 12, 24)
MEANS: tuple[int, ...] = (4, 12, 24)

_NAMES: tuple[str, ...] = (
    "log_load_last_1k",
    "log_load_before_last_1k",
    *(f"log_largest_load_of_{count}k" for count in MAXIMA),
    *(f"log_mean_load_of_{count}k" for count in MEANS),
    "log_load_1d_ago",
    "log_load_7d_ago",
    "log_load_per_k_of_day",
    "log_load_per_k_of_week",
)


def load_feature_names() -> tuple[str, ...]:
    """Names of the columns of `load_features`, the same for each horizon k: those of arrivals first.

    >>> load_feature_names()[-1]
    'log_load_per_k_of_week'
    """
    return (*feature_names(), *_NAMES)


def load_features(history: PoolHistory, ticks_s: ArrayLike, horizons_s: ArrayLike) -> Floats:
    """Features of "how much load arrives in (t, t + k]?" for one pool, from what was known at t.

    Beside the columns of `arrival_features`, all as log(1 + GPUs) so that pools of any size look alike to trees:

    - `log_load_*_1k`: load of the last window (t - k, t], and of the one before.
    - `log_largest_load_of_*k`, `log_mean_load_of_*k`: over the last windows of width k. SIA, section 5.4.1, takes
      the largest for the estimate itself.
    - `log_load_1d_ago`, `log_load_7d_ago`: load of (t - p, t - p + k], p a day or a week, clipped at t.
    - `log_load_per_k_of_*`: load of the last day and week, per k.

    Parameters
    ----------
    history : events of the pool; may hold events after the instants, which change nothing
    ticks_s : (T,) ascending instants, seconds from the epoch
    horizons_s : (H,) horizons in seconds, > 0

    Returns
    -------
    (T, H, F) float64, F = len(load_feature_names()).
    """
    # Numba takes a second to import.
    from jobcast.features.kernels import past_loads

    ticks, horizons = (np.ascontiguousarray(values, np.float64) for values in (ticks_s, horizons_s))
    arrivals = (np.ascontiguousarray(values, np.float64) for values in (history.arrival_s, history.arrival_gpus))
    loads = past_loads(*arrivals, ticks, horizons, *_WINDOWS)
    return np.concatenate([arrival_features(history, ticks, horizons), np.log1p(loads)], axis=2)


_WINDOWS = (np.array(MAXIMA, np.int64), np.array(MEANS, np.int64), np.array(PERIODS_S))
ROOM = 2
"""How many times the starts so far there is room for: growing costs as much a start, however many there are."""


class InstantFeatures:
    """Rows of `load_features` of many pools, whose instants ascend, the same to the last bit.

    Each pool's running jobs are kept from instant to instant, so that a row costs what is new, not the whole past.
    Asked about an earlier instant it reads that pool's history anew.

    Parameters
    ----------
    horizons_s : (H,) horizons in seconds, > 0
    """

    def __init__(self, horizons_s: ArrayLike) -> None:
        from jobcast.features import kernels

        self._kernels = kernels
        self._horizons_s = np.ascontiguousarray(horizons_s, np.float64)
        self._kept: dict[str, _Running] = {}

    def rows(self, names: Sequence[str], histories: Iterable[PoolHistory], at_s: Sequence[float]) -> Floats:
        """Rows of pools, each at an instant of its own, (n_pools, H, F), the columns of arrivals first.

        Parameters
        ----------
        names : (n_pools,)
        histories : theirs, of the same run at each call, which only grow; nothing in them after the instant is read
        at_s : (n_pools,) seconds from the epoch
        """
        rows = np.empty((len(names), len(self._horizons_s), len(load_feature_names())))
        ticks_s, fill, horizons_s = np.array(at_s, np.float64), self._kernels.instant_rows, self._horizons_s
        for i, (name, pool) in enumerate(zip(names, histories, strict=True)):
            kept = self._kept.get(name)
            # Marks only move forward: an earlier instant starts from the beginning.
            if kept is None or at_s[i] < kept.at_s:
                kept = self._kept[name] = _Running(self._kernels)
            kept.make_room(len(pool.start_s))
            kept.at_s = at_s[i]
            fill(
                pool.arrival_s, pool.arrival_gpus, pool.start_s, pool.end_s, pool.completion_s,
                pool.completion_duration_s, ticks_s[i, np.newaxis], horizons_s, *_WINDOWS, *kept.state,
                rows[i, np.newaxis],
            )  # fmt: skip
        loads = rows[:, :, self._kernels.N_COLUMNS :]
        # In place: a scheduler asks for all pools at every decision.
        np.log1p(loads, out=loads)
        return rows


class _Running:
    """A pool's running jobs at the last instant; see `kernels.instant_rows`."""

    __slots__ = ("at_s", "state")

    def __init__(self, kernels: Any) -> None:
        self.at_s = -np.inf
        marks, mean_s = np.zeros(kernels.N_MARKS, np.int64), np.array([kernels.FALLBACK_DURATION_S])
        self.state: tuple[Ints, Floats, Ints, Floats] = (np.array([], np.int64), np.array([]), marks, mean_s)

    def make_room(self, starts: int) -> None:
        """For that many."""
        running, expected_s, marks, mean_s = self.state
        if starts > len(running):
            # Contents beyond the mark mean nothing, so that what resize repeats does no harm.
            self.state = (np.resize(running, ROOM * starts), np.resize(expected_s, ROOM * starts), marks, mean_s)
