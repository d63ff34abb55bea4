"""Training jobs that run on any number of GPUs: their work, from measured step times and noise. Pollux (OSDI 2021)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from pathlib import Path

import numpy as np

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import Cluster
from jobcast.domain.jobs import Job, Outcome
from jobcast.domain.training import Phase
from jobcast.models.goodput import GPUS_PER_NODE, Limits, Throughput, fit_throughput, phases
from jobcast.simulator.laws.goodput import ScalableWork
from jobcast.simulator.workload import Workload
from jobcast.traces.goodput_tables import NoiseCurve, StepTimes, read_noise_curves, read_step_times
from jobcast.traces.table import Trace

STEP_TIMES, CURVES, SCALE_TO = "step_times", "training_curves", "scale_to"
SCALING_SETTINGS = (STEP_TIMES, CURVES, SCALE_TO)
"""Settings that say how jobs scale, whatever the policy."""
CLUSTER, ASKED = "cluster", "asked"
"""How far a job may scale: to all GPUs of the cluster, as in Pollux, or to as many as it asks for; by default the
latter where `duration_gpus` binds its duration."""
COLUMNS = ("job_id", "model", "batch_size", "epochs")


@dataclass(frozen=True, slots=True)
class ScalingTables:
    """Measurements by application, where they come from, and how far jobs may scale."""

    times: Mapping[str, StepTimes]
    curves: Mapping[str, Mapping[int, NoiseCurve]]
    times_path: str
    curves_path: str
    scale_to: str | None = None


@dataclass(frozen=True, slots=True)
class Application:
    """A training: its fitted throughput, the batch sizes that it may run at, and its work on any number of GPUs."""

    name: str
    throughput: Throughput
    limits: Limits
    work: ScalableWork
    gpus_per_node: int = GPUS_PER_NODE

    def samples_s(self, gpus: int, batch_size: int) -> float:
        """Samples a second; more than fit on the GPUs at once are accumulated, at the same time a sample."""
        step_s = self.throughput.step_s(ceil(gpus / self.gpus_per_node), gpus, batch_size / gpus)
        return batch_size / float(step_s)

    def rounded(self, batch_size: int) -> int:
        """The nearest doubling of the smallest batch size, so that a job has few of them."""
        return int(self.limits.initial * 2 ** max(0, round(float(np.log2(batch_size / self.limits.initial)))))


@dataclass(frozen=True, slots=True, eq=False)
class ScalingJobs:
    """The jobs of a workload as they scale, each (n_jobs,), and the tables that tell of them."""

    works: tuple[ScalableWork, ...]
    applications: tuple[Application, ...]
    tables: ScalingTables


def read_scaling(settings: Mapping[str, str]) -> ScalingTables | None:
    """The tables that settings name; None without any.

    Raises ConfigError for one without the other or beside throughputs, TraceError for a file that cannot be read.
    """
    # In their order, so that the first stray one is named.
    given = [name for name in SCALING_SETTINGS if name in settings]
    if not given:
        return None
    missing = [name for name in (STEP_TIMES, CURVES) if name not in settings]
    if missing:
        raise ConfigError(f"setting {given[0]}: tells nothing without {missing[0]}; add --set {missing[0]}=FILE")
    if "throughputs" in settings:
        raise ConfigError(f"settings {STEP_TIMES} and throughputs exclude each other: jobs scale or keep their GPUs")
    scale_to = settings.get(SCALE_TO)
    if scale_to not in (None, CLUSTER, ASKED):
        raise ConfigError(f"setting {SCALE_TO} must be {CLUSTER} or {ASKED}, got {scale_to}")
    steps, curves = Path(settings[STEP_TIMES]), Path(settings[CURVES])
    return ScalingTables(read_step_times(steps), read_noise_curves(curves), str(steps), str(curves), scale_to)


def application(
    name: str,
    tables: ScalingTables,
    most_gpus: int,
    *,
    batch_size: int | None = None,
    gpus_per_node: int = GPUS_PER_NODE,
    fitted: Throughput | None = None,
) -> Application:
    """A training of an application; batch sizes reach as far as its measurements do.

    Parameters
    ----------
    name : in both tables
    tables : measurements
    most_gpus : that it may ever run on
    batch_size : that it begins with, one that a curve was measured at; None = the smallest
    gpus_per_node : of the cluster
    fitted : its throughput; None fits it
    """
    times, curves = tables.times[name], tables.curves[name]
    # Without a batch size of its own a job begins with the smallest that was measured.
    smallest, begin = min(curves), batch_size or min(curves)
    local = times.local_batch_size
    limits = Limits(begin, max(curves), int(local.min()), int(local.max()), smallest)
    # A fit takes a second or so: whoever has one hands it in.
    throughput = fitted or fit_throughput(times)
    made = phases(throughput, limits, curves[begin], most_gpus, gpus_per_node)
    return Application(name, throughput, limits, ScalableWork(0.0, 1, made), gpus_per_node)


def scaling_workload(
    workload: Workload, trace: Trace, tables: ScalingTables, gpus_per_node: int = GPUS_PER_NODE
) -> tuple[Workload, ScalingJobs]:
    """The workload with jobs that scale: they run as long as alone on their GPUs at the best batch sizes.

    Where `duration_gpus` says that a duration holds for all of a job's GPUs, its work is as much larger or smaller as
    makes that time its duration.

    Parameters
    ----------
    workload : of the jobs of `trace`, found by job id
    trace : with the columns model (the application), and batch_size and epochs or without
    tables : measurements
    gpus_per_node : of the cluster

    Raises
    ------
    TraceError
        There is no column model; a job's application, batch size or epochs were not measured, or it asks for more GPUs
        than its largest batch size can be shared by.
    """
    if "model" not in trace.jobs.columns:
        raise TraceError(
            f"{trace.source.path}: jobs that scale need the column model, the app of {tables.times_path}; add it or "
            f"leave {STEP_TIMES} away"
        )
    present = [name for name in COLUMNS if name in trace.jobs.columns]
    # By id: the workload may have left jobs out.
    rows = {str(row["job_id"]): row for row in trace.jobs.select(present).to_dicts()}
    # A duration counts here only if it was of all GPUs that the job asks for.
    bound = dict(zip(trace.jobs["job_id"], (trace.bound & (trace.duration_gpus == trace.gpus)).tolist(), strict=True))
    # No job leaves its pool: none scales beyond the largest one.
    most_gpus = max((pool.quota for pool in workload.pools), default=1)
    maker = _Maker(tables, trace.source.path, most_gpus, gpus_per_node)
    made = [maker.application(job, rows[job.job_id], bound[job.job_id]) for job in workload.jobs]
    works = [
        ScalableWork(job.submit_s, job.gpus, app.work.phases) for job, app in zip(workload.jobs, made, strict=True)
    ]
    for seq, (job, outcome) in enumerate(zip(workload.jobs, workload.outcomes, strict=True)):
        # Stretched after all are made: the shapes are shared by jobs of one application.
        if bound[job.job_id]:
            works[seq] = works[seq].lasting(outcome.duration_s)
    outcomes = [Outcome(work.exclusive_s()) for work in works]
    return replace(workload, outcomes=outcomes), ScalingJobs(tuple(works), tuple(made), tables)


def scaled(
    workload: Workload, trace: Trace, tables: ScalingTables, place: Cluster
) -> tuple[Workload, ScalingJobs, str]:
    """As `scaling_workload` on nodes as large as the cluster's, or as those that were measured where it tells none.

    What is to be noted comes last. Raises ConfigError for nodes of several sizes, TraceError as `scaling_workload`.
    """
    # The fitted law knows one number of GPUs a node.
    sizes = {gpus for _, gpus in place.nodes}
    if len(sizes) > 1:
        raise ConfigError(f"cluster file: jobs that scale need nodes of one size, got {sorted(sizes)}; pass --gpus")
    made, scaling = scaling_workload(workload, trace, tables, min(sizes, default=GPUS_PER_NODE))
    note = f"run times: alone on the GPUs asked for at the batch sizes of the best goodput ({tables.times_path})"
    return made, scaling, note


class _Maker:
    """Makes the applications of a trace's jobs: each model and batch size once, then cut to a job's epochs and GPUs."""

    def __init__(self, tables: ScalingTables, path: str, most_gpus: int, gpus_per_node: int) -> None:
        self._tables, self._path, self._most, self._node = tables, path, most_gpus, gpus_per_node
        self._fitted = cache(lambda name: fit_throughput(tables.times[name]))
        self._whole: dict[tuple[object, ...], Application] = {}
        self._made: dict[tuple[object, ...], Application] = {}

    def application(self, job: Job, row: Mapping[str, object], bound: bool) -> Application:
        """A job's application. Raises TraceError for what was not measured."""
        name, batch_size, epochs = (row.get(column) for column in COLUMNS[1:])
        scale_to = self._tables.scale_to or (ASKED if bound else CLUSTER)
        most = job.gpus if scale_to == ASKED else self._most
        # Jobs alike in all of these share one object, which fits and figures are kept by.
        key = (name, batch_size, epochs, most)
        if key not in self._made:
            whole = self._whole.get(key[:2])
            if whole is None:
                whole = self._whole[key[:2]] = self._new(job, str(name or ""), _count(batch_size))
            self._made[key] = self._cut(job, whole, _count(epochs), most)
        made = self._made[key]
        # A batch needs a sample a GPU: goodputs end where the largest batch cannot be shared any more.
        reach = len(made.work.phases[0].goodput)
        if job.gpus > reach:
            self._refuse(job, f"asks for {job.gpus} GPUs, {made.name} can use {reach} at its largest batch size")
        return made

    def _cut(self, job: Job, whole: Application, epochs: int | None, most: int) -> Application:
        """The first epochs, on as many GPUs at most."""
        phases = whole.work.phases
        if epochs is not None and epochs > len(phases):
            path = self._tables.curves_path
            self._refuse(job, f"{epochs} epochs of {whole.name}, {len(phases)} were measured in {path}")
        # Tables are cut and not made anew: they cost a search for each number of GPUs.
        cut = tuple(Phase(one.until, one.goodput[:most], one.batch_size[:most]) for one in phases[:epochs])
        return replace(whole, work=replace(whole.work, phases=cut))

    def _new(self, job: Job, name: str, batch_size: int | None) -> Application:
        tables = self._tables
        for known, path in ((tables.times, tables.times_path), (tables.curves, tables.curves_path)):
            if name not in known:
                what = f"model {name} is not in {path}" if name else "names no model"
                self._refuse(job, f"{what}, which has {', '.join(known)}" if name else what)
        curves = tables.curves[name]
        if batch_size is not None and batch_size not in curves:
            sizes = ", ".join(map(str, curves))
            self._refuse(job, f"batch size {batch_size} of {name} is not in {tables.curves_path}, which has {sizes}")
        # Without it the fit has nothing to tell computing from communicating.
        if not (tables.times[name].gpus == 1).any():
            raise TraceError(f"{tables.times_path}: no step of {name} on one GPU; add one, its throughput hangs on it")
        fitted = self._fitted(name)
        return application(name, tables, self._most, batch_size=batch_size, gpus_per_node=self._node, fitted=fitted)

    def _refuse(self, job: Job, what: str) -> None:
        raise TraceError(f"{self._path}, job {job.job_id}: {what}; correct the row or the table")


def _count(value: object) -> int | None:
    return None if value is None else int(str(value))
