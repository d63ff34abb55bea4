"""One window of SIA's: what pools may need within it, and which cells can be lent for as long."""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass

from jobcast.domain.cells import Cell
from jobcast.domain.jobs import Job
from jobcast.domain.policy import PoolView, View
from jobcast.schedulers.cells.buddy import Buddies, buddy_of
from jobcast.schedulers.cells.cell_draft import CellDraft
from jobcast.schedulers.cells.floor import inside
from jobcast.schedulers.cells.private import PrivateSchedule
from jobcast.schedulers.cells.reservation import may_be_bound, out_of_reach
from jobcast.schedulers.cells.shared import SharedCells

Schedules = Mapping[str, PrivateSchedule]
APART = ("cell", "buddy", "none")
"""What spare jobs keep away from: cells of quotas in which dedicated jobs run, those jobs' own buddies, or neither."""
Part = tuple[int, Cell, tuple[str, int]]
"""GPUs, an idle cell of a server, and the cell of a quota (whose, which) that it is a part of."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Idle parts of bound cells that can be lent, beside free blocks; smaller ones first."""

    parts: tuple[Part, ...] = ()

    @property
    def largest(self) -> int:
        """GPUs of the largest, 0 without any."""
        return self.parts[-1][0] if self.parts else 0

    def start(self, draft: CellDraft, now_s: float, shared: SharedCells, job: Job) -> None:
        """Start a job that fits: in the smallest part that holds it, else on free blocks."""
        sizes = shared.sizes(job)
        fitting = (part for part in self.parts if part[0] >= sum(sizes))
        part = next(fitting, None)
        if part is None:
            shared.lend(draft, now_s, job, shared.floor.to_lend(sizes))
        else:
            _, cell, within = part
            shared.lend(draft, now_s, job, (Cell(cell.server, cell.first, sizes[0]),), within)


class Window:
    """What pools may need in (now, now + horizon_s].

    Parameters
    ----------
    horizon_s : its length
    future_gpus : the load forecast of (pool, horizon_s, now_s), asked once a pool
    apart : one of `APART`
    """

    def __init__(self, horizon_s: float, future_gpus: Callable[[str, float, float], float], apart: str) -> None:
        self._horizon_s, self._ask, self._apart = horizon_s, future_gpus, apart
        self._future: dict[str, float] = {}

    def needs(
        self, draft: CellDraft, view: View, shared: SharedCells, schedules: Schedules, due: Set[tuple[str, int]]
    ) -> list[int]:
        """ReserveResourcesForFuture, Figure 8: GPUs of the cells of quotas that may have to be bound."""
        needed: list[int] = []
        for pool in view.pools.values():
            roots = shared.own[pool.name]
            unbound = [own for own in range(len(roots)) if shared.floor.base(pool.name, own) is None]
            if not unbound:
                continue
            future_gpus = self._future_gpus(pool, view)
            starts_gpus = draft.pending_gpus(pool) + future_gpus
            turns_gpus = schedules[pool.name].queued_gpus + future_gpus
            mine = {own for name, own in due if name == pool.name}
            needed += may_be_bound(roots, schedules[pool.name].cluster.tree, unbound, mine, turns_gpus, starts_gpus)
        return needed

    def parts(self, draft: CellDraft, view: View, shared: SharedCells, schedules: Schedules) -> Parts:
        """Idle parts of bound cells that no turn comes to in the window."""
        if self._apart == "cell":
            return Parts()
        found: list[Part] = []
        for pool in view.pools.values():
            avoid = self._avoided(shared, schedules[pool.name])
            for place in self._out_of_reach(draft, view, pool, schedules[pool.name]):
                base = shared.floor.base(pool.name, place.server)
                if base is not None and not any(_covers(buddy, place) for buddy in avoid):
                    idle = _idle(shared.floor.idle, inside(base, place))
                    found += ((cell.gpus, cell, (pool.name, place.server)) for cell in idle)
        return Parts(tuple(sorted(found)))

    def _avoided(self, shared: SharedCells, schedule: PrivateSchedule) -> list[Cell]:
        """Buddies of dedicated jobs in their pool's quota."""
        if self._apart == "none":
            return []
        cells = (cell for seq, own in schedule.cluster.cells.items() if shared.is_dedicated(seq) for cell in own)
        roots = schedule.cluster.tree.roots
        return [buddy_of(cell) for cell in cells if cell.gpus < roots[cell.server]]

    def _out_of_reach(self, draft: CellDraft, view: View, pool: PoolView, schedule: PrivateSchedule) -> Iterator[Cell]:
        future_gpus = self._future_gpus(pool, view)
        starts = draft.pending_gpus(pool) + future_gpus > 0
        yield from out_of_reach(schedule.cluster.tree, schedule.queued_gpus + future_gpus if starts else 0.0)
        yield from schedule.idle_until(view.now_s + self._horizon_s, view.now_s, view.running)

    def _future_gpus(self, pool: PoolView, view: View) -> float:
        if pool.name not in self._future:
            self._future[pool.name] = self._ask(pool.name, self._horizon_s, view.now_s)
        return self._future[pool.name]


def _covers(cell: Cell, place: Cell) -> bool:
    return cell.server == place.server and cell.first <= place.first < cell.first + cell.gpus


def _idle(tree: Buddies, cell: Cell) -> Iterator[Cell]:
    """The idle parts of a cell, as large as they are."""
    if tree.is_free(cell):
        yield cell
    elif cell.gpus > 1:
        half = cell.gpus // 2
        yield from _idle(tree, Cell(cell.server, cell.first, half))
        yield from _idle(tree, Cell(cell.server, cell.first + half, half))
