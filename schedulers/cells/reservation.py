"""What turns within a window may need of a quota, and what they cannot need. SIA, section 5.5 and Figure 8.

Both rest on one count. Let turns of L GPUs come in a window, in cells of powers of two, each in the smallest free
block that holds it and there at the lowest place, while others end as they like. A block of `s` GPUs that was not
entered before is entered only when those entered before have no room. So the turns enter at most ceil(L / s) blocks
of `s` GPUs, and of a block of more than `s` >= L GPUs (`s` a power of two) the first `s` GPUs alone.
"""

from collections.abc import Iterator, Sequence, Set
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.cells import Cell
from jobcast.schedulers.cells.buddy import Buddies

Floats = NDArray[np.float64]

Sizes = list[tuple[int, int, int]]
"""GPUs of a cell, how many such there are, and how many of them turns have entered."""


def may_be_bound(tree: Buddies, unbound: Sequence[int], due: Set[int]) -> tuple[list[int], Sizes]:
    """Cells of a quota that are not bound: GPUs of those that have to be, and by size those that may have to be.

    Parameters
    ----------
    tree : the quota's cells, and what is taken of them in the private schedule
    unbound : positions of the cells that are not bound
    due : positions of cells in which jobs have their turn already; all of these are needed
    """
    roots = tree.roots
    others = [own for own in unbound if own not in due]
    sizes = []
    for gpus in sorted({roots[own] for own in others}, reverse=True):
        mine = [own for own in others if roots[own] == gpus]
        sizes.append((gpus, len(mine), sum(not tree.is_whole(own) for own in mine)))
    return [roots[own] for own in unbound if own in due], sizes


def reserved(needed: Sequence[int], sizes: Sizes, turns_gpus: float, starts_gpus: float) -> list[int]:
    """GPUs of the cells that are reserved for a window, of what `may_be_bound` tells.

    Parameters
    ----------
    turns_gpus : GPUs of the jobs whose turn may come: those in the private queue, and those forecast
    starts_gpus : GPUs of the jobs that may truly start: those pending, and those forecast
    """
    made = list(needed)
    for gpus, count, entered in sizes:
        made += [gpus] * int(min(float(count), entered + _ceil(turns_gpus / gpus), _ceil(starts_gpus)))
    return made


def reserved_gpus(needed: Sequence[int], sizes: Sizes, turns_gpus: Floats, starts_gpus: Floats) -> Floats:
    """GPUs of all `reserved` cells, for any number of forecasts at once."""
    total = np.full(turns_gpus.shape, float(sum(needed)))
    for gpus, count, entered in sizes:
        touched = np.minimum(entered + np.ceil(turns_gpus / gpus), np.ceil(starts_gpus))
        total += gpus * np.minimum(float(count), touched)
    return total


def out_of_reach(tree: Buddies, turns_gpus: float) -> Iterator[Cell]:
    """Parts of the free blocks of a private cluster that turns of so many GPUs do not come to."""
    if turns_gpus == inf:
        return
    reach = 1 << (ceil(turns_gpus) - 1).bit_length() if turns_gpus > 0 else 0
    for block in tree.blocks(max(1, reach)):
        if not reach:
            yield block
        size = reach
        while reach and size < block.gpus:
            yield Cell(block.server, block.first + size, size)
            size *= 2


def _ceil(number: float) -> float:
    return number if number == inf else float(ceil(number))
