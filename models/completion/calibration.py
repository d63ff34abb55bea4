"""Calibration of intervals: how far actual times fell outside those forecast on the past widens or narrows them.

Split conformal prediction on either side, in units of the interval's own width in logarithms: Romano, Patterson and
Candes, Conformalized Quantile Regression, 2019.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVELS = (0.5, 0.9)
"""Shares of jobs that intervals are to hold."""
LEAST_WIDTH = 0.02
"""Width of an interval in logarithms that stands in for none: futures that all agree are sure of 2 %."""


class IntervalCalibration:
    """Margins by level and side.

    Parameters
    ----------
    levels : shares of jobs that intervals are to hold
    """

    def __init__(self, levels: Sequence[float] = LEVELS) -> None:
        self.levels = tuple(levels)

    def fit(self, futures_s: Floats, actual_s: Floats) -> "IntervalCalibration":
        """Learn from forecasts whose outcome is known.

        Parameters
        ----------
        futures_s : (n_jobs, n_futures) completion times that were drawn, seconds, more than 0
        actual_s : (n_jobs,) what they came to

        Raises ValueError without jobs.
        """
        if not len(actual_s):
            raise ValueError("intervals are calibrated on jobs that finished, of which there are none")
        y = np.log(actual_s)
        self.margins_ = {}
        for level in self.levels:
            low, high = log_bounds(futures_s, level)
            width = high - low
            self.margins_[level] = (
                _upper_quantile((low - y) / width, 1.0 - (1.0 - level) / 2.0),
                _upper_quantile((y - high) / width, 1.0 - (1.0 - level) / 2.0),
            )
        return self

    def intervals(self, futures_s: Floats, level: float) -> Floats:
        """Lower and upper bounds, (n_jobs, 2) seconds, for futures (n_jobs, n_futures)."""
        low, high = log_bounds(futures_s, level)
        width = high - low
        below, above = self.margins_[level]
        low, high = low - below * width, high + above * width
        middle = np.log(np.median(futures_s, axis=1))
        return np.exp(np.column_stack([np.minimum(low, middle), np.maximum(high, middle)]))


def log_bounds(futures_s: Floats, level: float) -> tuple[Floats, Floats]:
    """Quantiles of the logarithms that leave half of 1 - level on either side, at least `LEAST_WIDTH` apart."""
    low, high = np.quantile(np.log(futures_s), [(1.0 - level) / 2.0, 1.0 - (1.0 - level) / 2.0], axis=1)
    lacking = np.maximum(LEAST_WIDTH - (high - low), 0.0) / 2.0
    return low - lacking, high + lacking


def _upper_quantile(scores: Floats, level: float) -> float:
    """Quantile with the correction for finite samples, the largest where there are too few."""
    rank = int(np.ceil((len(scores) + 1) * level))
    return float(np.sort(scores)[min(rank, len(scores)) - 1])
