"""What policies that share servers keep between decisions: who holds which cells. It follows the view."""

from dataclasses import dataclass

from jobcast.domain.cells import Cell
from jobcast.domain.jobs import Job
from jobcast.domain.policy import View
from jobcast.schedulers.cells.buddy import sizes_of
from jobcast.schedulers.cells.cell_draft import CellDraft
from jobcast.schedulers.cells.floor import Floor
from jobcast.schedulers.cells.quotas import Cells, cells_of, server_size


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


class SharedCells:
    """Running jobs and their cells.

    Parameters
    ----------
    view : the cluster when the policy is first asked
    given : quotas as cells, of the pools that tell them

    Attributes
    ----------
    own : pool -> GPUs of each cell of its quota
    server_gpus : of a server
    floor : cells of servers that are bound, lent or neither

    Raises
    ------
    PoolsError
        The quotas cannot be had on the servers.
    """

    def __init__(self, view: View, given: Cells) -> None:
        self.own = cells_of(view.pools.values(), view.servers, given)
        self.server_gpus = server_size(view.servers)
        self.floor = Floor(view.servers, view.total_gpus)
        self._held: dict[int, Held] = {}

    def sizes(self, job: Job) -> tuple[int, ...]:
        """GPUs of the cells that a job needs."""
        return sizes_of(job.gpus, self.server_gpus)

    def is_dedicated(self, seq: int) -> bool:
        """Whether a job runs in its place in its pool's quota."""
        held = self._held.get(seq)
        return held is not None and bool(held.own)

    def ended(self, view: View) -> list[Held]:
        """Jobs that run no longer; their cells are free again."""
        over = [self._held.pop(seq) for seq in [seq for seq in self._held if seq not in view.running]]
        for held in over:
            if held.own:
                self.floor.release(held.job.pool, held.own, held.cells)
            else:
                self.floor.give_back(held.cells, held.within)
        return over

    def dedicate(self, draft: CellDraft, now_s: float, job: Job, own: tuple[Cell, ...], crowded: bool = False) -> bool:
        """Start a job in its place in its pool's quota, where cells can be had for it; whether it started."""
        cells = self.floor.bind(job.pool, own, self.own[job.pool], crowded)
        if cells:
            self._start(draft, Held(job, now_s, cells, own), dedicated=True)
        return bool(cells)

    def dedicate_anywhere(self, draft: CellDraft, now_s: float, job: Job) -> bool:
        """Start a job on any idle cells, as spare ones took its place; it counts against its quota all the same."""
        cells = self.floor.to_lend(self.sizes(job), bound=True)
        if cells:
            self.floor.lend(cells)
            self._start(draft, Held(job, now_s, cells), dedicated=True)
        return bool(cells)

    def lend(
        self, draft: CellDraft, now_s: float, job: Job, cells: tuple[Cell, ...], within: tuple[str, int] | None = None
    ) -> None:
        """Start a spare job on idle cells, in a part of a bound cell of a quota where that is told."""
        self.floor.lend(cells, within)
        self._start(draft, Held(job, now_s, cells, within=within), dedicated=False)

    def _start(self, draft: CellDraft, held: Held, dedicated: bool) -> None:
        self._held[held.job.seq] = held
        draft.place(held.job, held.cells, dedicated)
