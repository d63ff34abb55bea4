"""Rules to beat: what one would forecast without learning anything."""

from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import DAY_S, HOUR_S, MINUTE_S, WEEK_S
from jobcast.domain.history import PoolHistory
from jobcast.features.corpus import Corpus
from jobcast.features.loads import sliding_max, window_loads
from jobcast.models.load_data import COVERAGE

EVEN_ODDS = 0.5
"""From which probability on a rule says that jobs arrive."""
# A day, so that day and night weigh alike.
HALF_LIFE_S = DAY_S
"""Half of an exponentially weighted mean is of the last so many seconds."""
NORMAL_QUANTILE = NormalDist().inv_cdf(COVERAGE)
RECENT = 10
"""Windows that the rule of the largest recent load looks back."""
EWMA = "ewma"
"""Name of the exponentially weighted mean among the rules to beat."""
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
    # A longer window of yesterday would reach into what is to be forecast.
    length_s = min(horizon_s, DAY_S)
    ticks = np.asarray(ticks_s, np.float64)
    return window_loads(history, ticks - DAY_S + length_s, length_s, 1)[:, 0]


def max_of_recent(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
    """Largest load of the last `RECENT` windows, GPUs, shape (T,): the rule of SIA, section 5.4.1."""
    return sliding_max(history, ticks_s, horizon_s, RECENT)


def max_of_week(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
    """Largest load of a k among the whole ones of the last 7 days (one at least), GPUs, shape (T,)."""
    return sliding_max(history, ticks_s, horizon_s, windows_of_week(horizon_s))


def windows_of_week(horizon_s: float) -> int:
    """Whole ones of the last 7 days, one at least.

    >>> windows_of_week(3600.0), windows_of_week(1e7)
    (168, 1)
    """
    return max(1, int(WEEK_S // horizon_s))


def ewma_rate(history: PoolHistory, ticks_s: ArrayLike, weight: Floats | None = None) -> Floats:
    """Exponentially weighted mean of arrivals a second at some instants, half of it from the last `HALF_LIFE_S`, (T,).

    Parameters
    ----------
    history : events of one pool; what comes after an instant has no part in it
    ticks_s : (T,) seconds from the epoch
    weight : (n_arrivals,) what an arrival counts; None: 1

    >>> one = PoolHistory(np.array([0.0]), np.array([2.0]), *[np.empty(0)] * 4)
    >>> (ewma_rate(one, [-1.0, 0.0, HALF_LIFE_S]) * HALF_LIFE_S / np.log(2)).round(12).tolist()
    [0.0, 1.0, 0.5]
    """
    ticks, counted = np.asarray(ticks_s, np.float64), np.ones(len(history.arrival_s)) if weight is None else weight
    # The mean lifetime of a half-life; before the first arrival exp(-inf) is 0.
    tau_s, total, last_s = HALF_LIFE_S / np.log(2.0), 0.0, -np.inf
    held = [0.0]
    # A recurrence in time: each arrival decays all before it.
    for at_s, much in zip(history.arrival_s.tolist(), counted.tolist(), strict=True):
        total = total * float(np.exp((last_s - at_s) / tau_s)) + much
        held.append(total)
        last_s = at_s
    known = np.searchsorted(history.arrival_s, ticks, side="right")
    # Before the first arrival infinitely long ago, where the exponential is 0.
    since_s = ticks - np.concatenate([[-np.inf], history.arrival_s])[known]
    return np.asarray(np.array(held)[known] * np.exp(-since_s / tau_s) / tau_s)


def ewma_arrivals(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
    """1 - exp(-rate x k) of memoryless arrivals at `ewma_rate`, shape (T,)."""
    return -np.expm1(-ewma_rate(history, ticks_s) * horizon_s)


def of_rows(rule: LoadRule, corpus: Corpus, histories: Mapping[str, PoolHistory]) -> Floats:
    """What a rule says for the rows of a corpus, shape (N, H)."""
    result = np.empty(corpus.arrives.shape)
    for index, pool in enumerate(corpus.pools):
        rows = corpus.pool_index == index
        for column, horizon_min in enumerate(corpus.horizons_min):
            result[rows, column] = rule(histories[pool], corpus.tick_s[rows], MINUTE_S * horizon_min)
    return result


def ewma_load(history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
    """What loads of memoryless arrivals at `ewma_rate` stay within with a probability of `COVERAGE`, GPUs, (T,).

    Their mean and variance are k times the rate of GPUs and of their squares (a compound Poisson process); the quantile
    is that of a normal distribution.
    """
    mean = horizon_s * ewma_rate(history, ticks_s, history.arrival_gpus)
    variance = horizon_s * ewma_rate(history, ticks_s, history.arrival_gpus**2)
    return np.floor(mean + NORMAL_QUANTILE * np.sqrt(variance))


LOAD_RULES: Mapping[str, LoadRule] = {
    "persistence": last_window,
    "yesterday": same_window_yesterday,
    "max_of_10": max_of_recent,
    "max_of_week": max_of_week,
    "ewma": ewma_load,
}
"""Name -> rule of (history, instants, horizon in seconds)."""


def _column(corpus: Corpus, horizon: int, name: str) -> Floats:
    return corpus.X[:, horizon, corpus.feature_names.index(name)].astype(np.float64)
