"""Rules to beat: what one would forecast without learning anything."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.history import PoolHistory
from jobcast.features.corpus import Corpus
from jobcast.features.durations import GROUPS
from jobcast.features.loads import window_loads
from jobcast.models.scores import likeliest_bin

HOUR_S = 3600.0
MINUTE_S = 60.0
WEEK_S = 7 * 24 * HOUR_S
EVEN_ODDS = 0.5
"""From which probability on a rule says that jobs arrive."""
LIKE_WIDTH = 20
"""Finished jobs of the same pool and width that the rule of durations counts."""
Floats = NDArray[np.float64]
ArrivalRule: TypeAlias = Callable[[Corpus, int], Floats]
Ints = NDArray[np.int64]
LoadRule: TypeAlias = Callable[[PoolHistory, ArrayLike, float], Floats]
DurationRule: TypeAlias = Callable[[NDArray[Any], Floats], Ints]


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


def max_of_week(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
    """Largest load of a k among the whole ones of the last 7 days (one at least), GPUs, shape (T,)."""
    windows = max(1, int(WEEK_S // horizon_s))
    largest: Floats = window_loads(history, ticks_s, horizon_s, windows).max(axis=1)
    return largest


LOAD_RULES: Mapping[str, LoadRule] = {"last_window": last_window, "max_of_week": max_of_week}
"""Name -> rule of (history, instants, horizon in seconds)."""


def majority(counts: NDArray[Any], prior: Floats) -> Ints:
    """The training data's most frequent bin for every job, shape (n_jobs,)."""
    return likeliest_bin(np.broadcast_to(prior, (len(counts), len(prior))))


def like_width(counts: NDArray[Any], prior: Floats) -> Ints:
    """Most frequent bin among the last finished jobs of the same pool and width, shape (n_jobs,).

    The longer bin of equals; the training data's most frequent one where none has finished.
    """
    votes = counts[:, GROUPS.index("pool_width")]
    return likeliest_bin(np.where(votes.any(axis=1, keepdims=True), votes, prior))


DURATION_RULES: Mapping[str, DurationRule] = {"majority": majority, "last_20_pool_width": like_width}
"""Name -> rule of (finished jobs by group and bin (n_jobs, 4, B), class shares of the training data (B,))."""


def _column(corpus: Corpus, horizon: int, name: str) -> Floats:
    return corpus.X[:, horizon, corpus.feature_names.index(name)].astype(np.float64)
