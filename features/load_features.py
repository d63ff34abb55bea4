"""What a pool's past says about the load to come: the features of its arrivals, and the loads of past windows."""

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.domain.history import PoolHistory
from jobcast.features.arrivals import arrival_features, feature_names

DAY_S = 86400.0
WEEK_S = 7 * DAY_S
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
    from jobcast.features.kernels import past_loads

    ticks, horizons = (np.ascontiguousarray(values, np.float64) for values in (ticks_s, horizons_s))
    arrivals = (np.ascontiguousarray(values, np.float64) for values in (history.arrival_s, history.arrival_gpus))
    counts = (np.array(windows, np.int64) for windows in (MAXIMA, MEANS))
    loads = past_loads(*arrivals, ticks, horizons, *counts, np.array(PERIODS_S))
    return np.concatenate([arrival_features(history, ticks, horizons), np.log1p(loads)], axis=2)
