"""Gandiva: first in, first out, with affinity and migration. Xiao et al.: Gandiva, OSDI 2018; MLFS, section 2."""

import numpy as np

from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import GPU, MEMORY, TaskDecision, TaskView, decision
from jobcast.schedulers.tasks.baselines import decided, gpu_and_memory, waiting_jobs
from jobcast.schedulers.tasks.hosts import EPSILON, Room
from jobcast.schedulers.tasks.hosts_baselines import AFFINITY, groups_of, pack_by
from jobcast.schedulers.tasks.packing import Wants, put, room_of, wants_of
from jobcast.schedulers.tasks.policies import GandivaSettings


class Gandiva:
    """First in, first out; jobs with as many GPUs share servers; overloaded GPUs give tasks away.

    Time slicing is left out: the GPUs that tasks share are shared all the time. Looks at GPUs and memory only.
    """

    name = "gandiva"

    def __init__(self, settings: GandivaSettings | None = None) -> None:
        self.settings = GandivaSettings() if settings is None else settings

    def decide(self, view: TaskView) -> TaskDecision:
        """Move tasks from overloaded GPUs, then place waiting jobs in order of submission."""
        if not len(view.active):
            return decision()
        room, wants = room_of(view), wants_of(view)
        for gpu in np.argsort(-rounded_all(view.gpu_load), kind="stable"):
            if view.gpu_load[gpu] <= self.settings.overload + EPSILON:
                break
            relieve(room, wants, view, int(gpu), self.settings.overload)
        group, counts = groups_of(view, room)
        pack_by(AFFINITY, room, gpu_and_memory(), wants, waiting_jobs(view), group, counts)
        return decided(view, room)


def relieve(room: Room, wants: Wants, view: TaskView, gpu: int, most: float) -> None:
    """Move the task with the lowest use of an overloaded GPU to the least used GPU that it does not overload."""
    here = np.flatnonzero((view.gpu_of == gpu) & (wants.use[:, GPU] > 0.0))
    if len(here) < 2:
        return
    task = int(here[np.argmin(rounded_all(wants.use[here, GPU]))])
    memory = room.capacity[:, MEMORY] - room.load[:, MEMORY]
    memory[room.server_of[gpu]] = np.inf
    use = wants.use[task]
    fits = (room.gpu_load + use[GPU] <= most + EPSILON) & (memory[room.server_of] >= use[MEMORY])
    if fits.any():
        put(room, wants, task, int(np.argmin(np.where(fits, rounded_all(room.gpu_load), np.inf))))
