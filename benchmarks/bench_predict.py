"""How long a scheduler waits for a forecast: registered predictors, features included, one thread.

    JOBCAST_DATA=<folder that holds philly/> python benchmarks/bench_predict.py [ALGORITHM ...] [--against PATH]

A forecast is all that a policy asks at one instant: will jobs arrive, and how much load, for every pool and horizon,
after five minutes of new events. Without JOBCAST_DATA a generated trace is used. With `--against` another checkout
answers by turns from the same store of models, each tree in processes of its own. Milliseconds of wall time and of CPU,
of which the latter does not count what else the machine does. Exits with 1 where the median of CPU is over the bar.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.features.arrivals import feature_names
from jobcast.features.corpus import build_corpus
from jobcast.models.forecasts import GRID_S, RegistryForecasts
from jobcast.models.new_load import NewLoad
from jobcast.models.registry import ModelCard, Registry, open_registry
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.traces.generators import generate
from jobcast.traces.history import pool_histories
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace

HERE = Path(__file__).resolve().parents[1]
HORIZONS_S = np.array([60.0 * k for k in DEFAULT_HORIZONS_MIN])
POOLS = 11
"""Pools that are asked about: those with most jobs."""
TRAIN_SHARE, TRAIN_DAYS, TRAIN_STEP_S = 0.8, 21.0, 3600.0
"""Of the trace; and what of that is learnt from: as many trees answer as of all of it."""
INSTANTS = 400
WARM_UP = 20
ALGORITHMS = ("average", "lightgbm", "xgboost")
BAR_MS = 1.0
FORECAST, ARRIVALS = "a forecast through the registry's predictors", "of it, arrivals alone"
LOOK_UP, LOADING = "looking up an alias", "loading a version"
Figures = dict[str, Any]


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("algorithms", nargs="*", default=ALGORITHMS, help=f"of {', '.join(ALGORITHMS)}; all by default")
    asked.add_argument("--against", type=Path, help="another checkout")
    asked.add_argument("--repeat", type=int, default=3)
    asked.add_argument("--home", type=Path, help="measure this store, in this process")
    given = asked.parse_args()
    if given.home:
        print(json.dumps(measured(open_registry(given.home))))
        return 0
    trees = {"here": HERE} if given.against is None else {"here": HERE, "against": given.against.resolve()}
    trace = the_trace()
    print(f"{trace.name}: {len(trace):,} jobs, {POOLS} pools x {len(HORIZONS_S)} horizons; ms")
    print("median of wall time and of CPU, least of wall time and of CPU; best of the runs")
    missed, loads = 0, loads_of(trace)
    with tempfile.TemporaryDirectory() as folder:
        for algorithm in given.algorithms:
            home = Path(folder) / algorithm
            register(home, arrivals_of(trace, algorithm), loads, trace)
            runs: dict[str, list[Figures]] = {name: [] for name in trees}
            for _ in range(given.repeat):
                for name, path in trees.items():
                    runs[name].append(told_by(path, home))
            missed += shown(algorithm, runs)
    return 1 if missed else 0


def told_by(tree: Path, home: Path) -> Figures:
    """Figures of a store, by a checkout's package in a process of its own."""
    env = os.environ | {"PYTHONPATH": f"{tree / 'src'}:{tree}"}
    command = [sys.executable, __file__, "--home", str(home)]
    result = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    found: Figures = json.loads(result.stdout.splitlines()[-1])
    return found


def shown(algorithm: str, runs: Mapping[str, list[Figures]]) -> bool:
    """Print the best run of each tree; whether the bar was missed."""
    for what in (FORECAST, ARRIVALS, LOOK_UP, LOADING):
        best = {name: np.min([described[what] for described in of], axis=0) for name, of in runs.items()}
        line = "".join(f"   {name}" + "".join(f" {ms:7.3f}" for ms in four) for name, four in best.items())
        print(f"{f'{algorithm}: {what}':<58}{line}", flush=True)
    answers = {described["answers"] for of in runs.values() for described in of}
    print(f"{algorithm}: answers {'are equal' if len(answers) == 1 else 'DIFFER'} ({', '.join(sorted(answers))})")
    return bool(min(described[FORECAST][1] for described in runs["here"]) > BAR_MS or len(answers) > 1)


def the_trace() -> Trace:
    data = os.environ.get("JOBCAST_DATA")
    return read_trace(Path(data) / "philly" / "philly_jobs.csv") if data else generate("campus")[0]


def counts(trace: Trace) -> dict[str, int]:
    return dict(trace.jobs["pool"].value_counts().iter_rows())


def arrivals_of(trace: Trace, algorithm: str) -> WillJobsArrive:
    span = window_of(trace)
    corpus = build_corpus(pool_histories(trace), *span, DEFAULT_HORIZONS_MIN, TRAIN_STEP_S)
    return WillJobsArrive(algorithm).fit(corpus, span[1])


def loads_of(trace: Trace) -> NewLoad:
    return NewLoad().fit(pool_histories(trace), *window_of(trace), DEFAULT_HORIZONS_MIN)


def register(home: Path, arrivals: WillJobsArrive, loads: NewLoad, trace: Trace) -> None:
    """A store of its own."""
    registry, (from_s, until_s) = open_registry(home), window_of(trace)
    for predictor in (arrivals, loads):
        folder = home / "fitted" / predictor.name
        predictor.save(folder)
        card = ModelCard(
            predictor.name, predictor.algorithm, 0, trace.name, trace.source.sha256, len(trace), from_s, until_s,
            feature_names(),
        )  # fmt: skip
        registry.register(folder, card)


def window_of(trace: Trace) -> tuple[float, float]:
    """What is learnt from, seconds from the epoch."""
    split_s = split_of(trace)
    return max(split_s - 86400.0 * TRAIN_DAYS, float(trace.submit_s[0])), split_s


class NoDurations:
    """Stands where a predictor of durations would: none are asked for."""

    name, horizons_min, columns = "job-duration", DEFAULT_HORIZONS_MIN, ()

    def tracker(self) -> None:
        """Nothing is followed."""


def split_of(trace: Trace) -> float:
    return float(trace.submit_s[0] + TRAIN_SHARE * (trace.submit_s[-1] - trace.submit_s[0]))


def measured(registry: Registry) -> Figures:
    """Milliseconds by figure, median of wall time and of CPU and least of both, and a hash of what was answered."""
    trace = the_trace()
    pools = [name for name, _ in sorted(counts(trace).items(), key=lambda item: (-item[1], item[0]))][:POOLS]
    split_s = split_of(trace)
    look_up = timed(lambda _: registry.resolve("will-jobs-arrive"), range(WARM_UP))
    load = timed(lambda _: open_registry(registry.home).load(registry.resolve("will-jobs-arrive")), range(5))
    names = ("will-jobs-arrive", "new-load")
    predictors: dict[str, Any] = {name: registry.load(registry.resolve(name)) for name in names}
    predictors["job-duration"] = NoDurations()
    history = live_history(trace, pools)
    span_s = GRID_S * (INSTANTS + WARM_UP)  # a history only moves on, so each measurement takes the next span
    answers: list[object] = []
    forecast = forecast_ms(history, predictors, pools, split_s, loads=True, value=answers)
    arrivals = forecast_ms(history, predictors, pools, split_s + span_s, loads=False, value=answers)
    result = {FORECAST: forecast, ARRIVALS: arrivals, LOOK_UP: look_up, LOADING: load}
    found: Figures = {name: [*np.median(took, axis=0), *took.min(axis=0)] for name, took in result.items()}
    return found | {"answers": hashlib.sha256(repr(answers).encode()).hexdigest()[:12]}


def live_history(trace: Trace, pools: list[str]) -> RunHistory:
    jobs, duration_s = trace.to_jobs()
    return RunHistory(pools, EarlierJobs(jobs, trace.start_s, trace.end_s, duration_s))


def forecast_ms(
    history: RunHistory,
    predictors: Mapping[str, Any],
    pools: list[str],
    from_s: float,
    *,
    loads: bool,
    value: list[object],
) -> np.ndarray:
    """Each grid instant: advance, then ask every pool and horizon for arrivals, and for the load if `loads`."""
    source = RegistryForecasts(history, *predictors.values())

    def ask(now_s: float) -> None:
        source.advance(now_s)
        for pool in pools:
            for horizon_s in HORIZONS_S.tolist():
                value.append(source.will_jobs_arrive(pool, horizon_s))
                if loads:
                    value.append(source.new_load(pool, horizon_s))

    return timed(ask, from_s + GRID_S * np.arange(INSTANTS + WARM_UP), before=history.advance)[WARM_UP:]


def timed(
    work: Callable[[float], object], over: np.ndarray | range, before: Callable[[float], object] | None = None
) -> np.ndarray:
    """Milliseconds of wall time and of CPU that each call took, (n, 2); what runs before it is not counted."""
    took = []
    for item in over:
        if before is not None:
            before(float(item))
        began = time.perf_counter(), time.thread_time()
        work(float(item))
        took.append((time.perf_counter() - began[0], time.thread_time() - began[1]))
    return 1e3 * np.array(took)


if __name__ == "__main__":
    sys.exit(main())
