"""Which job holds which GPU of which server."""

from collections.abc import Sequence

from jobcast.domain.cells import Cell
from jobcast.domain.jobs import Job


class Placements:
    """GPUs of servers and who holds them; a cluster without servers holds nobody anywhere.

    Parameters
    ----------
    servers : GPUs of each server
    """

    __slots__ = ("_holders",)

    def __init__(self, servers: Sequence[int] = ()) -> None:
        self._holders: list[list[Job | None]] = [[None] * gpus for gpus in servers]

    def why_not(self, job: Job, cells: Sequence[Cell]) -> str | None:
        """What is wrong with giving a job these cells, None where nothing is."""
        if not self._holders:
            return f"the cluster has no servers, it is given {len(cells)} cells" if cells else None
        if sum(cell.gpus for cell in cells) != job.gpus:
            return f"it needs {job.gpus} GPUs, its cells have {sum(cell.gpus for cell in cells)}"
        taken = set()
        for cell in cells:
            if not (0 <= cell.server < len(self._holders) and cell.gpus > 0):
                return f"there is no such cell: {cell}"
            if cell.first < 0 or cell.first + cell.gpus > len(self._holders[cell.server]):
                return f"there is no such cell: {cell}"
            for gpu in range(cell.first, cell.first + cell.gpus):
                holder = self._holders[cell.server][gpu]
                if holder is not None:
                    return f"GPU {gpu} of server {cell.server} is held by job {holder.job_id}"
                taken.add((cell.server, gpu))
        return None if len(taken) == job.gpus else "its cells overlap"

    def give(self, job: Job, cells: Sequence[Cell]) -> None:
        """A job starts on free cells."""
        self._hold(job, cells)

    def take(self, cells: Sequence[Cell]) -> None:
        """A job gives its cells back."""
        self._hold(None, cells)

    def _hold(self, holder: Job | None, cells: Sequence[Cell]) -> None:
        for cell in cells:
            self._holders[cell.server][cell.first : cell.first + cell.gpus] = [holder] * cell.gpus
