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

How much more load arrives than was forecast, as a scheduler sees it.
"""

from dataclasses import dataclass

from jobcast.domain.forecasts import Forecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import PoolView, View
from jobcast.schedulers.recall import RecallPlacer, Recalls
from jobcast.schedulers.sia import Sia, of_smallest_share
from jobcast.schedulers.tentative_allocation import Placer, TentativeAllocation


@dataclass(slots=True)
class _Window:
    """What is known of a pool and length of window: the forecast that is held, and sums over those that are past."""

    until_s: float
    gpus: float
    quota: float
    came: float = 0.0
    asked: float = 0.0
    left: float = 0.0

    def close(self) -> None:
        # Beyond the quota the pool could not have claimed anything.
        self.asked += max(0.0, min(self.came, self.quota) - self.gpus)
        self.left += max(0.0, self.quota - self.gpus)


class ObservedErrors:
    """By pool and window, which share of the GPUs that a forecast left free was asked for within the window after all.

    One forecast a pool and window is held at a time and scored when its window is over, so that windows do not
    overlap; shares are of sums over all that were scored, 0 before the first.
    """

    def __init__(self) -> None:
        self._open: dict[str, dict[float, _Window]] = {}

    def arrived(self, job: Job) -> None:
        """A job is submitted."""
        for window in self._open.get(job.pool, {}).values():
            if job.submit_s <= window.until_s:
                window.came += job.gpus

    def forecast(self, pool: str, horizon_s: float, now_s: float, gpus: float, quota: float) -> None:
        """A forecast is used: so many GPUs in (now, now + horizon_s]. Scores the one that was held, if its time is up.

        Parameters
        ----------
        quota : of the pool; what is asked for beyond it counts for nothing
        """
        windows = self._open.setdefault(pool, {})
        window = windows.get(horizon_s)
        if window is None:
            windows[horizon_s] = _Window(now_s + horizon_s, min(gpus, quota), quota)
        # Scored when asked again, so that windows of one pool never overlap.
        elif now_s >= window.until_s:
            window.close()
            window.until_s, window.gpus, window.came = now_s + horizon_s, min(gpus, quota), 0.0

    def share(self, pool: str, horizon_s: float) -> float:
        """Share in [0, 1] of what forecasts left free that was asked for."""
        window = self._open.get(pool, {}).get(horizon_s)
        return window.asked / window.left if window is not None and window.left > 0 else 0.0


# Lane of the jobs that may be stopped.
STOPPABLE = 0


class SiaPreempt(Sia):
    """SIA with preemption of those spare jobs that allow it; equal to `Sia` where none does and no forecast errs.

    Parameters
    ----------
    forecasts : as of `Sia`
    resume_s : seconds that a job loses at a start after it was stopped, as the operator knows them
    """

    name = "sia_preempt"
    placer: Placer = RecallPlacer()

    def __init__(self, forecasts: Forecasts, resume_s: float = 0.0) -> None:
        super().__init__(forecasts)
        self._resume_s = resume_s
        self._errors = ObservedErrors()

    def lane(self, job: Job) -> int:
        """1 + the bin of its duration; 0 for a job that may be stopped, which fits any window."""
        self._errors.arrived(job)
        # Lane 0 is below all windows: who can be stopped may borrow for any of them.
        return STOPPABLE if job.preemptible else 1 + self._forecasts.duration_bin(job)

    def _allocate_spare(self, draft: TentativeAllocation, view: View) -> None:
        """AllocateSpareResources, Figure 8, with another reservation."""
        if not isinstance(draft, Recalls):
            raise TypeError(f"policy {self.name} needs a placer whose drafts stop jobs, got {type(draft).__name__}")
        if draft.waiting():
            for lane, horizon_s in self._windows:
                while (job := self._borrower(draft, lane, horizon_s, view.now_s)) is not None:
                    draft.lend(job)

    def _borrower(self, draft: Recalls, lane: int, horizon_s: float, now_s: float) -> Job | None:
        def expected(pool: PoolView) -> tuple[float, float]:
            arrives = self._forecasts.will_jobs_arrive(pool.name, horizon_s)
            future = self._forecasts.new_load(pool.name, horizon_s) if arrives else 0.0
            self._errors.forecast(pool.name, horizon_s, now_s, future, pool.quota)
            return future, self._errors.share(pool.name, horizon_s)

        # A job loses `resume_s` at most once a window, hence the share of it.
        rigid, loose = draft.rooms(horizon_s, expected, min(1.0, self._resume_s / horizon_s))
        fitting = ((pool, _first_of(draft, pool, rigid, 1 + lane, loose)) for pool in draft.waiting())
        return of_smallest_share(draft, [(pool, job) for pool, job in fitting if job is not None])


def _first_of(draft: TentativeAllocation, pool: PoolView, rigid: float, lane: int, loose: float) -> Job | None:
    """First pending job of a pool that fits: in lanes up to the window's, or one that may be stopped."""
    jobs = (draft.first(pool, gpus, most) if gpus > 0 else None for gpus, most in ((rigid, lane), (loose, STOPPABLE)))
    return min((job for job in jobs if job is not None), key=lambda job: job.seq, default=None)
