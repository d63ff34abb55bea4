"""Spans of features in training, and which rows leave them by more than as much again: they are named, not refused."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats

Spans = dict[str, tuple[float, float]]
"""Column -> least and largest value in training."""
ANY = (-np.inf, np.inf)
LARGEST = float(np.finfo(np.float64).max)
"""Stands for an infinite value, which JSON does not hold."""
ROUNDING = 1e-6
"""Training rows are kept in single precision: relative error of a value."""


def feature_spans(names: Sequence[str], parts: Iterable[NDArray[Any]]) -> Spans:
    """Spans of columns over all training rows; without columns that are never finite.

    Parameters
    ----------
    names : (F,)
    parts : arrays (..., F)

    >>> feature_spans(("a", "b"), [np.array([[1.0, np.nan], [3.0, np.nan]])])
    {'a': (1.0, 3.0)}
    """
    low, high = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    for part in parts:
        rows = part.reshape(-1, len(names))
        # A column at a time: a mask of all rows and columns would double the memory of training.
        for column in range(len(names)):
            values = rows[:, column]
            finite = values[np.isfinite(values)]
            if len(finite):
                low[column] = min(low[column], finite.min())
                high[column] = max(high[column], finite.max())
    spans = zip(names, low.tolist(), high.tolist(), strict=True)
    return {name: (least, most) for name, least, most in spans if least <= most}


class BeyondTraining:
    """Columns of one predictor's rows that lie farther outside of their training span than it is wide.

    Parameters
    ----------
    names : (F,) of the columns of the rows
    spans : from training; columns that it does not hold are not looked at
    """

    def __init__(self, names: Sequence[str], spans: Mapping[str, Sequence[float]]) -> None:
        self._names = tuple(names)
        known = [tuple(spans.get(name, ANY)) for name in names]
        least, most = np.array(known, np.float64).reshape(-1, 2).T
        # A span of one value may be missed by rounding alone.
        wide = most - least + ROUNDING * np.maximum(np.abs(least), np.abs(most))
        self._spans = spans
        self._low, self._high = least - wide, most + wide
        self._rows = np.zeros(len(self._names), np.int64)
        self._least, self._most = least, most  # the farthest values that were seen

    def look(self, rows: Floats) -> None:
        """Note those of some rows, (..., F)."""
        flat = rows.reshape(-1, len(self._names))
        beyond = (flat < self._low) | (flat > self._high)
        if beyond.any():
            self._rows += beyond.sum(axis=0)
            # fmin and fmax pass over NaN, which stands for a missing value.
            self._least = np.fmin(self._least, flat.min(axis=0))
            self._most = np.fmax(self._most, flat.max(axis=0))

    def figures(self) -> dict[str, Any]:
        """By column: the farthest value seen, the span in training, rows beyond; {} where none was.

        >>> load = BeyondTraining(("load",), {"load": (0.0, 10.0)})
        >>> load.look(np.array([[20.0], [21.0], [-5.0]]))
        >>> load.figures()
        {'load': {'seen': 21.0, 'trained': [0.0, 10.0], 'rows': 1}}
        """
        found = {}
        for column in np.flatnonzero(self._rows).tolist():
            name = self._names[column]
            low, high = (float(end) for end in self._spans[name])
            least, most = float(self._least[column]), float(self._most[column])
            # The side that is left by more is told.
            farthest = most if most - high >= low - least else least
            farthest = max(min(farthest, LARGEST), -LARGEST)
            found[name] = {"seen": farthest, "trained": [low, high], "rows": int(self._rows[column])}
        return found
