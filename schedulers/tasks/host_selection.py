"""Which server hosts a task: the ideal virtual host of MLFS, and the plainer rules of its baselines. Compiled.

Wang, Liu, Shen: Job Scheduling for Large-Scale Machine Learning Clusters, CoNEXT 2020 (MLFS), section 3.3.2.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F2, I1, njit, types
from jobcast.domain.tasks import GPU, MEMORY, RESOURCES


def plain(column: NDArray[Any]) -> NDArray[Any]:
    """An array as compiled code takes it; copied only where it is not contiguous or may not be written."""
    # Asked first, since `np.require` takes a microsecond, and views have two dozen columns at each decision.
    return column if column.flags.carray else np.require(column, requirements=["C", "W"])


# Rules: like the ideal virtual host; where most tasks of the job are, then the fullest; the least full; least left
# over. Ties go to the server with the lowest number.
IDEAL, CONSOLIDATE, SPREAD, BEST_FIT = range(4)
KINDS = len(RESOURCES)
MB_PER_GB = 1000.0
# Seconds between two decisions. MLFS, section 4.1.
DECISION_S = 60.0
# Share of a server's bandwidth that a moving task can always count on.
LEAST_BANDWIDTH = 0.1


class Room(NamedTuple):
    """A copy of the cluster's loads, on which placements are tried.

    Attributes
    ----------
    capacity : (n_servers, 4)
    gpu_from : (n_servers + 1,) where a server's GPUs begin
    server_of : (n_gpus,)
    load : (n_servers, 4) what is used; changes with each placement
    gpu_load : (n_gpus,) the same of each GPU
    place : (n_tasks,) the GPU of each task, or QUEUED
    least : (n_servers,) the least loaded GPU of each server, the first of equals
    """

    capacity: Floats
    gpu_from: Ints
    server_of: Ints
    load: Floats
    gpu_load: Floats
    place: Ints
    least: Ints


class Limits(NamedTuple):
    """Up to where servers may be filled.

    Attributes
    ----------
    most : (4,) share of a server's capacity, by resource; of memory never more than 1
    gpu : share of each GPU
    """

    most: Floats
    gpu: float


ROOM = types.NamedTuple([F2, I1, I1, F2, F1, I1, I1], Room)
LIMITS = types.NamedTuple([F1, types.float64], Limits)


@njit(types.boolean(ROOM, LIMITS, F1, types.int64), cache=True)
def hosts(room: Room, limits: Limits, use: Floats, server: int) -> bool:
    """Whether a server and its least loaded GPU can host a task without passing a limit.

    An idle server takes what it has room for, an idle GPU any share: else a task above a limit would wait for ever.
    """
    gpu = room.least[server]
    if (
        use[GPU] > 0.0
        and room.gpu_load[gpu] > tolerance.LOADS
        and room.gpu_load[gpu] + use[GPU] > limits.gpu + tolerance.LOADS
    ):
        return False
    idle = True
    for kind in range(KINDS):
        idle = idle and room.load[server, kind] <= tolerance.LOADS
    # A task above the limit, on an idle server, would else fit nowhere.
    for kind in range(KINDS):
        most = 1.0 if idle else limits.most[kind]
        if (
            room.load[server, kind] + use[kind]
            > most * room.capacity[server, kind] * (1.0 + tolerance.LOADS) + tolerance.LOADS
        ):
            return False
    return True


@njit(types.boolean(ROOM, LIMITS, types.int64), cache=True)
def overloaded(room: Room, limits: Limits, server: int) -> bool:
    """Whether any resource of a server is used beyond its limit."""
    for kind in range(KINDS):
        if room.load[server, kind] > limits.most[kind] * room.capacity[server, kind] * (1.0 + tolerance.LOADS):
            return True
    return False


@njit(types.float64(ROOM, F1, types.int64, types.int64), cache=True)
def movement(room: Room, use: Floats, origin: int, server: int) -> float:
    """q_k, how a move slows a task: the share of the time between two decisions that its memory takes to move.

    The worse of both servers' free bandwidth carries it, at least a tenth of the whole. 0 for a task that is on no
    server yet, at most 1.
    """
    if origin < 0 or origin == server:
        return 0.0
    # The slower end decides.
    rate = np.inf
    for end in (origin, server):
        whole = room.capacity[end, KINDS - 1]
        rate = min(rate, max(whole - room.load[end, KINDS - 1], LEAST_BANDWIDTH * whole))
    return float(min(1.0, use[MEMORY] * MB_PER_GB / rate / DECISION_S))


# Of movement, communication, and each resource in the distance from the ideal host.
HOST_TERMS = 2 + KINDS
EVEN = np.ones(HOST_TERMS)


@njit(types.int64(ROOM, LIMITS, F1, F1, types.int64, types.boolean, F1), cache=True)
def ideal_host(
    room: Room, limits: Limits, use: Floats, near: Floats, origin: int, bandwidth: bool, weights: Floats
) -> int:
    """The server most like the ideal virtual host, or -1. MLFS, section 3.3.2.

    The ideal has the least utilisation of any underloaded server, resource by resource, the most communication with
    the task, and costs no movement. All terms are shares, so that their distances add up: utilisations of capacity,
    communication of all that the task exchanges in an iteration, movement of the time between two decisions.

    Parameters
    ----------
    use : (4,) of the task
    near : (n_servers,) share of the task's communication volume that is with tasks on each server
    origin : the server that it would move from, or -1
    bandwidth : whether communication counts. MLFS, Figure 7
    weights : (6,) of movement, communication and each resource; all 1 in the paper
    """
    least, most_near = np.full(KINDS, np.inf), 0.0
    for server in range(len(near)):
        if not overloaded(room, limits, server):
            most_near = max(most_near, near[server])
            for kind in range(KINDS):
                least[kind] = min(least[kind], room.load[server, kind] / room.capacity[server, kind])
    best, found = np.inf, -1
    for server in range(len(near)):
        if not hosts(room, limits, use, server):
            continue
        distance = weights[0] * movement(room, use, origin, server) ** 2
        if bandwidth:
            distance += weights[1] * (near[server] - most_near) ** 2
        for kind in range(KINDS):
            distance += weights[2 + kind] * (room.load[server, kind] / room.capacity[server, kind] - least[kind]) ** 2
        # By more than rounding, so that ties go to the lowest number everywhere.
        if distance < best - tolerance.LOADS:
            best, found = distance, server
    return found


@njit(types.float64(types.int64, ROOM, F1, types.int64, types.int64), cache=True)
def _cost(rule: int, room: Room, use: Floats, together: int, server: int) -> float:
    """What a rule other than the ideal host has against a server."""
    used = room.load[server, GPU] / room.capacity[server, GPU]
    if rule == CONSOLIDATE:
        return float(-2.0 * together - used)
    if rule == SPREAD:
        return float(used)
    return float(-((room.load[server] + use) / room.capacity[server]).sum())


@njit(types.int64(types.int64, ROOM, LIMITS, F1, I1), cache=True)
def plain_host(rule: int, room: Room, limits: Limits, use: Floats, together: Ints) -> int:
    """The server that a rule other than IDEAL chooses, or -1; `together` (n_servers,) counts tasks of the same job."""
    best, found = np.inf, -1
    for server in range(len(together)):
        if hosts(room, limits, use, server):
            cost = _cost(rule, room, use, together[server], server)
            if cost < best - tolerance.LOADS:
                best, found = cost, server
    return found
