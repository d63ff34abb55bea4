"""Rules over pools that look at no arrivals to come. SIA, sections 4.1, 6.1 and 6.4.

First come, first served within each pool, nothing shared: the baseline; shortest service first, within each pool or
over all of them, and shortest job first; max-min fair sharing between the pools that have jobs pending; and HiveD
without preemption (HiveD*): quotas first, then anybody on what idles. And what happened, replayed: each job starts when
the trace says that it did, docs/backfill.md.
"""

from bisect import bisect_right, insort
from math import inf, isnan
from operator import itemgetter

from jobcast.domain import tolerance
from jobcast.domain.forecasts import Forecasts, JobForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, Grant, PoolView, View
from jobcast.domain.rounding import rounded
from jobcast.schedulers.tentative_allocation import Placed, TentativeAllocation


class Fcfs(Placed):
    """Start each pool's jobs in order of submission while they fit its quota.

    Parameters
    ----------
    backfill : start any later job that fits, where the first does not; else the first blocks the rest
    """

    name = "fcfs"

    def __init__(self, backfill: bool = False) -> None:
        # Futures are played without later arrivals where these delay nobody.
        self.overtakes = backfill

    def decide(self, view: View) -> Decision:
        """Without backfill only a pool with an arrival or a completion can have something to start."""
        draft = self.placer.draft(view)
        if not self.overtakes:
            for pool in view.touched:
                draft.dedicate_heads(pool)
            return draft.decision()
        for pool in draft.waiting():
            while (job := draft.first_in_quota(pool)) and draft.dedicate(job):
                pass
        return draft.decision()


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
        while draft.free:
            # Ties fall to the earlier job: jobs compare by `seq`.
            nexts = [(pool.pending.key(job), job) for pool in draft.waiting() if (job := self._of(draft, pool))]
            _, job = min(nexts, default=(None, None))
            if job is None or not draft.start(job):
                break
        return draft.decision()

    def _of(self, draft: TentativeAllocation, pool: PoolView) -> Job | None:
        return draft.first(pool, draft.room, inf) if self._backfill else draft.head(pool)


class MaxMinFair(Placed):
    """Visit pools in increasing allocation / quota, and start the head of the first whose head fits the idle GPUs.

    Parameters
    ----------
    strict : the first pool with jobs pending blocks the others if its head does not fit
    """

    name = "mmfs"

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict

    def decide(self, view: View) -> Decision:
        """One head at a time, the order of the pools worked out anew after each."""
        draft = self.placer.draft(view)
        draft.start_heads(draft.start, self._strict)
        return draft.decision()


class HiveD(Placed):
    """Serve each pool from its quota in order of submission, then lend whatever idles to the heads of the queues.

    HiveD (OSDI 2020) runs jobs beyond their pool's quota on idle GPUs and preempts them when the GPUs are asked back;
    in SIA's adaptation, HiveD*, whatever has started runs to its end, so that a pool may find its quota lent out. A job
    is dedicated or spare for life, and nothing of the future is looked at. Both kinds of jobs come from the pool with
    the smallest allocation / quota whose head fits; equal pools go by name.
    """

    name = "hived"

    def decide(self, view: View) -> Decision:
        """Dedicated jobs as in AllocateDedicatedResources of SIA, Figure 7, then opportunistic ones."""
        draft = self.placer.draft(view)
        draft.start_heads(draft.dedicate)
        draft.start_heads(draft.lend)
        return draft.decision()


class AsRecorded:
    """Start jobs at their recorded starts; one that has none at its submission.

    Quotas do not bind, for they did not bind the trace. Where not even the cluster has room, a job starts as soon as
    there is some, those with earlier starts first.

    Parameters
    ----------
    forecasts : tells recorded starts
    """

    name = "as_recorded"

    def __init__(self, forecasts: JobForecasts) -> None:
        self._forecasts = forecasts
        self._waiting: list[tuple[float, int, Job]] = []

    def key(self, job: Job) -> float:
        """Note a submission."""
        start_s = self._forecasts.recorded_start_s(job)
        insort(self._waiting, (job.submit_s if isnan(start_s) else start_s, job.seq, job))
        return 0.0

    def decide(self, view: View) -> Decision:
        """Those whose time has come, and when the next one's comes."""
        due_s, changes = view.now_s + tolerance.EVENT_S, dict[int, Grant | None]()
        due = bisect_right(self._waiting, due_s, key=itemgetter(0))
        # Who was started stays until it is seen to run: where nodes matter there may have been no place for it.
        late = [one for one in self._waiting[:due] if one[1] in view.active and one[1] not in view.running]
        free = view.free_gpus
        for _, seq, job in late:
            if job.gpus > free:
                break
            changes[seq] = Grant(job.gpus)
            free -= job.gpus
        self._waiting = late + self._waiting[due:]
        # Who is late waits for an end, of which the policy is told.
        return Decision(changes, self._waiting[len(late)][0] if len(late) < len(self._waiting) else inf)
