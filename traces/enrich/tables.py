"""Tables by model that lie beside an enriched trace: all from one formula, see `models`.

Tasks and curves of jobs that nobody split: graphs as the generator mlfs draws them, run times as the trace has them.

A graph is one of `VARIANTS` of its algorithm and width; accuracies are each job's own. Where nothing holds a task up
and nothing has to be sent, all iterations take the job's duration.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import ConfigError
from jobcast.domain.tasks import OPT_STOP, TARGET_ONLY
from jobcast.traces.enrich.columns import STATIC, EnrichConfig, EnrichedJobs, known_models
from jobcast.traces.generators.gavel import planned_course
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
    spread_of_error,
)
from jobcast.traces.generators.mlfs_tasks import (
    ALGORITHMS,
    DATA_MB,
    JobTasks,
    MlfsConfig,
    joined_tasks,
    task_table,
    tasks_of_jobs,
)
from jobcast.traces.learning_curves import JobCurves
from jobcast.traces.profiles import PROFILE_SCHEMA
from jobcast.traces.tasks import TaskTable
from jobcast.traces.trainings import Starts

NODE_GPUS = 16
"""Profiles tell of every number of GPUs up to this, and of the widths of the trace."""
MEASURED_NODE_GPUS = 4
"""GPUs of a node in the table of step times, as of Pollux's cluster."""
LEAST_SYNC_S = 1e-4
NOISE_EPOCHS = 100
"""Epochs in which gradient noise grows, geometrically, from its first value to its last."""
HALF_LIFE = 20.0
"""Epochs in which the validation metric of step-time curves comes half as near to 1. Ours; it decides nothing."""


def speedup_table(jobs: EnrichedJobs, config: EnrichConfig) -> pl.DataFrame:
    """model, gpu_type, gpus, speedup: 1, 2, 4, ... GPUs of the reference, one GPU of the other types."""
    most = int(jobs.gpus.max())
    rows: list[tuple[str, str, int, float]] = []
    reference, *others = config.speeds
    for name, model in jobs.model_of.items():
        at, known = model.knots(most)
        rows += [(name, reference, gpus, up) for gpus, up in zip(at.tolist(), known.tolist(), strict=True)]
        # other types scale alike, so one row tells all of them
        rows += [(name, other, 1, config.speeds[other]) for other in others]
    return pl.DataFrame(rows, schema=["model", "gpu_type", "gpus", "speedup"], orient="row")


def throughput_table(jobs: EnrichedJobs, config: EnrichConfig) -> pl.DataFrame:
    """gpu_type, model, batch_size, gpus, steps_per_second: widths and batch sizes that jobs can reach."""
    reference = next(iter(config.speeds))
    # batch sizes that a job may grow to are needed, too
    keys = {(name, size, gpus) for name, gpus, first in _kinds(jobs) for size in jobs.model_of[name].ladder(first)}
    rows = [
        (reference, name, size, gpus, 1.0 / float(jobs.model_of[name].step_s(np.array(size), np.array(gpus))))
        for name, size, gpus in sorted(keys)
    ]
    return pl.DataFrame(rows, schema=["gpu_type", "model", "batch_size", "gpus", "steps_per_second"], orient="row")


def dataset_table(jobs: EnrichedJobs) -> pl.DataFrame:
    """model, samples."""
    rows = [(name, model.samples) for name, model in jobs.model_of.items()]
    return pl.DataFrame(rows, schema=["model", "samples"], orient="row")


def regime_courses(jobs: EnrichedJobs) -> dict[str, Starts]:
    """Where each batch size of each job begins, of those whose batch size changes: as the generator gavel plans it."""

    @cache
    def course(row: int, batch_size: int, mode: str, epochs: int) -> Starts:
        model = known_models()[row]
        return planned_course(model.name, batch_size, mode, epochs, model.ladder(batch_size), 1, None)

    rows = zip(jobs.job_ids, jobs.row.tolist(), jobs.batch_size.tolist(), jobs.mode, jobs.epochs.tolist(), strict=True)
    planned = {name: course(row, size, mode, epochs) for name, row, size, mode, epochs in rows if mode != STATIC}
    return {name: starts for name, starts in planned.items() if len(starts) > 1}


def profile_rows(jobs: EnrichedJobs, config: EnrichConfig) -> pl.DataFrame:
    """Seconds an epoch: each model and first batch size on every type, on 1 to `NODE_GPUS` GPUs and on all widths."""
    # a cluster's nodes may be smaller than the jobs are wide
    widths = np.union1d(np.arange(1, NODE_GPUS + 1), jobs.gpus)
    pairs = sorted({(name, first) for name, _, first in _kinds(jobs)})
    parts = []
    for kind, speed in config.speeds.items():
        for name, size in pairs:
            seconds = jobs.model_of[name].epoch_s(np.array(size), widths) / speed
            parts.append(
                pl.DataFrame(
                    {"model": name, "batch_size": size, "gpu_type": kind, "gpus": widths, "epoch_s": seconds},
                    schema=PROFILE_SCHEMA,
                )
            )
    return pl.concat(parts)


def step_time_table(jobs: EnrichedJobs) -> pl.DataFrame:
    """Step times as Pollux measured them: compute on each GPU, and a synchronisation that hangs on their number.

    The latter is what is missing at the model's largest batch size between perfect scaling and its speedup.
    """
    rows = []
    for name, model in jobs.model_of.items():
        widest = _widest(jobs, name)
        largest = model.batch_sizes[-1]
        for gpus in model.knots(max(widest, 2 * MEASURED_NODE_GPUS))[0].tolist():
            alone_s = model.overhead_s + model.sample_s * largest / gpus
            whole_s = float(model.step_s(np.array(largest), np.array(gpus)))
            # above 0, as readers of the table demand
            sync_s = LEAST_SYNC_S if gpus == 1 else max(LEAST_SYNC_S, whole_s - alone_s)
            # samples a GPU: 1, 2, 4, ... up to the largest batch size
            for local in (2**power for power in range(largest.bit_length())):
                compute_s = model.overhead_s + model.sample_s * local
                step_s = compute_s + (sync_s if gpus > 1 else 0.0)
                rows.append((name, -(-gpus // MEASURED_NODE_GPUS), gpus, local, step_s, sync_s))
    names = ["app", "num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"]
    return pl.DataFrame(rows, schema=names, orient="row")


def noise_table(jobs: EnrichedJobs) -> pl.DataFrame:
    """Training curves as Pollux reads them: progress in steps of the smallest batch size, and gradient noise."""
    parts = []
    for name, model in jobs.model_of.items():
        mine = np.array(jobs.models) == name
        epochs = np.arange(1, int(jobs.epochs[mine].max()) + 1)
        first = {model.batch_sizes[0], *jobs.batch_size[mine].tolist()}
        # progress is counted in steps of the smallest batch size, as Pollux does
        smallest = min(first)
        begin, end = model.noise
        # geometric growth that stops at the end's value
        noise = begin * (end / begin) ** np.minimum((epochs - 1) / (NOISE_EPOCHS - 1), 1.0)
        for size in sorted({one for low in first for one in model.ladder(low, 2 * _widest(jobs, name) - 1)}):
            gained = model.samples / smallest * (noise + smallest) / (noise + size)
            parts.append(
                pl.DataFrame(
                    {
                        "app": name,
                        "batch_size": size,
                        "epoch": epochs,
                        "progress": np.cumsum(gained),
                        "metric": 1.0 - 0.5 ** (epochs / HALF_LIFE),
                        "grad_sqr": 1.0,
                        "grad_var": noise / smallest,
                    }
                )
            )
    return pl.concat(parts)


def _kinds(jobs: EnrichedJobs) -> set[tuple[str, int, int]]:
    """Distinct (model, GPUs, first batch size)."""
    return set(zip(jobs.models, jobs.gpus.tolist(), jobs.batch_size.tolist(), strict=True))


def _widest(jobs: EnrichedJobs, name: str) -> int:
    return int(jobs.gpus[np.array(jobs.models) == name].max())


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
    graphs = joined_tasks(_graph(*kind, seed) for kind in names)
    ones = np.ones(len(names), dtype=np.int64)
    # in units of an iteration
    unit_s, options = ones.astype(np.float64), (ones * OPT_STOP, ones * TARGET_ONLY)
    table = task_table("enriched", tuple(names.values()), graphs, unit_s, unit_s, ones, options)
    chosen = [names[kind] for kind in kinds]
    each = _iterations(jobs, graphs.sending_s[[table.row_of[name] for name in chosen]])
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
    return of_row[jobs.row]


def _graph(algorithm: int, gpus: int, variant: int, seed: int) -> JobTasks:
    rng = np.random.default_rng([seed, algorithm, gpus, variant])
    return tasks_of_jobs(np.array([algorithm]), np.array([gpus]), CONFIG, rng)


def _iterations(jobs: EnrichedJobs, sending_s: Floats) -> Ints:
    """Iterations an epoch: as many as its data hold batches, fewer where communications would be too large a part."""
    batch_mb = np.array([one.batch_mb for one in ALGORITHMS.values()])[_algorithms(jobs)]
    most = np.ceil(jobs.draws.uniform("data", *DATA_MB) / batch_mb)
    least_s = np.maximum(LEAST_ITERATION_S, sending_s / CONFIG.communication)
    return np.clip(np.floor(jobs.duration_s / jobs.epochs / least_s), 1.0, most).astype(np.int64)
