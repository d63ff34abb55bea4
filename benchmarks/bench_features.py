"""How fast features are built on the Philly trace: every 5 minutes, every pool, three horizons.

    JOBCAST_DATA=<folder that holds philly/> python benchmarks/bench_features.py

A row is one pool, instant and horizon. Figures are CPU seconds of this process; compiling is not among them.
The plain reference computes SIA's Table 9 with a pandas mask over all events for every number, and must agree.
"""

import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.features.arrivals import arrival_features, feature_names
from jobcast.features.corpus import build_corpus
from jobcast.features.durations import duration_rows
from jobcast.features.finished import DurationTracker
from jobcast.features.kernels import FALLBACK_DURATION_S, LIKE_JOBS, LOOKBACKS, PERIODS_BACK, PERIODS_S
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.traces.history import pool_histories
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace

HORIZONS_S = [60.0 * k for k in DEFAULT_HORIZONS_MIN]
LIVE_POOL_JOBS = 100
"""Pools with fewer jobs are not predicted."""
SAMPLE = 100
"""(pool, instant) pairs that the plain reference computes."""
TICKS = 300
SEED = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; a bar is the most that the figure may be."""

    name: str
    value: float
    unit: str
    bar: float = math.inf
    digits: int = 3


def main() -> None:
    data = os.environ.get("JOBCAST_DATA")
    if not data:
        sys.exit("JOBCAST_DATA is not set: the benchmark needs the folder that holds philly/philly_jobs.csv")
    trace = read_trace(Path(data) / "philly" / "philly_jobs.csv")
    histories = pool_histories(trace)
    arrival_features(next(iter(histories.values())), [0.0], HORIZONS_S)
    figures = [*corpus_figures(trace, histories), *live_figures(trace, histories), *duration_figures(trace)]
    for figure in figures:
        bar = f"bar {figure.bar:,g}" if math.isfinite(figure.bar) else ""
        print(f"{figure.name:<48}{figure.value:>14,.{figure.digits}f} {figure.unit:<8}{bar}")
    missed = [figure.name for figure in figures if figure.value > figure.bar]
    if missed:
        sys.exit(f"over the bar: {', '.join(missed)}")


def cpu_s(work: Callable[[], object], repeat: int = 1) -> float:
    """CPU seconds of the fastest run."""
    took = []
    for _ in range(repeat):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def corpus_figures(trace: Trace, histories: dict[str, PoolHistory]) -> list[Figure]:
    from_s, until_s = trace.submit_s[0], trace.submit_s[-1]
    corpus = build_corpus(histories, from_s, until_s, DEFAULT_HORIZONS_MIN)
    rows = len(corpus) * len(DEFAULT_HORIZONS_MIN)
    took = cpu_s(lambda: build_corpus(histories, from_s, until_s, DEFAULT_HORIZONS_MIN), repeat=3)
    plain = plain_rows_per_s(histories, corpus.tick_s)
    return [
        Figure("corpus", took, "s", bar=20),
        Figure("rows", rows, "", digits=0),
        Figure("rows per CPU second", rows / took, "1/s", digits=0),
        Figure("plain masks: rows per CPU second", plain, "1/s", digits=0),
        Figure("times the plain masks", rows / took / plain, "", digits=0),
    ]


def plain_rows_per_s(histories: dict[str, PoolHistory], ticks_s: np.ndarray) -> float:
    """Speed of the plain reference on a sample of pools and instants; fails where it disagrees."""
    rng = np.random.default_rng(SEED)
    names = [feature_names().index(name) for name in table_9_names()]
    took = 0.0
    for pool, tick in zip(rng.choice(sorted(histories), SAMPLE), rng.choice(ticks_s, SAMPLE), strict=True):
        events = plain_events(histories[pool])
        expected = arrival_features(histories[pool], [tick], HORIZONS_S)[0][:, names]
        for h, k in enumerate(HORIZONS_S):
            began = time.process_time()
            row = plain_row(events, tick, k)
            took += time.process_time() - began
            if row != expected[h].tolist():
                sys.exit(f"pool {pool} at {tick}, horizon {k} s: {row} by masks, {expected[h].tolist()} by features")
    return SAMPLE * len(HORIZONS_S) / took


def table_9_names() -> tuple[str, ...]:
    return tuple(name for name in feature_names() if name.startswith(("arrivals_", "completions_", "expected_")))


def plain_events(history: PoolHistory) -> SimpleNamespace:
    """Events as pandas columns; the expected run time of every job is given to the reference for nothing."""
    expected = []
    for start in history.start_s:
        known = history.completion_duration_s[: np.searchsorted(history.completion_s, start, side="right")]
        recent = known[-LIKE_JOBS:]
        expected.append(math.exp(np.log(recent).mean()) if recent.size else FALLBACK_DURATION_S)
    jobs = pd.DataFrame({"start": history.start_s, "end": history.end_s, "expected": expected})
    return SimpleNamespace(arrivals=pd.Series(history.arrival_s), ends=pd.Series(history.completion_s), jobs=jobs)


def plain_row(events: SimpleNamespace, t: float, k: float) -> list[float]:
    """SIA, Table 9, clipped at t: a mask over all events for every number."""
    arrivals, ends, jobs = events.arrivals, events.ends, events.jobs
    periods = [x * p for p in PERIODS_S for x in range(1, PERIODS_BACK + 1)]
    row = [((arrivals > t - xp) & (arrivals <= min(t - xp + k, t))).sum() for xp in periods]
    row += [((times >= t - x * k) & (times <= t)).sum() for times in (arrivals, ends) for x in LOOKBACKS]
    running = jobs[(jobs["start"] <= t) & (jobs["end"] > t)]
    age = t - running["start"]
    left = (running["expected"] - age).where(running["expected"] > age, age)
    return [float(value) for value in (*row, (left <= k).sum(), (left > k).sum())]


def live_figures(trace: Trace, histories: dict[str, PoolHistory]) -> list[Figure]:
    live = [history for history in histories.values() if history.arrival_s.size >= LIVE_POOL_JOBS]
    ticks = [np.array([trace.submit_s[-1] - 300.0 * i]) for i in range(TICKS)]
    took = []
    for tick in ticks:
        began = time.perf_counter()
        for history in live:
            arrival_features(history, tick, HORIZONS_S)
        took.append(time.perf_counter() - began)
    name = f"one instant, {len(live)} pools x {len(HORIZONS_S)} horizons (median)"
    return [Figure(name, 1e3 * float(np.median(took)), "ms", bar=0.5)]


def duration_figures(trace: Trace) -> list[Figure]:
    jobs, durations = trace.to_jobs()

    def batch() -> object:
        return duration_rows(trace)

    batch()
    history = RunHistory(trace.pools, EarlierJobs(jobs, trace.start_s, trace.end_s, durations))
    now_s = float(trace.submit_s[-1])
    history.advance(now_s)
    tracker = DurationTracker()
    tracker.catch_up(history)
    # As schedulers ask: about jobs that come now.
    asked = [replace(job, submit_s=now_s) for job in jobs[:10_000]]
    live = cpu_s(lambda: [tracker.row(job) for job in asked], repeat=3) / len(asked)
    return [
        Figure(f"duration rows of {len(jobs):,} jobs", cpu_s(batch, repeat=3), "s", bar=2),
        Figure("duration row of one job, live", 1e6 * live, "us", bar=30),
    ]


if __name__ == "__main__":
    main()
