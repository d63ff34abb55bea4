"""SIA where some jobs may be stopped: what they hold can be had back, so that less is kept free. SIA, section 5.5.

The paper says that SIA keeps fewer GPUs free the more of them preemption can recover and the less that costs, and not
how. Here a window's reservation is what Figure 8 reserves, and of the quota that it leaves free the share that was
asked for after all in past windows (`ObservedErrors`). Of that

- a job that cannot be stopped has to leave free what stopping the preemptible spare jobs would not bring;
- a job that can be stopped has to leave free a share, resume_s / window, in whole GPUs: what it would lose, were it
  stopped, beside the time that it gets. It may be of any duration.

A dedicated job that fits its quota stops preemptible spare jobs where idle GPUs do not do. Before a later job of its
pool starts on dedicated GPUs a preemptible spare job is made dedicated itself, as it would have been without sharing,
so that being stopped costs it no more than its turn and `resume_s`.
"""

from bisect import insort
from collections.abc import Sequence
from math import floor, inf

from jobcast.domain.forecasts import Forecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, Grant, PoolView, RunningJob, View
from jobcast.schedulers.draft import Draft
from jobcast.schedulers.observed_errors import ObservedErrors

STOPPABLE = 0
"""Lane of the jobs that may be stopped."""


class RecallDraft(Draft):
    """A draft that may stop running preemptible spare jobs, or make them dedicated.

    Attributes
    ----------
    recallable, stopped : by pool, in order of submission, running spare jobs that may be stopped, and those that are
    recallable_gpus : GPUs of `recallable`
    """

    __slots__ = ("_promoted", "recallable", "recallable_gpus", "stopped")

    def __init__(self, view: View) -> None:
        super().__init__(view)
        runs = [run for run in view.running.values() if run.job.preemptible and not run.dedicated]
        self.recallable: dict[str, list[RunningJob]] = {}
        for run in sorted(runs, key=_submission):
            self.recallable.setdefault(run.job.pool, []).append(run)
        self.recallable_gpus = sum(run.job.gpus for run in runs)
        self.stopped: dict[str, list[RunningJob]] = {}
        self._promoted: dict[int, Grant] = {}

    def recall(self, gpus: float) -> None:
        """Stop the jobs that started last until so many GPUs are idle."""
        runs = [run for mine in self.recallable.values() for run in mine]
        for run in sorted(runs, key=lambda run: (-run.start_s, -run.job.seq)):
            if self.free >= gpus:
                return
            self._take(run)
            insort(self.stopped.setdefault(run.job.pool, []), run, key=_submission)
            self._give(run.job, -run.job.gpus)

    def promote(self, run: RunningJob) -> None:
        """Count a running spare job against its pool's quota from now on; one that was stopped goes on."""
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

    def _give(self, job: Job, gpus: float) -> None:
        self.free -= gpus
        self._allocated[job.pool] = self._allocated.get(job.pool, 0.0) + gpus

    def _take(self, run: RunningJob) -> None:
        self.recallable[run.job.pool].remove(run)
        self.recallable_gpus -= run.job.gpus

    def decision(self, wake_s: float = inf) -> Decision:
        """Stops and promotions, then the starts in the order in which they were made."""
        made = super().decision(wake_s)
        stops = {run.job.seq: None for mine in self.stopped.values() for run in mine}
        return made._replace(change={**stops, **self._promoted, **made.change}) if stops or self._promoted else made


def _submission(run: RunningJob) -> int:
    return run.job.seq


class SiaPreempt:
    """SIA with preemption of those spare jobs that allow it; equal to `Sia` where none does and no forecast errs.

    Parameters
    ----------
    forecasts : as of `Sia`
    resume_s : seconds that a job loses at a start after it was stopped, as the operator knows them
    """

    name = "sia_preempt"

    def __init__(self, forecasts: Forecasts, resume_s: float = 0.0) -> None:
        self._forecasts = forecasts
        self._horizons_s: Sequence[float] = [60.0 * horizon for horizon in forecasts.horizons_min]
        self._resume_s = resume_s
        self._errors = ObservedErrors()

    def lane(self, job: Job) -> int:
        """1 + the bin of its duration; 0 for a job that may be stopped, which fits any window."""
        self._errors.arrived(job)
        return STOPPABLE if job.preemptible else 1 + self._forecasts.duration_bin(job)

    def decide(self, view: View) -> Decision:
        """AllocateResources, Figure 7."""
        draft = RecallDraft(view)
        while self._dedicate(draft, view):
            pass
        if draft.free > 0 and draft.waiting():
            for lane, horizon_s in enumerate(self._horizons_s):
                self._allocate_spare(draft, view, lane, horizon_s)
        return draft.decision()

    def _dedicate(self, draft: RecallDraft, view: View) -> bool:
        """Promote a job whose turn it is, else start the first of the pool with the smallest share; False without."""
        startable: list[tuple[float, str, Job]] = []
        for pool in view.pools.values():
            head, run = draft.head(pool), _first_run(draft, pool)
            unused, room = draft.unused_quota(pool), draft.free + draft.recallable_gpus
            if run is not None and (head is None or run.job.seq < head.seq):
                there = pool.name in draft.recallable and run in draft.recallable[pool.name]
                if run.job.gpus <= unused and (there or run.job.gpus <= room):
                    draft.promote(run)
                    return True
            elif head is not None and head.gpus <= min(unused, room):
                startable.append((draft.share(pool), pool.name, head))
        if not startable:
            return False
        head = min(startable)[2]
        draft.recall(head.gpus)
        draft.start(head)
        return True

    def _allocate_spare(self, draft: RecallDraft, view: View, lane: int, horizon_s: float) -> None:
        while (job := self._next_spare(draft, view, lane, horizon_s)) is not None:
            draft.start(job, dedicated=False)

    def _next_spare(self, draft: RecallDraft, view: View, lane: int, horizon_s: float) -> Job | None:
        kept = sum(self._kept(draft, pool, horizon_s, view.now_s) for pool in view.pools.values())
        rigid = draft.free - max(0.0, kept - draft.recallable_gpus)
        loose = draft.free - floor(kept * min(1.0, self._resume_s / horizon_s))
        best = None
        for pool in draft.waiting():
            job = _first_of(draft, pool, rigid, 1 + lane, loose)
            if job is not None and (best is None or (draft.share(pool), pool.name) < best[:2]):
                best = (draft.share(pool), pool.name, job)
        return None if best is None else best[2]

    def _kept(self, draft: RecallDraft, pool: PoolView, horizon_s: float, now_s: float) -> float:
        """ReserveResourcesForFuture, Figure 8, and of what that leaves free the share that errors ask for.

        The pool's own spare jobs that may be stopped claim its quota too: they will be made dedicated.
        """
        unused = draft.unused_quota(pool)
        pending = draft.pending_gpus(pool) + draft.claimed(pool.name)
        if pending >= unused:
            return unused
        name = pool.name
        arrives = self._forecasts.will_jobs_arrive(name, horizon_s)
        future = self._forecasts.new_load(name, horizon_s) if arrives else 0.0
        self._errors.forecast(name, horizon_s, now_s, future, pool.quota)
        reserved = min(pending + future, unused)
        return reserved + self._errors.share(name, horizon_s) * (unused - reserved)


def _first_of(draft: Draft, pool: PoolView, rigid: float, lane: int, loose: float) -> Job | None:
    """First pending job of a pool that fits: in lanes up to the window's, or one that may be stopped."""
    jobs = (draft.first(pool, gpus, most) if gpus > 0 else None for gpus, most in ((rigid, lane), (loose, STOPPABLE)))
    return min((job for job in jobs if job is not None), key=lambda job: job.seq, default=None)


def _first_run(draft: RecallDraft, pool: PoolView) -> RunningJob | None:
    """The job of a pool that was submitted first among those that may be stopped, or are."""
    firsts = [mine[0] for mine in (draft.recallable.get(pool.name), draft.stopped.get(pool.name)) if mine]
    return min(firsts, key=_submission, default=None)
