"""What is known of jobs of tasks: what they consist of, the truth about them, and the servers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.errors import TraceError, refuse_first
from jobcast.domain.jobs import FLAT_POOL, Job, Outcome, Pool
from jobcast.domain.tasks import BANDWIDTH, GPU, MEMORY, TaskCluster, TaskJobs
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
        # In this order: each check indexes by what the ones before it have made sure of.
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
    # By job, unless they are about something else.
    wanted = dict.fromkeys(jobs._fields, count) | dict.fromkeys(("task_of", "edge_of"), count + 1)
    wanted |= dict.fromkeys(("job_of", "demand", "compute_s", "size_share", "is_server"), tasks)
    wanted |= dict.fromkeys(("edge_from", "edge_to", "volume_mb"), edges)
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
    # Rows that divide by 0 are refused by a rule of their own.
    with np.errstate(divide="ignore", invalid="ignore"):
        positive = np.isfinite(jobs.iterations) & (jobs.iterations > 0.0) & (jobs.epoch_iterations > 0.0)
        reach = np.maximum(np.ceil(iterations / jobs.epoch_iterations - tolerance.EPOCHS), 1.0)
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
    refuse_first(rules, lambda job: f"job {workload.job_ids[job]}")


def check_cluster(cluster: TaskCluster) -> None:
    """Refuse servers that mean nothing; raises TraceError."""
    servers, hosts = len(cluster.capacity), cluster.server_of
    if not servers or not len(hosts):
        raise TraceError("the cluster has no servers or no GPUs; give at least one of each")
    if (np.diff(hosts) < 0).any() or hosts[0] < 0 or hosts[-1] >= servers:
        raise TraceError(f"GPUs of the cluster name servers out of order, or beyond the {servers} that there are")
    bad = ~(np.isfinite(cluster.capacity) & (cluster.capacity >= 0.0)).all(axis=1)
    bad |= (cluster.capacity[:, 1:] <= 0.0).any(axis=1)
    if bad.any():
        server = int(np.argmax(bad))
        raise TraceError(f"server {server} lacks cores, GB or MB/s: {cluster.capacity[server].tolist()}; give them all")


def check_links(jobs: TaskJobs) -> None:
    """Refuse tasks and edges that are nobody's; raises TraceError."""
    for name, begins, last in (("task", jobs.task_of, len(jobs.job_of)), ("edge", jobs.edge_of, len(jobs.edge_from))):
        if begins[0] != 0 or begins[-1] != last or (np.diff(begins) < (1 if name == "task" else 0)).any():
            raise TraceError(f"column {name}_of does not tell where each job's {name}s begin; count from 0 to {last}")
    if not np.array_equal(jobs.job_of, np.repeat(np.arange(len(jobs.submit_s)), np.diff(jobs.task_of))):
        raise TraceError("column job_of does not agree with task_of; keep the tasks of a job together, in its order")


LARGER = "give larger servers, or leave such jobs out (--drop-too-wide)"


def beyond_memory(demand: Floats, task_of: Ints, cluster: TaskCluster) -> tuple[Bools, Bools]:
    """Whether a task (n_tasks,) demands more memory than any server has, and a job (n_jobs,) more than all have."""
    memory, room = demand[:, MEMORY], cluster.capacity[:, MEMORY]
    # Every job has a task, so that no slice is empty.
    return memory > room.max(), np.add.reduceat(memory, task_of[:-1]) > room.sum()


def check_tasks(jobs: TaskJobs, cluster: TaskCluster, job_ids: Sequence[str]) -> None:
    """Refuse tasks that fit on no server, and numbers that mean nothing; raises TraceError with the task's name."""
    large, large_together = beyond_memory(jobs.demand, jobs.task_of, cluster)
    biggest = cluster.capacity[:, MEMORY].max()
    sound = np.asarray((np.isfinite(jobs.demand) & (jobs.demand >= 0.0)).all(axis=1))
    rules: tuple[tuple[Bools, str], ...] = (
        (~sound, "demands less than nothing, or no number"),
        (jobs.demand[:, GPU] > 1.0, "demands more than one GPU; give a share"),
        (jobs.is_server & (jobs.demand[:, GPU] > 0.0), "is a parameter server and demands a GPU; give 0"),
        (~(np.isfinite(jobs.compute_s) & (jobs.compute_s >= 0.0)), "computes less than 0 s an iteration"),
        (~((jobs.size_share >= 0.0) & (jobs.size_share <= 1.0)), "holds a share of the model beyond 0 to 1"),
        (large, f"demands more memory than any server has ({biggest:g} GB); {LARGER}"),
        (large_together[jobs.job_of], f"and the job's others demand more memory than all servers have; {LARGER}"),
    )

    def named(task: int) -> str:
        job = int(jobs.job_of[task])
        return f"task {task - int(jobs.task_of[job])} of job {job_ids[job]}"

    refuse_first(rules, named)


def check_edges(jobs: TaskJobs, job_ids: Sequence[str]) -> None:
    """Refuse edges that are nobody's, and numbers that mean nothing; raises TraceError with the job's name."""
    if not len(jobs.edge_from):
        return
    whose = np.repeat(np.arange(len(jobs.submit_s)), np.diff(jobs.edge_of))
    ends = np.column_stack([jobs.edge_from, jobs.edge_to])
    low, high = jobs.task_of[whose][:, None], jobs.task_of[whose + 1][:, None]
    outside = np.asarray(((ends < low) | (ends >= high)).any(axis=1))
    # Edges out of range are refused first; clipped, the last rule can be worked out all the same.
    sending = jobs.demand[:, BANDWIDTH].take(jobs.edge_from, mode="clip")
    rules: tuple[tuple[Bools, str], ...] = (
        (outside, "has an edge to a task that is not its own"),
        (jobs.edge_from == jobs.edge_to, "has a task with an edge to itself"),
        (~(np.isfinite(jobs.volume_mb) & (jobs.volume_mb >= 0.0)), "has an edge of less than 0 MB, or no number"),
        ((jobs.volume_mb > 0.0) & (sending <= 0.0), "sends from a task that demands no MB/s"),
    )
    refuse_first(rules, lambda edge: f"job {job_ids[int(whose[edge])]}")
