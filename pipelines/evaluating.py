"""Scoring a registered version on a window of a trace: the figures of `jobcast evaluate`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jobcast import __version__
from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.features.corpus import STEP_S, build_corpus
from jobcast.models.evaluation import evaluate_arrivals, evaluate_durations, evaluate_loads
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.registry import open_registry
from jobcast.models.registry.references import Ref
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.console import Step
from jobcast.pipelines.sources import refuse_overlap
from jobcast.pipelines.times import iso
from jobcast.traces.history import pool_histories
from jobcast.traces.splits import MIN_TRAIN_JOBS, check_tests, pools_to_learn_from
from jobcast.traces.table import Trace

Scorer = Callable[[Any, Trace, tuple[str, ...], float, float, Step | None], dict[str, Any]]


def _arrivals(
    model: WillJobsArrive, trace: Trace, pools: tuple[str, ...], from_s: float, until_s: float, progress: Step | None
) -> dict[str, Any]:
    histories = {name: h for name, h in pool_histories(trace).items() if name in pools}
    corpus = build_corpus(histories, from_s, until_s, model.horizons_min_, STEP_S, progress)
    return evaluate_arrivals(model, corpus, from_s, until_s)


def _loads(
    model: NewLoad, trace: Trace, pools: tuple[str, ...], from_s: float, until_s: float, progress: Step | None
) -> dict[str, Any]:
    histories = {name: h for name, h in pool_histories(trace).items() if name in pools}
    return evaluate_loads(model, histories, from_s, until_s)


def _durations(
    model: JobDuration, trace: Trace, pools: tuple[str, ...], from_s: float, until_s: float, progress: Step | None
) -> dict[str, Any]:
    return evaluate_durations(model, trace, from_s, until_s, pools)


SCORERS: Mapping[str, Scorer] = {
    WillJobsArrive.name: _arrivals,
    NewLoad.name: _loads,
    JobDuration.name: _durations,
}


def scored_pools(trace: Trace, train_from_s: float, train_until_s: float) -> tuple[str, ...]:
    """Pools with at least 100 training jobs; all pools where the trace does not hold the training time."""
    training = trace.between(train_from_s, train_until_s)
    if not len(training):
        return tuple(trace.pools)
    try:
        return pools_to_learn_from(training, MIN_TRAIN_JOBS)
    except TrainingError:
        return tuple(trace.pools)


def evaluate_registered(
    reference: tuple[str, Ref],
    trace: Trace,
    from_s: float | None,
    until_s: float | None,
    *,
    home: Path,
    allow_overlap: bool = False,
    progress: Step | None = None,
) -> dict[str, Any]:
    """Figures of a version on [from, until); by default from where its training ended to the end of the trace.

    Raises RegistryError, OverlapError for a version that cannot be used, TrainingError when nothing can be scored.
    """
    registry = open_registry(home)
    version = registry.resolve(*reference)
    begin = version.train_until_s if from_s is None else from_s
    end = float(trace.submit_s[-1]) + 1.0 if until_s is None else until_s
    if begin >= end:
        raise ConfigError(
            f"{trace.source.path}: nothing to score from {iso(begin)} until {iso(end)}; {version.name} version "
            f"{version.version} was trained until {iso(version.train_until_s)}, --from must lie before --until"
        )
    overlap = refuse_overlap(version, begin, end, allow_overlap)
    check_tests(trace, begin, end)
    known = trace.between(None, end)
    pools = scored_pools(known, version.train_from_s, version.train_until_s)
    model = registry.load(version)
    figures = SCORERS[version.name](model, known, pools, begin, end, progress)
    return {
        "predictor": version.name,
        **figures,
        "version": version.version,
        "aliases": list(version.aliases),
        "algorithm": version.algorithm,
        "pools": list(pools),
        "window": {"from": iso(begin), "until": iso(end)},
        "trained": {
            "from": iso(version.train_from_s),
            "until": iso(version.train_until_s),
            "trace": version.trace_name,
        },
        "overlap_allowed": overlap,
        "inputs": {"trace": {"path": trace.source.path, "sha256": trace.source.sha256, "rows": trace.source.rows}},
        "notes": list(trace.notes),
        "simulated": False,
        "jobcast": __version__,
    }
