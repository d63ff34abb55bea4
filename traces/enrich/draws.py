"""Draws by (seed, job id): what is drawn for a job does not depend on which other jobs there are, or in what order."""

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from jobcast.domain.arrays import Floats, Ints

Words = NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: the step between the states of splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
DRAW_BITS = 53


class Draws:
    """Streams of draws of some jobs, one stream for each quantity by its name.

    Parameters
    ----------
    seed : of all
    names : (n,) job ids, or whatever else draws are about
    """

    def __init__(self, seed: int, names: list[str]) -> None:
        self._keys = np.array([_word(f"{seed}/{name}") for name in names], dtype=np.uint64)

    def uniform(self, what: str, low: float = 0.0, high: float = 1.0) -> Floats:
        """(n,) in [low, high).

        >>> alone, among = Draws(1, ["b"]).uniform("x"), Draws(1, ["a", "b"]).uniform("x")
        >>> bool(alone[0] == among[1]), bool(0.0 <= among[0] < 1.0)
        (True, True)
        """
        return low + (high - low) * _share(_mixed(self._keys ^ np.uint64(_word(what))))

    def choice(self, what: str, counts: Ints | int) -> Ints:
        """(n,) whole numbers from 0 to below the counts, equally likely."""
        return (self.uniform(what) * counts).astype(np.int64)

    def normal(self, what: str, counts: Ints) -> Floats:
        """(sum of counts,) standard normal, so many for each, one after another."""
        first = np.cumsum(counts) - counts
        at = (np.arange(int(counts.sum())) - np.repeat(first, counts)).astype(np.uint64)
        own = np.repeat(_mixed(self._keys ^ np.uint64(_word(what))), counts)
        drawn: Floats = ndtri(_share(_mixed(own + (at + np.uint64(1)) * GOLDEN)) + 2.0 ** -(DRAW_BITS + 1))
        return drawn


def _word(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _mixed(state: Words) -> Words:
    """The output function of splitmix64, of the next state."""
    mixed = state + GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _share(words: Words) -> Floats:
    """Words as shares of 2^64, whole numbers of 2^-53."""
    return (words >> np.uint64(64 - DRAW_BITS)).astype(np.float64) * 2.0**-DRAW_BITS
