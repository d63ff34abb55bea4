"""Drafts that have spare jobs back which may be stopped: here in counts, in `cells.recall` on servers."""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from math import floor, inf

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, Grant, PoolView, RunningJob, View
from jobcast.schedulers.tentative_allocation import Placer, TentativeAllocation

# Of a pool: GPUs that its future load asks for, and the share of what that leaves free that errors ask for.
Expected = Callable[[PoolView], tuple[float, float]]


class Recalls(TentativeAllocation):
    """A draft that stops preemptible spare jobs where dedicated ones need their GPUs."""

    __slots__ = ()

    def rooms(self, horizon_s: float, expected: Expected, lost: float) -> tuple[float, float]:
        """Widths of the widest jobs that may be lent GPUs: one that cannot be stopped, and one that can.

        Parameters
        ----------
        horizon_s : of the window
        lost : share of what is reserved for the window that a job leaves free which can be stopped
        """
        raise NotImplementedError


class RecallAllocation(Recalls):
    """A draft in counts that may stop running preemptible spare jobs, or make them dedicated.

    Attributes
    ----------
    recallable, stopped : by pool, in order of submission, running spare jobs that may be stopped, and those that are
    recallable_gpus : GPUs of `recallable`
    """

    __slots__ = ("_promoted", "recallable", "recallable_gpus", "stopped")

    def __init__(self, view: View) -> None:
        super().__init__(view)
        runs = recallable_of(view)
        self.recallable: dict[str, list[RunningJob]] = {}
        for run in sorted(runs, key=_submission):
            self.recallable.setdefault(run.job.pool, []).append(run)
        self.recallable_gpus = sum(run.job.gpus for run in runs)
        self.stopped: dict[str, list[RunningJob]] = {}
        self._promoted: dict[int, Grant] = {}

    def due(self) -> Iterable[tuple[PoolView, Job]]:
        """Heads that fit their quotas and what is idle or can be had back, once jobs whose turn it is are promoted."""
        while any(self._promotable()):
            pass
        return list(self._startable())

    def dedicate(self, job: Job) -> bool:
        """Start a job that is due, on GPUs of spare jobs where idle ones do not do."""
        self.recall(job.gpus)
        return self.start(job)

    def rooms(self, horizon_s: float, expected: Expected, lost: float) -> tuple[float, float]:
        """See `Recalls`."""
        kept = sum(self._kept(pool, expected) for pool in self._view.pools.values())
        return self.free - max(0.0, kept - self.recallable_gpus), self.free - floor(kept * lost)

    def recall(self, gpus: float) -> None:
        """Stop the jobs that started last until so many GPUs are idle."""
        runs = [run for mine in self.recallable.values() for run in mine]
        # Who started last has the least to lose.
        for run in sorted(runs, key=lambda run: (-run.start_s, -run.job.seq)):
            # Never more than is needed is stopped.
            if self.free >= gpus:
                return
            self._take(run)
            insort(self.stopped.setdefault(run.job.pool, []), run, key=_submission)
            self._give(run.job, -run.job.gpus)

    def promote(self, run: RunningJob) -> None:
        """Count a running spare job against its pool's quota from now on; one that was stopped goes on."""
        # Stopped in this very decision: it goes on as if nothing had happened.
        if run in self.stopped.get(run.job.pool, ()):
            self.recall(run.job.gpus)
            self.stopped[run.job.pool].remove(run)
            self._give(run.job, run.job.gpus)
        else:
            self._take(run)
        self._promoted[run.job.seq] = run.grant._replace(dedicated=True)
        self._dedicated[run.job.pool] = self._dedicated.get(run.job.pool, 0.0) + run.job.gpus

    def claimed(self, pool: str) -> int:
        """GPUs that a pool's spare jobs which may be stopped, or are, will ask of its quota."""
        runs = (*self.recallable.get(pool, ()), *self.stopped.get(pool, ()))
        return sum(run.job.gpus for run in runs)

    def decision(self, wake_s: float = inf) -> Decision:
        """Stops and promotions, then the starts in the order in which they were made."""
        made = super().decision(wake_s)
        stops = {run.job.seq: None for mine in self.stopped.values() for run in mine}
        return made._replace(change={**stops, **self._promoted, **made.change}) if stops or self._promoted else made

    def _promotable(self) -> Iterator[bool]:
        """Promotes the first job whose turn it is; nothing where there is none."""
        for pool in self._view.pools.values():
            run = self._turn(pool)
            if run is not None and run.job.gpus <= self.unused_quota(pool):
                # A job that runs needs no room; one that was stopped needs its GPUs back.
                there = run in self.recallable.get(pool.name, ())
                if there or run.job.gpus <= self.free + self.recallable_gpus:
                    self.promote(run)
                    yield True
                    return

    def _startable(self) -> Iterator[tuple[PoolView, Job]]:
        room = self.free + self.recallable_gpus
        for pool in self._view.pools.values():
            head = self.head(pool)
            if head is not None and self._turn(pool) is None and head.gpus <= min(self.unused_quota(pool), room):
                yield pool, head

    def _turn(self, pool: PoolView) -> RunningJob | None:
        """The first of a pool's jobs that may be stopped, or are, if it was submitted before all pending ones."""
        firsts = [mine[0] for mine in (self.recallable.get(pool.name), self.stopped.get(pool.name)) if mine]
        run, head = min(firsts, key=_submission, default=None), self.head(pool)
        return run if run is not None and (head is None or run.job.seq < head.seq) else None

    def _kept(self, pool: PoolView, expected: Expected) -> float:
        """ReserveResourcesForFuture, Figure 8, and of what that leaves free the share that errors ask for.

        The pool's own spare jobs that may be stopped claim its quota too: they will be made dedicated.
        """
        unused = self.unused_quota(pool)
        pending = self.pending_gpus(pool) + self.claimed(pool.name)
        # No forecast is asked for where pending jobs claim the whole quota.
        if pending >= unused:
            return unused
        future, share = expected(pool)
        reserved = min(pending + future, unused)
        return reserved + share * (unused - reserved)

    def _give(self, job: Job, gpus: float) -> None:
        self.free -= gpus
        self._allocated[job.pool] = self._allocated.get(job.pool, 0.0) + gpus

    def _take(self, run: RunningJob) -> None:
        self.recallable[run.job.pool].remove(run)
        self.recallable_gpus -= run.job.gpus


class RecallPlacer(Placer):
    """As `Placer`, with drafts that stop spare jobs."""

    def draft(self, view: View) -> TentativeAllocation:
        """See `tentative_allocation.Placer`."""
        return RecallAllocation(view)


def recallable_of(view: View) -> list[RunningJob]:
    """Running spare jobs that may be stopped."""
    return [run for run in view.running.values() if run.job.preemptible and not run.dedicated]


def _submission(run: RunningJob) -> int:
    return run.job.seq
