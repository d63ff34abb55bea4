"""What is measured of runs, how it is printed, and its mean over draws with a confidence interval."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from papers.bench import Done
from papers.page import grid, number
from papers.runs import By, Means

CONFIDENCE = 0.95
HOLDS, OPEN, REVERSED = "yes", "open", "no"
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a run.

    Attributes
    ----------
    key, title : its name among figures, and in tables
    digits, scale : that it is printed with, and what it is multiplied by for that
    lower : whether less is better
    log : whether an axis of it is logarithmic
    """

    key: str
    title: str = ""
    digits: int = 2
    scale: float = 1.0
    lower: bool = True
    log: bool = True

    @property
    def word(self) -> str:
        """The title without its unit."""
        return self.title.partition(",")[0]

    def text(self, figures: Mapping[str, float]) -> str:
        """As tables print it."""
        return number(figures[self.key] * self.scale, self.digits)

    def of(self, done: Iterable[Done], case: str, name: str) -> Floats:
        """(n_draws,) by draw, in the order of seeds, as it is printed."""
        ours = sorted((one for one in done if (one.case, one.name) == (case, name)), key=lambda one: one.seed)
        return np.array([one.figures[self.key] * self.scale for one in ours], dtype=np.float64)


def table(found: Means, head: str, measures: Sequence[Measure]) -> str:
    """Means over draws: a row a case and name."""
    rows = ((case, name, *(one.text(figures) for one in measures)) for (case, name), figures in found.items())
    return grid((head, "policy", *(one.title for one in measures)), rows)


def by_policy(found: By, measures: Sequence[Measure]) -> str:
    """Means over draws of one case: a row a policy."""
    rows = ((name, *(one.text(figures) for one in measures)) for name, figures in found.items())
    return grid(("policy", *(one.title for one in measures)), rows)


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
    # One draw tells nothing of the spread: no interval, rather than one of width 0.
    if len(sample) < 2:
        return Interval(mean, nan, nan)
    half = float(t.ppf(0.5 + CONFIDENCE / 2, len(sample) - 1) * sample.std(ddof=1) / np.sqrt(len(sample)))
    return Interval(mean, mean - half, mean + half)


def draws_text(count: int, single: str = "one draw") -> str:
    """How many draws there were, in words."""
    return f"{count} draws" if count > 1 else single
