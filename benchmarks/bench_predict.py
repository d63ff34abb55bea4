"""How long a scheduler waits for a forecast: registered predictors, features included, one thread.

    JOBCAST_DATA=<folder that holds philly/> python benchmarks/bench_predict.py

A forecast is all that a policy asks at one instant: will jobs arrive, and how much load, for every pool and horizon.
Without JOBCAST_DATA a generated trace is used. Beside it, MLflow's generic pyfunc with a DataFrame of the same rows.
"""

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.features.arrivals import arrival_features, feature_names
from jobcast.features.corpus import build_corpus
from jobcast.models.forecasts import GRID_S, RegistryForecasts
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.registry import ModelCard, Registry, open_registry
from jobcast.models.registry.home import database_file, database_uri
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.traces.generators import generate
from jobcast.traces.history import pool_histories
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace

HORIZONS_S = np.array([60.0 * k for k in DEFAULT_HORIZONS_MIN])
POOLS = 11
"""Pools that are asked about: those with most jobs."""
TRAIN_SHARE = 0.8
INSTANTS = 400
WARM_UP = 20
PYFUNC_INSTANTS = 40
ALGORITHMS = ("average", "lightgbm", "xgboost")
BAR_MS = 3.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table, in milliseconds; a bar is the most that the median may be."""

    name: str
    took_ms: np.ndarray
    bar_ms: float = math.inf

    @property
    def median_ms(self) -> float:
        return float(np.median(self.took_ms))

    def __str__(self) -> str:
        bar = f"bar {self.bar_ms:g}" if math.isfinite(self.bar_ms) else ""
        return f"{self.name:<58}{self.median_ms:>10.3f}{np.percentile(self.took_ms, 99):>10.3f}  {bar}"


def main() -> None:
    trace = the_trace()
    pools = [name for name, _ in sorted(counts(trace).items(), key=lambda item: (-item[1], item[0]))][:POOLS]
    split_s = float(trace.submit_s[0] + TRAIN_SHARE * (trace.submit_s[-1] - trace.submit_s[0]))
    print(f"{trace.name}: {len(trace):,} jobs, {len(pools)} pools x {len(HORIZONS_S)} horizons")
    print(f"{'':<58}{'median':>10}{'p99':>10}  ms")
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for algorithm in ALGORITHMS:
            registry = trained(trace, split_s, algorithm, Path(folder) / algorithm)
            for figure in algorithm_figures(trace, pools, split_s, algorithm, registry):
                figures.append(figure)
                print(figure, flush=True)
    missed = [figure.name for figure in figures if figure.median_ms > figure.bar_ms]
    if missed:
        sys.exit(f"over the bar: {', '.join(missed)}")


def the_trace() -> Trace:
    data = os.environ.get("JOBCAST_DATA")
    return read_trace(Path(data) / "philly" / "philly_jobs.csv") if data else generate("campus")[0]


def counts(trace: Trace) -> dict[str, int]:
    return dict(trace.jobs["pool"].value_counts().iter_rows())


def trained(trace: Trace, split_s: float, algorithm: str, home: Path) -> Registry:
    """A store of its own with the three predictors of a scheduler."""
    histories = pool_histories(trace)
    from_s = float(trace.submit_s[0])
    corpus = build_corpus(histories, from_s, split_s, DEFAULT_HORIZONS_MIN)
    registry = open_registry(home)
    for predictor in (
        WillJobsArrive(algorithm).fit(corpus, split_s),
        NewLoad().fit(histories, from_s, split_s, DEFAULT_HORIZONS_MIN),
        JobDuration().fit(trace, split_s),
    ):
        predictor.save(home / "fitted" / predictor.name)
        card = ModelCard(
            predictor.name, algorithm, 0, trace.name, trace.source.sha256, len(trace), from_s, split_s, feature_names()
        )
        registry.register(home / "fitted" / predictor.name, card)
    return registry


def algorithm_figures(
    trace: Trace, pools: list[str], split_s: float, algorithm: str, registry: Registry
) -> list[Figure]:
    fresh = open_registry(registry.home)
    look_up = timed(lambda _: fresh.resolve("will-jobs-arrive"), range(WARM_UP))
    load = timed(lambda _: open_registry(registry.home).load(fresh.resolve("will-jobs-arrive")), range(5))
    versions = {name: fresh.resolve(name) for name in ("will-jobs-arrive", "new-load", "job-duration")}
    predictors = {name: fresh.load(version) for name, version in versions.items()}
    history = live_history(trace, pools)
    span_s = GRID_S * (INSTANTS + WARM_UP)  # a history only moves on, so each measurement takes the next span
    forecast = forecast_ms(history, predictors, pools, split_s, loads=True)
    arrivals = forecast_ms(history, predictors, pools, split_s + span_s, loads=False)
    features, generic = pyfunc_ms(history, registry, pools, split_s + 2 * span_s)
    return [
        Figure(f"{algorithm}: a forecast through the registry's predictors", forecast, BAR_MS),
        Figure(f"{algorithm}: of it, arrivals alone", arrivals),
        Figure(f"{algorithm}: arrivals alone by MLflow's pyfunc and a DataFrame", features + generic),
        Figure(f"{algorithm}: of either, the features alone", features),
        Figure(f"{algorithm}: looking up an alias", look_up),
        Figure(f"{algorithm}: loading a version", load),
    ]


def live_history(trace: Trace, pools: list[str]) -> RunHistory:
    jobs, duration_s = trace.to_jobs()
    return RunHistory(pools, EarlierJobs(jobs, trace.start_s, trace.end_s, duration_s))


def forecast_ms(
    history: RunHistory, predictors: Mapping[str, object], pools: list[str], from_s: float, *, loads: bool
) -> np.ndarray:
    """Each grid instant: advance, then ask every pool and horizon for arrivals, and for the load if `loads`."""
    source = RegistryForecasts(history, *predictors.values())

    def ask(now_s: float) -> None:
        source.advance(now_s)
        for pool in pools:
            for horizon_s in HORIZONS_S.tolist():
                source.will_jobs_arrive(pool, horizon_s)
                if loads:
                    source.new_load(pool, horizon_s)

    return timed(ask, from_s + GRID_S * np.arange(INSTANTS + WARM_UP), before=history.advance)[WARM_UP:]


def pyfunc_ms(
    history: RunHistory, registry: Registry, pools: list[str], from_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same rows by MLflow: milliseconds of the features, and of making a DataFrame and predicting."""
    import mlflow.pyfunc

    from jobcast.models.registry.artifacts import register_scheme

    register_scheme()
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(database_uri(database_file(registry.home)))
    model = mlflow.pyfunc.load_model("models:/will-jobs-arrive@champion")
    mlflow.set_tracking_uri(before)
    rows: dict[float, np.ndarray] = {}

    def features(now_s: float) -> None:
        tick = np.array([now_s])
        made = [arrival_features(history.pool(pool), tick, HORIZONS_S) for pool in pools]
        rows[now_s] = np.concatenate(made).reshape(-1, len(feature_names()))

    def predict(now_s: float) -> None:
        frame = pd.DataFrame(rows[now_s], columns=list(feature_names()))
        frame.insert(0, "horizon_min", np.tile(HORIZONS_S / 60.0, len(pools)))
        model.predict(frame)

    instants = from_s + GRID_S * np.arange(PYFUNC_INSTANTS + WARM_UP)
    features_ms = timed(features, instants, before=history.advance)[WARM_UP:]
    return features_ms, timed(predict, instants)[WARM_UP:]


def timed(
    work: Callable[[float], object], over: np.ndarray | range, before: Callable[[float], object] | None = None
) -> np.ndarray:
    """Milliseconds of wall time that each call took; what runs before it is not counted."""
    took = []
    for item in over:
        if before is not None:
            before(float(item))
        began = time.perf_counter()
        work(float(item))
        took.append(1e3 * (time.perf_counter() - began))
    return np.array(took)


if __name__ == "__main__":
    main()
