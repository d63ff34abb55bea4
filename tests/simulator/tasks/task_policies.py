"""Policies for tests of the engine: one that follows a script, first come first served, and one without any sense."""

import numpy as np

from jobcast.domain.policy import Decision
from jobcast.domain.tasks import GPU, MEMORY, QUEUED, TaskRule
from tests.simulator.tasks.task_cases import arrays_of


def decision(stop=(), tasks=(), gpus=(), limited=(), limits=()):
    """A decision from arrays: jobs stop, tasks go to GPUs, jobs are limited to iterations."""
    stop, tasks, gpus, limited, limits = (np.asarray(one).tolist() for one in (stop, tasks, gpus, limited, limits))
    put, most = dict(zip(tasks, gpus, strict=True)), dict(zip(limited, limits, strict=True))
    return Decision(dict.fromkeys(stop), tasks=put, limit=most)


class Script(TaskRule):
    """Does what is written for a second since the first submission, and nothing at others; keeps what it saw."""

    name = "script"

    def __init__(
        self, script, *, keep=("done", "accuracy", "last_gain", "all_gain", "final_mean", "waited_s", "ran_s")
    ):
        self.script, self.keep, self.seen, self.at_s = script, keep, [], []

    def place(self, view):
        at_s = view.now_s - view.jobs.submit_s[0]
        self.at_s.append(at_s)
        self.seen.append({name: np.array(getattr(view, name)) for name in COPIED})
        said = self.script.get(round(at_s), {})
        if "put" in said:
            said = {**said, "tasks": [task for task, _ in said["put"]], "gpus": [gpu for _, gpu in said["put"]]}
        kinds = {"stop": np.int64, "tasks": np.int64, "gpus": np.int64, "limited": np.int64, "limits": float}
        return decision(**{name: np.array(said[name], dtype=kind) for name, kind in kinds.items() if name in said})

    def of(self, name, job=0):
        """Second -> what was seen of a job."""
        return {round(at_s): float(seen[name][job]) for at_s, seen in zip(self.at_s, self.seen, strict=True)}


class Fifo(TaskRule):
    """First come, first served: whole jobs, each task on the GPU used least of those where it fits."""

    name = "fifo"

    def place(self, view):
        jobs, hosts = view.jobs, view.cluster.server_of
        free, used = view.cluster.capacity[:, MEMORY] - view.load[:, MEMORY], view.gpu_load.copy()
        tasks, gpus = [], []
        for job in view.active[view.gpu_of[jobs.task_of[view.active]] == QUEUED]:
            here, put = range(jobs.task_of[job], jobs.task_of[job + 1]), []
            was = free.copy(), used.copy()
            for task in here:
                fits = free[hosts] >= jobs.demand[task, MEMORY]
                if not fits.any():
                    break
                gpu = int(np.argmin(np.where(fits, used, np.inf)))
                used[gpu] += jobs.demand[task, GPU]
                free[hosts[gpu]] -= jobs.demand[task, MEMORY]
                put.append(gpu)
            if len(put) < len(here):
                free, used = was
                break
            tasks, gpus = tasks + list(here), gpus + put
        return decision(tasks=np.array(tasks, dtype=np.int64), gpus=np.array(gpus, dtype=np.int64))


class Chaos(TaskRule):
    """Starts, stops, moves and limits at random, jobs in part as well; all that is allowed, and nothing that is not."""

    name = "chaos"

    def __init__(self, seed, *, limits=True):
        self.rng, self.limits, self.decided, self.views = np.random.default_rng(seed), limits, [], []

    def place(self, view):
        rng, jobs, hosts = self.rng, view.jobs, view.cluster.server_of
        runs = np.logical_and.reduceat(view.gpu_of != QUEUED, jobs.task_of[:-1])[view.active]
        stop = view.active[(rng.random(len(view.active)) < 0.08) & runs]
        gpu_of = np.where(np.isin(jobs.job_of, stop), QUEUED, view.gpu_of)
        free = view.cluster.capacity[:, MEMORY].copy()
        np.subtract.at(free, hosts[gpu_of[gpu_of != QUEUED]], jobs.demand[gpu_of != QUEUED, MEMORY])
        before = gpu_of.copy()
        for task in np.flatnonzero(np.isin(jobs.job_of, view.active)):
            chance = rng.random()
            if (gpu_of[task] == QUEUED and chance < 0.95) or chance < 0.03:
                fits = np.flatnonzero(free[hosts] >= jobs.demand[task, MEMORY])
                if len(fits):
                    self._put(gpu_of, free, view, task, int(rng.choice(fits)))
            elif chance < 0.04:
                self._put(gpu_of, free, view, task, QUEUED)
        tasks = np.flatnonzero(gpu_of != before)
        few = view.active[rng.random(len(view.active)) < 0.02] if self.limits else view.active[:0]
        limits = view.done[few] + rng.random(len(few)) * (jobs.iterations[few] - view.done[few])
        answer = decision(stop=stop, tasks=tasks, gpus=gpu_of[tasks], limited=few, limits=limits)
        self.views.append(view._replace(**{name: getattr(view, name).copy() for name in COPIED}))
        self.decided.append(arrays_of(answer))
        return answer

    @staticmethod
    def _put(gpu_of, free, view, task, gpu):
        for where, sign in ((gpu_of[task], 1.0), (gpu, -1.0)):
            if where != QUEUED:
                free[view.cluster.server_of[where]] += sign * view.jobs.demand[task, MEMORY]
        gpu_of[task] = gpu


COPIED = (
    *("active", "gpu_of", "load", "gpu_load", "task_load", "done", "limit", "waited_s", "ran_s"),
    *("accuracy", "last_gain", "all_gain", "earlier", "final_mean", "final_sd", "copy_of", "step_s"),
)
