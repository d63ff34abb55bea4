"""What the baselines of MLFS share: which jobs wait, up to where servers are filled, measured speeds."""

import numpy as np

from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import QUEUED, Bools, Floats, Ints, TaskDecision, TaskView, decision
from jobcast.schedulers.tasks.hosts import DECISION_S, Limits, Room
from jobcast.schedulers.tasks.packing import limits_of, placement

ALL_RESOURCES = 1.0
"""Servers and GPUs are filled up to their capacity, whatever the resource."""
GPU_AND_MEMORY = (1.0, np.inf, 1.0, np.inf)
"""Cores and bandwidth are not looked at, and may be overloaded."""


def gpu_and_memory() -> Limits:
    """Limits of a scheduler that deals out GPUs alone; memory cannot be passed in any case."""
    return limits_of(GPU_AND_MEMORY)


def all_resources() -> Limits:
    """Limits of a scheduler that deals out all resources."""
    return limits_of(ALL_RESOURCES)


def running_jobs(view: TaskView) -> Ints:
    """Active jobs all of whose tasks are on GPUs, in order of submission."""
    return view.active[_placed(view)[view.active]]


def waiting_jobs(view: TaskView) -> Ints:
    """All other active jobs, in order of submission."""
    return view.active[~_placed(view)[view.active]]


def sorted_jobs(jobs: Ints, *keys: Floats) -> Ints:
    """Jobs by ascending keys (n_jobs,), the first key first; ties go by submission."""
    return jobs[np.lexsort([jobs, *(key[jobs] for key in reversed(keys))])]


def due(view: TaskView, interval_s: float) -> bool:
    """Whether the first decision after a multiple of an interval is being made; True for one of 0 seconds."""
    return interval_s <= 0.0 or view.now_s % interval_s < DECISION_S


def attained_gpu_s(view: TaskView) -> Floats:
    """(n_jobs,) GPU seconds that jobs have had: GPUs x time. Tiresias, NSDI 2019."""
    return rounded_all(view.jobs.gpus * view.ran_s)


def job_use(view: TaskView) -> Floats:
    """(n_jobs, 4) what the tasks of jobs use at rest."""
    sums: Floats = np.add.reduceat(view.jobs.demand, view.jobs.task_of[:-1], axis=0)
    return sums


def measured_iteration_s(view: TaskView) -> Floats:
    """(n_jobs,) seconds an iteration as far as a job has run, before that its estimate."""
    ran = (view.done > 0.0) & (view.ran_s > 0.0)
    return np.where(ran, view.ran_s / np.where(ran, view.done, 1.0), view.jobs.iteration_s)


def decided(view: TaskView, room: Room) -> TaskDecision:
    """The decision that turns a view into what a room became."""
    changes = placement(view, room)
    return decision(stop=changes.stop, tasks=changes.tasks, gpus=changes.gpus)


def _placed(view: TaskView) -> Bools:
    placed: Bools = np.logical_and.reduceat(view.gpu_of != QUEUED, view.jobs.task_of[:-1])
    return placed
