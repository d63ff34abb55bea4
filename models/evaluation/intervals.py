"""Confidence intervals by drawing whole days anew: errors of one day hang together, rows are no independent draws.

SIA, appendix B (3): "poor prediction quality for a pool at time t often implies poor prediction quality at t + tau".

What the evaluations share: blocks of figures, one a horizon.

Pools grouped by how long their jobs run. SIA, appendix B, Table 23.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TrainingError
from jobcast.domain.horizons import bin_labels, duration_bin
from jobcast.traces.table import Trace


def checked(blocks: dict[str, Any]) -> dict[str, Any]:
    """Blocks by horizon, of which one at least has rows (`n`); the others' figures are None.

    Raises
    ------
    TrainingError
        None has rows.
    """
    if not any(block["n"] for block in blocks.values()):
        raise TrainingError(
            f"there is nothing to score: no pool has a window of {' or '.join(blocks)} within the time to score; "
            f"widen --from and --until"
        )
    return blocks


GROUP_EDGES_MIN = (5, 60, 720)
"""Mean durations between the groups, minutes. SIA, Table 23."""
SECONDS_A_MINUTE = 60.0


def mean_durations_min(trace: Trace) -> dict[str, float]:
    """Mean run time of each pool's jobs that had ended, minutes."""
    ended = trace.ended
    pools, position = np.unique(trace.jobs["pool"].to_numpy().astype(str)[ended], return_inverse=True)
    seconds = np.bincount(position, weights=trace.duration_s[ended]) / np.bincount(position)
    return dict(zip(pools.tolist(), (seconds / SECONDS_A_MINUTE).tolist(), strict=True))


def duration_groups(pools: Iterable[str], mean_min: Mapping[str, float]) -> dict[str, tuple[str, ...]]:
    """Pools by group, groups from short to long; pools of unknown mean and empty groups are left out.

    >>> duration_groups(["a", "b", "c", "d"], {"a": 5.0, "b": 2000.0, "c": 1.0})
    {'<=5min': ('a', 'c'), '>720min': ('b',)}
    """
    labels = bin_labels(GROUP_EDGES_MIN)
    groups: dict[str, tuple[str, ...]] = dict.fromkeys(labels, ())
    for pool in pools:
        if pool in mean_min:
            label = labels[duration_bin(SECONDS_A_MINUTE * mean_min[pool], GROUP_EDGES_MIN)]
            groups[label] = (*groups[label], pool)
    return {label: members for label, members in groups.items() if members}


DAY_S = 86400.0
DRAWS = 400
CONFIDENCE = 0.95
LEAST_DAYS = 5
"""Fewer days tell nothing of how days differ."""
LEAST_DEFINED = 0.5
"""Share of the draws in which a figure must be defined."""
Interval = list[float] | None
"""[low, high], None where there is no telling."""


def day_block_intervals(
    figures: Callable[[Floats], Mapping[str, float | None]],
    day_index: ArrayLike,
    draws: int = DRAWS,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> dict[str, Interval]:
    """Intervals of figures of rows, each draw weighting all rows of a day by how often the day was drawn.

    Parameters
    ----------
    figures : weights of the rows, shape (n_rows,), whole numbers from 0 as floats -> figure by name; None or NaN
        where a figure is undefined under these weights. Called once a draw.
    day_index : (n_rows,) the day of each row, any whole numbers; see `days_of`
    draws : of days with replacement, as many as there are; 0 draws none and gives {}, as no rows do
    seed : equal seeds and days give equal intervals
    confidence : share of the draws between the bounds

    Returns
    -------
    name -> [low, high]; None where fewer than 5 days were seen or the figure is undefined in half of the draws.

    Notes
    -----
    A figure that is a ratio of sums is quickest from sums by day, which then are the rows::

        days, sums = sums_by_day(days_of(tick_s), {"covered": load <= estimate, "rows": np.ones(n)})
        day_block_intervals(lambda w: {"coverage": (w @ sums["covered"]) / (w @ sums["rows"])}, days)

    Examples
    --------
    Two days of five are all wrong; a mean of five draws lies between 0.2 and 1 nineteen times in twenty.

    >>> right = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    >>> day_block_intervals(lambda w: {"accuracy": w @ right / w.sum()}, range(5), draws=1000)
    {'accuracy': [0.2, 1.0]}
    """
    days, position = np.unique(np.asarray(day_index), return_inverse=True)
    if not draws or not len(days):
        return {}
    drawn = [figures(weights[position]) for weights in day_weights(len(days), draws, seed)]
    return {name: interval([one[name] for one in drawn], len(days), confidence) for name in drawn[0]}


def day_weights(days: int, draws: int, seed: int = 0) -> Floats:
    """How often each day occurs in each draw, shape (draws, days); every draw has as many days as were seen.

    >>> day_weights(4, 2).sum(axis=1).tolist()
    [4.0, 4.0]
    """
    if not days:
        return np.empty((draws, 0))
    rng = np.random.default_rng(seed)
    return rng.multinomial(days, np.full(days, 1.0 / days), size=draws).astype(np.float64)


def interval(values: ArrayLike | list[Any], days: int, confidence: float = CONFIDENCE) -> Interval:
    """Percentile interval of what the draws gave, shape (draws,); see `day_block_intervals` for when it is None."""
    drawn = np.asarray(values, np.float64)
    known = drawn[np.isfinite(drawn)]
    if days < LEAST_DAYS or not len(known) or len(known) < LEAST_DEFINED * len(drawn):
        return None
    low, high = np.quantile(known, ((1 - confidence) / 2, (1 + confidence) / 2))
    return [float(low), float(high)]


def days_of(times_s: ArrayLike) -> NDArray[np.int64]:
    """The UTC day of each instant, counted from the epoch.

    >>> days_of([0.0, 86399.0, 86400.0]).tolist()
    [0, 0, 1]
    """
    return np.floor(np.asarray(times_s, np.float64) / DAY_S).astype(np.int64)


def sums_by_day(day_index: ArrayLike, columns: Mapping[str, ArrayLike]) -> tuple[NDArray[np.int64], dict[str, Floats]]:
    """Days that occur, ascending, shape (D,), and each column (n_rows,) summed over the rows of a day, shape (D,).

    >>> days, sums = sums_by_day([3, 3, 5], {"hits": [True, True, False]})
    >>> days.tolist(), sums["hits"].tolist()
    ([3, 5], [2.0, 0.0])
    """
    days, position = np.unique(np.asarray(day_index), return_inverse=True)
    return days, {
        name: np.bincount(position, np.asarray(column, np.float64), len(days)).astype(np.float64)
        for name, column in columns.items()
    }
