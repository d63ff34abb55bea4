"""Confidence intervals by drawing whole days anew: errors of one day hang together, rows are no independent draws.

SIA, appendix B (3): "poor prediction quality for a pool at time t often implies poor prediction quality at t + tau".

What the evaluations share: blocks of figures, one a horizon.

Pools grouped by how long their jobs run. SIA, appendix B, Table 23.

Day-block intervals of the figures of arrival forecasts, all draws at once: sums by day times weights of days.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import DAY_S, MINUTE_S
from jobcast.domain.errors import TrainingError
from jobcast.domain.horizons import bin_labels, duration_bin
from jobcast.features.corpus import Mask
from jobcast.models.scores import ECE_BINS, calibration_bin
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


def mean_durations_min(trace: Trace) -> dict[str, float]:
    """Mean run time of each pool's jobs that had ended, minutes."""
    ended = trace.ended
    pools, position = np.unique(trace.jobs["pool"].to_numpy().astype(str)[ended], return_inverse=True)
    # Means without a loop; only ended jobs have run times.
    seconds = np.bincount(position, weights=trace.duration_s[ended]) / np.bincount(position)
    return dict(zip(pools.tolist(), (seconds / MINUTE_S).tolist(), strict=True))


def duration_groups(pools: Iterable[str], mean_min: Mapping[str, float]) -> dict[str, tuple[str, ...]]:
    """Pools by group, groups from short to long; pools of unknown mean and empty groups are left out.

    >>> duration_groups(["a", "b", "c", "d"], {"a": 5.0, "b": 2000.0, "c": 1.0})
    {'<=5min': ('a', 'c'), '>720min': ('b',)}
    """
    labels = bin_labels(GROUP_EDGES_MIN)
    groups: dict[str, tuple[str, ...]] = dict.fromkeys(labels, ())
    for pool in pools:
        if pool in mean_min:
            label = labels[duration_bin(MINUTE_S * mean_min[pool], GROUP_EDGES_MIN)]
            groups[label] = (*groups[label], pool)
    return {label: members for label, members in groups.items() if members}


DRAWS = 400
CONFIDENCE = 0.95
LEAST_DAYS = 5
"""Fewer days tell nothing of how days differ."""
LEAST_DEFINED = 0.5
"""Share of the draws in which a figure must be defined."""
Interval = list[float] | None
"""[low, high], None where there is no telling."""


def day_weights(days: int, draws: int, seed: int = 0) -> Floats:
    """How often each day occurs in each draw, shape (draws, days); every draw has as many days as were seen.

    >>> day_weights(4, 2).sum(axis=1).tolist()
    [4.0, 4.0]
    """
    if not days:
        return np.empty((draws, 0))
    rng = np.random.default_rng(seed)
    # Drawing days with replacement, all draws at once.
    return rng.multinomial(days, np.full(days, 1.0 / days), size=draws).astype(np.float64)


def interval(values: ArrayLike | list[Any], days: int) -> Interval:
    """Percentile interval of what the draws gave, shape (draws,), None or NaN where a figure is undefined.

    None where fewer than 5 days were seen, or the figure is undefined in half of the draws.
    """
    drawn = np.asarray(values, np.float64)
    known = drawn[np.isfinite(drawn)]
    # A figure that is undefined in most draws has no honest interval.
    if days < LEAST_DAYS or not len(known) or len(known) < LEAST_DEFINED * len(drawn):
        return None
    low, high = np.quantile(known, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
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


RANKS = 2000
"""Groups of rows of neighbouring probabilities in which the draws' PR-AUC is counted; off by less than 0.001."""


class DayDraws:
    """The days of some rows, and how often each draw holds each day.

    Parameters
    ----------
    day_index : (n_rows,) the day, or other block, of each row, any whole numbers; see `days_of`
    draws, seed : of days with replacement, as many as there are

    Examples
    --------
    Two days of five are all wrong; a mean of five draws lies between 0.2 and 1 nineteen times in twenty.

    >>> DayDraws(range(5), draws=1000).of_mean([1.0, 1.0, 1.0, 0.0, 0.0])
    [0.2, 1.0]
    """

    def __init__(self, day_index: ArrayLike, draws: int, seed: int = 0) -> None:
        self.day_index = np.asarray(day_index)
        self.days, self._position = np.unique(self.day_index, return_inverse=True)
        self.weights = day_weights(len(self.days), draws, seed)

    def sums(self, column: ArrayLike) -> Floats:
        """Sum of a column (n_rows,) in each draw, shape (draws,)."""
        _, by_day = sums_by_day(self.day_index, {"column": column})
        return self.weights @ by_day["column"]

    def ratio(self, above: ArrayLike, below: ArrayLike) -> Floats:
        """Ratio of two columns' sums in each draw, shape (draws,); NaN where the lower one is 0."""
        return _ratio(self.sums(above), self.sums(below))

    def histogram(self, cell: NDArray[Any], cells: int, weights: ArrayLike) -> Floats:
        """Sums of `weights` (n_rows,) by cell (n_rows,) in each draw, shape (draws, cells)."""
        flat = self._position * cells + cell
        by_day = np.bincount(flat, np.asarray(weights, np.float64), len(self.days) * cells)
        return self.weights @ by_day.reshape(len(self.days), cells)

    def pr_auc(self, arrives: Mask, probability: Floats) -> Floats:
        """Average precision in each draw, shape (draws,), NaN where nothing arrives; see `RANKS`."""
        ranked = -np.sort(-np.unique(probability))
        # Neighbouring probabilities are grouped: exact ranks would cost memory by row and draw.
        edges = ranked[np.unique(np.linspace(0, len(ranked) - 1, RANKS).round().astype(np.int64))]
        cell = np.searchsorted(-edges, -probability, side="left")
        hits = self.histogram(cell, len(edges), arrives)
        found = hits.cumsum(axis=1)
        declared = self.histogram(cell, len(edges), np.ones(len(arrives))).cumsum(axis=1)
        # Precision at each rank, weighted by the arrivals that it adds; of no row there is none.
        return _ratio(np.nansum(hits * _ratio(found, declared), axis=1), hits.sum(axis=1))

    def ece(self, arrives: Mask, probability: Floats) -> Floats:
        """Calibration error in each draw, shape (draws,); see `scores.ece`."""
        gaps = self.histogram(calibration_bin(probability), ECE_BINS, probability - arrives)
        return _ratio(np.abs(gaps).sum(axis=1), self.weights @ np.bincount(self._position, minlength=len(self.days)))

    def interval(self, drawn: Floats) -> Interval:
        """Interval of what the draws gave; None where days are too few."""
        return interval(drawn, len(self.days))

    def of_mean(self, column: ArrayLike) -> Interval:
        """Interval of the mean of a column (n_rows,)."""
        return self.interval(self.ratio(column, np.ones(len(self.day_index))))


def arrival_intervals(
    arrives: Mask, probability: Floats, threshold: float, gate_threshold: float, tick_s: Floats, draws: int, seed: int
) -> dict[str, Interval]:
    """Intervals of f1, precision, recall, pr_auc, ece, idle_f1, miss_rate and freed_idle_share.

    Parameters
    ----------
    arrives, probability, tick_s : (n_rows,) what came, what was forecast, when
    threshold, gate_threshold : from which probability on jobs are said to arrive, for reports and for the gate
    draws : 0 gives {}
    """
    if not draws or not len(arrives):
        return {}
    days = DayDraws(days_of(tick_s), draws, seed)
    declared, passed, idle = probability >= threshold, probability >= gate_threshold, ~arrives
    drawn = {
        "precision": days.ratio(arrives & declared, declared),
        "recall": days.ratio(arrives & declared, arrives),
        "f1": days.ratio(2.0 * (arrives & declared), declared + 1.0 * arrives),
        "pr_auc": days.pr_auc(arrives, probability),
        "ece": days.ece(arrives, probability),
        "idle_f1": days.ratio(2.0 * (idle & ~declared), ~declared + 1.0 * idle),
        "miss_rate": days.ratio(arrives & ~passed, arrives),
        "freed_idle_share": days.ratio(idle & ~passed, idle),
    }
    return {name: days.interval(values) for name, values in drawn.items()}


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0))
