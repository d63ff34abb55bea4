"""Which tasks leave overloaded servers: those most like the ideal virtual task. Compiled. MLFS, section 3.3.3.

What the paper leaves open is read as follows.

- A task that alone overloads its GPU stays there: on any other it would do the same.
- Only tasks that use a GPU relieve an overloaded GPU.
- A chosen task keeps its GPU until another server takes it (see `packing.pack`), so that it never comes back to the
  server that it was to leave, and moves at most once a decision.
"""

from math import ceil

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.tasks import GPU, QUEUED, Bools, Floats, Ints, TaskView
from jobcast.schedulers.tasks.host_selection import (
    BOOLS,
    FLOATS,
    INTS,
    KINDS,
    LIMITS,
    ROOM,
    Limits,
    Room,
    njit,
    overloaded,
    types,
)
from jobcast.schedulers.tasks.packing import WANTS, Wants, nearness, room_of, shift, wants_of

SHARE = 0.1
"""p_s: the share of the tasks of overloaded GPUs, those of lowest priority, that may leave. MLFS, section 4.1."""


@njit(INTS(ROOM, LIMITS, WANTS, types.float64, INTS), cache=True)
def candidates(room: Room, limits: Limits, wants: Wants, share: float, here: Ints) -> Ints:
    """Tasks of a server that may leave: where GPUs are overloaded the lowest p_s of theirs, else all of them.

    `here` are the server's tasks that have not been chosen yet, by ascending rank.
    """
    users = np.zeros(len(room.gpu_load), dtype=np.int64)
    for task in here:
        if wants.use[task, GPU] > 0.0:
            users[room.place[task]] += 1
    found, count = np.empty(len(here), dtype=np.int64), 0
    for task in here:
        gpu = room.place[task]
        if wants.use[task, GPU] > 0.0 and users[gpu] > 1 and room.gpu_load[gpu] > limits.gpu * (1.0 + tolerance.LOADS):
            found[count] = task
            count += 1
    if count:
        return found[: max(1, ceil(share * count - tolerance.LOADS))]
    return here


@njit(types.int64(ROOM, LIMITS, WANTS, types.int64, INTS, INTS, types.boolean, FLOATS), cache=True)
def most_like_ideal(
    room: Room, limits: Limits, wants: Wants, server: int, here: Ints, among: Ints, bandwidth: bool, near: Floats
) -> int:
    """The task of `among` whose utilisations come closest to the ideal virtual task's.

    The ideal uses as much of each overloaded resource as any task of the server, as little of each other one, and
    exchanges nothing with tasks of the server; all terms are shares, as in `hosts.ideal_host`.
    """
    ideal = np.empty(KINDS)
    for kind in range(KINDS):
        whole = room.capacity[server, kind]
        over = room.load[server, kind] > limits.most[kind] * whole * (1.0 + tolerance.LOADS)
        ideal[kind] = 0.0 if over else np.inf
        for task in here:
            share = wants.use[task, kind] / whole
            ideal[kind] = max(ideal[kind], share) if over else min(ideal[kind], share)
    best, found = np.inf, -1
    for task in among:
        distance = 0.0
        if bandwidth:
            nearness(room, wants, task, near)
            distance = near[server] ** 2
        for kind in range(KINDS):
            distance += (wants.use[task, kind] / room.capacity[server, kind] - ideal[kind]) ** 2
        if distance < best - tolerance.LOADS:
            best, found = distance, task
    return found


@njit(types.boolean(ROOM, LIMITS, WANTS, types.int64, INTS), cache=True)
def to_relieve(room: Room, limits: Limits, wants: Wants, server: int, here: Ints) -> bool:
    """Whether a server or a GPU of it is overloaded by more than one task."""
    if len(here) > 1 and overloaded(room, limits, server):
        return True
    for gpu in range(room.gpu_from[server], room.gpu_from[server + 1]):
        if room.gpu_load[gpu] > limits.gpu * (1.0 + tolerance.LOADS):
            users = 0
            for task in here:
                users += int(room.place[task] == gpu and wants.use[task, GPU] > 0.0)
            if users > 1:
                return True
    return False


@njit(types.void(ROOM, LIMITS, WANTS, types.float64, types.boolean, INTS, BOOLS), cache=True)
def choose(
    room: Room, limits: Limits, wants: Wants, share: float, bandwidth: bool, ranked: Ints, moving: Bools
) -> None:
    """Mark in `moving` (n_tasks,) the tasks that leave; loads in `room` become those without them.

    `ranked` are the tasks on GPUs, by ascending rank. A server gives up tasks until neither it nor its GPUs are
    overloaded, or until one task is left.
    """
    near = np.zeros(len(room.least))
    for server in range(len(room.least)):
        here = ranked[room.server_of[room.place[ranked]] == server]
        while to_relieve(room, limits, wants, server, here):
            among = candidates(room, limits, wants, share, here)
            task = most_like_ideal(room, limits, wants, server, here, among, bandwidth, near)
            moving[task] = True
            shift(room, wants.use[task], room.place[task], -1.0)
            here = here[here != task]


def tasks_to_move(
    view: TaskView, rank: Floats, limits: Limits, *, share: float = SHARE, bandwidth: bool = True
) -> Bools:
    """Tasks that should leave their servers.

    Parameters
    ----------
    rank : (n_tasks,) priorities; tasks of low ones leave overloaded GPUs
    limits : beyond which servers and GPUs are overloaded
    share : p_s
    bandwidth : whether communication with tasks that remain counts. MLFS, Figure 7

    Returns
    -------
    (n_tasks,)
    """
    moving = np.zeros(len(rank), dtype=np.bool_)
    over = (view.load > limits.most * view.cluster.capacity * (1.0 + tolerance.LOADS)).any()
    if not over and not (view.gpu_load > limits.gpu * (1.0 + tolerance.LOADS)).any():
        return moving
    placed = np.flatnonzero(view.gpu_of != QUEUED)
    ranked = placed[np.argsort(rank[placed], kind="stable")]
    choose(room_of(view), limits, wants_of(view), share, bandwidth, ranked, moving)
    return moving
