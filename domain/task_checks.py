"""What jobs of tasks and their servers must be to mean anything: all who read such jobs refuse the same."""

from collections.abc import Sequence

import numpy as np

from jobcast.domain.errors import TraceError
from jobcast.domain.tasks import BANDWIDTH, GPU, MEMORY, Bools, TaskCluster, TaskJobs


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


def check_tasks(jobs: TaskJobs, cluster: TaskCluster, job_ids: Sequence[str]) -> None:
    """Refuse tasks that fit on no server, and numbers that mean nothing; raises TraceError with the task's name."""
    memory, biggest = jobs.demand[:, MEMORY], cluster.capacity[:, MEMORY].max()
    total = np.add.reduceat(memory, jobs.task_of[:-1])[jobs.job_of]
    sound = np.asarray((np.isfinite(jobs.demand) & (jobs.demand >= 0.0)).all(axis=1))
    rules: tuple[tuple[Bools, str], ...] = (
        (~sound, "demands less than nothing, or no number"),
        (jobs.demand[:, GPU] > 1.0, "demands more than one GPU; give a share"),
        (jobs.is_server & (jobs.demand[:, GPU] > 0.0), "is a parameter server and demands a GPU; give 0"),
        (~(np.isfinite(jobs.compute_s) & (jobs.compute_s >= 0.0)), "computes less than 0 s an iteration"),
        (~((jobs.size_share >= 0.0) & (jobs.size_share <= 1.0)), "holds a share of the model beyond 0 to 1"),
        (memory > biggest, f"demands more memory than any server has ({biggest:g} GB)"),
        (total > cluster.capacity[:, MEMORY].sum(), "and the job's others demand more memory than all servers have"),
    )
    for bad, told in rules:
        if bad.any():
            task = int(np.argmax(bad))
            job = int(jobs.job_of[task])
            raise TraceError(f"task {task - int(jobs.task_of[job])} of job {job_ids[job]} {told}")


def check_edges(jobs: TaskJobs, job_ids: Sequence[str]) -> None:
    """Refuse edges that are nobody's, and numbers that mean nothing; raises TraceError with the job's name."""
    if not len(jobs.edge_from):
        return
    whose = np.repeat(np.arange(len(jobs.submit_s)), np.diff(jobs.edge_of))
    ends = np.column_stack([jobs.edge_from, jobs.edge_to])
    low, high = jobs.task_of[whose][:, None], jobs.task_of[whose + 1][:, None]
    outside = np.asarray(((ends < low) | (ends >= high)).any(axis=1))
    inside = np.clip(jobs.edge_from, 0, len(jobs.job_of) - 1)
    rules: tuple[tuple[Bools, str], ...] = (
        (outside, "has an edge to a task that is not its own"),
        (jobs.edge_from == jobs.edge_to, "has a task with an edge to itself"),
        (~(np.isfinite(jobs.volume_mb) & (jobs.volume_mb >= 0.0)), "has an edge of less than 0 MB, or no number"),
        ((jobs.volume_mb > 0.0) & (jobs.demand[inside, BANDWIDTH] <= 0.0), "sends from a task that demands no MB/s"),
    )
    for bad, told in rules:
        if bad.any():
            raise TraceError(f"job {job_ids[int(whose[np.argmax(bad)])]} {told}")
