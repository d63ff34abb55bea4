"""Rules over pools that look at no arrivals to come. SIA, sections 4.1, 6.1 and 6.4.

First come, first served within each pool, nothing shared: the baseline; shortest service first, within each pool or
over all of them, and shortest job first; max-min fair sharing between the pools that have jobs pending; and HiveD
without preemption (HiveD*): quotas first, then anybody on what idles. Karma: who lent GPUs earns credits, and who has
most of them borrows first. And what happened, replayed: each job starts when the trace says that it did,
docs/backfill.md.
"""

from bisect import bisect_right, insort
from collections import defaultdict
from functools import partial
from math import ceil, inf, isnan
from operator import itemgetter

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S
from jobcast.domain.forecasts import Forecasts, JobForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, Grant, PoolView, Trigger, View
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


ALPHA = 0.5  # of the example of the authors' code
QUANTUM_S = 60.0  # ours
DIGITS = 3  # milliseconds: instants near 1e9 s are told to 2e-7 s, and credits are sums of many


class Karma(Placed):
    """Guarantee each pool a share of its quota, and lend the rest to the pool with the most credits.

    Karma (Vuppalapati et al., OSDI 2023) shares GPUs out anew in each quantum: a user is given what it asks for up to
    its guarantee, alpha of its fair share. What others leave of theirs, and then the rest of all shares, goes GPU by
    GPU to the user with the most credits, who pays one for it; a GPU is taken from the donor with the fewest credits,
    who earns it. Everybody is given 1 - alpha of its share in credits beside. Here pools are the users and quotas the
    shares. Quotas differ, where the authors' code has equal shares: credits are counted in seconds of the whole quota,
    so that a larger pool pays less for a GPU.

    Whole jobs that run to their ends change four things. Credits are settled at events for the time that has passed,
    during which nobody's GPUs change. A job starts whole, where its pool can pay a quantum of all its GPUs. A pool
    whose guarantee is lent out waits until jobs end, and earns nothing by that: Karma would give it back at the next
    quantum. A borrower may come to owe credits, since nothing is taken from it: it pays on, and borrows no more until
    it owes none. So none of the paper's guarantees hold.

    Parameters
    ----------
    alpha : share of each quota that is guaranteed to its pool
    credits_h : hours of its whole quota that each pool can pay for at first; None: nobody runs out, and credits only
        rank, as by default in the authors' own code
    quantum_s : for which a start is paid at once, and after whose multiples a pool that lacked credits is asked again

    Attributes
    ----------
    credits_s : by pool, seconds of the whole quota, as of the last decision; below 0 what it owes
    """

    name = "karma"
    # Credits are settled for the time between two decisions: who ends last must not pay until somebody comes.
    trigger = Trigger(when_empty=True)

    def __init__(self, alpha: float = ALPHA, credits_h: float | None = None, quantum_s: float = QUANTUM_S) -> None:
        self._alpha, self._quantum_s = alpha, quantum_s
        self._initial_s, self._least_s = (0.0, -inf) if credits_h is None else (credits_h * HOUR_S, 0.0)
        self.credits_s: dict[str, float] = {}
        self._since_s: float | None = None  # nobody has asked yet
        self._held: defaultdict[str, float] = defaultdict(float)  # since then, by pool
        self._asked: defaultdict[str, float] = defaultdict(float)  # held or pending

    def decide(self, view: View) -> Decision:
        """Guarantees first, then what is lent; in both the pool with the most credits whose head fits."""
        self._settle(view)
        draft = self.placer.draft(view)
        rank = partial(self._rank, draft)
        for start in (self._own, self._borrow):
            draft.start_heads(partial(start, draft, view), rank=rank)
        for name, pool in view.pools.items():
            self._held[name] = draft.allocated(pool)
            self._asked[name] = self._held[name] + draft.pending_gpus(pool)
        return draft.decision(view.now_s + self._wait_s(draft))

    def _settle(self, view: View) -> None:
        """Bring credits up to now."""
        pools = view.pools.values()
        names, quotas = list(view.pools), np.array([float(pool.quota) for pool in pools])
        before = np.array([self.credits_s.get(name, self._initial_s) for name in names])
        held, asked = (np.array([of[name] for name in names]) for of in (self._held, self._asked))
        passed_s = 0.0 if self._since_s is None else view.now_s - self._since_s
        credits = before + earned_s(before, quotas, held, asked, self._alpha, passed_s)
        self.credits_s, self._since_s = dict(zip(names, credits.tolist(), strict=True)), view.now_s

    def _own(self, draft: TentativeAllocation, view: View, job: Job) -> bool:
        pool = view.pools[job.pool]
        return draft.allocated(pool) + job.gpus <= self._alpha * pool.quota and draft.start(job)

    def _borrow(self, draft: TentativeAllocation, view: View, job: Job) -> bool:
        return self._lacks_s(draft, view.pools[job.pool], job) <= 0 and draft.start(job)

    def _rank(self, draft: TentativeAllocation, pool: PoolView) -> float:
        """Most credits first."""
        return -self._balance_s(draft, pool)

    def _balance_s(self, draft: TentativeAllocation, pool: PoolView, more: float = 0.0) -> float:
        """Credits of a pool a quantum from now, if it holds so many GPUs more and donates none."""
        # Not `rounded`, which tells numbers about 0 apart by their noise.
        return round(self.credits_s[pool.name] + self._quantum_s * self._income(draft, pool, more), DIGITS)

    def _income(self, draft: TentativeAllocation, pool: PoolView, more: float = 0.0) -> float:
        """Credits that a pool earns a second while it donates nothing; negative where it pays."""
        return 1 - self._alpha - max(0.0, (draft.allocated(pool) + more) / pool.quota - self._alpha)

    def _lacks_s(self, draft: TentativeAllocation, pool: PoolView, job: Job) -> float:
        """Credits that a pool lacks to start a job."""
        return self._least_s - self._balance_s(draft, pool, job.gpus)

    def _wait_s(self, draft: TentativeAllocation) -> float:
        """Seconds, whole quanta, until the first pool can pay for its head that fits; infinite if none ever can."""
        waits_s = [inf]
        for pool in draft.waiting() if self._least_s > -inf else ():
            job, income = draft.head(pool), self._income(draft, pool)
            if job is not None and job.gpus <= draft.free and income > 0:
                lacks = self._lacks_s(draft, pool, job) / income / self._quantum_s
                waits_s += [self._quantum_s * max(1, ceil(round(lacks, DIGITS)))] if lacks > 0 else []
        return min(waits_s)


def earned_s(credits_s: Floats, quotas: Floats, held: Floats, asked: Floats, alpha: float, passed_s: float) -> Floats:
    """Credits that pools earn, or pay where negative, in a time in which nothing changes; all by pool, (n,).

    Donors with the fewest credits earn first, until they have as many as the next: what taking one GPU after the other
    from the poorest comes to. What is borrowed beyond all that is donated comes from what is shared, and pays nobody.

    Parameters
    ----------
    credits_s : before, seconds of the whole quota
    quotas, held, asked : GPUs; asked for are those that are held and those of pending jobs
    passed_s : seconds

    >>> credits, quotas, held = np.array([[0.0, 0.0, 6.0], [4.0, 4.0, 4.0], [6.0, 1.0, 0.0]])
    >>> earned_s(credits, quotas, held, asked=held, alpha=0.5, passed_s=8.0).tolist()
    [-4.0, 6.0, 8.0]
    """
    own = alpha * quotas
    borrowed, donated_s = np.maximum(held - own, 0.0), np.maximum(own - asked, 0.0) * passed_s

    def poured_s(levels: Floats) -> Floats:
        return np.clip((levels[:, np.newaxis] - credits_s) * quotas, 0.0, donated_s)

    # Between these levels what is poured grows linearly; beyond the last one there is nothing left to pour.
    levels = np.sort(np.concatenate([credits_s, credits_s + donated_s / quotas]))
    level = np.interp([borrowed.sum() * passed_s], poured_s(levels).sum(axis=1), levels)
    earned: Floats = (1 - alpha) * passed_s + (poured_s(level)[0] - borrowed * passed_s) / quotas
    return earned
