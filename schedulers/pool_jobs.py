"""A pool's jobs as columns, for rules that look at all of them at once: who waits, and until when the others run."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.jobs import Job
from jobcast.domain.policy import PoolView, View

Floats = NDArray[np.float64]
# Slurm's KillWait: what a job that is past its limit may still take.
KILL_WAIT_S = 30.0


class Row(NamedTuple):
    """What is kept of a waiting job.

    Attributes
    ----------
    gpus, submit_s : as it asks, and when, seconds from the epoch
    run_s : longest run time that is reckoned with, seconds
    own_points, whose : see `accounting`
    reserved_s : where its reservation begins, seconds from the epoch; NaN without one
    """

    gpus: float
    submit_s: float
    run_s: float
    own_points: float = 0.0
    whose: int = 0
    reserved_s: float = np.nan


ROW = np.dtype([(name, np.int64 if name == "whose" else np.float64) for name in Row._fields])


class PoolJobs:
    """Waiting jobs in order of submission, and running ones; kept up at each decision, and read anew where it differs.

    Attributes
    ----------
    arrived : jobs that were submitted since it was kept up last
    jobs, rows : (n,) waiting jobs, and what is kept of them
    ended : whether a job has ended since
    """

    def __init__(self) -> None:
        self.arrived: list[Job] = []
        self.jobs: list[Job] = []
        self.rows = np.empty(0, dtype=ROW)
        self.ended = False
        self._running: dict[int, tuple[float, float]] = {}  # GPUs, and when the limit is over

    def catch_up(self, view: View, pool: PoolView, row_of: Callable[[Job], Row]) -> None:
        """Bring it to the view; `row_of` says what is kept of a job."""
        self._append(self.arrived, row_of)
        self.arrived = []
        # What was decided may not have been done, and a run may begin amid things: then all is read from the view.
        if len(self.jobs) != len(pool.pending):
            self.jobs, self.rows = [], self.rows[:0]
            waiting = (job for seq, job in view.active.items() if job.pool == pool.name and seq not in view.running)
            self._append(sorted(waiting, key=lambda job: job.seq), row_of)
        before = len(self._running)
        self._running = {seq: held for seq, held in self._running.items() if seq in view.running}
        self.ended = len(self._running) < before
        if sum(gpus for gpus, _ in self._running.values()) != pool.allocated:
            self._running = {
                seq: (held.grant.gpus, held.start_s + row_of(held.job).run_s)
                for seq, held in view.running.items()
                if held.job.pool == pool.name
            }
            self.ended = True

    def _append(self, jobs: list[Job], row_of: Callable[[Job], Row]) -> None:
        if jobs:
            self.jobs += jobs
            self.rows = np.concatenate([self.rows, np.array([row_of(job) for job in jobs], dtype=ROW)])

    def start(self, places: list[int], now_s: float) -> None:
        """Jobs at some places run from now on."""
        if not places:
            return
        for place in places:
            row = self.rows[place]
            self._running[self.jobs[place].seq] = (float(row["gpus"]), now_s + float(row["run_s"]))
        # From the last on: places before it stay as they are.
        for place in sorted(places, reverse=True):
            del self.jobs[place]
        self.rows = np.delete(self.rows, places)

    def overdue(self, now_s: float) -> bool:
        """Whether a job runs beyond its limit."""
        return any(end_s <= now_s + tolerance.INSTANT_S for _, end_s in self._running.values())

    def releases(self, now_s: float) -> tuple[Floats, Floats]:
        """When running jobs end at the latest, (n,) seconds, and their GPUs; those beyond their limit end shortly."""
        gpus, ends_s = np.array([*self._running.values()]).reshape(-1, 2).T
        return np.where(ends_s <= now_s + tolerance.INSTANT_S, now_s + KILL_WAIT_S, ends_s), gpus
