"""What a pool's past says about its next arrivals: one function for training and for serving.

The features of arrivals in the order in which an ablation adds them: the paper's four sets, then ours.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.domain.history import PoolHistory

_NAMES: tuple[str, ...] = (
    *(f"arrivals_{back}{unit}_ago" for unit in ("h", "d") for back in (1, 2, 3)),
    *(f"arrivals_last_{lookback}k" for lookback in (1, 10, 100)),
    *(f"completions_last_{lookback}k" for lookback in (1, 10, 100)),
    "expected_completions_within_k",
    "expected_completions_later",
    "hour_sin",
    "hour_cos",
    "week_sin",
    "week_cos",
    "weekend",
    "log_since_arrival_s",
    "log_since_completion_s",
    "log_mean_gap_s",
    "log_median_gap_s",
    "cv_gap",
    "log_last_gap_s",
    "renewal_probability",
    "log_arrivals_per_hour_7d",
    "log_gpus_last_1k",
)


def feature_names() -> tuple[str, ...]:
    """Names of the columns of `arrival_features`, the same for each horizon k.

    >>> feature_names()[:4]
    ('arrivals_1h_ago', 'arrivals_2h_ago', 'arrivals_3h_ago', 'arrivals_1d_ago')
    """
    return _NAMES


def arrival_features(history: PoolHistory, ticks_s: ArrayLike, horizons_s: ArrayLike) -> Floats:
    """Features of "will jobs arrive in (t, t + k]?" for one pool, from what was known at t.

    Training asks for thousands of instants over a whole trace, serving for one over the history so far; rows are
    the same to the last bit, since no row at t uses an event after t. An end after t only says "still running".

    The columns, t = instant, k = horizon, windows in seconds:

    - `arrivals_*_ago`: new jobs in (t - x p, min(t - x p + k, t)], x in 1, 2, 3, p an hour or a day. As printed,
      the window of SIA, Table 9 ends at t - x p + k, which for k > x p lies in the future: it is clipped at t.
    - `arrivals_last_*k`, `completions_last_*k`: new and finished jobs in [t - x k, t], x in 1, 10, 100 (Table 9).
    - `expected_completions_*`: running jobs expected to end within k, and later (Table 9). Expected run time =
      geometric mean of the pool's last 50 run times known when the job started (an hour where there is none);
      what is left of it, or, for a job that has outlived it, as long again as the job has run.
    - `hour_*`, `week_*`, `weekend`: time of day and of week (UTC) on the circle; Saturday or Sunday.
    - `log_since_*`: log(1 + seconds since the last arrival, completion), capped at 60 days.
    - `log_*_gap_s`, `cv_gap`: log(1 + mean, median, last) and coefficient of variation of the last 20 gaps
      between arrivals; 60 days and 0 before there is one.
    - `renewal_probability`: share of the last 200 gaps that end in (w, w + k] among those longer than w, the time
      since the last arrival, shrunk by one gap's weight to 1 - exp(-k / their mean).
    - `log_arrivals_per_hour_7d`: log of (1 + arrivals in (t - 7 days, t]) / 168 hours.
    - `log_gpus_last_1k`: log(1 + GPUs asked for in [t - k, t]).

    Parameters
    ----------
    history : events of the pool; may hold events after the instants
    ticks_s : (T,) ascending instants, seconds from the epoch, UTC
    horizons_s : (H,) horizons in seconds, > 0

    Returns
    -------
    (T, H, F) float64, F = len(feature_names()).

    Raises
    ------
    ValueError
        The instants are not ascending, or a horizon is not positive.
    """
    # Importing numba takes a second; those who only want the names do not wait for it.
    from jobcast.features.kernels import feature_rows

    ticks = np.ascontiguousarray(ticks_s, np.float64)
    horizons = np.ascontiguousarray(horizons_s, np.float64)
    # The kernels move pointers forward only: an earlier instant would silently see later events.
    if not np.all(ticks[1:] >= ticks[:-1]):
        raise ValueError("ticks_s must be ascending; sort the instants")
    if not all(horizon_s > 0.0 for horizon_s in horizons.tolist()):
        raise ValueError(f"horizons_s must be positive, got {horizons.tolist()}; give seconds > 0")
    columns = (
        history.arrival_s,
        history.arrival_gpus,
        history.start_s,
        history.end_s,
        history.completion_s,
        history.completion_duration_s,
    )
    # Contiguous float64: the kernels are compiled for nothing else, and views of a run are not always so.
    return np.asarray(feature_rows(*(np.ascontiguousarray(c, np.float64) for c in columns), ticks, horizons))


PAPER_SETS = ("periodic", "+ recent arrivals", "+ recent completions", "+ future completions")
"""SIA, Tables 9, 20 and 23, in their order; the last one is Table 9 whole."""
REST = "+ all others"
_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "periodic": tuple(f"arrivals_{back}{unit}_ago" for unit in ("h", "d") for back in (1, 2, 3)),
    "+ recent arrivals": ("arrivals_last_1k", "arrivals_last_10k", "arrivals_last_100k"),
    "+ recent completions": ("completions_last_",),
    "+ future completions": ("expected_completions_",),
    "+ calendar": ("hour_", "week_", "weekend"),
    "+ gaps and renewal": ("log_since_", "log_mean_gap", "log_median_gap", "log_last_gap", "cv_gap", "renewal_"),
}
"""What the names of a set's own columns begin with."""


def feature_sets(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Cumulative sets of columns, each holding the one before; what no set names comes last, as "+ all others".

    Parameters
    ----------
    names : columns that there are, in their order

    Returns
    -------
    Set -> columns in the order of `names`; a set that adds nothing is left out.

    Examples
    --------
    >>> feature_sets(["weekend", "arrivals_1h_ago", "log_gpus_last_1k"])
    {'periodic': ('arrivals_1h_ago',), '+ calendar': ('weekend', 'arrivals_1h_ago'), '+ all others': ('weekend', \
'arrivals_1h_ago', 'log_gpus_last_1k')}
    """
    taken: set[str] = set()
    sets: dict[str, tuple[str, ...]] = {}
    for label, prefixes in (*_PREFIXES.items(), (REST, ("",))):
        # Each column goes to the first set that claims it; the empty prefix claims the rest.
        added = {name for name in names if name.startswith(prefixes)} - taken
        if added:
            taken |= added
            sets[label] = tuple(name for name in names if name in taken)
    return sets


FEATURE_SETS: Mapping[str, tuple[str, ...]] = feature_sets(feature_names())
"""Set -> columns of `features.arrivals.arrival_features`, cumulative. SIA, Table 9, then ours."""
TABLE_9: tuple[str, ...] = FEATURE_SETS[PAPER_SETS[-1]]
"""The columns that SIA describes."""
