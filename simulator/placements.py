"""Which job holds which GPU of which server."""

from collections.abc import Sequence

from jobcast.domain import tolerance
from jobcast.domain.cells import ANYWHERE, Cell
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Grant


class Placements:
    """GPUs of servers and who holds them; a cluster without servers holds nobody anywhere.

    Parameters
    ----------
    servers : GPUs of each server
    """

    __slots__ = ("_free", "_holders", "_sizes")

    def __init__(self, servers: Sequence[int] = ()) -> None:
        self._sizes = tuple(servers)
        self._free: list[float] = list(servers)
        self._holders: dict[tuple[int, int], Job] = {}  # of GPUs that were asked for by their places

    @property
    def free_gpus(self) -> Sequence[float]:
        """GPUs of each server that nobody holds."""
        return tuple(self._free)

    def why_not(self, job: Job, grant: Grant) -> str | None:
        """What is wrong with giving a job these cells, None where nothing is."""
        cells = grant.cells
        if not self._sizes:
            return f"the cluster has no servers, it is given {len(cells)} cells" if cells else None
        if abs(sum(cell.gpus for cell in cells) - grant.gpus) > tolerance.CAPACITY_GPUS:
            return f"it is given {grant.gpus:g} GPUs, its cells have {sum(cell.gpus for cell in cells):g}"
        asked: dict[int, float] = {}
        for cell in cells:
            there = 0 <= cell.server < len(self._sizes) and cell.gpus > 0 and cell.first >= ANYWHERE
            if not there or cell.first + cell.gpus > self._sizes[cell.server]:
                return f"there is no such cell: {cell}"
            asked[cell.server] = asked.get(cell.server, 0.0) + cell.gpus
        taken = [at for cell in cells for at in _gpus(cell)]
        for at in taken:
            if at in self._holders:
                return f"GPU {at[1]} of server {at[0]} is held by job {self._holders[at].job_id}"
        for server, gpus in asked.items():
            if gpus > self._free[server] + tolerance.CAPACITY_GPUS:
                return f"server {server} has {self._free[server]:g} GPUs free, it is given {gpus:g} of them"
        return None if len(set(taken)) == len(taken) else "its cells overlap"

    def give(self, job: Job, cells: Sequence[Cell]) -> None:
        """A job starts on free cells."""
        for cell in cells:
            self._free[cell.server] -= cell.gpus
            self._holders.update(dict.fromkeys(_gpus(cell), job))

    def take(self, cells: Sequence[Cell]) -> None:
        """A job gives its cells back."""
        for cell in cells:
            self._free[cell.server] += cell.gpus
            for at in _gpus(cell):
                del self._holders[at]

    def fork(self) -> "Placements":
        """A copy that goes its own way."""
        copy = Placements(self._sizes)
        copy._free, copy._holders = self._free[:], dict(self._holders)
        return copy


def _gpus(cell: Cell) -> list[tuple[int, int]]:
    """(server, GPU) of a cell's GPUs, none where any will do."""
    if cell.first == ANYWHERE:
        return []
    return [(cell.server, gpu) for gpu in range(cell.first, cell.first + cell.gpus)]
