"""Of tasks: jobs start in order of submission, each task on the GPU with the fewest others."""

import numpy as np

from jobcast.domain.policy import Decision
from jobcast.domain.tasks import MEMORY, QUEUED, TaskRule, TaskView
from jobcast.schedulers.policies import TASKS, PolicySpec


class Emptiest(TaskRule):
    """Nobody moves or stops; GPUs are shared as far as the memory of servers reaches."""

    name = "emptiest"

    def place(self, view: TaskView) -> Decision:
        """GPUs for the tasks of jobs that wait, until one finds no room."""
        jobs, hosts = view.jobs, view.cluster.server_of
        memory = view.cluster.capacity[:, MEMORY] - view.load[:, MEMORY]
        others = np.bincount(view.gpu_of[view.gpu_of != QUEUED], minlength=len(hosts))
        put: dict[int, int] = {}
        for job in view.active:
            tasks = range(jobs.task_of[job], jobs.task_of[job + 1])
            if view.gpu_of[tasks[0]] != QUEUED:
                continue
            found = {}
            for task in tasks:
                gpu = int(np.where(memory[hosts] >= jobs.demand[task, MEMORY], others, len(view.gpu_of)).argmin())
                if memory[hosts[gpu]] < jobs.demand[task, MEMORY]:
                    return Decision(tasks=put)
                found[task] = gpu
                memory[hosts[gpu]] -= jobs.demand[task, MEMORY]
                others[gpu] += 1
            put |= found
        return Decision(tasks=put)


policy = PolicySpec(
    name="emptiest", kind=TASKS, make=lambda learned, settings: Emptiest(), summary="the GPU with the fewest tasks"
)
