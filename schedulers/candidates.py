"""Pending jobs of a pool with what is forecast of each, so that the first one that keeps to a budget is found fast."""

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.jobs import Job

FIRST_ROOM = 64
Floats = NDArray[np.float64]


class Candidates:
    """Jobs in order of submission, as columns; those that are gone are cut out when they are half of it.

    Parameters
    ----------
    bins : duration bins that a job has probabilities of
    """

    __slots__ = ("_begin", "_chances", "_end", "_gpus", "_jobs", "_lanes", "_rows", "_widths")

    def __init__(self, bins: int) -> None:
        self._gpus, self._lanes = np.zeros(FIRST_ROOM, np.int64), np.zeros(FIRST_ROOM, np.int64)
        self._chances = np.zeros((FIRST_ROOM, bins))
        self._jobs: list[Job | None] = [None] * FIRST_ROOM
        self._rows: dict[int, int] = {}  # seq -> row
        self._widths: dict[int, int] = {}  # width -> jobs
        self._begin = self._end = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def narrowest(self) -> float:
        """Smallest width, infinite without jobs."""
        return min(self._widths, default=inf)

    def add(self, job: Job, lane: int, chances: Sequence[float]) -> None:
        """File a job behind all others."""
        if self._end == len(self._jobs):
            self._make_room()
        row = self._end
        self._gpus[row], self._lanes[row], self._chances[row], self._jobs[row] = job.gpus, lane, chances, job
        self._rows[job.seq] = row
        self._widths[job.gpus] = self._widths.get(job.gpus, 0) + 1
        self._end += 1

    def take(self, job: Job) -> None:
        """Take out a job, if it is in."""
        row = self._rows.pop(job.seq, None)
        if row is None:
            return
        self._gpus[row], self._jobs[row] = 0, None
        self._widths[job.gpus] -= 1
        if not self._widths[job.gpus]:
            del self._widths[job.gpus]
        while self._begin < self._end and self._jobs[self._begin] is None:
            self._begin += 1

    def first(self, max_lane: int, overstay: Floats, budget_min: float) -> Job | None:
        """First job in lanes up to `max_lane` whose expected overstay keeps to the budget; see the kernel."""
        from jobcast.schedulers.sia_risk_kernels import NOBODY, first_within

        row = first_within(
            self._begin, self._end, self._gpus, self._lanes, self._chances, max_lane, overstay, budget_min
        )
        return None if row == NOBODY else self._jobs[row]

    def _make_room(self) -> None:
        """Close the gaps, and double the columns where that frees less than half of them."""
        kept = np.flatnonzero(self._gpus[: self._end])
        room = len(self._jobs) if 2 * len(kept) <= len(self._jobs) else 2 * len(self._jobs)
        jobs = [self._jobs[row] for row in kept.tolist()]
        for name in ("_gpus", "_lanes", "_chances"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), old.dtype)
            new[: len(kept)] = old[kept]
            setattr(self, name, new)
        self._jobs = [*jobs, *([None] * (room - len(jobs)))]
        self._rows = {job.seq: row for row, job in enumerate(jobs) if job is not None}
        self._begin, self._end = 0, len(jobs)
