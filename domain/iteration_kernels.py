"""How long an iteration of a job of tasks takes, compiled: what the engine plays and schedulers reckon with. MLFS.

Importing numba takes a second, so only what computes imports this file.
"""

from typing import Any, NamedTuple

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import njit
from jobcast.domain.tasks import BANDWIDTH, GPU, QUEUED, TaskJobs


class Places(NamedTuple):
    """Where tasks and their copies are, and what holds them up there.

    Attributes
    ----------
    edge_order : (n_edges,) edges by the task that they come from
    server_of : (n_gpus,) the server that a GPU is in
    gpu_of, copy_of : (n_tasks,) GPUs of tasks and of their copies, QUEUED where there is none
    task_load : (n_tasks, 4) what each task uses, and each copy
    gpu_load : (n_gpus,) what all use of each GPU
    cores, links : (n_servers,) by how much a server's cores and its network hold tasks up, at least 1
    slow : (n_servers,) how many times as long as on a healthy server a task computes
    """

    edge_order: Ints
    server_of: Ints
    gpu_of: Ints
    copy_of: Ints
    task_load: Floats
    gpu_load: Floats
    cores: Floats
    links: Floats
    slow: Floats


def _iteration(jobs: TaskJobs, at: Places, job: int, ready_s: Floats, step_s: Floats) -> tuple[float, float, float]:
    """Seconds, MB between servers and GPUs in use of an iteration of a job all of whose tasks are on GPUs.

    An iteration takes the longest path through the tasks, then the longest of the exchanges: edges to earlier tasks.
    Edges come by the task that they come from, so that all that lead to a task are seen before those that leave it.

    Of a task and its copy the first that is over counts: it sends on, and the other is stopped (section 3.3.3). Both
    get all that the task needs, and hold their GPUs.

    `ready_s` (n_tasks, 2) is room for when a task and its copy have all that they need, into an iteration; `step_s`
    (n_tasks, 2) is filled with what each takes.
    """
    server_of, gpu_of, copy_of, order = at.server_of, at.gpu_of, at.copy_of, at.edge_order
    edge_from, edge_to, volume_mb, demand = jobs.edge_from, jobs.edge_to, jobs.volume_mb, jobs.demand
    compute_s, gpu_load, task_load, cores, links, slow = (
        *(jobs.compute_s, at.gpu_load, at.task_load),
        *(at.cores, at.links, at.slow),
    )
    begin, end, edge_at, last = jobs.task_of[job], jobs.task_of[job + 1], jobs.edge_of[job], jobs.edge_of[job + 1]
    ready_s[begin:end] = 0.0
    share, crossing_mb, exchange_s, longest_s = 0.0, 0.0, 0.0, 0.0
    for task in range(begin, end):
        here, finish_s = 0, 0.0
        for copy in range(2):
            gpu = copy_of[task] if copy else gpu_of[task]
            if gpu == QUEUED:
                break
            server, crowded = server_of[gpu], max(1.0, gpu_load[gpu])
            share += task_load[task, GPU] / crowded
            # A parameter server uses no GPU: only cores hold it up.
            held_up = max(cores[server], crowded) if demand[task, GPU] > 0.0 else cores[server]
            step_s[task, copy] = compute_s[task] * held_up * slow[server]
            over_s = ready_s[task, copy] + step_s[task, copy]
            if not copy or over_s < finish_s:
                here, finish_s = server, over_s
        longest_s = max(longest_s, finish_s)
        while edge_at < last and edge_from[order[edge_at]] == task:
            edge, to = order[edge_at], edge_to[order[edge_at]]
            for copy in range(2):
                gpu = copy_of[to] if copy else gpu_of[to]
                if gpu == QUEUED:
                    break
                there, taken_s = server_of[gpu], 0.0
                if here != there and volume_mb[edge] > 0.0:
                    crossing_mb += volume_mb[edge]
                    taken_s = volume_mb[edge] / demand[task, BANDWIDTH] * max(links[here], links[there])
                # An edge back is the exchange at the iteration's end.
                if to < task:
                    exchange_s = max(exchange_s, taken_s)
                else:
                    ready_s[to, copy] = max(ready_s[to, copy], finish_s + taken_s)
            edge_at += 1
    return longest_s + exchange_s, crossing_mb, share


iteration: Any = njit(cache=True)(_iteration)
