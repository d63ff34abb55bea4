"""What turns within a window may need of a quota, and what they cannot need. SIA, section 5.5 and Figure 8.

Both rest on one count. Let turns of L GPUs come in a window, in cells of powers of two, each in the smallest free
block that holds it and there at the lowest place, while others end as they like. A block of `s` GPUs that was not
entered before is entered only when those entered before have no room. So the turns enter at most ceil(L / s) blocks
of `s` GPUs, and of a block of more than `s` >= L GPUs (`s` a power of two) the first `s` GPUs alone.
"""

from collections.abc import Iterator, Sequence, Set
from math import ceil, inf

from jobcast.domain.cells import Cell
from jobcast.schedulers.cells.buddy import Buddies


def may_be_bound(
    roots: Sequence[int], tree: Buddies, unbound: Sequence[int], due: Set[int], turns_gpus: float, starts_gpus: float
) -> list[int]:
    """GPUs of the cells of a quota that are not bound and may have to be within a window: they are reserved.

    Parameters
    ----------
    roots : GPUs of each cell of the quota
    tree : what is taken of them in the private schedule
    unbound : positions of the cells that are not bound
    due : positions of cells in which jobs have their turn already; all of these are needed
    turns_gpus : GPUs of the jobs whose turn may come: those in the private queue, and those forecast
    starts_gpus : GPUs of the jobs that may truly start: those pending, and those forecast
    """
    needed = [roots[own] for own in unbound if own in due]
    others = [own for own in unbound if own not in due]
    for gpus in sorted({roots[own] for own in others}, reverse=True):
        mine = [own for own in others if roots[own] == gpus]
        entered = sum(not tree.is_whole(own) for own in mine)
        touched = min(float(len(mine)), entered + _ceil(turns_gpus / gpus), _ceil(starts_gpus))
        needed += [gpus] * int(touched)
    return needed


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
