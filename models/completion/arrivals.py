"""Arrivals to come: blocks of past ones, so that bursts, widths, models and sizes stay together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 20
"""Arrivals that are drawn together. Moving block bootstrap: Kuensch, 1989."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Jobs in order of submission; arrays (n_jobs,).

    Attributes
    ----------
    gap_s : seconds since the submission before
    row : position of the past job that each is drawn from
    """

    gap_s: Floats
    row: Ints

    def __len__(self) -> int:
        return len(self.row)


class ArrivalModel:
    """Draws arrivals from past ones.

    Parameters
    ----------
    block : arrivals that are drawn together
    """

    def __init__(self, block: int = BLOCK) -> None:
        self.block = block

    def fit(self, submit_s: Floats) -> "ArrivalModel":
        """Learn from submissions in order, (n_jobs,) seconds. Raises ValueError for fewer than two."""
        if len(submit_s) < 2:
            raise ValueError("arrivals are forecast from at least two submissions")
        self.gap_s_ = np.diff(submit_s)
        return self

    def draw(self, count: int, rng: np.random.Generator) -> Arrivals:
        """At least `count` arrivals, in whole blocks: more asked of the same `rng` go on where fewer end."""
        past = len(self.gap_s_)
        length = min(self.block, past)
        starts = rng.integers(0, past, size=-(-count // length))
        rows = (starts[:, None] + np.arange(length)) % past
        return Arrivals(self.gap_s_[rows].ravel(), rows.ravel() + 1)
