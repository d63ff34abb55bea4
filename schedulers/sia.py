"""SIA: dedicated resources in order, spare ones out of order and only as far ahead as forecasts reach.

SIA, section 5.3, Figures 7 and 8. A job is dedicated or spare for life.

Who gets spare GPUs first, by name. SIA, section 5.3, leaves it to the operator.

Switches of sharing that a run throws itself, by what its gate has missed so far. SIA, section 5.3.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from jobcast.domain.clock import DAY_S, MINUTE_S
from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import Forecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, PoolView, View
from jobcast.domain.switches import Switch, SwitchRule
from jobcast.schedulers.pool_policies import SiaSettings
from jobcast.schedulers.tentative_allocation import Loads, Placed, TentativeAllocation


def by_share(draft: TentativeAllocation, usable: float, max_lane: int) -> Job | None:
    """First job that fits of the pool with the smallest allocation / quota; ties go by name. SIA, Figure 8."""
    return of_smallest_share(draft, draft.firsts(usable, max_lane))


def by_submission(draft: TentativeAllocation, usable: float, max_lane: int) -> Job | None:
    """The job that was submitted first of all that fit."""
    return min((job for _, job in draft.firsts(usable, max_lane)), key=lambda job: job.seq, default=None)


def by_bin(draft: TentativeAllocation, usable: float, max_lane: int) -> Job | None:
    """A job of the smallest duration bin; ties go by share."""
    for lane in range(max_lane + 1):
        job = by_share(draft, usable, lane)
        if job is not None:
            return job
    return None


def by_width(draft: TentativeAllocation, usable: float, max_lane: int) -> Job | None:
    """A job of the fewest GPUs; ties go by share."""
    rows = ((job.gpus, draft.share(pool), pool.name, job) for pool, job in _narrowest(draft, usable, max_lane))
    best = min(rows, default=None)
    return None if best is None else best[3]


# Chooses among the jobs at most so wide in lanes up to another number; None where there is none.
SpareOrder = Callable[[TentativeAllocation, float, int], Job | None]

SPARE_ORDERS: Mapping[str, SpareOrder] = {
    "share": by_share,  # dedicated GPUs are given out by it too
    "submission": by_submission,
    "shortest": by_bin,
    "narrow": by_width,
}


def of_smallest_share(draft: TentativeAllocation, jobs: Iterable[tuple[PoolView, Job]]) -> Job | None:
    """The job of the pool with the smallest allocation / quota; ties go by name."""
    # By name before job: pools of equal share never compare jobs.
    best = min(((draft.share(pool), pool.name, job) for pool, job in jobs), default=None)
    return None if best is None else best[2]


def _narrowest(draft: TentativeAllocation, usable: float, max_lane: int) -> Iterator[tuple[PoolView, Job]]:
    """Of each pool the first of its narrowest jobs."""
    for pool, first in draft.firsts(usable, max_lane):
        job = first
        while (narrower := draft.first(pool, job.gpus - 1, max_lane)) is not None:
            job = narrower
        yield pool, job


@dataclass(slots=True)
class _Window:
    """A forecast that is held until its window is over: since when, whether it was of arrivals, whether any came."""

    from_s: float
    forecast: bool
    came: bool = False


class LiveSwitches:
    """By pool and window, whether GPUs may be lent, from the forecasts that were used and what then arrived.

    One forecast a pool and window is held at a time and scored when its window is over, so that windows do not overlap;
    those of the rule's last days count. The rule is the one by which `jobcast drift` writes its file.

    Parameters
    ----------
    rule : what may be missed

    Attributes
    ----------
    rows : switches thrown so far
    """

    def __init__(self, rule: SwitchRule) -> None:
        self._rule = rule
        self._open: dict[str, dict[float, _Window]] = {}
        self._past: dict[tuple[str, float], deque[tuple[float, bool]]] = {}  # since when, whether missed
        self._off: set[tuple[str, float]] = set()
        self.rows: list[Switch] = []

    def arrived(self, job: Job) -> None:
        """A job is submitted."""
        for horizon_s, window in self._open.get(job.pool, {}).items():
            if job.submit_s <= window.from_s + horizon_s:
                window.came = True

    def shares(self, pool: str, horizon_s: float, now_s: float, forecast: bool) -> bool:
        """Whether GPUs of a pool may be lent for a window at an instant at which arrivals are forecast, or none are."""
        windows = self._open.setdefault(pool, {})
        window = windows.get(horizon_s)
        # Windows without an arrival tell nothing of what a gate misses: only those with one are scored.
        if window is None or now_s > window.from_s + horizon_s:
            if window is not None and window.came:
                self._score(pool, horizon_s, window, now_s)
            windows[horizon_s] = _Window(now_s, forecast)
        return (pool, horizon_s) not in self._off

    def _score(self, pool: str, horizon_s: float, window: _Window, now_s: float) -> None:
        key = pool, horizon_s
        past = self._past.setdefault(key, deque())
        past.append((window.from_s, not window.forecast))
        while past and past[0][0] < now_s - DAY_S * self._rule.days:
            past.popleft()
        sharing = self._rule.shares(sum(missed for _, missed in past), len(past))
        # Only turns are noted, so that a quiet run has no rows.
        if sharing != (key not in self._off):
            (self._off.discard if sharing else self._off.add)(key)
            self.rows.append(Switch(pool, horizon_s / MINUTE_S, now_s, sharing))


class Sia(Placed):
    """Serve each pool from its quota in order of submission; lend what no pool will need to jobs that end in time.

    The tunables of SIA, end of section 5.3, leave every decision as it is unless they are set.

    Parameters
    ----------
    forecasts : tells arrivals, loads and duration bins; its horizons are the windows, and jobs of the bin beyond the
        last never run on spare GPUs
    tick_s : be asked again after so many seconds while jobs are pending and GPUs idle; None: at events alone
    switches : where sharing is off for a pool and window, all of the pool's unused quota is reserved for that window,
        whatever is forecast
    windows_min : those of the horizons that are used as windows, minutes; jobs of bins beyond the last one used never
        run on spare GPUs. None: all
    slack : share of each pool's quota that is kept free beside what is pending and forecast, from 0 to 1
    order : who gets spare GPUs first: `share`, the pool with the smallest allocation / quota; `submission`, the job
        that was submitted first; `shortest`, the smallest duration bin, then share; `narrow`, the fewest GPUs, then
        share
    adapt : whether the run switches sharing off by itself, and on again, where the gate missed too many arrivals of a
        pool and window so far (`SwitchRule`)
    backfill : start any later job that fits its pool's quota, where the first does not; else the first blocks the rest

    Raises
    ------
    ConfigError
        A window is no horizon of the forecasts.
    """

    name = "sia"

    def __init__(self, forecasts: Forecasts, **settings: Any) -> None:
        self._forecasts, own = forecasts, SiaSettings(**settings)
        self._tick_s, self._switches, self._slack, self._backfill = own.tick_s, own.switches, own.slack, own.backfill
        self._horizons_s = [MINUTE_S * horizon for horizon in forecasts.horizons_min]
        self._windows = _windows(self.name, forecasts.horizons_min, own.windows_min)
        self._choose = SPARE_ORDERS[own.order]
        self._live = LiveSwitches(SwitchRule()) if own.adapt else None

    def lane(self, job: Job) -> int:
        """The bin of its duration."""
        if self._live is not None:
            self._live.arrived(job)
        return self._forecasts.duration_bin(job)

    def key(self, job: Job) -> float:
        """All alike: ties go by submission."""
        self.placer.submitted(job)
        return 0.0

    def decide(self, view: View) -> Decision:
        """AllocateResources, Figure 7."""
        draft = self.placer.draft(view)
        self._dedicate(draft)
        if draft.free > 0:
            self._allocate_spare(draft, view)
        if self._tick_s is not None and draft.free > 0 and draft.waiting():
            return draft.decision(view.now_s + self._tick_s)
        return draft.decision()

    def _dedicate(self, draft: TentativeAllocation) -> None:
        """AllocateDedicatedResources: jobs whose turn it is, that of the pool with the smallest share first."""
        while (job := of_smallest_share(draft, draft.due())) is not None:
            if draft.dedicate(job):
                self._started(job)
        # Whose turn it is comes first; then others, where they fit their quota.
        while self._backfill and (job := of_smallest_share(draft, self._behind(draft))) and draft.dedicate(job):
            self._started(job)

    def _behind(self, draft: TentativeAllocation) -> Iterator[tuple[PoolView, Job]]:
        """Of each pool the first job that fits its quota, whoever waits before it."""
        for pool in draft.waiting():
            job = draft.first_in_quota(pool)
            if job is not None:
                yield pool, job

    def _started(self, job: Job) -> None:
        """A job has left its pool's queue."""

    def _allocate_spare(self, draft: TentativeAllocation, view: View) -> None:
        """AllocateSpareResources, Figure 8, for one window after another; no forecast is asked for in vain."""
        last = self._windows[-1][0]
        # The cheap questions first: most decisions end here, before any forecast is made.
        if draft.narrowest(last) > draft.free or not draft.anybody(draft.free - draft.pledged(self._slack), last):
            return
        ask = partial(self._future_gpus, view)
        for lane, horizon_s in self._windows:
            # One table a window: loans change what is idle, not what is forecast.
            loads = Loads(horizon_s, ask)
            while (job := self._next_spare(draft, lane, loads)) is not None:
                draft.lend(job)

    def _next_spare(self, draft: TentativeAllocation, lane: int, loads: Loads) -> Job | None:
        """First job that ends in the window and fits what is not reserved, of the pool that comes first."""
        if not draft.anybody(draft.free, lane):
            return None
        most = draft.free - draft.narrowest(lane)  # with more than that reserved nobody fits
        usable = draft.usable(loads, most)
        return self._choose(draft, usable, lane) if usable > 0 else None

    def _future_gpus(self, view: View, pool: str, horizon_s: float) -> float:
        """TotalNewLoad, section 5.4.1, and the slack; without bound where sharing is switched off."""
        # Asked before the forecast: a pool that is off is not worth a prediction.
        if not self._switches.shares(pool, horizon_s, view.now_s):
            return inf
        arrives = self._forecasts.will_jobs_arrive(pool, horizon_s)
        if self._live is not None and not self._live.shares(pool, horizon_s, view.now_s, arrives):
            return inf
        # The gate decides whether the load counts at all, as in Figure 8.
        future = self._forecasts.new_load(pool, horizon_s) if arrives else 0.0
        return future + self._slack * view.pools[pool].quota if self._slack else future

    def figures(self) -> dict[str, float]:
        """How often the run switched sharing off or on by itself, where it may."""
        return {} if self._live is None else {"switched": float(len(self._live.rows))}


def _windows(
    policy: str, horizons_min: Sequence[float], windows_min: Sequence[float] | None
) -> list[tuple[int, float]]:
    """(Lane, seconds) of each window used, ascending. Raises ConfigError."""
    used = set(horizons_min) if windows_min is None else set(windows_min)
    unknown = sorted(used.difference(horizons_min))
    if unknown:
        wrong, known = (", ".join(f"{one:g}" for one in some) for some in (unknown, horizons_min))
        raise ConfigError(
            f"policy {policy}: windows_min are no horizons of the forecasts: {wrong}; choose from {known} (minutes)"
        )
    return [(lane, MINUTE_S * horizon) for lane, horizon in enumerate(horizons_min) if horizon in used]
