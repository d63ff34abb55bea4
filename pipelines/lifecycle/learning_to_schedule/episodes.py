"""Small workloads to learn on: a stretch of the jobs of a large one, on a few of its servers."""

from dataclasses import dataclass

import numpy as np

from jobcast.domain.errors import TrainingError
from jobcast.domain.tasks import GPU, Ints, TaskCluster, TaskJobs
from jobcast.simulator.task_workload import TaskTruth, TaskWorkload


@dataclass(frozen=True, slots=True)
class EpisodeSettings:
    """What is drawn for an episode.

    Attributes
    ----------
    jobs : how many, in order of submission
    servers : fewest and most
    load : least and largest offered load, in shares of GPUs
    """

    jobs: int = 60
    servers: tuple[int, int] = (8, 12)
    load: tuple[float, float] = (0.5, 2.5)


def draw_episode(workload: TaskWorkload, settings: EpisodeSettings, rng: np.random.Generator) -> TaskWorkload:
    """A stretch of jobs whose submissions are drawn together so that they offer the load that was drawn.

    Jobs that would not fit on the servers by themselves are left out.

    Raises
    ------
    TrainingError
        Fewer than two jobs are left to draw from.
    """
    servers = int(rng.integers(settings.servers[0], settings.servers[1] + 1))
    # Drawn before it is cut, so that draws stay in step on clusters of any size.
    servers = min(servers, len(workload.cluster.capacity))
    cluster = first_servers(workload.cluster, servers)
    able = np.flatnonzero(_shares(workload) <= _ROOM * cluster.capacity[:, GPU].sum())
    if len(able) < 2:
        raise TrainingError(f"{len(able)} jobs fit on {servers} servers; train on a trace of more and narrower jobs")
    count = min(settings.jobs, len(able))
    begin = int(rng.integers(0, len(able) - count + 1))
    part = part_of(workload, able[begin : begin + count], cluster)
    load = rng.uniform(*settings.load)
    work_s = float((_shares(part) * part.jobs.iterations * part.jobs.iteration_s).sum())
    # Jobs submitted at once have no span; a second stands for it.
    span_s = float(np.ptp(part.jobs.submit_s))
    factor = work_s / cluster.capacity[:, GPU].sum() / load / max(span_s, 1.0)
    return submitted(part, part.jobs.submit_s[0] + factor * (part.jobs.submit_s - part.jobs.submit_s[0]))


_ROOM = 0.8
"""Share of the GPUs that one job may use by itself."""


def _shares(workload: TaskWorkload) -> "np.typing.NDArray[np.float64]":
    """GPU shares of all tasks of each job."""
    return np.asarray(np.add.reduceat(workload.jobs.demand[:, GPU], workload.jobs.task_of[:-1]))


def first_servers(cluster: TaskCluster, count: int) -> TaskCluster:
    """The first servers of a cluster."""
    return TaskCluster(cluster.capacity[:count].copy(), cluster.server_of[cluster.server_of < count].copy())


def submitted(workload: TaskWorkload, submit_s: "np.typing.NDArray[np.float64]") -> TaskWorkload:
    """The same jobs submitted at other times; deadlines move with them."""
    jobs = workload.jobs
    moved = jobs._replace(submit_s=submit_s, deadline_s=jobs.deadline_s + submit_s - jobs.submit_s)
    return TaskWorkload(moved, workload.truth, workload.cluster, workload.job_ids)


def part_of(workload: TaskWorkload, which: Ints, cluster: TaskCluster | None = None) -> TaskWorkload:
    """Some of the jobs, in ascending order, on the same or other servers."""
    jobs, truth = workload.jobs, workload.truth
    tasks, task_of = _ranges(jobs.task_of, which)
    edges, edge_of = _ranges(jobs.edge_of, which)
    new_task = np.full(len(jobs.job_of), -1, dtype=np.int64)
    new_task[tasks] = np.arange(len(tasks))
    # The first fields are by job, those below by task, the last by edge.
    columns = {name: getattr(jobs, name)[which] for name in TaskJobs._fields[:11]}
    columns |= {name: getattr(jobs, name)[tasks] for name in ("demand", "compute_s", "size_share", "is_server")}
    columns |= {
        "task_of": task_of,
        "edge_of": edge_of,
        "job_of": np.repeat(np.arange(len(which)), np.diff(task_of)),
        "edge_from": new_task[jobs.edge_from[edges]],
        "edge_to": new_task[jobs.edge_to[edges]],
        "volume_mb": jobs.volume_mb[edges],
    }
    return TaskWorkload(
        TaskJobs(**columns),
        TaskTruth(
            truth.metric[which], truth.model_mb[which], None if truth.iterations is None else truth.iterations[which]
        ),
        workload.cluster if cluster is None else cluster,
        [workload.job_ids[job] for job in which],
    )


def _ranges(begins: Ints, which: Ints) -> tuple[Ints, Ints]:
    """All numbers of the ranges of some jobs, and where each job's begin among them."""
    sizes = np.diff(begins)[which]
    new = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    # Counting up, less how far each job's range was moved to the front.
    return np.arange(new[-1]) - np.repeat(new[:-1] - begins[:-1][which], sizes), new
