"""Whole jobs among tasks: a GPU for each worker that no other task is on, where the memory of servers allows it."""

from collections.abc import Iterator, Sequence

import numpy as np

from jobcast.domain.cells import ANYWHERE, Cell
from jobcast.domain.tasks import MEMORY, QUEUED, Floats, Ints
from jobcast.simulator.laws.task_state import TaskState, TaskWorld


class Gangs:
    """GPUs without tasks, and memory, as they are left while a decision is carried out.

    Parameters
    ----------
    world, state : after the stops of the decision
    used_gb : (n_servers,) memory that the tasks on each server need
    """

    def __init__(self, world: TaskWorld, state: TaskState, used_gb: Floats) -> None:
        self._world, self._last = world, state.last_server
        self._memory = world.cluster.capacity[:, MEMORY] - used_gb
        self._free = np.ones(len(world.cluster.server_of), dtype=np.bool_)
        self._free[state.gpu_of[state.gpu_of != QUEUED]] = False

    def take(self, job: int, cells: Sequence[Cell]) -> dict[int, int] | None:
        """GPUs for all tasks of a job, which are taken; None where they do not fit. `cells` : where they must go.

        Else the servers that they were on last; the one that has the fewest GPUs left then; the fewest.
        """
        jobs, hosts = self._world.jobs, self._world.cluster.server_of
        # The first choice that holds all tasks is taken.
        for gpus in [self._of_cells(cells)] if cells else self._choices(job):
            put = self._fill(job, gpus)
            if put is not None:
                for task, gpu in put.items():
                    self._free[gpu] = False
                    self._memory[hosts[gpu]] -= jobs.demand[task, MEMORY]
                return put
        return None

    def _of_cells(self, cells: Sequence[Cell]) -> Ints:
        hosts, taken = self._world.cluster.server_of, self._free.copy()
        found: list[int] = []
        for cell in cells:
            here = np.flatnonzero((hosts == cell.server) & taken)
            if cell.first != ANYWHERE:
                # GPUs are numbered through all servers: the server's first one.
                begin = int(np.searchsorted(hosts, cell.server)) + cell.first
                here = here[(here >= begin) & (here < begin + cell.gpus)]
            found += here[: cell.gpus].tolist()
            taken[here[: cell.gpus]] = False
        return np.array(found, dtype=np.int64)

    def _choices(self, job: int) -> Iterator[Ints]:
        """GPUs to try, in the order in which they are taken."""
        jobs, hosts = self._world.jobs, self._world.cluster.server_of
        free = np.flatnonzero(self._free)
        count = np.bincount(hosts[free], minlength=len(self._memory))
        begin, end = jobs.task_of[job], jobs.task_of[job + 1]
        wanted = int(np.count_nonzero(~jobs.is_server[begin:end]))
        last = self._last[begin:end]
        # Only where all its tasks have been somewhere is there a place to go back to.
        if (last >= 0).all():
            yield free[np.isin(hosts[free], last)]
        # The tightest server first; ties by number.
        for server in np.argsort(count, kind="stable"):
            if count[server] >= wanted:
                yield free[hosts[free] == server]
        # None holds all workers: the emptiest servers first, so that it spreads over few.
        yield free[np.argsort(-count[hosts[free]], kind="stable")]

    def _fill(self, job: int, gpus: Ints) -> dict[int, int] | None:
        """Workers on GPUs as they come where there is memory for them, then parameter servers beside them."""
        jobs, hosts = self._world.jobs, self._world.cluster.server_of
        tasks, memory = np.arange(jobs.task_of[job], jobs.task_of[job + 1]), self._memory.copy()
        workers = tasks[~jobs.is_server[tasks]].tolist()
        put: dict[int, int] = {}
        for gpu in gpus.tolist():
            if len(put) == len(workers):
                break
            task = workers[len(put)]
            # A GPU without memory beside it is passed over.
            if jobs.demand[task, MEMORY] <= memory[hosts[gpu]]:
                memory[hosts[gpu]] -= jobs.demand[task, MEMORY]
                put[task] = gpu
        if len(put) < len(workers):
            return None
        beside = list(put.values())
        for task in tasks[jobs.is_server[tasks]].tolist():
            gpu = next((gpu for gpu in beside if jobs.demand[task, MEMORY] <= memory[hosts[gpu]]), QUEUED)
            if gpu == QUEUED:
                return None
            memory[hosts[gpu]] -= jobs.demand[task, MEMORY]
            put[task] = gpu
        return put
