"""What tasks use, and how fast jobs get on with it: compiled, and the types of what compiled code shares.

Importing numba takes a second, so only what computes imports this file.
"""

from collections.abc import Collection
from functools import partial
from typing import Any

import numba
import numpy as np

from jobcast.domain.tasks import BANDWIDTH, CPU, GPU, MEMORY, QUEUED, Floats, TaskCluster, TaskJobs
from jobcast.simulator.tasks.state import (
    ACTIVE,
    INT_COLUMNS,
    OVERLOADED,
    OVERLOADED_NOW,
    STATE_INTS,
    TaskState,
    TaskWorld,
)

types: Any = numba.types
inner: Any = partial(numba.njit, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For what only compiled code calls: without the ways in from Python, which take longer to compile than it does."""
outer: Any = partial(numba.njit, cache=True, no_cfunc_wrapper=True)

FLOATS = types.Array(types.float64, 1, "C")
FLOATS_2D = types.Array(types.float64, 2, "C")
INTS = types.Array(types.int64, 1, "C")
FLAGS = types.Array(types.boolean, 1, "C")

FLAGS_OF = ("is_server", "seen", "is_active")
SQUARES = ("demand", "capacity", "metric", "task_load", "load", "moves")
SCALARS = dict.fromkeys(("origin_s", "fluctuation", "restart_s"), types.float64) | {"seed": types.int64}


def _type_of(kind: Any, ints: Collection[str], **known: Any) -> Any:
    """The compiled type of a tuple of columns, told by their names; one row of floats where nothing is said."""
    told = dict.fromkeys(ints, INTS) | dict.fromkeys(FLAGS_OF, FLAGS) | dict.fromkeys(SQUARES, FLOATS_2D)
    told |= SCALARS | known
    return types.NamedTuple([told.get(name, FLOATS) for name in kind._fields], kind)


JOBS = _type_of(TaskJobs, INT_COLUMNS)
CLUSTER = _type_of(TaskCluster, INT_COLUMNS)
WORLD = _type_of(TaskWorld, ("epochs", "edge_order"), jobs=JOBS, cluster=CLUSTER)
STATE = _type_of(TaskState, STATE_INTS)
WIDEST_DRAW = 2.0
LEAST_FACTOR = 0.1
"""Draws are clipped to +-2 deviations; a task uses at least a tenth of what it uses at rest."""
GOLDEN, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""SplitMix64: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014."""


@inner(types.uint64(types.uint64))
def _mixed(number: Any) -> Any:
    """SplitMix64's next number after a state."""
    number = number + GOLDEN
    number = (number ^ (number >> np.uint64(30))) * MIX_1
    number = (number ^ (number >> np.uint64(27))) * MIX_2
    return number ^ (number >> np.uint64(31))


@inner(types.float64(types.int64, types.int64, types.int64))
def normal(seed: int, task: int, slot: int) -> float:
    """A draw of the standard normal distribution that is a pure function of whom and when it is about (Box-Muller)."""
    key = _mixed(_mixed(_mixed(np.uint64(seed)) ^ np.uint64(task)) ^ np.uint64(slot))
    first = (float(key >> np.uint64(11)) + 1.0) * 2.0**-53  # in (0, 1]
    second = float(_mixed(key) >> np.uint64(11)) * 2.0**-53
    return float(np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second))


@inner(types.float64(types.float64, types.int64, types.int64, types.int64))
def _factor(fluctuation: float, seed: int, task: int, slot: int) -> float:
    """By how much a task on a GPU uses more than at rest in a slot."""
    drawn = max(-WIDEST_DRAW, min(WIDEST_DRAW, normal(seed, task, slot)))
    return float(max(LEAST_FACTOR, 1.0 + fluctuation * drawn))


@outer(types.void(WORLD, STATE, types.int64))
def measure(world: TaskWorld, state: TaskState, slot: int) -> None:
    """Fill what tasks, servers and GPUs use in a slot.

    Here and below, arrays that loops need are taken out of their tuples first: to take one out costs as much as a
    task's turn.
    """
    demand, task_of, server_of = world.jobs.demand, world.jobs.task_of, world.cluster.server_of
    load, gpu_load, task_load = state.load, state.gpu_load, state.task_load
    active, placed, gpu_of, factors, slots = state.active, state.placed, state.gpu_of, state.factor, state.factor_slot
    load[:] = 0.0
    gpu_load[:] = 0.0
    for i in range(state.counts[ACTIVE]):
        job = active[i]
        if placed[job] == 0:
            continue
        for task in range(task_of[job], task_of[job + 1]):
            gpu = gpu_of[task]
            if gpu == QUEUED:
                continue
            if slots[task] != slot:
                slots[task] = slot
                factors[task] = _factor(world.fluctuation, world.seed, task, slot)
            server = server_of[gpu]
            for kind in range(4):
                used = demand[task, kind] * (1.0 if kind == MEMORY else factors[task])
                task_load[task, kind] = used
                load[server, kind] += used
            gpu_load[gpu] += task_load[task, GPU]


@inner(types.void(WORLD, STATE))
def count_overloads(world: TaskWorld, state: TaskState) -> None:
    """Count the servers of which any resource is overloaded."""
    capacity = world.cluster.capacity
    state.counts[OVERLOADED_NOW] = 0
    for server in range(len(capacity)):
        for kind in range(4):
            if state.load[server, kind] > OVERLOADED * capacity[server, kind]:
                state.counts[OVERLOADED_NOW] += 1
                break


@inner(types.void(WORLD, STATE, types.int64, FLOATS, FLOATS))
def _set_rate(world: TaskWorld, state: TaskState, job: int, cores: Floats, links: Floats) -> None:
    """Rate, MB between servers and GPUs in use of a job all of whose tasks are on GPUs.

    An iteration takes the longest path through the tasks, then the longest of the exchanges: edges to earlier tasks.
    Edges come by the task that they come from, so that all that lead to a task are seen before those that leave it.

    `cores`, `links` : (n_servers,) by how much a server's cores and its network hold tasks up, at least 1
    """
    jobs, order, server_of, gpu_of = world.jobs, world.edge_order, world.cluster.server_of, state.gpu_of
    edge_from, edge_to, volume_mb, demand = jobs.edge_from, jobs.edge_to, jobs.volume_mb, jobs.demand
    compute_s, ready_s, gpu_load = jobs.compute_s, state.ready_s, state.gpu_load
    begin, end, at, last = jobs.task_of[job], jobs.task_of[job + 1], jobs.edge_of[job], jobs.edge_of[job + 1]
    ready_s[begin:end] = 0.0
    share, crossing_mb, exchange_s, longest_s = 0.0, 0.0, 0.0, 0.0
    for task in range(begin, end):
        gpu = gpu_of[task]
        here, crowded = server_of[gpu], max(1.0, gpu_load[gpu])
        share += state.task_load[task, GPU] / crowded
        held_up = max(cores[here], crowded) if demand[task, GPU] > 0.0 else cores[here]
        finish_s = ready_s[task] + compute_s[task] * held_up
        longest_s = max(longest_s, finish_s)
        while at < last and edge_from[order[at]] == task:
            edge, to = order[at], edge_to[order[at]]
            there, taken_s = server_of[gpu_of[to]], 0.0
            if here != there and volume_mb[edge] > 0.0:
                crossing_mb += volume_mb[edge]
                taken_s = volume_mb[edge] / demand[task, BANDWIDTH] * max(links[here], links[there])
            if to < task:
                exchange_s = max(exchange_s, taken_s)
            else:
                ready_s[to] = max(ready_s[to], finish_s + taken_s)
            at += 1
    state.rate[job] = 1.0 / (longest_s + exchange_s)
    state.iteration_mb[job] = crossing_mb
    state.gpu_share[job] = share


@inner(types.void(WORLD, STATE))
def set_rates(world: TaskWorld, state: TaskState) -> None:
    """How fast the active jobs get on from now on: not at all, unless all their tasks are on GPUs."""
    load, capacity = state.load, world.cluster.capacity
    cores, links = np.empty(len(capacity)), np.empty(len(capacity))
    for server in range(len(capacity)):
        cores[server] = max(1.0, load[server, CPU] / capacity[server, CPU])
        links[server] = max(1.0, load[server, BANDWIDTH] / capacity[server, BANDWIDTH])
    task_of, placed, active, rate = world.jobs.task_of, state.placed, state.active, state.rate
    for i in range(state.counts[ACTIVE]):
        job = active[i]
        if placed[job] == task_of[job + 1] - task_of[job]:
            _set_rate(world, state, job, cores, links)
        else:
            rate[job] = 0.0
