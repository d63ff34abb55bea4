"""Tasks and curves of jobs that nobody split: graphs as the generator mlfs draws them, run times as the trace has them.

A graph is one of `VARIANTS` of its algorithm and width; accuracies are each job's own. Where nothing holds a task up
and nothing has to be sent, all iterations take the job's duration.
"""

import math
from dataclasses import replace

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import ConfigError
from jobcast.domain.tasks import OPT_STOP, TARGET_ONLY
from jobcast.traces.enrich.columns import EnrichedJobs
from jobcast.traces.enrich.models import known_models
from jobcast.traces.generators.mlfs_config import ALGORITHMS, DATA_MB, MlfsConfig
from jobcast.traces.generators.mlfs_curves import (
    BEGINNING,
    EARLY_GAIN,
    FALL,
    FALLING,
    FINAL,
    NOISE,
    PEAK_AT,
    SHAPES,
    STEP,
    STEP_AT,
    STEPPED,
    CurveDraws,
    DrawnCurves,
    curves_of,
)
from jobcast.traces.generators.mlfs_errors import spread_of_error
from jobcast.traces.generators.mlfs_tasks import JobTasks, tasks_of_jobs
from jobcast.traces.job_curves import JobCurves
from jobcast.traces.tasks import TaskTable

VARIANTS = 16
"""Graphs an algorithm and width; ours, so that tables of long traces stay small and quick to make."""
MOST_PARTITIONS = 8
"""Of a model; further GPUs hold replicas. Ours."""
LEAST_ITERATION_S = 0.1
DECIMALS = 4
"""Of accuracies: finer than any reads, and short in a file."""
MOST_EPOCHS = 50_000_000
"""Rows of curves: some 5 GB of memory."""
CONFIG = MlfsConfig(most_partitions=MOST_PARTITIONS)


def enriched_curves(jobs: EnrichedJobs) -> DrawnCurves:
    """Accuracy by epoch: shapes, steps, falls and noise as of the generator mlfs, drawn for each job by itself.

    Raises ConfigError for more epochs than memory holds.
    """
    if int(jobs.epochs.sum()) > MOST_EPOCHS:
        raise ConfigError(f"--facts tasks: {int(jobs.epochs.sum()):,} epochs in all, {MOST_EPOCHS:,} at most")
    draws = jobs.draws

    def sometimes(what: str, share: float, bounds: tuple[float, float]) -> Floats:
        return np.where(draws.uniform(f"has {what}") < share, draws.uniform(what, *bounds), 0.0)

    drawn = CurveDraws(
        family=draws.choice("family", len(SHAPES)),
        early=draws.uniform("early", *EARLY_GAIN),
        final=draws.uniform("final", *FINAL),
        low=draws.uniform("low", *BEGINNING),
        step_at=draws.uniform("step at", *STEP_AT),
        step=sometimes("step", STEPPED, STEP),
        fall_at=draws.uniform("fall at", *PEAK_AT),
        fall=sometimes("fall", FALLING, FALL),
        noise=np.exp(draws.uniform("noise", math.log(NOISE[0]), math.log(NOISE[1]))),
        normal=draws.normal("metric", jobs.epochs + 1),
    )
    curves = curves_of(jobs.epochs, drawn)
    metric = np.round(curves.metric, DECIMALS)
    return curves._replace(metric=metric, final=metric[curves.begin[1:] - 1])


def job_curves(jobs: EnrichedJobs, curves: DrawnCurves) -> JobCurves:
    """As a file holds them."""
    return JobCurves("enriched", "", tuple(jobs.job_ids), curves.begin, curves.metric)


def enriched_tasks(jobs: EnrichedJobs, seed: int) -> TaskTable:
    """Tasks of all jobs."""
    kinds = list(zip(_algorithms(jobs).tolist(), jobs.gpus.tolist(), jobs.draws.choice("graph", VARIANTS).tolist(),
                     strict=True))  # fmt: skip
    names = {kind: f"{kind}" for kind in sorted(set(kinds))}
    graphs = [_graph(*kind, seed) for kind in names]
    table = _table(tuple(names.values()), graphs)
    sending_s = {name: float(graph.sending_s[0]) for name, graph in zip(names.values(), graphs, strict=True)}
    chosen = [names[kind] for kind in kinds]
    each = _iterations(jobs, np.array([sending_s[name] for name in chosen]))
    mine = table.of_jobs(chosen)
    iteration_s = jobs.duration_s / (jobs.epochs * each)
    error = np.exp(spread_of_error(CONFIG.error) * jobs.draws.normal("estimate", np.ones(len(jobs), dtype=np.int64)))
    return replace(
        mine,
        job_ids=tuple(jobs.job_ids),
        compute_s=mine.compute_s * np.repeat(iteration_s, np.diff(mine.task_of)),
        epoch_iterations=each,
        iteration_s=iteration_s * error,
    )


def _algorithms(jobs: EnrichedJobs) -> Ints:
    of_row = np.array([list(ALGORITHMS).index(model.mlfs) for model in known_models()])
    algorithms: Ints = of_row[jobs.row]
    return algorithms


def _graph(algorithm: int, gpus: int, variant: int, seed: int) -> JobTasks:
    rng = np.random.default_rng([seed, algorithm, gpus, variant])
    return tasks_of_jobs(np.array([algorithm]), np.array([gpus]), CONFIG, rng)


def _table(names: tuple[str, ...], graphs: list[JobTasks]) -> TaskTable:
    """Graphs one after another, seconds in units of an iteration."""
    tasks, edges = ([0, *np.cumsum([len(getattr(graph, name)) for graph in graphs])] for name in ("compute", "edge_to"))

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(graph, name) for graph in graphs])

    before = np.repeat(tasks[:-1], np.diff(edges))
    ones = np.ones(len(names), dtype=np.int64)
    return TaskTable(
        path="enriched",
        sha256="",
        job_ids=names,
        task_of=np.array(tasks, dtype=np.int64),
        edge_of=np.array(edges, dtype=np.int64),
        demand=joined("demand"),
        compute_s=joined("compute"),
        size_share=joined("size_share"),
        is_server=np.concatenate([graph.is_server for graph in graphs]),
        edge_from=np.concatenate([graph.edge_from for graph in graphs]) + before,
        edge_to=np.concatenate([graph.edge_to for graph in graphs]) + before,
        volume_mb=joined("volume_mb"),
        model_mb=joined("model_mb"),
        epoch_iterations=ones,
        iteration_s=ones.astype(np.float64),
        option=ones * OPT_STOP,
        may_become=ones * TARGET_ONLY,
    )


def _iterations(jobs: EnrichedJobs, sending_s: Floats) -> Ints:
    """Iterations an epoch: as many as its data hold batches, fewer where communications would be too large a part."""
    batch_mb = np.array([one.batch_mb for one in ALGORITHMS.values()])[_algorithms(jobs)]
    most = np.ceil(jobs.draws.uniform("data", *DATA_MB) / batch_mb)
    least_s = np.maximum(LEAST_ITERATION_S, sending_s / CONFIG.communication)
    each: Ints = np.clip(np.floor(jobs.duration_s / jobs.epochs / least_s), 1.0, most).astype(np.int64)
    return each
