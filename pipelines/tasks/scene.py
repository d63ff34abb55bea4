"""What a simulation of jobs of tasks replays: the window's jobs with their tasks, the truth about them, servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.domain.hardware import Cluster
from jobcast.domain.tasks import Floats, Ints, TaskCluster, TaskJobs
from jobcast.pipelines.clusters import task_cluster
from jobcast.pipelines.scenes import cut_window, window_told
from jobcast.simulator.tasks.workload import TaskTruth, TaskWorkload
from jobcast.traces.job_curves import JobCurves, read_job_curves
from jobcast.traces.table import MICROSECONDS, Trace
from jobcast.traces.tasks import TaskTable, read_tasks

DEFAULT_URGENCY = 1.0
"""Of a job without a weight."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskScene:
    """A workload of jobs of tasks. Jobs are in order of submission.

    Attributes
    ----------
    jobs : what policies see of them; times are seconds from the epoch
    truth : what only the engine knows
    cluster : servers
    job_ids, algorithms : (n_jobs,) names; names of learning algorithms by their index in `jobs.algorithm`
    trace, earlier : the window, and the trace before it
    files : path and SHA-256 of the files of tasks and curves
    notes : decisions that a reader of the result should know
    dropped : reason -> number of rows that the reader left out
    """

    jobs: TaskJobs
    truth: TaskTruth
    cluster: TaskCluster
    job_ids: tuple[str, ...]
    algorithms: tuple[str, ...]
    trace: Trace
    earlier: Trace
    files: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.job_ids)

    @property
    def workload(self) -> TaskWorkload:
        """As the engine takes it."""
        return TaskWorkload(self.jobs, self.truth, self.cluster, self.job_ids, self.trace.duration_s)

    def listed(self) -> pl.DataFrame:
        """What a table of jobs takes from the trace."""
        return self.trace.jobs

    def provenance(self) -> dict[str, Any]:
        """Inputs of the simulation, for results."""
        return {
            **window_told(self.trace),
            **{name: dict(said) for name, said in self.files.items()},
            "gpus": len(self.cluster.server_of),
            "servers": len(self.cluster.capacity),
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
        }


def task_scene(
    trace: Trace,
    place: Cluster,
    *,
    tasks: Path,
    curves: Path,
    from_s: float | None = None,
    until_s: float | None = None,
    limit: int | None = None,
) -> TaskScene:
    """Cut the window out of a trace and lay its jobs' tasks and curves beside it.

    Parameters
    ----------
    trace : canonical, with `epochs`; `deadline`, `weight` (urgency), `target_accuracy` and `model` where there are
    place : they share its servers
    tasks, curves : files as `traces.tasks` and `traces.job_curves` read them
    from_s, until_s, limit : the window, and how many of its jobs

    Raises
    ------
    TraceError
        The window holds no job, a file cannot be read, or it does not fit the trace.
    """
    window = cut_window(trace, from_s, until_s, limit)
    all_tasks, all_curves = read_tasks(tasks), read_job_curves(curves)
    _refuse_strangers(all_tasks, trace)
    job_ids = tuple(window.jobs["job_id"].to_list())
    epochs = _epochs(window)
    mine = all_tasks.of_jobs(job_ids)
    _refuse_widths(mine, window)
    models, algorithms = _algorithms(window)
    scene = TaskScene(
        jobs=_jobs(window, mine, epochs, models),
        truth=TaskTruth(all_curves.padded(job_ids, epochs), mine.model_mb),
        cluster=task_cluster(place),
        job_ids=job_ids,
        algorithms=algorithms,
        trace=window,
        earlier=trace.between(None, float(window.submit_s[0]) if from_s is None else from_s),
        files={"tasks": _said(all_tasks), "curves": _said(all_curves)},
        notes=(*trace.notes, f"servers: {place.together}", *_missing(window)),
        dropped=dict(trace.dropped),
    )
    scene.workload.check()
    return scene


def _said(file: TaskTable | JobCurves) -> dict[str, str]:
    return {"path": file.path, "sha256": file.sha256}


def _missing(window: Trace) -> list[str]:
    """What jobs are taken to be where the trace does not say."""
    taken = {
        "deadline": "no deadline: jobs may end at any time",
        "weight": f"no weight: all jobs are of urgency {DEFAULT_URGENCY:g}",
        "target_accuracy": "no target_accuracy: no accuracy is required",
    }
    return [said for name, said in taken.items() if name not in window.jobs.columns]


def _epochs(window: Trace) -> Ints:
    if "epochs" not in window.jobs.columns:
        raise TraceError(f"{window.source.path}: column epochs missing, which jobs of tasks need; add it")
    known = window.jobs["epochs"]
    if known.null_count():
        job_id = window.jobs["job_id"][int(known.is_null().arg_true()[0])]
        raise TraceError(f"{window.source.path}: job {job_id} names no epochs; fill the column epochs")
    return known.to_numpy()


def _refuse_strangers(tasks: TaskTable, trace: Trace) -> None:
    known = set(trace.jobs["job_id"].to_list())
    strangers = [job_id for job_id in tasks.job_ids if job_id not in known]
    if strangers:
        more = f" ({len(strangers) - 1} more jobs like it)" if len(strangers) > 1 else ""
        raise TraceError(
            f"{tasks.path}: job {strangers[0]} is not in {trace.source.path}{more}; drop its rows or give its trace"
        )


def _refuse_widths(tasks: TaskTable, window: Trace) -> None:
    """A job has a worker for each of its GPUs."""
    workers = np.add.reduceat((~tasks.is_server).astype(np.int64), tasks.task_of[:-1])
    wrong = np.flatnonzero(workers != window.gpus)
    if len(wrong):
        row = int(wrong[0])
        raise TraceError(
            f"{tasks.path}: job {tasks.job_ids[row]} has {workers[row]} workers, {window.source.path} gives it "
            f"{window.gpus[row]} GPUs ({len(wrong)} such jobs); make them agree"
        )


def _algorithms(window: Trace) -> tuple[Ints, tuple[str, ...]]:
    """(n_jobs,) index of each job's algorithm among those of the window, ascending by name."""
    if "model" not in window.jobs.columns:
        return np.zeros(len(window), dtype=np.int64), ("",)
    named = window.jobs["model"].fill_null("").to_list()
    names = tuple(sorted(set(named)))
    return np.array([names.index(name) for name in named], dtype=np.int64), names


def _numbers(window: Trace, name: str, otherwise: float) -> Floats:
    """A column of the trace, or the same number for all."""
    if name not in window.jobs.columns:
        return np.full(len(window), otherwise)
    return window.jobs[name].cast(pl.Float64).fill_null(otherwise).to_numpy()


def _deadlines_s(window: Trace) -> Floats:
    """(n_jobs,) seconds from the epoch, infinite where there is none."""
    if "deadline" not in window.jobs.columns:
        return np.full(len(window), np.inf)
    known = window.jobs["deadline"]
    at_s = known.dt.timestamp("us").cast(pl.Float64).fill_null(np.inf).to_numpy() / MICROSECONDS
    return np.where(known.is_null().to_numpy(), np.inf, at_s)


def _jobs(window: Trace, tasks: TaskTable, epochs: Ints, models: Ints) -> TaskJobs:
    epoch_iterations = tasks.epoch_iterations.astype(np.float64)
    return TaskJobs(
        submit_s=window.submit_s,
        deadline_s=_deadlines_s(window),
        urgency=_numbers(window, "weight", DEFAULT_URGENCY),
        target=_numbers(window, "target_accuracy", np.nan),
        iterations=epochs * epoch_iterations,
        epoch_iterations=epoch_iterations,
        iteration_s=tasks.iteration_s,
        option=tasks.option,
        may_become=tasks.may_become,
        algorithm=models,
        gpus=window.gpus.copy(),
        task_of=tasks.task_of,
        edge_of=tasks.edge_of,
        job_of=np.repeat(np.arange(len(window)), np.diff(tasks.task_of)),
        demand=np.ascontiguousarray(tasks.demand),
        compute_s=tasks.compute_s,
        size_share=tasks.size_share,
        is_server=tasks.is_server,
        edge_from=tasks.edge_from,
        edge_to=tasks.edge_to,
        volume_mb=tasks.volume_mb,
    )
