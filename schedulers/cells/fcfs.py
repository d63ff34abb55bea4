"""First come, first served on private servers: the baseline of SIA, section 6.4."""

from jobcast.domain.cells import Cell
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, View
from jobcast.schedulers.cells.buddy import Buddies
from jobcast.schedulers.cells.cell_draft import CellDraft
from jobcast.schedulers.cells.private import PrivateCluster
from jobcast.schedulers.cells.quotas import NO_CELLS, Cells, cells_of, server_size


class CellFcfs:
    """Start each pool's jobs in order of submission while they fit its own cells; the head blocks the rest.

    Each cell of a quota lies at the same place on a server for ever. Within the quota a job takes the smallest free
    cell that holds it, of equal ones the first.

    Parameters
    ----------
    cells : the quotas as cells; pools that are not told are split as `quotas.default_cells` does
    """

    name = "fcfs"

    def __init__(self, cells: Cells = NO_CELLS) -> None:
        self._given = cells
        self._pools: dict[str, PrivateCluster] = {}
        self._places: dict[tuple[str, int], Cell] = {}

    def lane(self, job: Job) -> int:
        """One lane."""
        return 0

    def key(self, job: Job) -> float:
        """All alike: ties go by submission."""
        return 0.0

    def decide(self, view: View) -> Decision:
        """Only a pool with an arrival or a completion can have something to start."""
        if not self._pools:
            self._settle(view)
        draft = CellDraft(view)
        for touched in view.touched:
            name, cluster = touched.name, self._pools[touched.name]
            for seq in [seq for seq in cluster.cells if seq not in view.running]:
                cluster.release(seq)
            while (job := draft.head(touched)) is not None and (cells := cluster.fit(job)) is not None:
                cluster.take(job, cells)
                draft.place(job, [self._place(name, cell) for cell in cells], dedicated=True)
        return draft.decision()

    def _settle(self, view: View) -> None:
        """Give every cell of the quotas its place; larger ones first, so that the servers have no gaps."""
        cells, size = cells_of(view.pools.values(), view.servers, self._given), server_size(view.servers)
        self._pools = {name: PrivateCluster(mine, size) for name, mine in cells.items()}
        tree = Buddies(view.servers)
        own = [(-gpus, name, index) for name, mine in cells.items() for index, gpus in enumerate(mine)]
        for less, name, index in sorted(own):
            found = tree.find((-less,)) or ()
            tree.take(found)
            self._places[name, index] = found[0]

    def _place(self, pool: str, cell: Cell) -> Cell:
        base = self._places[pool, cell.server]
        return Cell(base.server, base.first + cell.first, cell.gpus)
