"""Jobs of tasks: a window's jobs with their tasks, the truth about them, and servers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jobcast.domain.arrays import Bools, Ints
from jobcast.domain.errors import TraceError
from jobcast.domain.tasks import TaskCluster, TaskJobs
from jobcast.pipelines.experiments.clusters import task_cluster
from jobcast.pipelines.experiments.scenarios import Bare, Scenario, untold
from jobcast.simulator.task_workload import TaskTruth, TaskWorkload, beyond_memory
from jobcast.traces.learning_curves import JobCurves, read_job_curves
from jobcast.traces.table import Trace
from jobcast.traces.tasks import TaskTable, read_tasks

DEFAULT_URGENCY = 1.0
"""Of a job without a weight."""
UNTOLD = {
    "deadline": "no deadline: jobs may end at any time",
    "weight": f"no weight: all jobs are of urgency {DEFAULT_URGENCY:g}",
    "target_accuracy": "no target_accuracy: no accuracy is required",
}
"""What jobs are taken to be where the trace does not say."""

TaskScene = Scenario[TaskWorkload, None]


TOO_LARGE = "more memory than the servers have"
"""Why a job of tasks is left out where that was asked for."""


def task_jobs(cut: Bare, *, tasks: Path, curves: Path, drop_wide: bool = False) -> TaskScene:
    """The jobs of a window with their tasks and curves; times are seconds from the epoch.

    Parameters
    ----------
    cut : the window, with `epochs`; `deadline`, `weight` (urgency), `target_accuracy` and `model` where there are
    tasks, curves : files as `traces.tasks` and `traces.learning_curves` read them
    drop_wide : whether jobs that demand more memory than there is are left out and counted, not refused

    Raises TraceError where a file cannot be read, or does not fit the window.
    """
    all_tasks, all_curves = read_tasks(tasks), read_job_curves(curves)
    # Against the whole trace: tasks of jobs outside of the window are no mistake.
    _refuse_strangers(all_tasks, cut.whole)
    cluster = task_cluster(cut.place)
    window, dropped = cut.trace, {}
    if drop_wide:
        window = window.without(_too_large(all_tasks.of_jobs(cut.job_ids), cluster), TOO_LARGE)
        dropped = {reason: count for reason, count in window.dropped.items() if reason == TOO_LARGE}
    job_ids = tuple(window.jobs["job_id"].to_list())
    workload = task_workload(window, job_ids, all_tasks, all_curves, cluster)
    inputs = {"tasks": _said(all_tasks), "curves": _said(all_curves), "servers": len(cluster.capacity)}
    notes = (f"servers: {cut.place.origin}", *untold(cut.trace, UNTOLD))
    return cut.of(workload, None, *notes, listed=window.jobs, dropped=dropped, inputs=inputs)


def _too_large(tasks: TaskTable, cluster: TaskCluster) -> Bools:
    """(n_jobs,) which the servers cannot hold."""
    large, together = beyond_memory(tasks.demand, tasks.task_of, cluster)
    return np.logical_or.reduceat(large, tasks.task_of[:-1]) | together


def task_workload(
    window: Trace, job_ids: Sequence[str], tasks: TaskTable, curves: JobCurves, cluster: TaskCluster
) -> TaskWorkload:
    """What is replayed of a trace, its jobs' names, tasks and curves, and servers. Raises TraceError."""
    epochs = window.needed("epochs", "jobs of tasks").to_numpy()
    mine = tasks.of_jobs(job_ids)
    _refuse_widths(mine, window)
    truth = TaskTruth(curves.padded(job_ids, epochs), mine.model_mb)
    workload = TaskWorkload(_jobs(window, mine, epochs), truth, cluster, job_ids, window.duration_s)
    workload.check()
    return workload


def _said(file: TaskTable | JobCurves) -> dict[str, str]:
    return {"path": file.path, "sha256": file.sha256}


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
    # Parameter servers take no GPU.
    workers = np.add.reduceat((~tasks.is_server).astype(np.int64), tasks.task_of[:-1])
    wrong = np.flatnonzero(workers != window.gpus)
    if len(wrong):
        row = int(wrong[0])
        raise TraceError(
            f"{tasks.path}: job {tasks.job_ids[row]} has {workers[row]} workers, {window.source.path} gives it "
            f"{window.gpus[row]} GPUs ({len(wrong)} such jobs); make them agree"
        )


def _algorithms(window: Trace) -> Ints:
    """(n_jobs,) index of each job's learning algorithm among those of the window, ascending by name."""
    if "model" not in window.jobs.columns:
        return np.zeros(len(window), dtype=np.int64)
    named = window.jobs["model"].fill_null("").to_numpy()
    # Numbers by name: the same algorithms get the same numbers in every window.
    return np.unique(named, return_inverse=True)[1].astype(np.int64)


def _jobs(window: Trace, tasks: TaskTable, epochs: Ints) -> TaskJobs:
    epoch_iterations = tasks.epoch_iterations.astype(np.float64)
    return TaskJobs(
        submit_s=window.submit_s,
        deadline_s=window.due_s,
        urgency=window.numbers("weight", DEFAULT_URGENCY),
        target=window.numbers("target_accuracy", np.nan),
        iterations=epochs * epoch_iterations,
        epoch_iterations=epoch_iterations,
        iteration_s=tasks.iteration_s,
        option=tasks.option,
        may_become=tasks.may_become,
        algorithm=_algorithms(window),
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
