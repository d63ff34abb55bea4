"""Shortest service first, within each pool or over all of them, and shortest job first. SIA, sections 4.1 and 6.1."""

from math import inf

from jobcast.domain.forecasts import Forecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, PoolView, View
from jobcast.domain.rounding import rounded
from jobcast.schedulers.tentative_allocation import Placed, TentativeAllocation


class ShortestServiceFirst(Placed):
    """Within each pool: smallest width x duration first, ties by submission; nothing shared.

    Parameters
    ----------
    forecasts : tells durations
    backfill : start any later job that fits, where the first does not; else the first blocks the rest
    """

    name = "ssf"

    def __init__(self, forecasts: Forecasts, backfill: bool = False) -> None:
        self._forecasts = forecasts
        self._backfill = backfill

    def key(self, job: Job) -> float:
        """Service: GPU-seconds."""
        return rounded(job.gpus * self._forecasts.duration_s(job))

    def decide(self, view: View) -> Decision:
        """Only a pool with an arrival or a completion can have something to start."""
        draft = self.placer.draft(view)
        for pool in view.touched:
            while (job := self._next(draft, pool, draft.own_room(pool))) is not None and draft.dedicate(job):
                pass
        return draft.decision()

    def _next(self, draft: TentativeAllocation, pool: PoolView, room: float) -> Job | None:
        if self._backfill:
            return draft.first(pool, room, inf)
        job = draft.head(pool)
        return job if job is not None and job.gpus <= room else None


class ShortestJobFirst(ShortestServiceFirst):
    """The same within each pool by duration, whatever the width. SIA, section 6.1."""

    name = "sjf"

    def key(self, job: Job) -> float:
        """Run time: seconds."""
        return rounded(self._forecasts.duration_s(job))


class GlobalShortestServiceFirst(ShortestServiceFirst):
    """Shortest service first over all GPUs as one pool."""

    name = "gssf"

    def decide(self, view: View) -> Decision:
        """Start the smallest service of the cluster while it fits the idle GPUs."""
        draft = self.placer.draft(view)
        while draft.free > 0:
            # Ties fall to the earlier job: jobs compare by `seq`.
            nexts = [(pool.pending.key(job), job) for pool in draft.waiting() if (job := self._of(draft, pool))]
            _, job = min(nexts, default=(None, None))
            if job is None or not draft.start(job):
                break
        return draft.decision()

    def _of(self, draft: TentativeAllocation, pool: PoolView) -> Job | None:
        return draft.first(pool, draft.room, inf) if self._backfill else draft.head(pool)
