"""MLF-H: the heuristic scheduler of tasks by features of machine learning. MLFS, section 3.3."""

from dataclasses import dataclass, field

import numpy as np

from jobcast.domain.policy import Decision
from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import QUEUED, Bools, Floats, TaskRule, TaskView
from jobcast.schedulers.tasks.host_selection import IDEAL, Limits
from jobcast.schedulers.tasks.migration import SHARE, tasks_to_move
from jobcast.schedulers.tasks.packing import Packing, limits_of, pack, placement, room_of, wants_of
from jobcast.schedulers.tasks.preemption import HOLD, displace
from jobcast.schedulers.tasks.priorities import Weights, job_order, task_priorities

OVERLOAD = 0.9
"""h_r: the share of a resource beyond which a server is overloaded. MLFS, section 4.1."""


@dataclass(frozen=True, slots=True)
class MlfHSettings:
    """Settings; `move_at`, `evict` and `part` are ours.

    Section 3.3.3 sends a task that no server takes back to the queue. Its job could not go on, and would hold the GPUs
    of its other tasks meanwhile: with `evict` it gives them back, otherwise the task stays.

    Attributes
    ----------
    weights : of priorities
    overload : h_r, up to where servers and GPUs are filled
    move_at : beyond which share tasks migrate; h_r in the paper
    share : p_s
    bandwidth : whether communication counts in the choice of hosts and of tasks to migrate. MLFS, Figure 7
    migration : whether tasks leave overloaded servers. MLFS, Figure 8
    evict : whether a job goes back to the queue when no server takes a task that should leave; else it stays
    part : whether a leaving task may go where it is further from the tasks that it communicates with
    preempt : whether running jobs give way to waiting ones of higher priority
    hold : how many times the priority of a running job a waiting one must have for that
    """

    weights: Weights = field(default_factory=Weights)
    overload: float = OVERLOAD
    move_at: float = OVERLOAD
    share: float = SHARE
    bandwidth: bool = True
    migration: bool = True
    evict: bool = False
    part: bool = False
    preempt: bool = True
    hold: float = HOLD

    @property
    def packing(self) -> Packing:
        """How jobs are packed."""
        return Packing(IDEAL, self.bandwidth, self.evict, self.part)

    @property
    def limits(self) -> Limits:
        """Up to where servers and GPUs are filled."""
        return limits_of(self.overload, self.overload)


class MlfH(TaskRule):
    """Jobs by the highest priority of their tasks, tasks to the server most like the ideal virtual host."""

    name = "mlf_h"

    def __init__(self, settings: MlfHSettings | None = None) -> None:
        self.settings = MlfHSettings() if settings is None else settings

    def place(self, view: TaskView) -> Decision:
        """Place waiting jobs, perhaps instead of running ones, and move tasks from overloaded servers, by priority."""
        rank = rounded_all(task_priorities(view, self.settings.weights))
        moving = self.leaving(view, rank)
        waits = np.logical_or.reduceat((view.gpu_of == QUEUED) | moving, view.jobs.task_of[:-1])
        order = job_order(view, rank)
        chosen, order = self.settings, order[waits[order]]
        room, wants = room_of(view), wants_of(view, rank)
        pack(room, chosen.limits, wants, chosen.packing, order, moving)
        if chosen.preempt:
            displace(view, room, wants, chosen.limits, chosen.packing, order, rank, chosen.hold)
        return placement(view, room)

    def leaving(self, view: TaskView, rank: Floats) -> Bools:
        """(n_tasks,) tasks that should leave overloaded servers, with their priorities `rank` (n_tasks,)."""
        chosen = self.settings
        if not chosen.migration:
            return np.zeros(len(rank), dtype=np.bool_)
        limits = limits_of(chosen.move_at, chosen.move_at)
        return tasks_to_move(view, rank, limits, share=chosen.share, bandwidth=chosen.bandwidth)
