"""Jobs in cells of servers: in their pool's own, which are bound to servers as jobs need them, or on any that idle.

It keeps between decisions who holds which cells, and follows the view.
"""

from dataclasses import dataclass

from jobcast.domain.cells import Cell
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Grant, PoolView, View
from jobcast.schedulers.cells.buddy import sizes_of, used_of
from jobcast.schedulers.cells.private import PrivateCluster
from jobcast.schedulers.cells.quotas import NO_CELLS, Cells, cells_of, server_size
from jobcast.schedulers.cells.server_map import ServerMap
from jobcast.schedulers.tentative_allocation import TentativeAllocation


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
        """See `draft.Placer`."""

    def draft(self, view: View) -> TentativeAllocation:
        """See `draft.Placer`."""
        self._follow(view)
        return CellAllocation(view, self)

    def _follow(self, view: View) -> None:
        """What has ended since it was asked last gives its cells back."""
        if not self.own:
            self.server_gpus = server_size(view.servers)
            self.floor = ServerMap(view.servers, view.total_gpus)
            for pool, cells in cells_of(view.pools.values(), view.servers, self._given).items():
                self.own[pool] = self._settle(pool, cells)
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
