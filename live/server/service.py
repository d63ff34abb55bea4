"""What a server knows: the events so far, and what the champions say about now."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, horizon_label
from jobcast.domain.jobs import Pool
from jobcast.live.champions import ARRIVALS, LOADS, ChampionWatch
from jobcast.live.event_log import Event, EventLog
from jobcast.live.recorded_jobs import recorded_jobs
from jobcast.models.forecasts import GRID_S, RegistryForecasts
from jobcast.models.registry import Registry
from jobcast.simulator.guard import GuardedForecasts, Nobody
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.simulator.workload import Workload

LEVELS = (0.5, 0.9, 0.95)
"""Quantiles of the load that are told."""
STALE_S = 60.0
"""Age of what is known of the cluster from which on answers are conservative."""
WEEK_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class State:
    """What is known; replaced as a whole when events come.

    Attributes
    ----------
    number : of the last event
    known_s : when that was known, seconds from the epoch; -inf before any
    jobs : as the events tell them
    """

    number: int
    known_s: float
    jobs: EarlierJobs


@dataclass(frozen=True, slots=True)
class Answers:
    """Forecasts of one instant.

    Attributes
    ----------
    pools : pool -> horizon -> figures
    degraded : why some of them are conservative; empty where none is
    """

    pools: Mapping[str, Mapping[str, Mapping[str, Any]]]
    degraded: tuple[str, ...]


class Service:
    """Takes events and answers questions, from several threads.

    Parameters
    ----------
    log : where events are kept
    pools : of the cluster, with their quotas
    registry : of the champions
    clock : the instant now, seconds from the epoch
    """

    def __init__(self, log: EventLog, pools: Sequence[Pool], registry: Registry, clock: Callable[[], float]) -> None:
        self.pools, self.clock = tuple(pools), clock
        self.watch = ChampionWatch(registry, self._shadow)
        self._log, self._lock = log, threading.Lock()
        self._events: list[Event] = []
        self.state = State(0, -np.inf, recorded_jobs(()))
        self._held: tuple[tuple[Any, ...], Answers] | None = None
        self._read()

    def take(self, events: Sequence[Event]) -> int:
        """Keep events; how many were new comes back, once they are kept for good."""
        new = self._log.append(events)
        if new:
            self._read()
        return new

    def age_s(self, now_s: float) -> float:
        """Seconds since something was last known of the cluster."""
        return now_s - self.state.known_s

    def forecasts(self, now_s: float) -> Answers:
        """Arrivals and loads of all pools and horizons, as of an instant."""
        stale = self.age_s(now_s) > STALE_S
        state, champions = self.state, self.watch.current
        key = (state.number, now_s // GRID_S, stale, tuple(champions.versions.items()), self.watch.trouble)
        held = self._held
        # One reference, replaced as a whole: no lock for who only reads.
        if held is not None and held[0] == key:
            return held[1]
        with self._lock:
            result = self._asked(state, champions.predictors, stale, now_s)
            self._held = (key, result)
            return result

    def waits_s(self, now_s: float) -> list[float]:
        """Seconds that jobs which started within the last 7 days had waited."""
        jobs = self.state.jobs
        rows = zip(jobs.jobs, jobs.start_s.tolist(), strict=True)
        return [start_s - job.submit_s for job, start_s in rows if now_s - WEEK_S <= start_s <= now_s]

    def _read(self) -> None:
        with self._lock:
            rows = self._log.since(self.state.number)
            if rows:
                self._events += [event for _, event in rows]
                known_s = max(self.state.known_s, max(event.known_s for _, event in rows))
                self.state = State(rows[-1][0], known_s, recorded_jobs(self._events))

    def _asked(self, state: State, predictors: Mapping[str, Any], stale: bool, now_s: float) -> Answers:
        why = [f"nothing was heard of the cluster for more than {STALE_S:g} s"] if stale else []
        if self.watch.trouble:
            why.append(self.watch.trouble)
        tally = BadAnswers()
        nobody = stale or not predictors
        source: ForecastSource = (
            Nobody(why[0], DEFAULT_HORIZONS_MIN) if nobody else self._source(state.jobs, predictors, now_s)
        )
        guarded = GuardedForecasts(source, Workload((), (), self.pools), tally)
        guarded.advance(now_s)
        pools = {pool.name: _of_pool(guarded, pool.name) for pool in self.pools}
        bad = [] if nobody else [f"{kind}: {one['first']}" for kind, one in tally.figures().items() if one["reasons"]]
        return Answers(pools, (*why, *bad))

    def _source(self, jobs: EarlierJobs, predictors: Mapping[str, Any], now_s: float) -> RegistryForecasts:
        history = RunHistory([pool.name for pool in self.pools], jobs)
        history.advance(now_s)
        return RegistryForecasts(history, predictors[ARRIVALS], predictors[LOADS], None, self.pools)

    def _shadow(self, predictors: Mapping[str, Any]) -> None:
        """Ask predictors about now, unguarded. Raises what they raise."""
        now_s = self.clock()
        source = self._source(self.state.jobs, predictors, now_s)
        source.advance(now_s)
        for pool in self.pools:
            _of_pool(source, pool.name)


def _of_pool(source: Any, pool: str) -> dict[str, dict[str, Any]]:
    return {horizon_label(horizon): _figures(source, pool, 60.0 * horizon) for horizon in source.horizons_min}


def _figures(source: Any, pool: str, horizon_s: float) -> dict[str, Any]:
    quantiles = source.load_quantiles(pool, horizon_s, LEVELS)
    return {
        "probability": source.arrival_probability(pool, horizon_s),
        "arrives": source.will_jobs_arrive(pool, horizon_s),
        "load_gpus": source.new_load(pool, horizon_s),
        "load_quantiles_gpus": {f"{level:g}": gpus for level, gpus in zip(LEVELS, quantiles, strict=True)},
    }
