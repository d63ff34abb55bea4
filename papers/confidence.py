"""Means over draws with their confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from papers.sheets import number

CONFIDENCE = 0.95
HOLDS, OPEN, REVERSED = "yes", "open", "no"
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over draws and its confidence interval by Student's t; NaN bounds for a single draw."""

    mean: float
    low: float
    high: float

    def text(self, digits: int = 1) -> str:
        """The mean, and the interval where there is one.

        >>> Interval(1.0, 0.5, 1.5).text()
        '1.0 (0.5 to 1.5)'
        """
        spread = f" ({self.low:.{digits}f} to {self.high:.{digits}f})" if np.isfinite(self.low) else ""
        return f"{number(self.mean, digits)}{spread}"

    @property
    def negative(self) -> "Interval":
        """Of what it takes in place of what it gains."""
        return Interval(-self.mean, -self.high, -self.low)

    @property
    def verdict(self) -> str:
        """Whether it is above 0 with confidence, below, or neither."""
        return HOLDS if self.low > 0 else REVERSED if self.high < 0 else OPEN


def interval_of(values: Sequence[float] | Floats) -> Interval:
    """Of a sample's mean.

    >>> one = interval_of([1.0, 2.0, 3.0])
    >>> round(one.low, 3), round(one.high, 3)
    (-0.484, 4.484)
    """
    from scipy.stats import t

    sample = np.asarray(values, dtype=np.float64)
    mean, nan = float(sample.mean()), float("nan")
    if len(sample) < 2:
        return Interval(mean, nan, nan)
    half = float(t.ppf(0.5 + CONFIDENCE / 2, len(sample) - 1) * sample.std(ddof=1) / np.sqrt(len(sample)))
    return Interval(mean, mean - half, mean + half)
