"""Graphene: troublesome tasks first, jobs by a weighted score. Grandl et al.: Graphene, OSDI 2016; MLFS, section 2."""

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.policy import Decision
from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import GPU, Bools, Floats, Ints, TaskCluster, TaskJobs, TaskRule, TaskView, decision
from jobcast.schedulers.tasks.baselines import ALIGNMENT, groups_of, pack_by
from jobcast.schedulers.tasks.host_selection import BOOLS, FLOATS, INTS, njit, types
from jobcast.schedulers.tasks.packing import placement, plain, room_of, wants_of
from jobcast.schedulers.tasks.policies import GrapheneSettings
from jobcast.schedulers.tasks.preemption import all_resources, attained_gpu_s, job_use, sorted_jobs, waiting_jobs

Words = NDArray[np.uint64]
WORD = 64
"""Tasks in a word of a set of bits."""
WORDS = types.Array(types.uint64, 2, "C")


@njit(types.float64(types.uint64), cache=True)
def bits(word: np.uint64) -> float:
    """How many bits of a word are set."""
    count = 0.0
    while word:
        word &= word - np.uint64(1)
        count += 1.0
    return count


@njit(types.void(INTS, INTS, BOOLS, types.int64, WORDS), cache=True)
def follow(edge_from: Ints, edge_to: Ints, is_server: Bools, begin: int, after: Words) -> None:
    """Fill `after` (n_tasks of the job, n_words) with the tasks that come after each, the last task first."""
    for edge in np.argsort(-edge_from, kind="mergesort"):
        if is_server[edge_from[edge]] or edge_to[edge] < edge_from[edge]:
            continue
        one, other = edge_from[edge] - begin, edge_to[edge] - begin
        after[one, other // WORD] |= np.uint64(1) << np.uint64(other % WORD)
        for word in range(after.shape[1]):
            after[one, word] |= after[other, word]


@njit(types.void(INTS, INTS, INTS, INTS, BOOLS, FLOATS), cache=True)
def count_descendants(
    task_of: Ints, edge_of: Ints, edge_from: Ints, edge_to: Ints, is_server: Bools, count: Floats
) -> None:
    """Fill `count` (n_tasks,)."""
    for job in range(len(task_of) - 1):
        begin, end = task_of[job], task_of[job + 1]
        after = np.zeros((end - begin, (end - begin + WORD - 1) // WORD), dtype=np.uint64)
        first, last = edge_of[job], edge_of[job + 1]
        follow(edge_from[first:last], edge_to[first:last], is_server, begin, after)
        for task in range(end - begin):
            count[begin + task] = 0.0
            for word in range(after.shape[1]):
                count[begin + task] += bits(after[task, word])


def descendants(jobs: TaskJobs) -> Floats:
    """(n_tasks,) how many tasks wait for each task.

    What is exchanged at an iteration's end, sent to earlier tasks, is waited for by none within the same one.
    """
    count = np.zeros(len(jobs.job_of))
    edges = (jobs.task_of, jobs.edge_of, jobs.edge_from, jobs.edge_to, jobs.is_server)
    count_descendants(*(plain(column) for column in edges), count)
    return count


TINY = 1e-12
SAME_SCORE = 1e-7
"""Scores that count as equal: their terms cancel out."""


class Graphene(TaskRule):
    """Jobs by remaining work, packing and fairness; a job's tasks by dependants and demand; all resources count."""

    name = "graphene"

    def __init__(self, settings: GrapheneSettings | None = None) -> None:
        self.settings = GrapheneSettings() if settings is None else settings
        self._of: TaskJobs | None = None
        self._trouble: Floats = np.empty(0)

    def place(self, view: TaskView) -> Decision:
        """Place waiting jobs by score, each task where its demand is best aligned with what is free."""
        waiting = waiting_jobs(view)
        if not len(waiting):
            return decision()
        order = sorted_jobs(waiting, -np.rint(scores(view, waiting, self.settings) / SAME_SCORE))
        if self._of is not view.jobs:  # the same at all decisions of a run
            self._of, self._trouble = view.jobs, trouble(view.jobs, view.cluster)
        room, wants = room_of(view), wants_of(view, self._trouble)
        pack_by(ALIGNMENT, room, all_resources(), wants, order, *groups_of(view, room))
        return placement(view, room)


def scores(view: TaskView, waiting: Ints, weights: GrapheneSettings) -> Floats:
    """(n_jobs,) the weighted score of waiting jobs, the highest first; 0 for others.

    Remaining work is GPU seconds by the estimate of an iteration. What a job lacks is an equal part of the cluster's
    GPU time since it came, less what it had; a job that lacks nothing has 0.
    """
    jobs, score = view.jobs, np.zeros(len(view.jobs.submit_s))
    use, capacity = job_use(view), view.cluster.capacity.sum(axis=0)
    work = np.maximum(0.0, view.limit - view.done) * jobs.iteration_s * use[:, GPU]
    free = np.maximum(0.0, 1.0 - view.load.sum(axis=0) / capacity)
    dot = (use / capacity) @ free / np.diff(jobs.task_of)
    fair = len(view.cluster.server_of) / len(view.active)
    lack = np.maximum(0.0, fair * (view.now_s - jobs.submit_s) - attained_gpu_s(view))
    terms = ((weights.srpt, -work), (weights.packing, dot), (weights.fairness, lack))
    for weight, term in terms:
        score[waiting] += weight * term[waiting] / max(float(np.abs(term[waiting]).max()), TINY)
    return score


def trouble(jobs: TaskJobs, cluster: TaskCluster) -> Floats:
    """(n_tasks,) how troublesome tasks are: the share of the job that waits for them, and their largest demand.

    A demand is a share of the roomiest server's capacity.
    """
    others = np.maximum(1, np.diff(jobs.task_of) - 1)[jobs.job_of]
    dominant: Floats = (jobs.demand / cluster.capacity.max(axis=0)).max(axis=1)
    return rounded_all(descendants(jobs) / others + dominant)
