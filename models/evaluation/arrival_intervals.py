"""Day-block intervals of the figures of arrival forecasts, all draws at once: sums by day times weights of days."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats
from jobcast.features.corpus import Mask
from jobcast.models.evaluation.intervals import CONFIDENCE, Interval, day_weights, days_of, interval, sums_by_day
from jobcast.models.scores import ECE_BINS

RANKS = 2000
"""Groups of rows of neighbouring probabilities in which the draws' PR-AUC is counted; off by less than 0.001."""


class DayDraws:
    """The days of some rows, and how often each draw holds each day.

    Parameters
    ----------
    tick_s : (n_rows,) instants, seconds from the epoch; a row belongs to the UTC day that its window begins in
    draws, seed : of days with replacement

    Examples
    --------
    >>> days = DayDraws(np.arange(6) * 86400.0, draws=50)
    >>> days.interval(days.ratio(np.ones(6), np.ones(6)))
    [1.0, 1.0]
    """

    def __init__(self, tick_s: ArrayLike, draws: int, seed: int = 0, confidence: float = CONFIDENCE) -> None:
        self.day_index = days_of(tick_s)
        self.days, self._position = np.unique(self.day_index, return_inverse=True)
        self.weights = day_weights(len(self.days), draws, seed)
        self.confidence = confidence

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
        edges = ranked[np.unique(np.linspace(0, len(ranked) - 1, RANKS).round().astype(np.int64))]
        cell = np.searchsorted(-edges, -probability, side="left")
        hits = self.histogram(cell, len(edges), arrives)
        found = hits.cumsum(axis=1)
        declared = self.histogram(cell, len(edges), np.ones(len(arrives))).cumsum(axis=1)
        return _ratio((hits * found / np.maximum(declared, 1.0)).sum(axis=1), found[:, -1])

    def ece(self, arrives: Mask, probability: Floats) -> Floats:
        """Calibration error in each draw, shape (draws,); see `scores.ece`."""
        cell = np.minimum((probability * ECE_BINS).astype(np.int64), ECE_BINS - 1)
        gaps = self.histogram(cell, ECE_BINS, probability - arrives)
        return _ratio(np.abs(gaps).sum(axis=1), self.weights @ np.bincount(self._position, minlength=len(self.days)))

    def interval(self, drawn: Floats) -> Interval:
        """Interval of what the draws gave; None where days are too few."""
        return interval(drawn, len(self.days), self.confidence)


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
    days = DayDraws(tick_s, draws, seed)
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
    shares: Floats = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
    return shares
