"""Running jobs that give way to waiting ones of much higher priority.

MLFS queues the tasks of an iteration when the one before is over, "newly submitted and preempted tasks" in one queue by
priority (section 3.3.2): so a job keeps its GPUs from one iteration to the next only while its priority lets it. Here
it keeps them until a waiting job has `hold` times its priority, for a change costs a restart, which the paper leaves
out.
"""

import numpy as np

from jobcast.domain.tasks import Floats, Ints, TaskView
from jobcast.schedulers.tasks.baselines import running_jobs
from jobcast.schedulers.tasks.hosts import Limits, Room
from jobcast.schedulers.tasks.packing import Packing, Wants
from jobcast.schedulers.tasks.swapping import pack_over

HOLD = 2.0
"""Ours: a waiting job takes the place of running ones of less than half its priority."""


def displace(
    view: TaskView, room: Room, wants: Wants, limits: Limits, packing: Packing, order: Ints, rank: Floats, hold: float
) -> None:
    """Let waiting jobs in for whom running ones must leave; changes the room.

    Parameters
    ----------
    order : waiting jobs, first served first; those that have been placed by now are passed over
    rank : (n_tasks,) priorities; a job has that of its highest task
    hold : how many times the priority of a running job a waiting one must have; infinite: nobody leaves
    """
    claim = np.maximum.reduceat(rank, view.jobs.task_of[:-1])
    kept = hold * claim if np.isfinite(hold) else np.full(len(claim), np.inf)
    running = running_jobs(view)
    victims = running[np.lexsort([-running, kept[running]])]
    pack_over(room, limits, wants, packing, view.gpu_of.copy(), order, victims, claim, kept)
