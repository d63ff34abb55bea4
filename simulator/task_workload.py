"""What is known of jobs of tasks: what they consist of, the truth about them, and the servers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.errors import TraceError
from jobcast.domain.jobs import FLAT_POOL, Job, Outcome, Pool
from jobcast.domain.task_checks import check_cluster, check_edges, check_links, check_tasks
from jobcast.domain.tasks import Bools, Floats, Ints, TaskCluster, TaskJobs
from jobcast.simulator.workload import Workload


def epochs_of(iterations: Floats, epoch_iterations: Floats) -> Ints:
    """Epochs that so many iterations take, the last one perhaps shorter; at least 1, (n_jobs,).

    >>> epochs_of(np.array([100.0, 101.0, 3.0]), np.array([10.0, 10.0, 10.0])).tolist()
    [10, 11, 1]
    """
    return np.maximum(np.ceil(iterations / epoch_iterations - tolerance.EPOCHS), 1.0).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class TaskTruth:
    """What only the engine knows.

    Attributes
    ----------
    metric : (n_jobs, longest + 1) by epoch, the higher the better; column 0 is before training; padded with NaN
    model_mb : (n_jobs,) size of the model, of which a task that moves takes its `size_share` along
    iterations : (n_jobs,) after which the job really ends; None: those of the jobs
    """

    metric: Floats
    model_mb: Floats
    iterations: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TaskWorkload:
    """Jobs in order of submission, the truth about them, servers, and the names of the jobs, (n_jobs,).

    `duration_s`: run times alone on the GPUs asked for, (n_jobs,), where a trace tells them.
    """

    jobs: TaskJobs
    truth: TaskTruth
    cluster: TaskCluster
    job_ids: Sequence[str]
    duration_s: Floats | None = None

    def __len__(self) -> int:
        return len(self.jobs.submit_s)

    @property
    def iterations(self) -> Floats:
        """(n_jobs,) after which jobs really end."""
        return self.jobs.iterations if self.truth.iterations is None else self.truth.iterations

    @property
    def alone_s(self) -> Floats:
        """(n_jobs,) run times alone: the trace's, else iterations x the estimate of an iteration, nothing held up."""
        return self.iterations * self.jobs.iteration_s if self.duration_s is None else self.duration_s

    @property
    def epochs(self) -> Ints:
        """(n_jobs,) epochs of the iterations that jobs declare."""
        return epochs_of(self.jobs.iterations, self.jobs.epoch_iterations)

    def whole(self) -> Workload:
        """The jobs as they arrive, in one pool of all GPUs, which their tasks may share."""
        columns = (self.jobs.submit_s, self.jobs.gpus, self.jobs.urgency, self.jobs.deadline_s)
        jobs = [
            Job(seq, name, FLAT_POOL, submit_s, gpus, preemptible=True, weight=urgency, due_s=due_s)
            for seq, (name, submit_s, gpus, urgency, due_s) in enumerate(
                zip(self.job_ids, *(column.tolist() for column in columns), strict=True)
            )
        ]
        outcomes = [Outcome(duration_s) for duration_s in self.alone_s.tolist()]
        return Workload(jobs, outcomes, [Pool(FLAT_POOL, len(self.cluster.server_of))], shared=True)

    def check(self) -> None:
        """Refuse what cannot be replayed.

        Raises
        ------
        TraceError
            Columns of different lengths, numbers that mean nothing, tasks that fit on no server; with the job's name.
        """
        _check_lengths(self)
        check_cluster(self.cluster)
        if not len(self):
            raise TraceError("there are no jobs; give at least one")
        check_links(self.jobs)
        _check_jobs(self)
        check_tasks(self.jobs, self.cluster, self.job_ids)
        check_edges(self.jobs, self.job_ids)


def _check_lengths(workload: TaskWorkload) -> None:
    jobs, truth = workload.jobs, workload.truth
    count, tasks, edges = len(jobs.submit_s), len(jobs.job_of), len(jobs.edge_from)
    wanted = dict.fromkeys(jobs._fields[:10], count) | dict.fromkeys(("task_of", "edge_of"), count + 1)
    wanted |= dict.fromkeys(("demand", "compute_s", "size_share", "is_server"), tasks)
    wanted |= dict.fromkeys(("edge_to", "volume_mb"), edges)
    found = {name: len(getattr(jobs, name)) for name in wanted}
    found |= {"metric": len(truth.metric), "model_mb": len(truth.model_mb), "job_ids": len(workload.job_ids)}
    wanted |= dict.fromkeys(("metric", "model_mb", "job_ids"), count)
    if workload.duration_s is not None:
        found["duration"], wanted["duration"] = len(workload.duration_s), count
    if truth.iterations is not None:
        found["true iterations"], wanted["true iterations"] = len(truth.iterations), count
    for name, length in found.items():
        if length != wanted[name]:
            raise TraceError(f"column {name} of the jobs of tasks has {length} rows, not {wanted[name]}")


def _check_jobs(workload: TaskWorkload) -> None:
    jobs, truth, iterations = workload.jobs, workload.truth, workload.iterations
    late = np.concatenate([[False], np.diff(jobs.submit_s) < 0.0])
    slowest = np.maximum.reduceat(jobs.compute_s, jobs.task_of[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        positive = np.isfinite(jobs.iterations) & (jobs.iterations > 0.0) & (jobs.epoch_iterations > 0.0)
        seen = np.where(positive, iterations / jobs.epoch_iterations, 0.0)
    reach = np.maximum(np.ceil(seen - tolerance.EPOCHS), 1.0)
    known = np.isfinite(truth.metric) | (np.arange(truth.metric.shape[1]) > reach[:, None])
    rules: tuple[tuple[Bools, str], ...] = (
        (~np.isfinite(jobs.submit_s) | late, "is submitted before the job above it, or never; sort by submission"),
        (~positive, "has no iterations, or none an epoch; both must be above 0"),
        (~((iterations > 0.0) & (iterations <= jobs.iterations)), "really runs 0 iterations, or more than it declares"),
        (np.isnan(jobs.deadline_s), "has a deadline that is no number; infinity stands for none"),
        (~(slowest > 0.0), "has no task that computes anything; give compute_s"),
        (~(truth.model_mb >= 0.0), "has a model of less than 0 MB"),
        (~known.all(axis=1) | (reach >= truth.metric.shape[1]), "lacks a metric for each epoch from 0 on"),
    )
    for bad, told in rules:
        if bad.any():
            raise TraceError(f"job {workload.job_ids[int(np.argmax(bad))]} {told}")
