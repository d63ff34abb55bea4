"""Graphene: troublesome tasks first, jobs by a weighted score. Grandl et al.: Graphene, OSDI 2016; MLFS, section 2."""

import numpy as np

from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import GPU, Floats, Ints, TaskCluster, TaskDecision, TaskJobs, TaskView, decision
from jobcast.schedulers.tasks.baselines import (
    all_resources,
    attained_gpu_s,
    decided,
    job_use,
    sorted_jobs,
    waiting_jobs,
)
from jobcast.schedulers.tasks.descendants import descendants
from jobcast.schedulers.tasks.hosts_baselines import ALIGNMENT, groups_of, pack_by
from jobcast.schedulers.tasks.packing import room_of, wants_of
from jobcast.schedulers.tasks.policies import GrapheneSettings

TINY = 1e-12
SAME_SCORE = 1e-7
"""Scores that count as equal: their terms cancel out."""


class Graphene:
    """Jobs by remaining work, packing and fairness; a job's tasks by dependants and demand; all resources count."""

    name = "graphene"

    def __init__(self, settings: GrapheneSettings | None = None) -> None:
        self.settings = GrapheneSettings() if settings is None else settings
        self._of: TaskJobs | None = None
        self._trouble: Floats = np.empty(0)

    def decide(self, view: TaskView) -> TaskDecision:
        """Place waiting jobs by score, each task where its demand is best aligned with what is free."""
        waiting = waiting_jobs(view)
        if not len(waiting):
            return decision()
        order = sorted_jobs(waiting, -np.rint(scores(view, waiting, self.settings) / SAME_SCORE))
        if self._of is not view.jobs:  # the same at all decisions of a run
            self._of, self._trouble = view.jobs, trouble(view.jobs, view.cluster)
        room, wants = room_of(view), wants_of(view, self._trouble)
        pack_by(ALIGNMENT, room, all_resources(), wants, order, *groups_of(view, room))
        return decided(view, room)


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
