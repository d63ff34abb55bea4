"""SIA: dedicated resources in order, spare ones out of order and only as far ahead as forecasts reach.

SIA, section 5.3, Figures 7 and 8. A job is dedicated or spare for life.
"""

from collections.abc import Iterable
from math import inf

from jobcast.domain.cluster import ClusterView, Decision, PoolView
from jobcast.domain.forecasts import Forecasts
from jobcast.domain.jobs import Job
from jobcast.domain.switches import ALL_SHARE, Switches
from jobcast.schedulers.draft import Draft


class Sia:
    """Serve each pool from its quota in order of submission; lend what no pool will need to jobs that end in time.

    Parameters
    ----------
    forecasts : tells arrivals, loads and duration bins; its horizons are the windows, and jobs of the bin beyond the
        last never run on spare GPUs
    tick_s : be asked again after so many seconds while jobs are pending and GPUs idle; None: at events alone
    switches : where sharing is off for a pool and window, all of the pool's unused quota is reserved for that window,
        whatever is forecast
    """

    name = "sia"

    def __init__(self, forecasts: Forecasts, tick_s: float | None = None, switches: Switches = ALL_SHARE) -> None:
        self._forecasts = forecasts
        self._switches = switches
        self._horizons_s = [60.0 * horizon for horizon in forecasts.horizons_min]
        self._tick_s = tick_s

    def lane(self, job: Job) -> int:
        """The bin of its duration."""
        return self._forecasts.duration_bin(job)

    def key(self, job: Job) -> float:
        """All alike: ties go by submission."""
        return 0.0

    def decide(self, view: ClusterView) -> Decision:
        """AllocateResources, Figure 7."""
        draft = Draft(view)
        while (job := self._next_dedicated(draft)) is not None:
            draft.start(job)
        if self._lendable(draft, view):
            for lane, horizon_s in enumerate(self._horizons_s):
                self._allocate_spare(draft, view, lane, horizon_s)
        if self._tick_s is not None and draft.free > 0 and draft.waiting():
            return draft.decision(view.now_s + self._tick_s)
        return draft.decision()

    def _next_dedicated(self, draft: Draft) -> Job | None:
        """The head that fits its pool's unused quota and the idle GPUs, of the pool with the smallest share."""
        if draft.free <= 0:
            return None
        return _of_smallest_share(
            (draft.share(pool), pool.name, job)
            for pool in draft.waiting()
            if (job := draft.head(pool)) is not None and job.gpus <= min(draft.unused_quota(pool), draft.free)
        )

    def _allocate_spare(self, draft: Draft, view: ClusterView, lane: int, horizon_s: float) -> None:
        """AllocateSpareResources for one window, Figure 8."""
        future: dict[str, float] = {}
        while (job := self._next_spare(draft, view, lane, horizon_s, future)) is not None:
            draft.start(job, dedicated=False)

    def _next_spare(
        self, draft: Draft, view: ClusterView, lane: int, horizon_s: float, future: dict[str, float]
    ) -> Job | None:
        """First job that ends in the window and fits what is not reserved, of the pool with the smallest share."""
        if not _eligible(draft, draft.free, lane):
            return None
        pools = view.pools.values()
        usable = draft.free - sum(self._reserved(draft, pool, horizon_s, view.now_s, future) for pool in pools)
        return _of_smallest_share((draft.share(pool), pool.name, job) for pool, job in _eligible(draft, usable, lane))

    def _reserved(
        self, draft: Draft, pool: PoolView, horizon_s: float, now_s: float, future: dict[str, float]
    ) -> float:
        """ReserveResourcesForFuture, Figure 8; forecasts are asked only where pending jobs leave quota over."""
        pending, unused = draft.pending_gpus(pool), draft.unused_quota(pool)
        if pending >= unused:
            return unused
        if pool.name not in future:
            future[pool.name] = self._future_gpus(pool.name, horizon_s, now_s)
        return min(pending + future[pool.name], unused)

    def _future_gpus(self, pool: str, horizon_s: float, now_s: float) -> float:
        """TotalNewLoad, section 5.4.1; without bound where sharing is switched off."""
        if not self._switches.shares(pool, horizon_s, now_s):
            return inf
        arrives = self._forecasts.will_jobs_arrive(pool, horizon_s)
        return self._forecasts.new_load(pool, horizon_s) if arrives else 0.0

    def _lendable(self, draft: Draft, view: ClusterView) -> bool:
        """Whether any job could run on spare GPUs if nothing more arrived: spares asking for forecasts in vain."""
        pools = view.pools.values()
        usable = draft.free - sum(min(draft.pending_gpus(pool), draft.unused_quota(pool)) for pool in pools)
        return bool(usable > 0 and _eligible(draft, usable, len(self._horizons_s) - 1))


def _eligible(draft: Draft, max_gpus: float, max_lane: int) -> list[tuple[PoolView, Job]]:
    """First job of each pool that is narrow and short enough."""
    if max_gpus <= 0:
        return []
    jobs = ((pool, draft.first(pool, max_gpus, max_lane)) for pool in draft.waiting())
    return [(pool, job) for pool, job in jobs if job is not None]


def _of_smallest_share(candidates: Iterable[tuple[float, str, Job]]) -> Job | None:
    """The job of the pool with the smallest allocation / quota; ties go by name."""
    best = min(candidates, default=None)
    return None if best is None else best[2]
