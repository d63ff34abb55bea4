"""Buddy cells: halves of halves of servers, handed out so that large ones stay whole.

Zhao et al.: HiveD, OSDI 2020, buddy cell allocation; SIA, section 5.5.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence

from jobcast.domain.policy import Cell

# Of a root: roots with the smaller rank are taken first, where the cells are alike otherwise.
Rank = Callable[[int], tuple[float, ...]]


class Buddies:
    """Roots of powers of two GPUs, each split into halves as needed; freed halves merge again.

    Cells are found in the smallest free block that holds them, so that a block is split only where no smaller one is
    left. Therefore (HiveD's theorem, here with roots of any sizes): where cells that are in use at one time could all
    be in use together, each of them is found, however they came and went.

    Parameters
    ----------
    roots : GPUs of each root, powers of two; a cell's `server` is the position of its root
    """

    __slots__ = ("_free", "roots")

    def __init__(self, roots: Sequence[int]) -> None:
        self.roots = tuple(roots)
        self._free: dict[int, list[tuple[int, int]]] = {}
        for root, gpus in enumerate(self.roots):
            self._free.setdefault(gpus, []).append((root, 0))

    @property
    def largest(self) -> int:
        """GPUs of the largest free block, 0 without any."""
        return max((gpus for gpus, blocks in self._free.items() if blocks), default=0)

    def widest(self, server_gpus: int) -> int:
        """GPUs of the widest job that there is room for: in whole servers of so many GPUs, or in a part of one."""
        return max(self.largest, server_gpus * len(self._free.get(server_gpus, ())))

    def is_free(self, cell: Cell) -> bool:
        """Whether all of a cell is free."""
        return self._around(cell) is not None

    def is_whole(self, root: int) -> bool:
        """Whether all of a root is free."""
        return self._has(self.roots[root], root, 0)

    def blocks(self, gpus: int) -> Iterator[Cell]:
        """Free blocks of at least so many GPUs: smaller ones first, then by position."""
        for size in sorted(self._free):
            if size >= gpus:
                yield from (Cell(root, first, size) for root, first in self._free[size])

    def find(self, sizes: Sequence[int], rank: Rank | None = None) -> tuple[Cell, ...] | None:
        """Cells for a job, None where there is no room: one, or several whole roots of one size.

        The smallest free block that holds it is chosen, of equal ones that of the root with the smallest rank, then
        the lowest position.
        """
        gpus = sizes[0]
        if len(sizes) > 1:
            return self._find_roots(gpus, len(sizes), rank)
        fitting = [size for size, blocks in self._free.items() if size >= gpus and blocks]
        if not fitting:
            return None
        # The smallest size that fits: larger blocks stay whole for who needs them.
        blocks = self._free[min(fitting)]
        root, first = blocks[0] if rank is None else min(blocks, key=lambda block: (*rank(block[0]), *block))
        return (Cell(root, first, gpus),)

    def _find_roots(self, gpus: int, count: int, rank: Rank | None) -> tuple[Cell, ...] | None:
        # A free block of that size may be half of a larger root: only whole roots will do.
        whole = [(root, first) for root, first in self._free.get(gpus, ()) if self.roots[root] == gpus]
        if len(whole) < count:
            return None
        if rank is not None:
            whole.sort(key=lambda block: (*rank(block[0]), *block))
        return tuple(Cell(root, first, gpus) for root, first in whole[:count])

    def take(self, cells: Sequence[Cell]) -> None:
        """Free cells are in use from now on. Raises ValueError for one that is not free."""
        for cell in cells:
            around = self._around(cell)
            if around is None:
                raise ValueError(f"not free: {cell}")
            size, first = around
            # Halved until it is the cell; the halves left over become free blocks.
            self._drop(size, cell.server, first)
            while size > cell.gpus:
                size //= 2
                if cell.first >= first + size:
                    self._add(size, cell.server, first)
                    first += size
                else:
                    self._add(size, cell.server, first + size)

    def give(self, cells: Sequence[Cell]) -> None:
        """Cells are free again, and merge with their free buddies."""
        for cell in cells:
            size, first = cell.gpus, cell.first
            # The buddy of a block differs from it in one bit of its position; that of a whole root would lie beyond it.
            while self._has(size, cell.server, first ^ size):
                self._drop(size, cell.server, first ^ size)
                first &= ~size
                size *= 2
            self._add(size, cell.server, first)

    def _around(self, cell: Cell) -> tuple[int, int] | None:
        """(GPUs, first) of the free block that a cell lies in."""
        size = cell.gpus
        while size <= self.roots[cell.server]:
            first = cell.first // size * size
            if self._has(size, cell.server, first):
                return size, first
            size *= 2
        return None

    def _has(self, size: int, root: int, first: int) -> bool:
        blocks = self._free.get(size, [])
        index = bisect_left(blocks, (root, first))
        return index < len(blocks) and blocks[index] == (root, first)

    def _drop(self, size: int, root: int, first: int) -> None:
        blocks = self._free[size]
        del blocks[bisect_left(blocks, (root, first))]

    def _add(self, size: int, root: int, first: int) -> None:
        insort(self._free.setdefault(size, []), (root, first))


class Covered:
    """Cells that may overlap, and the blocks that none of them covers.

    Parameters
    ----------
    roots : as in `Buddies`

    Attributes
    ----------
    free : what no cell covers
    """

    __slots__ = ("_covers", "free")

    def __init__(self, roots: Sequence[int]) -> None:
        self.free = Buddies(roots)
        self._covers = [[0] * gpus for gpus in roots]

    def cover(self, cells: Sequence[Cell]) -> None:
        """Cells are covered once more."""
        for cell in cells:
            covers, end = self._covers[cell.server], cell.first + cell.gpus
            # Only what nobody covered before leaves the free blocks.
            self.free.take(_runs(covers, cell, 0))
            covers[cell.first : end] = [count + 1 for count in covers[cell.first : end]]

    def uncover(self, cells: Sequence[Cell]) -> None:
        """Cells are covered once less."""
        for cell in cells:
            covers, end = self._covers[cell.server], cell.first + cell.gpus
            covers[cell.first : end] = [count - 1 for count in covers[cell.first : end]]
            # And only what nobody covers any more comes back.
            self.free.give(_runs(covers, cell, 0))


def _runs(covers: Sequence[int], cell: Cell, count: int) -> list[Cell]:
    """The parts of a cell that are covered so often: all of it, or its GPUs one by one."""
    there = [gpu for gpu in range(cell.first, cell.first + cell.gpus) if covers[gpu] == count]
    return [cell] if len(there) == cell.gpus else [Cell(cell.server, gpu, 1) for gpu in there]


def sizes_of(gpus: int, server_gpus: int) -> tuple[int, ...]:
    """Cells that a job is given: one of a power of two GPUs, or whole servers; other widths are rounded up.

    >>> [sizes_of(gpus, 8) for gpus in (1, 3, 8, 12)]
    [(1,), (4,), (8,), (8, 8)]
    """
    return (min(1 << (gpus - 1).bit_length(), server_gpus),) * -(-gpus // server_gpus)


def used_of(cells: Sequence[Cell], gpus: int) -> tuple[Cell, ...]:
    """What a job uses of its cells: the first `gpus` GPUs; the others stay idle, so that its cells stay whole.

    >>> used_of((Cell(0, 0, 8), Cell(1, 0, 8)), 12)
    (Cell(server=0, first=0, gpus=8), Cell(server=1, first=0, gpus=4))
    """
    *full, last = cells
    return (*full, Cell(last.server, last.first, gpus - sum(cell.gpus for cell in full)))


def buddy_of(cell: Cell) -> Cell:
    """The other half of what a cell is a half of.

    >>> buddy_of(Cell(0, 4, 2))
    Cell(server=0, first=6, gpus=2)
    """
    return Cell(cell.server, cell.first ^ cell.gpus, cell.gpus)
