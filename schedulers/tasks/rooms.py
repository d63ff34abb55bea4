"""Tasks put on GPUs and taken off, whether jobs may fit, and which tasks wait: the steps of packing. Compiled."""

from typing import NamedTuple

import numpy as np

from jobcast.domain.tasks import GPU, QUEUED, Bools, Floats, Ints
from jobcast.schedulers.tasks.hosts import (
    BOOLS,
    EPSILON,
    FLOATS,
    FLOATS_2D,
    INTS,
    KINDS,
    LIMITS,
    ROOM,
    Limits,
    Room,
    njit,
    types,
)


class Wants(NamedTuple):
    """What jobs need, as compiled code reads it; names as of `TaskJobs`.

    `use` is what tasks use at present, at rest while they are queued, and `rank` (n_tasks,) their order within a job:
    higher first, in order of their numbers where equal; a parameter server comes before all.
    """

    task_of: Ints
    edge_of: Ints
    job_of: Ints
    use: Floats
    is_server: Bools
    edge_from: Ints
    edge_to: Ints
    volume_mb: Floats
    rank: Floats


WANTS = types.NamedTuple([INTS, INTS, INTS, FLOATS_2D, BOOLS, INTS, INTS, FLOATS, FLOATS], Wants)


@njit(types.void(ROOM, types.int64), cache=True)
def find_least(room: Room, server: int) -> None:
    """Note a server's least loaded GPU."""
    first = room.gpu_from[server]
    least = first
    for gpu in range(first + 1, room.gpu_from[server + 1]):
        if room.gpu_load[gpu] < room.gpu_load[least] - EPSILON:
            least = gpu
    room.least[server] = least


@njit(types.void(ROOM), cache=True)
def find_all_least(room: Room) -> None:
    """Note the least loaded GPU of every server."""
    for server in range(len(room.least)):
        find_least(room, server)


@njit(types.void(ROOM, FLOATS, types.int64, types.float64), cache=True)
def shift(room: Room, use: Floats, gpu: int, sign: float) -> None:
    """Add a task's use to a GPU and its server, or take it away with a sign of -1."""
    server = room.server_of[gpu]
    for kind in range(KINDS):
        room.load[server, kind] = max(0.0, room.load[server, kind] + sign * use[kind])
    room.gpu_load[gpu] = max(0.0, room.gpu_load[gpu] + sign * use[GPU])
    find_least(room, server)


@njit(types.void(ROOM, WANTS, types.int64, types.int64), cache=True)
def put(room: Room, wants: Wants, task: int, gpu: int) -> None:
    """Put a task on a GPU, from wherever it is, or back to the queue."""
    if room.place[task] != QUEUED:
        shift(room, wants.use[task], room.place[task], -1.0)
    room.place[task] = gpu
    if gpu != QUEUED:
        shift(room, wants.use[task], gpu, 1.0)


@njit(types.void(ROOM, WANTS, INTS), cache=True)
def release(room: Room, wants: Wants, jobs: Ints) -> None:
    """All tasks of jobs go back to the queue."""
    for job in jobs:
        for task in range(wants.task_of[job], wants.task_of[job + 1]):
            put(room, wants, task, QUEUED)


@njit(types.int64(ROOM, types.float64, types.float64, types.int64), cache=True)
def slots(room: Room, most: float, share: float, enough: int) -> int:
    """How many tasks of a GPU share all GPUs can take at least by their own limit; counted up to `enough`."""
    count = 0
    for gpu in range(len(room.gpu_load)):
        free = int((most - room.gpu_load[gpu] + EPSILON) / share)
        count += max(free, 1) if room.gpu_load[gpu] <= EPSILON else max(free, 0)
        if count >= enough:
            break
    return count


@njit(types.boolean(ROOM, LIMITS, FLOATS), cache=True)
def fits_in_all(room: Room, limits: Limits, total: Floats) -> bool:
    """Whether all servers together have room for a job's use (4,)."""
    for kind in range(KINDS):
        free = 0.0
        for server in range(len(room.least)):
            idle = room.load[server, GPU] <= EPSILON
            most = 1.0 if idle else limits.most[kind]
            free += max(0.0, most * room.capacity[server, kind] - room.load[server, kind])
        if free * (1.0 + EPSILON) + len(room.least) * EPSILON < total[kind]:
            return False
    return True


@njit(types.boolean(ROOM, LIMITS, WANTS, INTS), cache=True)
def may_fit(room: Room, limits: Limits, wants: Wants, tasks: Ints) -> bool:
    """Whether it is worth trying to place tasks: False only where they cannot all fit."""
    total, least, count = np.zeros(KINDS), np.inf, 0
    for task in tasks:
        for kind in range(KINDS):
            total[kind] += wants.use[task, kind]
        if wants.use[task, GPU] > 0.0:
            least = min(least, wants.use[task, GPU])
            count += 1
    if count and slots(room, limits.gpu, least, count) < count:
        return False
    return bool(fits_in_all(room, limits, total))


@njit(INTS(ROOM, WANTS, types.int64), cache=True)
def waiting(room: Room, wants: Wants, job: int) -> Ints:
    """Queued tasks of a job, in the order in which they get a place."""
    first, last = wants.task_of[job], wants.task_of[job + 1]
    keys, tasks, count = np.empty(last - first), np.empty(last - first, dtype=np.int64), 0
    for task in range(first, last):
        if room.place[task] == QUEUED:
            keys[count] = -np.inf if wants.is_server[task] else -wants.rank[task]
            tasks[count] = task
            count += 1
    return tasks[:count][np.argsort(keys[:count], kind="mergesort")]


@njit(types.void(ROOM, WANTS, types.int64, FLOATS), cache=True)
def nearness(room: Room, wants: Wants, task: int, near: Floats) -> None:
    """Fill `near` (n_servers,): the share of a task's communication volume with tasks on each server."""
    near[:] = 0.0
    job, whole = wants.job_of[task], 0.0
    for edge in range(wants.edge_of[job], wants.edge_of[job + 1]):
        if wants.edge_from[edge] == task:
            other = wants.edge_to[edge]
        elif wants.edge_to[edge] == task:
            other = wants.edge_from[edge]
        else:
            continue
        whole += wants.volume_mb[edge]
        if room.place[other] != QUEUED:
            near[room.server_of[room.place[other]]] += wants.volume_mb[edge]
    if whole > 0.0:
        near /= whole


@njit(types.void(ROOM, WANTS, types.int64, INTS), cache=True)
def togetherness(room: Room, wants: Wants, task: int, together: Ints) -> None:
    """Fill `together` (n_servers,): how many other tasks of a task's job each server has."""
    together[:] = 0
    job = wants.job_of[task]
    for other in range(wants.task_of[job], wants.task_of[job + 1]):
        if other != task and room.place[other] != QUEUED:
            together[room.server_of[room.place[other]]] += 1
