"""Rules to beat: what one would forecast without learning anything."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.domain.history import PoolHistory
from jobcast.features.corpus import Corpus
from jobcast.features.loads import sliding_max, window_loads

HOUR_S = 3600.0
MINUTE_S = 60.0
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S
EVEN_ODDS = 0.5
"""From which probability on a rule says that jobs arrive."""
RECENT = 10
"""Windows that the rule of the largest recent load looks back."""
ArrivalRule: TypeAlias = Callable[[Corpus, int], Floats]
LoadRule: TypeAlias = Callable[[PoolHistory, ArrayLike, float], Floats]


def always(corpus: Corpus, horizon: int) -> Floats:
    """Jobs always arrive."""
    return np.ones(len(corpus))


def persistence(corpus: Corpus, horizon: int) -> Floats:
    """Jobs arrive when any arrived in the last k."""
    return (_column(corpus, horizon, "arrivals_last_1k") > 0).astype(np.float64)


def yesterday(corpus: Corpus, horizon: int) -> Floats:
    """Jobs arrive when any arrived in (t - 24 h, t - 24 h + k], clipped at t."""
    return (_column(corpus, horizon, "arrivals_1d_ago") > 0).astype(np.float64)


def trailing_rate(corpus: Corpus, horizon: int) -> Floats:
    """1 - exp(-rate x k), rate = the pool's (1 + arrivals of the last 7 days) / 168 hours: memoryless arrivals."""
    per_hour = np.exp(_column(corpus, horizon, "log_arrivals_per_hour_7d"))
    return -np.expm1(-per_hour * corpus.horizons_min[horizon] * MINUTE_S / HOUR_S)


ARRIVAL_RULES: Mapping[str, ArrivalRule] = {
    "always": always,
    "persistence": persistence,
    "yesterday": yesterday,
    "trailing_rate": trailing_rate,
}
"""Name -> rule; a rule gives the probability of arrivals, shape (n_rows,), for a horizon's index."""


def last_window(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
    """Load of the last k, GPUs, shape (T,)."""
    return window_loads(history, ticks_s, horizon_s, 1)[:, 0]


def same_window_yesterday(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
    """Load of (t - 24 h, t - 24 h + k], clipped at t, GPUs, shape (T,)."""
    length_s = min(horizon_s, DAY_S)
    ticks = np.asarray(ticks_s, np.float64)
    return window_loads(history, ticks - DAY_S + length_s, length_s, 1)[:, 0]


def max_of_recent(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
    """Largest load of the last `RECENT` windows, GPUs, shape (T,): the rule of SIA, section 5.4.1."""
    return sliding_max(history, ticks_s, horizon_s, RECENT)


def max_of_week(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
    """Largest load of a k among the whole ones of the last 7 days (one at least), GPUs, shape (T,)."""
    return sliding_max(history, ticks_s, horizon_s, max(1, int(WEEK_S // horizon_s)))


LOAD_RULES: Mapping[str, LoadRule] = {
    "persistence": last_window,
    "yesterday": same_window_yesterday,
    "max_of_10": max_of_recent,
    "max_of_week": max_of_week,
}
"""Name -> rule of (history, instants, horizon in seconds)."""


def _column(corpus: Corpus, horizon: int, name: str) -> Floats:
    return corpus.X[:, horizon, corpus.feature_names.index(name)].astype(np.float64)
