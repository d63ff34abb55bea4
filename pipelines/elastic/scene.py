"""What a simulation of elastic jobs replays: the window's jobs as columns, and the cluster that they share."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.elastic import ElasticJobs, Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import Cluster
from jobcast.pipelines.clusters import elastic_cluster
from jobcast.pipelines.job_table import LISTED
from jobcast.pipelines.scenes import cut_window, window_told
from jobcast.simulator.elastic.run import ElasticCluster
from jobcast.traces.speedups import Speedups, linear_speedups, read_speedups
from jobcast.traces.stages import stages_of
from jobcast.traces.table import Trace

LEAST_FACTOR = 0.01
"""No noise takes all of a declared size away."""


@dataclass(frozen=True, slots=True, eq=False)
class ElasticScene:
    """A workload of elastic jobs. Arrays have shape (n_jobs,), in order of submission.

    Attributes
    ----------
    jobs : what is known of them; times from `origin_s`
    size_s : the work that they really are, seconds on one GPU
    job_ids, pools, models : texts, (n_jobs,)
    origin_s : seconds from the epoch of the run's second 0, the first submission
    cluster : GPUs that all share
    gpu_types : names, in the order of the cluster's capacity
    trace : the window
    earlier : the trace before it
    notes : decisions that a reader of the result should know
    dropped : reason -> number of rows that the reader left out
    """

    jobs: ElasticJobs
    size_s: Floats
    job_ids: tuple[str, ...]
    pools: tuple[str, ...]
    models: tuple[str, ...]
    origin_s: float
    cluster: ElasticCluster
    gpu_types: tuple[str, ...]
    trace: Trace
    earlier: Trace
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.size_s)

    def listed(self) -> pl.DataFrame:
        """What a table of jobs takes from the trace: `job_table.LISTED`, with the work as duration."""
        known = [name for name in LISTED if name in self.trace.jobs.columns]
        return self.trace.jobs.select(known).with_columns(duration=pl.Series(self.size_s))

    def provenance(self) -> dict[str, Any]:
        """Inputs of the simulation, for results."""
        return {
            **window_told(self.trace),
            "gpus": dict(zip(self.gpu_types, self.cluster.capacity.tolist(), strict=True)),
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
        }


def elastic_scene(
    trace: Trace,
    place: Cluster,
    *,
    speedups: Path | None = None,
    from_s: float | None = None,
    until_s: float | None = None,
    limit: int | None = None,
    noise: float = 0.0,
    noise_seed: int = 0,
) -> ElasticScene:
    """Cut the window out of a trace and lay a speedup table under it.

    Jobs without `min_gpus` are rigid: they hold all their GPUs or none. Work is duration x the speedup on the GPUs that
    the duration holds for: one for elastic jobs, all for rigid ones, unless `duration_gpus` says how many.

    Parameters
    ----------
    trace, place : jobs and GPUs
    speedups : a table as `traces.speedups` reads it; without one every model is g times as fast on g GPUs
    from_s, until_s, limit : the window, and how many of its jobs
    noise : p of Figure 10: declared sizes are the true ones times a factor drawn for each in 1 -+ p
    noise_seed : of that draw

    Raises TraceError when the window holds no job or a job can never run, ConfigError for a table that does not fit.
    """
    window = in_submission_order(cut_window(trace, from_s, until_s))
    if limit is not None:
        window = replace(window, jobs=window.jobs.head(min(limit, len(window))))
    table, models, table_notes = _demand(window, speedups)
    jobs, size_s, rigid = _columns(window, table, models, place)
    if noise:
        jobs = jobs._replace(size_s=size_s * _factors(len(size_s), noise, noise_seed))
    notes = [*trace.notes, f"GPUs: {place.together}", *table_notes]
    if rigid:
        notes.append(f"{rigid} jobs without min_gpus hold all their GPUs or none")
    if noise:
        notes.append(f"declared sizes are wrong by up to {noise:.0%}")
    begin_s = float(window.submit_s[0]) if from_s is None else from_s
    return ElasticScene(
        jobs=jobs,
        size_s=size_s,
        job_ids=tuple(window.jobs["job_id"].to_list()),
        pools=tuple(window.jobs["pool"].to_list()),
        models=models,
        origin_s=float(window.submit_s[0]),
        cluster=elastic_cluster(place),
        gpu_types=place.gpu_types,
        trace=window,
        earlier=trace.between(None, begin_s),
        notes=tuple(notes),
        dropped=dict(trace.dropped),
    )


def in_submission_order(trace: Trace) -> Trace:
    """Jobs of one instant by the number that their id is, where all ids are numbers: 9 before 10. Else as they were."""
    numbers = trace.jobs["job_id"].cast(pl.Int64, strict=False)
    if numbers.null_count():
        return trace
    jobs = trace.jobs.with_columns(_number=numbers).sort("submit_time", "_number", maintain_order=True)
    return replace(trace, jobs=jobs.drop("_number"))


def _demand(window: Trace, path: Path | None) -> tuple[Speedups, tuple[str, ...], tuple[str, ...]]:
    """The table, and the model of each job."""
    named = window.jobs["model"] if "model" in window.jobs.columns else pl.Series([""] * len(window))
    models = tuple(named.cast(pl.String).fill_null("").to_list())
    if path is None:
        table = linear_speedups(int(window.gpus.max()), sorted(set(models)))
        return table, models, ("demand: g GPUs are g times as fast as one (no --set speedups=FILE)",)
    if "" in models:
        job_id = window.jobs["job_id"][models.index("")]
        raise TraceError(
            f"{window.source.path}: job {job_id} names no model, which {path} needs; fill the column model"
        )
    table = read_speedups(path)
    return table, models, (f"demand: {path}", *table.notes)


def _columns(
    window: Trace, table: Speedups, models: tuple[str, ...], place: Cluster
) -> tuple[ElasticJobs, Floats, int]:
    """The jobs, their sizes, and how many of them are rigid."""
    most = window.gpus.astype(np.float64)
    told = (
        window.jobs["min_gpus"]
        if "min_gpus" in window.jobs.columns
        else pl.Series([None] * len(window), dtype=pl.Int64)
    )
    rigid = told.is_null().to_numpy()
    least = np.where(rigid, most, told.fill_null(0).to_numpy()).astype(np.float64)
    stuck = least > place.gpus
    if stuck.any():
        row = int(np.flatnonzero(stuck)[0])
        raise TraceError(
            f"{window.source.path}: job {window.jobs['job_id'][row]} needs at least {least[row]:g} GPUs, the cluster "
            f"has {place.gpus:g} ({int(stuck.sum())} such jobs); give more GPUs or leave them out"
        )
    rows = {model: table.row_of(model) for model in sorted(set(models))}
    model = np.array([rows[name] for name in models], dtype=np.int64)
    at = np.minimum(window.duration_gpus, table.speedup.shape[2] - 1)
    size_s = window.duration_s * table.speedup[model, 0, at]
    stages = stages_of(window)
    narrowest = np.minimum.reduceat(stages.stage_most, stages.stage_of[:-1])
    if (least > narrowest).any():
        row = int(np.flatnonzero(least > narrowest)[0])
        raise TraceError(
            f"{window.source.path}: job {window.jobs['job_id'][row]} needs at least {least[row]:g} GPUs but can use "
            f"only {narrowest[row]:g} in one of its stages; lower min_gpus or raise the stage"
        )
    jobs = ElasticJobs(
        submit_s=np.ascontiguousarray(window.submit_s - window.submit_s[0]),
        size_s=size_s,
        least=least,
        most=most,
        model=model,
        stage_of=stages.stage_of,
        stage_end=stages.stage_end,
        stage_most=stages.stage_most,
        speedup=np.ascontiguousarray(table.speedup, dtype=np.float64),
        speed=np.ascontiguousarray(_speeds(table, place), dtype=np.float64),
    )
    return jobs, size_s, int(rigid.sum())


def _speeds(table: Speedups, place: Cluster) -> Floats:
    if len(place.gpu_types) == 1 and place.gpu_types[0] not in table.gpu_types:
        return np.ones((len(table.models), 1))
    return table.speeds(place.gpu_types)


def _factors(count: int, noise: float, seed: int) -> Floats:
    if not 0.0 <= noise < np.inf:
        raise ConfigError(f"setting noise: must be a share >= 0, got {noise}")
    drawn = np.random.default_rng(seed).uniform(-1.0, 1.0, count)
    return np.maximum(LEAST_FACTOR, 1.0 + noise * drawn)
