"""Calibration of intervals as outcomes come in: their ends move outwards when too many jobs fall beyond them.

Each end of an interval is a quantile of the futures drawn; its level follows how often actual times fell beyond it
(Gibbs and Candes, Adaptive Conformal Inference Under Distribution Shift, 2021), so that in the long run the intervals
hold as many jobs as they promise, whatever the futures got wrong. They never become narrower than the futures say:
short jobs' outcomes come first, and would narrow intervals whose misses are not known yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVELS = (0.5, 0.9)
"""Shares of jobs that intervals are to hold."""
STEP = 0.005
"""How far an outcome moves the level of an end."""
BEYOND = 10.0
"""Logarithmic units that an end moves beyond the outermost future for each unit that its level is less than 0."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a completion time, seconds; `level` is the share of jobs that such intervals are to hold."""

    level: float
    low_s: float
    high_s: float

    def holds(self, actual_s: float) -> bool:
        """Whether a time lies within."""
        return self.low_s <= actual_s <= self.high_s


class IntervalTracker:
    """Intervals from futures, each end at a level that outcomes have moved.

    Parameters
    ----------
    levels : shares of jobs that intervals are to hold
    step : how far an outcome moves the level of an end; 0 for the bare quantiles of the futures
    """

    def __init__(self, levels: Sequence[float] = LEVELS, step: float = STEP) -> None:
        self.levels, self.step = tuple(levels), step
        self._tails = {level: [(1.0 - level) / 2.0] * 2 for level in levels}

    @property
    def tails(self) -> dict[float, tuple[float, float]]:
        """By level the share of futures below and above its interval; less than 0: beyond the outermost ones."""
        return {level: (low, high) for level, (low, high) in self._tails.items()}

    def intervals(self, futures_s: Floats) -> tuple[Interval, ...]:
        """Intervals of a job whose completion took `futures_s`, (n_futures,) seconds more than 0; one a level."""
        logs = np.log(futures_s)
        return tuple(Interval(level, *self._bounds(logs, level)) for level in self.levels)

    def observe(self, intervals: Sequence[Interval], actual_s: float) -> None:
        """Take in the outcome of a job whose intervals were made before."""
        for one in intervals:
            aim, tails = (1.0 - one.level) / 2.0, self._tails[one.level]
            tails[0] = min(tails[0] + self.step * (aim - (actual_s < one.low_s)), aim)
            tails[1] = min(tails[1] + self.step * (aim - (actual_s > one.high_s)), aim)

    def _bounds(self, logs: Floats, level: float) -> tuple[float, float]:
        low, high = self._tails[level]
        return float(np.exp(_end(logs, low))), float(np.exp(-_end(-logs, high)))


def _end(logs: Floats, tail: float) -> float:
    """The quantile that leaves `tail` below it; beyond the outermost future where that is less than nothing."""
    inside = max(tail, 0.0)
    return float(np.quantile(logs, inside)) + BEYOND * (tail - inside)
