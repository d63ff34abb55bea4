"""Jobs put on GPUs in a given order, each whole or not at all. Compiled, on a copy of the loads.

MLFS, section 3.3.2; every baseline packs by it too, with its own order, limits and rule of hosts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.compiled import B1, F1, F2, I1, njit, types
from jobcast.domain.policy import Decision
from jobcast.domain.tasks import GPU, MEMORY, QUEUED, RESOURCES, TaskView
from jobcast.schedulers.tasks.host_selection import (
    EVEN,
    IDEAL,
    KINDS,
    LIMITS,
    ROOM,
    Limits,
    Room,
    ideal_host,
    plain,
    plain_host,
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


WANTS = types.NamedTuple([I1, I1, I1, F2, B1, I1, I1, F1, F1], Wants)


@njit(types.void(ROOM, types.int64), cache=True)
def find_least(room: Room, server: int) -> None:
    """Note a server's least loaded GPU."""
    first = room.gpu_from[server]
    least = first
    for gpu in range(first + 1, room.gpu_from[server + 1]):
        # By more than rounding: of equal GPUs the first.
        if room.gpu_load[gpu] < room.gpu_load[least] - tolerance.LOADS:
            least = gpu
    room.least[server] = least


@njit(types.void(ROOM), cache=True)
def find_all_least(room: Room) -> None:
    """Note the least loaded GPU of every server."""
    for server in range(len(room.least)):
        find_least(room, server)


@njit(types.void(ROOM, F1, types.int64, types.float64), cache=True)
def shift(room: Room, use: Floats, gpu: int, sign: float) -> None:
    """Add a task's use to a GPU and its server, or take it away with a sign of -1."""
    server = room.server_of[gpu]
    for kind in range(KINDS):
        # What is taken away again may leave dust below 0.
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


@njit(types.void(ROOM, WANTS, I1), cache=True)
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
        free = int((most - room.gpu_load[gpu] + tolerance.LOADS) / share)
        # An idle GPU takes any single task, whatever its share.
        count += max(free, 1) if room.gpu_load[gpu] <= tolerance.LOADS else max(free, 0)
        if count >= enough:
            break
    return count


@njit(types.boolean(ROOM, LIMITS, F1), cache=True)
def fits_in_all(room: Room, limits: Limits, total: Floats) -> bool:
    """Whether all servers together have room for a job's use (4,)."""
    for kind in range(KINDS):
        free = 0.0
        for server in range(len(room.least)):
            idle = room.load[server, GPU] <= tolerance.LOADS
            most = 1.0 if idle else limits.most[kind]
            free += max(0.0, most * room.capacity[server, kind] - room.load[server, kind])
        if free * (1.0 + tolerance.LOADS) + len(room.least) * tolerance.LOADS < total[kind]:
            return False
    return True


@njit(types.boolean(ROOM, LIMITS, WANTS, I1), cache=True)
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


@njit(I1(ROOM, WANTS, types.int64), cache=True)
def waiting(room: Room, wants: Wants, job: int) -> Ints:
    """Queued tasks of a job, in the order in which they get a place."""
    first, last = wants.task_of[job], wants.task_of[job + 1]
    tasks: Ints = first + np.flatnonzero(room.place[first:last] == QUEUED)
    # A parameter server before all: the workers want to be near it.
    keys = np.where(wants.is_server[tasks], -np.inf, -wants.rank[tasks])
    order: Ints = np.argsort(keys, kind="mergesort")
    return tasks[order]


@njit(types.void(ROOM, WANTS, types.int64, F1), cache=True)
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


@njit(types.void(ROOM, WANTS, types.int64, I1), cache=True)
def togetherness(room: Room, wants: Wants, task: int, together: Ints) -> None:
    """Fill `together` (n_servers,): how many other tasks of a task's job each server has."""
    together[:] = 0
    job = wants.job_of[task]
    for other in range(wants.task_of[job], wants.task_of[job + 1]):
        if other != task and room.place[other] != QUEUED:
            together[room.server_of[room.place[other]]] += 1


class Packing(NamedTuple):
    """How jobs are packed.

    Attributes
    ----------
    rule : chooses servers
    bandwidth : whether communication counts in rule IDEAL
    evict : whether a job with a moving task that no server takes goes back to the queue
    part : whether a moving task may go where it is further from the tasks that it communicates with
    weights : (6,) of rule IDEAL's terms; see `host_selection.ideal_host`
    """

    rule: int
    bandwidth: bool = True
    evict: bool = False
    part: bool = True
    weights: Floats = EVEN


PACKING = types.NamedTuple([types.int64, types.boolean, types.boolean, types.boolean, F1], Packing)


@njit(types.boolean(ROOM, LIMITS, WANTS, PACKING, types.int64, F1, I1), cache=True)
def place_task(
    room: Room, limits: Limits, wants: Wants, packing: Packing, task: int, near: Floats, together: Ints
) -> bool:
    """Put a task on the least loaded GPU of the server that the rule chooses; False where none can host it.

    A task that is on a GPU moves to another server.
    """
    use = wants.use[task]
    origin = room.server_of[room.place[task]] if room.place[task] != QUEUED else -1
    if packing.rule == IDEAL:
        if packing.bandwidth:
            nearness(room, wants, task, near)
        server = ideal_host(room, limits, use, near, origin, packing.bandwidth, packing.weights)
    else:
        togetherness(room, wants, task, together)
        server = plain_host(packing.rule, room, limits, use, together)
    if server < 0 or server == origin:
        return False
    # Further from those it talks to, a move would slow every iteration.
    if origin >= 0 and not packing.part and near[server] < near[origin] - tolerance.LOADS:
        return False
    put(room, wants, task, room.least[server])
    return True


@njit(types.void(ROOM, WANTS, I1), cache=True)
def place_alone(room: Room, wants: Wants, tasks: Ints) -> None:
    """Spread a job over an idle cluster whose limits it passes, or into which no rule fits it; memory alone binds.

    The largest task first, each to the least loaded GPU of a server with memory for it. Else it would wait for ever.
    """
    tasks = tasks[np.argsort(-wants.use[:, GPU][tasks], kind="mergesort")]
    for number in range(len(tasks)):
        task, best = tasks[number], -1
        for gpu in range(len(room.gpu_load)):
            server = room.server_of[gpu]
            fits = room.load[server, MEMORY] + wants.use[task, MEMORY] <= room.capacity[server, MEMORY]
            if fits and (best < 0 or room.gpu_load[gpu] < room.gpu_load[best] - tolerance.LOADS):
                best = gpu
        if best < 0:
            for one in tasks[:number]:
                put(room, wants, one, QUEUED)
            break
        put(room, wants, task, best)


@njit(types.void(ROOM, LIMITS, WANTS, PACKING, I1, F1, I1), cache=True)
def place_whole(
    room: Room, limits: Limits, wants: Wants, packing: Packing, tasks: Ints, near: Floats, together: Ints
) -> None:
    """Place tasks, all of them or none; on an idle cluster by `place_alone` where there is no other way."""
    done = 0
    if may_fit(room, limits, wants, tasks):
        while done < len(tasks) and place_task(room, limits, wants, packing, tasks[done], near, together):
            done += 1
        if done == len(tasks):
            return
        for task in tasks[:done]:
            put(room, wants, task, QUEUED)
    if room.load.max() <= tolerance.LOADS:
        place_alone(room, wants, tasks)


@njit(types.void(ROOM, LIMITS, WANTS, PACKING, I1, B1), cache=True)
def pack(room: Room, limits: Limits, wants: Wants, packing: Packing, order: Ints, moving: Bools) -> None:
    """Go through jobs in an order: place those of their tasks that wait, all or none, and move those that are to move.

    A moving task leaves its GPU only for one of another server. Where no server takes it, or, without `part`, only one
    that has less of what it communicates with, it stays; or, with `evict`, all tasks of its job go back to the queue,
    because those that are left could not go on without it.
    """
    near, together = np.zeros(len(room.least)), np.zeros(len(room.least), dtype=np.int64)
    for job in order:
        # Those in the queue now: a task that moves never passes through it.
        tasks = waiting(room, wants, job)
        evicted = False
        for task in range(wants.task_of[job], wants.task_of[job + 1]):
            if moving[task] and room.place[task] != QUEUED and not evicted:
                moved = place_task(room, limits, wants, packing, task, near, together)
                evicted = packing.evict and not moved
        if evicted:
            release(room, wants, np.array([job]))
        elif len(tasks):
            place_whole(room, limits, wants, packing, tasks, near, together)


def room_of(view: TaskView) -> Room:
    """A copy of the loads to try placements on."""
    cluster = view.cluster
    servers = len(cluster.capacity)
    room = Room(
        plain(cluster.capacity),
        np.searchsorted(cluster.server_of, np.arange(servers + 1)).astype(np.int64),
        plain(cluster.server_of),
        view.load.copy(),
        view.gpu_load.copy(),
        view.gpu_of.copy(),
        np.empty(servers, dtype=np.int64),
    )
    find_all_least(room)
    return room


def wants_of(view: TaskView, rank: Floats | None = None) -> Wants:
    """What jobs need; `rank` (n_tasks,) orders tasks within jobs, default by number."""
    jobs = view.jobs
    columns = (jobs.task_of, jobs.edge_of, jobs.job_of, view.task_load, jobs.is_server)
    edges = (jobs.edge_from, jobs.edge_to, jobs.volume_mb)
    order = np.zeros(len(jobs.job_of)) if rank is None else rank
    return Wants(*(plain(column) for column in (*columns, *edges, order)))


def limits_of(most: ArrayLike = 1.0, gpu: float = 1.0) -> Limits:
    """Shares up to which servers (one for all resources, or (4,)) and GPUs are filled; of memory at most 1."""
    shares = np.array(np.broadcast_to(np.asarray(most, dtype=np.float64), (len(RESOURCES),)))
    shares[MEMORY] = min(shares[MEMORY], 1.0)
    return Limits(shares, float(gpu))


def placement(view: TaskView, room: Room) -> Decision:
    """What has changed since the view: jobs that gave back all their GPUs stop, other tasks go where they are now."""
    changed = np.flatnonzero(room.place != view.gpu_of)
    back = np.unique(view.jobs.job_of[changed[room.place[changed] == QUEUED]])
    begins, ends = view.jobs.task_of[back], view.jobs.task_of[back + 1]
    # A job stops only as a whole; single tasks just move.
    empty = [(room.place[begin:end] == QUEUED).all() for begin, end in zip(begins, ends, strict=True)]
    stop = back[np.array(empty, dtype=np.bool_)]
    tasks = changed[~np.isin(view.jobs.job_of[changed], stop)]
    # Plain ints: keys are compared with `seq`, and logs show them.
    put = dict(zip(tasks.tolist(), room.place[tasks].tolist(), strict=True))
    return Decision(dict.fromkeys(stop.tolist()), tasks=put)
