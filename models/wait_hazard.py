"""Distributions of waits from the chance of each stretch of time that a job which still waits starts within it.

Discrete hazards: Singer and Willett, "It's about time", Journal of Educational Statistics 1993. What has not started
yet counts for the stretches that it has waited through, so that nothing need be left out or made up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.memory import need_memory
from jobcast.models.completion.intervals import survival
from jobcast.models.metadata import booster_data, booster_of, trained_booster

THREADS = 1
"""Sums of gradients depend on how rows are shared out."""
ENDS = (0.003, 0.999)
"""Shares of the known waits below the first and the last stretch's outer ends."""
FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class HazardSettings:
    """Of the boosted trees.

    Attributes
    ----------
    stretches : of time, each with an equal share of the known waits
    trees, leaves, learning_rate, l2, column_share, row_share, least_rows : see LightGBM
    """

    stretches: int = 14
    trees: int = 200
    leaves: int = 31
    learning_rate: float = 0.08
    l2: float = 0.0
    column_share: float = 0.3
    row_share: float = 0.5
    least_rows: int = 100


@dataclass(frozen=True, slots=True, eq=False)
class WaitHazard:
    """A fitted hazard.

    Attributes
    ----------
    ends : (K + 1,) ends of the stretches, log10 of seconds, ascending
    booster : of LightGBM: a row and the number of a stretch -> log odds that it starts within; None where K is 1
    """

    ends: Floats
    booster: Any

    @classmethod
    def fit(
        cls,
        X: NDArray[np.float32],
        log_wait: Floats,
        started: Bools,
        weight: Floats,
        settings: HazardSettings,
        seed: int,
    ) -> Self:
        """Learn from rows of which one at least started.

        Parameters
        ----------
        X, weight : (n, F), (n,)
        log_wait, started : (n,) log10 of the seconds waited, and whether the wait was over then
        """
        known = log_wait[started]
        inner = np.unique(np.quantile(known, np.arange(1, settings.stretches) / settings.stretches))
        low, high = np.quantile(known, ENDS)
        ends = np.array([min(low, inner[0]), *inner, max(high, inner[-1])])
        row, stretch, label = passed(np.searchsorted(inner, log_wait, side="right"), started, len(inner))
        if label.all() or not label.any():
            return cls(ends, None)
        need_memory(FLOAT_BYTES * len(row) * (X.shape[1] + 1), f"{len(row):,} rows of waits", "train on a shorter time")
        rows = np.column_stack([X[row], stretch.astype(np.float32)])
        more = {
            "objective": "binary",
            "min_data_in_leaf": settings.least_rows,
            "bagging_fraction": settings.row_share,
            "bagging_freq": 1,
        }
        data = booster_data(rows, label, weight[row])
        return cls(ends, trained_booster(data, settings, settings.trees, seed, THREADS, more))

    def below(self, X: NDArray[np.float32]) -> Floats:
        """Probability that a job has started by the end of each stretch, (n, K + 1), from 0 to 1."""
        inner = len(self.ends) - 2
        result, left = np.zeros((len(X), inner + 2)), np.ones(len(X))
        result[:, -1] = 1.0
        if self.booster is None or not len(X):
            result[:, 1:-1] = np.arange(1, inner + 1) / (inner + 1)
            return result
        rows = np.column_stack([X, np.zeros(len(X), np.float32)])
        for stretch in range(inner):
            rows[:, -1] = stretch
            left = left * (1.0 - self.booster.predict(rows, num_threads=THREADS))
            result[:, stretch + 1] = 1.0 - left
        return result

    def quantiles(self, X: NDArray[np.float32], levels: Sequence[float]) -> Floats:
        """log10 of the seconds by which shares of such jobs have started, (n, levels), linear within a stretch."""
        below = self.below(X)
        result = np.empty((len(X), len(levels)))
        for place, level in enumerate(levels):
            # The stretch that the level falls into: the last that begins below it.
            after = np.clip((below < level).sum(axis=1), 1, len(self.ends) - 1)
            start, end = (np.take_along_axis(below, one[:, None], axis=1)[:, 0] for one in (after - 1, after))
            share = (level - start) / np.maximum(end - start, np.finfo(np.float64).tiny)
            result[:, place] = self.ends[after - 1] + np.clip(share, 0.0, 1.0) * np.diff(self.ends)[after - 1]
        return result

    def as_dict(self) -> dict[str, Any]:
        """What JSON holds of it; the trees are beside."""
        return {"ends": self.ends.tolist(), "trees": self.booster is not None}

    @classmethod
    def read(cls, saved: Mapping[str, Any], text: str) -> Self:
        """From what `told` gave, and the text of the trees."""
        return cls(np.array(saved["ends"]), booster_of(text) if saved["trees"] else None)


def passed(last: Ints, started: Bools, inner: int) -> tuple[Ints, Ints, Bools]:
    """Stretches that jobs waited into: row, number of the stretch, and whether it started within, (m,) each.

    Parameters
    ----------
    last : (n,) number of the stretch in which a job started, or was last seen to wait, which it has not waited through
    inner : number of the last stretch, which all start within that have come so far

    >>> [one.tolist() for one in passed(np.array([1, 1]), np.array([True, False]), 3)]
    [[0, 0, 1], [0, 1, 0], [False, True, False]]
    """
    through = np.minimum(last + started, inner)
    row = np.repeat(np.arange(len(last)), through)
    stretch = np.arange(len(row)) - np.repeat(np.cumsum(through) - through, through)
    return row, stretch, started[row] & (stretch == last[row])


def known_quantile(values: Floats, known: Bools, weight: Floats, level: float) -> float:
    """The least value that a share of all lies at or below, as far as is known.

    Parameters
    ----------
    values, known, weight : (n,) values, of those that are not `known` lower bounds; see `survival`

    >>> known_quantile(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]), np.ones(3), 0.5)
    3.0
    """
    order = np.lexsort((~known, values))
    above = survival(weight[order], known[order])[1:]
    # Rounded: the product of three hazards that leave a half must reach it.
    reached = np.flatnonzero(np.round(above, 12) <= round(1.0 - level, 12))
    return float(values[order][reached[0] if len(reached) else -1])
