"""Elastic jobs: a window's jobs as columns, and the cluster that they share."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.elastic import ElasticJobs
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import Cluster
from jobcast.pipelines.experiments.clusters import elastic_cluster
from jobcast.pipelines.experiments.scenarios import Bare, Scenario
from jobcast.simulator.elastic.run import ElasticCluster
from jobcast.traces.speedups import Speedups, linear_speedups, read_speedups
from jobcast.traces.stages import stages_of
from jobcast.traces.table import Trace

LEAST_FACTOR = 0.01
"""No noise takes all of a declared size away."""
WIDEST = 1_000_000
"""GPUs of a job: no cluster has more."""


@dataclass(frozen=True, slots=True, eq=False)
class ElasticWorkload:
    """Elastic jobs as their engine takes them.

    Attributes
    ----------
    jobs : what is known of them; times from `origin_s`
    size_s : (n_jobs,) the work that they really are, seconds on one GPU of the cluster's first type
    cluster : GPUs that all share
    origin_s : seconds from the epoch of the run's second 0, the first submission
    """

    jobs: ElasticJobs
    size_s: Floats
    cluster: ElasticCluster
    origin_s: float

    def __len__(self) -> int:
        return len(self.size_s)


ElasticScene = Scenario[ElasticWorkload, None]


def elastic_jobs(
    cut: Bare, *, speedups: Path | None = None, noise: float = 0.0, noise_seed: int = 0, spread: float = 0.0
) -> ElasticScene:
    """The jobs of a window over a speedup table, listed with their work as duration.

    Jobs without `min_gpus` are rigid: they hold all their GPUs or none. Work is duration x the speedup on the GPUs that
    the duration holds for, of the table's first type: one for elastic jobs, all for rigid ones, unless `duration_gpus`
    says how many. It is listed as on the cluster's first type.

    Parameters
    ----------
    cut : the window
    speedups : a table as `traces.speedups` reads it; without one every model is g times as fast on g GPUs
    noise : p of Figure 10: declared sizes are the true ones times a factor drawn for each in 1 -+ p
    noise_seed : of that draw
    spread : standard deviation of the logarithm of another factor, by which they are wrong, too

    Raises TraceError when a job can never run, ConfigError for a table that does not fit.
    """
    # Jobs of one instant go by the number that their id is: 9 comes before 10.
    cut = replace(cut, trace=in_submission_order(cut.trace))
    place, window = cut.place, cut.trace
    widest = int(window.gpus.argmax())
    named = f"{window.source.path}: job {window.jobs['job_id'][widest]}"
    check_width(int(window.gpus[widest]), place.gpus, named)
    table, table_notes = _demand(window, speedups)
    jobs, size_s, rigid = _columns(window, table, place)
    if noise or spread:
        # Only what is declared is wrong: the true sizes stay as they are.
        jobs = jobs._replace(size_s=size_s * _factors(len(size_s), noise, noise_seed, spread))
    return cut.of(
        ElasticWorkload(jobs, size_s, elastic_cluster(place), float(window.submit_s[0])),
        None,
        f"GPUs: {place.origin}",
        *table_notes,
        f"jobs without min_gpus, which hold all their GPUs or none: {rigid}" if rigid else "",
        f"declared sizes are wrong by up to {noise:.0%}" if noise else "",
        f"declared sizes are wrong by a log-normal factor of {spread:g}" if spread else "",
        listed=window.jobs.with_columns(duration=pl.Series(size_s)),
    )


def models_of(trace: Trace) -> tuple[str, ...]:
    """(n_jobs,) models by name, empty where none is told."""
    return tuple(str(name or "") for name in trace.values("model"))


def model_rows(scenario: ElasticScene) -> dict[str, int]:
    """Model by name -> its row in the table of speedups."""
    return dict(zip(models_of(scenario.trace), scenario.workload.jobs.model.tolist(), strict=True))


def taken(jobs: ElasticJobs, rows: Ints) -> ElasticJobs:
    """Some of the jobs, in the order of `rows`, in which one may come again; each has its stages."""
    first, count = jobs.stage_of[rows], np.diff(jobs.stage_of)[rows]
    stage_of = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(count)])
    # Stages lie end to end: place in the new row of them -> place in the old one.
    at = np.repeat(first - stage_of[:-1], count) + np.arange(stage_of[-1])
    by_job = (column[rows] for column in jobs[:5])
    stages = stage_of, jobs.stage_end[at], jobs.stage_most[at]
    return ElasticJobs._make([*by_job, *stages, jobs.speedup, jobs.speed])


def with_more(jobs: ElasticJobs, *columns: Any) -> ElasticJobs:
    """The jobs, and behind them more of one stage each; `columns`: submit_s, size_s, least, most, model of these."""
    most = columns[3]
    by_job = (np.concatenate(both) for both in zip(jobs[:5], columns, strict=True))
    stage_of = np.concatenate([jobs.stage_of, jobs.stage_of[-1] + np.arange(1, len(most) + 1)])
    stage_end = np.concatenate([jobs.stage_end, np.ones(len(most))])
    stage_most = np.concatenate([jobs.stage_most, most])
    return ElasticJobs._make([*by_job, stage_of, stage_end, stage_most, jobs.speedup, jobs.speed])


def in_submission_order(trace: Trace) -> Trace:
    """Jobs of one instant by the number that their id is, where all ids are numbers: 9 before 10. Else as they were."""
    numbers = trace.jobs["job_id"].cast(pl.Int64, strict=False)
    # Ids that are no numbers have no order of their own.
    if numbers.null_count():
        return trace
    jobs = trace.jobs.with_columns(_number=numbers).sort("submit_time", "_number", maintain_order=True)
    return replace(trace, jobs=jobs.drop("_number"))


def check_width(gpus: int, there: float, named: str) -> None:
    """Refuse a width that is no cluster's: tables hold a number for each GPU. Raises TraceError; `named`: whose it is.

    Up to `WIDEST` a job may be able to use more GPUs than there are.
    """
    if gpus > max(there, WIDEST):
        raise TraceError(f"{named}: {gpus:,} GPUs are more than the cluster's {there:,g}; ask for fewer")


def _demand(window: Trace, path: Path | None) -> tuple[Speedups, tuple[str, ...]]:
    """The table, and what is to be noted of it."""
    models = models_of(window)
    if path is None:
        table = linear_speedups(int(window.gpus.max()), sorted(set(models)))
        return table, ("demand: g GPUs are g times as fast as one (no --set speedups=FILE)",)
    if "" in models:
        job_id = window.jobs["job_id"][models.index("")]
        raise TraceError(
            f"{window.source.path}: job {job_id} names no model, which {path} needs; fill the column model"
        )
    table = read_speedups(path)
    return table, (f"demand: {path}", *table.notes)


def _columns(window: Trace, table: Speedups, place: Cluster) -> tuple[ElasticJobs, Floats, int]:
    """The jobs, their sizes, and how many of them are rigid."""
    models = models_of(window)
    most = window.gpus.astype(np.float64)
    result = pl.Series(window.values("min_gpus"), dtype=pl.Int64)
    # A trace without the column holds rigid jobs alone.
    rigid = result.is_null().to_numpy()
    # Rigid: as many at least as at most.
    least = np.where(rigid, most, result.fill_null(0).to_numpy()).astype(np.float64)
    stuck = least > place.gpus
    if stuck.any():
        row = int(np.flatnonzero(stuck)[0])
        raise TraceError(
            f"{window.source.path}: job {window.jobs['job_id'][row]} needs at least {least[row]:g} GPUs, the cluster "
            f"has {place.gpus:g} ({int(stuck.sum())} such jobs); give more GPUs or leave them out"
        )
    rows = {model: table.row_of(model) for model in sorted(set(models))}
    model = np.array([rows[name] for name in models], dtype=np.int64)
    # Tables end somewhere: beyond, nothing is gained.
    at = np.minimum(window.duration_gpus, table.speedup.shape[2] - 1)
    speed = _speeds(table, place)
    # A duration holds on the table's first type; work counts on one GPU of the cluster's first type.
    size_s = window.duration_s * table.speedup[model, 0, at] / speed[model, 0]
    stages = stages_of(window)
    # A stage may use fewer GPUs than the job: it must still reach its least.
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
        speed=np.ascontiguousarray(speed / speed[:, :1], dtype=np.float64),
    )
    return jobs, size_s, int(rigid.sum())


def _speeds(table: Speedups, place: Cluster) -> Floats:
    # With a single type the table's unit is that type, however it is called.
    if len(place.gpu_types) == 1 and place.gpu_types[0] not in table.gpu_types:
        return np.ones((len(table.models), 1))
    return table.speeds(place.gpu_types)


def _factors(count: int, noise: float, seed: int, spread: float) -> Floats:
    if not 0.0 <= noise < np.inf:
        raise ConfigError(f"setting noise: must be a share >= 0, got {noise}")
    rng = np.random.default_rng(seed)
    drawn = np.maximum(LEAST_FACTOR, 1.0 + noise * rng.uniform(-1.0, 1.0, count))
    return drawn * np.exp(spread * rng.standard_normal(count)) if spread else drawn
