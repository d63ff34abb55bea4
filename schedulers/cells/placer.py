"""Jobs in cells of servers: in their pool's own, which are bound to servers as jobs need them, or on any that idle.

It keeps between decisions who holds which cells, and follows the view.

A pool's quota is a list of cells of its own, tied to no server. One of them is *bound* to a cell of a server while
dedicated jobs run in it, and stands for the same place there as long. Binding whole cells of the quota, not single
jobs, is what makes HiveD's theorem hold: jobs of two pools never share such a cell, so none is cut up by another
pool's jobs. Zhao et al.: HiveD, OSDI 2020; SIA, section 5.5.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Cell, Grant, PoolView, View
from jobcast.schedulers.cells.buddy import Buddies, Covered, sizes_of, used_of
from jobcast.schedulers.cells.private import PrivateCluster
from jobcast.schedulers.cells.quotas import NO_CELLS, Cells, cells_of, default_cells, server_size
from jobcast.schedulers.tentative_allocation import TentativeAllocation


class ServerMap:
    """Cells of servers: bound, lent, or neither.

    GPUs beyond those of the quotas belong to nobody and stay out of use, the last ones.

    Parameters
    ----------
    servers : GPUs of each, all the same power of two
    quota_gpus : GPUs of all quotas together

    Attributes
    ----------
    idle : cells in which no job runs, bound or not
    covered : cells that are bound, reserved or in use; its `free` is the rest
    """

    __slots__ = ("_bound", "_dedicated", "_lent", "_unbound", "_users", "covered", "idle")

    def __init__(self, servers: Sequence[int], quota_gpus: int) -> None:
        self.idle, self._unbound, self.covered = Buddies(servers), Buddies(servers), Covered(servers)
        self._bound: dict[tuple[str, int], Cell] = {}
        self._users: dict[tuple[str, int], int] = {}
        self._dedicated, self._lent = [0] * len(servers), [0] * len(servers)
        for gpus in default_cells(sum(servers) - quota_gpus, server_size(servers)):
            # From the last server on, so that the first ones stay whole for quotas.
            nobodys = self.idle.find((gpus,), lambda server: (-server,)) or ()
            self.idle.take(nobodys)
            self._unbound.take(nobodys)
            self.covered.cover(nobodys)

    def base(self, pool: str, own: int) -> Cell | None:
        """What a cell of a pool's quota, by its position there, is bound to."""
        return self._bound.get((pool, own))

    def bind(self, pool: str, cells: Sequence[Cell], roots: Sequence[int], crowded: bool = False) -> tuple[Cell, ...]:
        """Cells on servers for a dedicated job, none where they cannot be had.

        A cell of the quota that is not bound yet goes to the smallest block that holds it and is free, of equal ones
        to the server with the fewest GPUs lent, then the most dedicated ones.

        Parameters
        ----------
        pool : whose job it is
        cells : the job's place in its pool's quota; their `server` is the position of the quota's cell
        roots : GPUs of the quota's cells
        crowded : whether blocks will do in which spare jobs run, if not where this one goes
        """
        placed: list[Cell] = []
        for cell in cells:
            base = self._bound.get((pool, cell.server)) or self._base(cell, roots[cell.server], crowded)
            # One part without a place, and the parts before it are given back.
            if base is None or not self.idle.is_free(inside(base, cell)):
                self.release(pool, cells[: len(placed)], placed)
                return ()
            placed.append(inside(base, cell))
            self.idle.take(placed[-1:])
            self._use((pool, cell.server), base, cell.gpus)
        return tuple(placed)

    def release(self, pool: str, cells: Sequence[Cell], placed: Sequence[Cell]) -> None:
        """A dedicated job ended; a cell of the quota without any job more is bound no longer."""
        self.idle.give(placed)
        for cell in cells:
            self._dedicated[self._bound[pool, cell.server].server] -= cell.gpus
            self._leave((pool, cell.server))

    def reserve(self, sizes: Sequence[int]) -> list[Cell] | None:
        """Cells bound to nobody, the largest first, covered until they are uncovered; None where some cannot be had."""
        reserved: list[Cell] = []
        # The largest first, or small ones would cut up what they need.
        for gpus, count in sorted(Counter(sizes).items(), reverse=True):
            for wanted in self._at_once(gpus, count):
                found = self.covered.free.find(wanted, self._for_dedicated)
                if found is None:
                    self.covered.uncover(reserved)
                    return None
                self.covered.cover(found)
                reserved += found
        return reserved

    def _at_once(self, gpus: int, count: int) -> list[tuple[int, ...]]:
        """Whole servers are looked for together, parts of servers one by one."""
        if gpus == self.covered.free.roots[0]:
            return [(gpus,) * count]
        return [(gpus,)] * count

    def to_lend(self, sizes: Sequence[int], bound: bool = False) -> tuple[Cell, ...]:
        """Cells for a spare job, none where there is no room; those of bound ones that are idle too where `bound`.

        The smallest free block that holds it, of equal ones on the server with the most GPUs lent, then the fewest
        dedicated, then the last.
        """
        # A loan in a bound cell is in the way of its pool, hence only on request.
        return (self.idle if bound else self.covered.free).find(sizes, self._for_lent) or ()

    def lend(self, cells: Sequence[Cell], within: tuple[str, int] | None = None) -> None:
        """A spare job starts; a bound cell of a quota that it runs within stays bound as long."""
        self.go_on(cells)
        self._count_lent(cells, 1)
        if within is not None:
            self._users[within] += 1

    def give_back(self, cells: Sequence[Cell], within: tuple[str, int] | None = None) -> None:
        """A spare job ended."""
        self.step_aside(cells)
        self.gone(cells)
        if within is not None:
            self._leave(within)

    def step_aside(self, cells: Sequence[Cell]) -> None:
        """A spare job makes room for now, until it is told to `go_on` or is `gone`; its server counts as lent on."""
        self.idle.give(cells)
        self.covered.uncover(cells)

    def go_on(self, cells: Sequence[Cell]) -> None:
        """A spare job that stepped aside goes on; its cells must be idle."""
        self.idle.take(cells)
        self.covered.cover(cells)

    def gone(self, cells: Sequence[Cell]) -> None:
        """A spare job that stepped aside does not come back."""
        self._count_lent(cells, -1)

    def _count_lent(self, cells: Sequence[Cell], sign: int) -> None:
        for cell in cells:
            self._lent[cell.server] += sign * cell.gpus

    def _use(self, key: tuple[str, int], base: Cell, gpus: int) -> None:
        if key not in self._bound:
            self._unbound.take((base,))
            self.covered.cover((base,))
            self._bound[key] = base
        self._users[key] = self._users.get(key, 0) + 1
        self._dedicated[base.server] += gpus

    def _leave(self, key: tuple[str, int]) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key]
            base = (self._bound.pop(key),)
            self._unbound.give(base)
            self.covered.uncover(base)

    def _base(self, cell: Cell, gpus: int, crowded: bool) -> Cell | None:
        """Where to bind a cell of a quota so that a job's place in it is idle."""
        if not crowded:
            found = self.covered.free.find((gpus,), self._for_dedicated)
            return found[0] if found else None
        bases = [
            (block.gpus, *self._for_dedicated(block.server), base)
            for block in self._unbound.blocks(gpus)
            for base in _parts(block, gpus)
            if self.idle.is_free(inside(base, cell))
        ]
        return min(bases)[-1] if bases else None

    def _for_dedicated(self, server: int) -> tuple[int, int]:
        return self._lent[server], -self._dedicated[server]

    def _for_lent(self, server: int) -> tuple[float, ...]:
        return -self._lent[server], self._dedicated[server], -server


def inside(base: Cell, cell: Cell) -> Cell:
    """Where a place in a cell of a quota lies on its server."""
    return Cell(base.server, base.first + cell.first, cell.gpus)


def _parts(block: Cell, gpus: int) -> list[Cell]:
    return [Cell(block.server, first, gpus) for first in range(block.first, block.first + block.gpus, gpus)]


@dataclass(frozen=True, slots=True)
class Held:
    """A running job.

    Attributes
    ----------
    job : which
    start_s : since when, seconds from the epoch
    cells : those of servers that are kept for it, its width rounded up
    own : of a dedicated job, its place in its pool's quota
    within : of a spare job in a bound cell of a quota: whose, and which
    """

    job: Job
    start_s: float
    cells: tuple[Cell, ...]
    own: tuple[Cell, ...] = ()
    within: tuple[str, int] | None = None


class CellPlacer:
    """Places gangs in cells, by HiveD's buddy allocation; serves one run.

    Parameters
    ----------
    given : quotas as cells; pools that are not told are split as `quotas.default_cells` does

    Attributes
    ----------
    floor : cells of servers that are bound, lent or neither
    server_gpus : of a server
    own : pool -> its quota's cells, and the jobs in them
    held : running jobs by `seq`

    Raises
    ------
    PoolsError
        The quotas cannot be had on the servers; when it is first asked.
    """

    floor: ServerMap
    server_gpus: int

    def __init__(self, given: Cells = NO_CELLS) -> None:
        self._given = given
        self.own: dict[str, PrivateCluster] = {}
        self.held: dict[int, Held] = {}

    def submitted(self, job: Job) -> None:
        """See `tentative_allocation.Placer`."""

    def draft(self, view: View) -> TentativeAllocation:
        """See `tentative_allocation.Placer`."""
        self._follow(view)
        return CellAllocation(view, self)

    def _follow(self, view: View) -> None:
        """What has ended since it was asked last gives its cells back."""
        if not self.own:
            self.server_gpus = server_size(view.servers)
            self.floor = ServerMap(view.servers, view.total_gpus)
            for pool, cells in cells_of(view.pools.values(), view.servers, self._given).items():
                self.own[pool] = self._settle(pool, cells)
        # A list first: the dictionary changes meanwhile.
        for seq in [seq for seq in self.held if seq not in view.running]:
            self._end(self._take_back(self.held.pop(seq)), view)

    def _settle(self, pool: str, cells: tuple[int, ...]) -> PrivateCluster:
        return PrivateCluster(cells, self.server_gpus)

    def _take_back(self, held: Held) -> Held:
        if held.own:
            self.floor.release(held.job.pool, held.own, held.cells)
        else:
            self.floor.give_back(held.cells, held.within)
        return held

    def _end(self, held: Held, view: View) -> None:
        if held.own:
            self.own[held.job.pool].release(held.job.seq)


class CellAllocation(TentativeAllocation):
    """What the servers would look like after the starts decided on so far; the placer knows of them at once."""

    __slots__ = ("_placer",)

    def __init__(self, view: View, placer: CellPlacer) -> None:
        super().__init__(view)
        self._placer = placer

    @property
    def room(self) -> float:
        """Width of the widest job that there is room for."""
        return self._placer.floor.idle.widest(self._placer.server_gpus)

    def own_room(self, pool: PoolView) -> float:
        """Width of the widest job that there is room for in a pool's quota."""
        return self._placer.own[pool.name].tree.widest(self._placer.server_gpus)

    def dedicate(self, job: Job) -> bool:
        """Start a pending job where its pool's quota and the servers both have room; whether they had."""
        cluster = self._placer.own[job.pool]
        # Several places are tried: the quota may have room where the servers have none.
        for own in cluster.places(job):
            if self._bind(job, own, crowded=True):
                cluster.take(job, own)
                return True
        return False

    def dedicate_heads(self, pool: PoolView) -> None:
        """Start a pool's first jobs, one after the other, while quota and servers have room for them."""
        while (job := self.head(pool)) is not None and self.dedicate(job):
            pass

    def start(self, job: Job, dedicated: bool = True) -> bool:
        """Start a pending job on any idle cells, in those of quotas too; whether there was room."""
        cells = self._placer.floor.to_lend(self._sizes(job), bound=True)
        if cells:
            self._lend(job, cells, dedicated)
        return bool(cells)

    def _bind(self, job: Job, own: tuple[Cell, ...], crowded: bool = False) -> bool:
        """Start a job in its place in its pool's quota, where cells can be had for it; whether it started."""
        cells = self._placer.floor.bind(job.pool, own, self._placer.own[job.pool].tree.roots, crowded)
        if cells:
            self._put(Held(job, self._view.now_s, cells, own), dedicated=True)
        return bool(cells)

    def _lend(
        self, job: Job, cells: tuple[Cell, ...], dedicated: bool = False, within: tuple[str, int] | None = None
    ) -> None:
        """Start a job on idle cells, in a part of a bound cell of a quota where that is told."""
        self._placer.floor.lend(cells, within)
        self._put(Held(job, self._view.now_s, cells, within=within), dedicated)

    def _put(self, held: Held, dedicated: bool) -> None:
        self._placer.held[held.job.seq] = held
        self._begin(held.job, Grant(held.job.gpus, used_of(held.cells, held.job.gpus), dedicated))

    def _sizes(self, job: Job) -> tuple[int, ...]:
        """GPUs of the cells that a job needs."""
        return sizes_of(job.gpus, self._placer.server_gpus)
