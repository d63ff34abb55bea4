"""HiveD without preemption: quotas in cells, idle GPUs to the next in line. SIA, sections 6.1 and 6.4 (HiveD*)."""

from collections.abc import Callable

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, View
from jobcast.schedulers.cells.cell_draft import CellDraft
from jobcast.schedulers.cells.private import PrivateCluster
from jobcast.schedulers.cells.quotas import NO_CELLS, Cells
from jobcast.schedulers.cells.shared import SharedCells

Starter = Callable[[CellDraft, View, SharedCells, Job], bool]
"""Starts a job if it can; whether it could."""


class CellHived:
    """Start each pool's first job in its quota where a cell is idle for it, else on any idle cell of anybody's.

    Dedicated jobs come first, then the pools' heads as opportunistic jobs, the pool with the smallest share first.
    Nothing is reserved, and nobody is stopped: a pool within its quota may find its cells taken. Zhao et al.: HiveD,
    OSDI 2020, stops opportunistic jobs there.

    Parameters
    ----------
    cells : the quotas as cells; pools that are not told are split as `quotas.default_cells` does
    """

    name = "hived"

    def __init__(self, cells: Cells = NO_CELLS) -> None:
        self._given = cells
        self._shared: SharedCells | None = None
        self._clusters: dict[str, PrivateCluster] = {}

    def lane(self, job: Job) -> int:
        """One lane."""
        return 0

    def key(self, job: Job) -> float:
        """All alike: ties go by submission."""
        return 0.0

    def decide(self, view: View) -> Decision:
        """Dedicated jobs, then opportunistic ones."""
        shared = self._shared
        if shared is None:
            shared = self._shared = SharedCells(view, self._given)
            self._clusters = {name: PrivateCluster(mine, shared.server_gpus) for name, mine in shared.own.items()}
        for held in shared.ended(view):
            if held.own:
                self._clusters[held.job.pool].release(held.job.seq)
        draft = CellDraft(view)
        self._each(draft, view, shared, self._dedicate)
        self._each(draft, view, shared, self._lend)
        return draft.decision()

    def _each(self, draft: CellDraft, view: View, shared: SharedCells, start: Starter) -> None:
        """Start heads until none can, the pool with the smallest share first."""
        blocked: set[str] = set()
        while draft.free > 0:
            pools = [pool for pool in draft.waiting() if pool.name not in blocked]
            if not pools:
                return
            pool = min(pools, key=lambda pool: (draft.share(pool), pool.name))
            job = draft.head(pool)
            if job is None or job.gpus > draft.free or not start(draft, view, shared, job):
                blocked.add(pool.name)

    def _dedicate(self, draft: CellDraft, view: View, shared: SharedCells, job: Job) -> bool:
        cluster = self._clusters[job.pool]
        for own in cluster.places(job):
            if shared.dedicate(draft, view.now_s, job, own, crowded=True):
                cluster.take(job, own)
                return True
        return False

    def _lend(self, draft: CellDraft, view: View, shared: SharedCells, job: Job) -> bool:
        cells = shared.floor.to_lend(shared.sizes(job), bound=True)
        if cells:
            shared.lend(draft, view.now_s, job, cells)
        return bool(cells)
