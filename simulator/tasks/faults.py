"""What a policy may do wrong, and how it is told."""

from collections.abc import Sequence

import numpy as np

from jobcast.domain.tasks import MEMORY, Floats
from jobcast.simulator.tasks.state import CULPRIT, WHERE, TaskState, TaskWorld

UNCHANGED, CHANGED, NO_STOP, NO_TASK, NO_GPU, TWICE, NO_MEMORY, NO_LIMITED, LIMIT_DONE, LIMIT_ABOVE = range(10)
"""How carrying out a decision ends: nothing changed, something did, or what the policy did wrong."""
OF_TASKS = (NO_TASK, NO_GPU, TWICE, NO_MEMORY)
"""Faults of which the culprit is a task; of the others it is a job."""
FAULTS = {
    NO_STOP: "stops job {job}, which is not active",
    NO_TASK: "places {task}, which is not active",
    NO_GPU: "puts {task} on GPU {where}, of which there are {gpus}",
    TWICE: "places {task} twice in one decision",
    NO_MEMORY: "puts {task} on server {where}, which lacks the memory for it ({memory:g} GB in all)",
    NO_LIMITED: "limits job {job}, which is not active",
    LIMIT_DONE: "limits job {job} to {limit:g} iterations, of which it has done {done:g}",
    LIMIT_ABOVE: "limits job {job} to {limit:g} iterations, more than its {iterations:g}",
}


def told(status: int, world: TaskWorld, state: TaskState, job_ids: Sequence[str], limits: Floats) -> str:
    """The fault that a decision with these limits ended with, in words."""
    culprit, where = int(state.counts[CULPRIT]), int(state.counts[WHERE])
    if status in OF_TASKS:
        return FAULTS[status].format(
            task=task_name(world, job_ids, culprit),
            where=where,
            gpus=len(state.gpu_load),
            memory=world.cluster.capacity[where, MEMORY] if status == NO_MEMORY else np.nan,
        )
    known = 0 <= culprit < len(job_ids)
    return FAULTS[status].format(
        job=job_ids[culprit] if known else culprit,
        done=state.done[culprit] if known else np.nan,
        iterations=world.jobs.iterations[culprit] if known else np.nan,
        limit=limits[where] if where < len(limits) else np.nan,
    )


def task_name(world: TaskWorld, job_ids: Sequence[str], task: int) -> str:
    """A task by its number in its job; by its number in all where there is no such task."""
    if not 0 <= task < len(world.jobs.job_of):
        return f"task {task}"
    job = int(world.jobs.job_of[task])
    return f"task {task - int(world.jobs.task_of[job])} of job {job_ids[job]}"
