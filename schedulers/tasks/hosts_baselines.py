"""Two more rules of hosts, of Gandiva and Graphene: a server by affinity, a server by alignment. Compiled."""

import numpy as np

from jobcast.domain.tasks import GPU, QUEUED, Floats, Ints, TaskView
from jobcast.schedulers.tasks.hosts import (
    EPSILON,
    FLOATS,
    INTS,
    KINDS,
    LIMITS,
    ROOM,
    Limits,
    Room,
    hosts,
    njit,
    types,
)
from jobcast.schedulers.tasks.packing import WANTS, Wants, may_fit, place_alone, put, waiting

AFFINITY, ALIGNMENT = range(2)
"""Rules: servers of jobs with as many GPUs, then empty ones, then any, of each the least used; the largest dot product
of what a task uses with what is free. Ties go to the server with the lowest number."""
COUNTS = types.Array(types.int64, 2, "C")


@njit(types.float64(types.int64, ROOM, FLOATS, INTS, types.int64, types.int64), cache=True)
def cost(rule: int, room: Room, use: Floats, here: Ints, group: int, server: int) -> float:
    """What a rule has against a server, on which `here` (n_groups,) tasks are by their jobs' number of GPUs."""
    if rule == ALIGNMENT:
        dot = 0.0
        for kind in range(KINDS):
            whole = room.capacity[server, kind]
            dot += use[kind] / whole * max(0.0, whole - room.load[server, kind]) / whole
        return float(-dot)
    used = min(1.0, float(room.load[server, GPU] / room.capacity[server, GPU]))
    tasks = here.sum()
    if tasks == 0:
        return 2.0 + used
    return used if here[group] == tasks else 4.0 + used


@njit(types.int64(types.int64, ROOM, LIMITS, FLOATS, COUNTS, types.int64), cache=True)
def find_host(rule: int, room: Room, limits: Limits, use: Floats, counts: Ints, group: int) -> int:
    """The server that a rule chooses for a task, or -1."""
    best, found = np.inf, -1
    for server in range(len(room.least)):
        if hosts(room, limits, use, server):
            against = cost(rule, room, use, counts[server], group, server)
            if against < best - EPSILON:
                best, found = against, server
    return found


@njit(types.void(types.int64, ROOM, LIMITS, WANTS, INTS, INTS, COUNTS), cache=True)
def pack_by(rule: int, room: Room, limits: Limits, wants: Wants, order: Ints, group: Ints, counts: Ints) -> None:
    """Place jobs in an order, each whole or not at all, the first on a cluster left idle; `counts` follow.

    `counts` : (n_servers, n_groups)
    """
    for job in order:
        tasks, done = waiting(room, wants, job), 0
        if not len(tasks) or not may_fit(room, limits, wants, tasks):
            continue
        for task in tasks:
            server = find_host(rule, room, limits, wants.use[task], counts, group[job])
            if server < 0:
                break
            put(room, wants, task, room.least[server])
            counts[server, group[job]] += 1
            done += 1
        if done < len(tasks):
            for task in tasks[:done]:
                counts[room.server_of[room.place[task]], group[job]] -= 1
                put(room, wants, task, QUEUED)
    if len(order) and room.load.max() <= EPSILON:
        place_alone(room, wants, waiting(room, wants, order[0]))


def groups_of(view: TaskView, room: Room) -> tuple[Ints, Ints]:
    """(n_jobs,) group of each job by its number of GPUs, (n_servers, n_groups) tasks of each on each server."""
    numbers, group = np.unique(view.jobs.gpus, return_inverse=True)
    counts = np.zeros((len(room.least), len(numbers)), dtype=np.int64)
    on = np.flatnonzero(room.place != QUEUED)
    np.add.at(counts, (room.server_of[room.place[on]], group[view.jobs.job_of[on]]), 1)
    return group.astype(np.int64), counts
