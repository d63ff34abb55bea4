"""A policy's scratch, with the cells that jobs are given."""

from collections.abc import Sequence

from jobcast.domain.cells import Cell
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Grant
from jobcast.schedulers.cells.buddy import used_of
from jobcast.schedulers.draft import Draft


class CellDraft(Draft):
    """A draft of starts on servers."""

    __slots__ = ()

    def place(self, job: Job, cells: Sequence[Cell], dedicated: bool) -> None:
        """Start a pending job on the GPUs that it needs of some cells."""
        self.start(job, dedicated)
        self._changes[job.seq] = Grant(job.gpus, used_of(cells, job.gpus), dedicated)

    def first_spare(self, max_gpus: float, max_lane: int) -> Job | None:
        """The first job that is narrow and short enough, of the pool with the smallest share, None without any."""
        width = min(max_gpus, self.free)
        jobs = ((self.share(pool), pool.name, self.first(pool, width, max_lane)) for pool in self.waiting())
        best = min(((share, name, job) for share, name, job in jobs if job is not None), default=None)
        return None if best is None else best[2]
