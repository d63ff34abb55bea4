"""Choices that a scheduler made, one row for each thing that it could have chosen."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Picks:
    """Choices by one network.

    Attributes
    ----------
    rows : (n_rows, n_features) what was read of each thing to choose from, choices one after another
    begins : (n + 1,) where the rows of a choice begin
    chosen : (n,) which of a choice's rows was taken, from 0
    """

    rows: Floats
    begins: Ints
    chosen: Ints

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def sizes(self) -> Ints:
        """How many things there were to choose from, (n,)."""
        return np.diff(self.begins)

    def take(self, which: Ints) -> "Picks":
        """Some of the choices, in the order given."""
        sizes = self.sizes[which]
        begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        inside = np.arange(begins[-1]) - np.repeat(begins[:-1], sizes)
        return Picks(self.rows[np.repeat(self.begins[:-1][which], sizes) + inside], begins, self.chosen[which])


def picks_of(rows: Sequence[Floats], chosen: Sequence[int], features: int) -> Picks:
    """Choices from the rows of each.

    >>> picks_of([np.zeros((2, 1)), np.ones((3, 1))], [0, 2], 1).begins.tolist()
    [0, 2, 5]
    """
    sizes = [len(each) for each in rows]
    return Picks(
        np.concatenate(rows) if rows else np.empty((0, features)),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array(chosen, dtype=np.int64),
    )


def joined(parts: Iterable[Picks], features: int) -> Picks:
    """Choices of several runs, one run after another."""
    listed = list(parts)
    sizes = np.concatenate([part.sizes for part in listed]) if listed else np.empty(0, dtype=np.int64)
    return Picks(
        np.concatenate([part.rows for part in listed]) if listed else np.empty((0, features)),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part.chosen for part in listed]) if listed else np.empty(0, dtype=np.int64),
    )
