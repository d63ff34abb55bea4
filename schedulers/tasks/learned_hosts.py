"""Hosts for tasks by a learned network: what is read of each server, and jobs placed whole. Compiled.

After MLFS, sections 3.3.2 and 3.4. Which servers can take a task, and which GPU of a server, is as for MLF-H
(`hosts`, `packing`): the network chooses among them.
"""

from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F2, I1, njit, types
from jobcast.domain.tasks import GPU, QUEUED
from jobcast.schedulers.tasks.features import HOST, VIEW, told_of
from jobcast.schedulers.tasks.host_selection import KINDS, LIMITS, ROOM, Limits, Room, hosts, movement
from jobcast.schedulers.tasks.network import LAYERS, SAME_SCORE, Layers, score_rows
from jobcast.schedulers.tasks.packing import WANTS, Wants, may_fit, nearness, put, togetherness, waiting

COLUMNS = len(HOST)
_LEAST_SHARE = 1e-3


@njit(types.UniTuple(types.float64, 2)(ROOM, WANTS, types.int64), cache=True)
def rest_of(room: Room, wants: Wants, job: int) -> tuple[float, float]:
    """Share of a job's tasks that are queued, and the GPU shares that these need."""
    first, last = wants.task_of[job], wants.task_of[job + 1]
    left, shares = 0.0, 0.0
    for task in range(first, last):
        if room.place[task] == QUEUED:
            left += 1.0
            shares += wants.use[task, GPU]
    return left / (last - first), shares


@njit(types.void(ROOM, LIMITS, F1, types.int64, types.int64, F1), cache=True)
def _fill_server(room: Room, limits: Limits, use: Floats, server: int, own_gpu: int, row: Floats) -> None:
    """Loads of a server before and after it takes a task; a task that is there on `own_gpu` is left out before."""
    fullest, free = 0.0, 0.0
    for kind in range(KINDS):
        there = use[kind] if own_gpu >= 0 else 0.0
        row[kind] = (room.load[server, kind] - there) / room.capacity[server, kind]
        row[HOST.task_gpu + kind] = use[kind] / room.capacity[server, kind]
        fullest = max(fullest, row[kind] + row[HOST.task_gpu + kind])
    for gpu in range(room.gpu_from[server], room.gpu_from[server + 1]):
        free += max(limits.gpu - room.gpu_load[gpu], 0.0)
    row[HOST.freest_gpu] = room.gpu_load[own_gpu] - use[GPU] if own_gpu >= 0 else room.gpu_load[room.least[server]]
    row[HOST.freest_gpu_after] = row[HOST.freest_gpu] + use[GPU]
    row[HOST.fullest_after] = fullest
    row[HOST.room_for_rest] = free


@njit(types.int64(ROOM, LIMITS, WANTS, types.int64, F1, F2, I1), cache=True)
def host_rows(room: Room, limits: Limits, wants: Wants, task: int, value: Floats, rows: Floats, servers: Ints) -> int:
    """Rows of the servers that can take a task, and which they are, QUEUED for the queue; how many.

    The server that a task is on is among them: it may stay; the queue comes last, for a task that is on one.

    Parameters
    ----------
    value : (3,) see `features.told_of`
    rows : (n_servers + 1, n_features) to fill; columns by `features.HOST_FEATURES`
    servers : (n_servers + 1,) to fill
    """
    many, use, job, gpu = len(room.least), wants.use[task], wants.job_of[task], room.place[task]
    near, together = np.empty(many), np.empty(many, dtype=np.int64)
    nearness(room, wants, task, near)
    togetherness(room, wants, task, together)
    left, shares = rest_of(room, wants, job)
    own = wants.task_of[job + 1] - wants.task_of[job]
    origin = room.server_of[gpu] if gpu != QUEUED else -1
    count, nearest, least = 0, 0.0, np.full(KINDS, np.inf)
    for server in range(many):
        # Its own server counts as a host even when overloaded: the task may stay.
        if server != origin and not hosts(room, limits, use, server):
            continue
        row = rows[count]
        _fill_server(room, limits, use, server, gpu if server == origin else -1, row)
        row[HOST.near] = near[server]
        row[HOST.job_here] = together[server] / own
        # At most twice what the rest of the job needs: more makes no difference.
        row[HOST.room_for_rest] = min(row[HOST.room_for_rest] / max(shares, _LEAST_SHARE), 2.0) / 2.0
        row[HOST.tasks_left] = left
        row[HOST.moves] = movement(room, use, origin, server)
        row[HOST.stays] = 1.0 if server == origin else 0.0
        row[HOST.is_server] = 1.0 if wants.is_server[task] else 0.0
        row[HOST.queue] = 0.0
        row[HOST.job_remaining :] = value
        nearest, least = max(nearest, near[server]), np.minimum(least, row[:KINDS])
        servers[count] = server
        count += 1
    # Columns relative to the best wait until all servers are known.
    for place in range(count):
        rows[place, HOST.above_least_gpu : HOST.above_least_gpu + KINDS] = rows[place, :KINDS] - least
        rows[place, HOST.below_nearest] = nearest - rows[place, HOST.near]
    if origin >= 0:
        row = rows[count]
        row[:] = 0.0
        row[HOST.queue] = 1.0
        row[HOST.job_remaining :] = value
        servers[count] = QUEUED
        count += 1
    return count


@njit(types.boolean(ROOM, LIMITS, WANTS, types.int64), cache=True)
def fits(room: Room, limits: Limits, wants: Wants, job: int) -> bool:
    """Whether all queued tasks of a job find a place by first fit; changes nothing."""
    tasks = waiting(room, wants, job)
    if len(tasks) == 0 or not may_fit(room, limits, wants, tasks):
        return False
    server, many = 0, len(room.least)
    for task in tasks:
        turn = 0
        while turn < many and not hosts(room, limits, wants.use[task], (server + turn) % many):
            turn += 1
        if turn == many:
            break
        server = (server + turn) % many
        put(room, wants, task, room.least[server])
    whole = room.place[tasks[-1]] != QUEUED
    for task in tasks:
        put(room, wants, task, QUEUED)
    return bool(whole)


@njit(I1(ROOM, LIMITS, WANTS, I1), cache=True)
def fitting(room: Room, limits: Limits, wants: Wants, jobs: Ints) -> Ints:
    """Those jobs of which all tasks find a place, in their order."""
    found, count = np.empty(len(jobs), dtype=np.int64), 0
    for job in jobs:
        if fits(room, limits, wants, job):
            found[count] = job
            count += 1
    return found[:count].copy()


class Sheet(NamedTuple):
    """Room for rows (n_servers + 1, n_features), their scores and servers (n_servers + 1,)."""

    rows: Floats
    scores: Floats
    servers: Ints


SHEET = types.NamedTuple([F2, F1, I1], Sheet)


@njit(SHEET(types.int64), cache=True)
def sheet_of(servers: int) -> Sheet:
    """An empty sheet for so many servers."""
    return Sheet(np.zeros((servers + 1, COLUMNS)), np.empty(servers + 1), np.empty(servers + 1, dtype=np.int64))


@njit(types.void(ROOM, WANTS, types.int64, types.int64), cache=True)
def settle(room: Room, wants: Wants, task: int, server: int) -> None:
    """Put a task on a server, where it is not there already; with QUEUED stop its job."""
    if server == QUEUED:
        job = wants.job_of[task]
        for own in range(wants.task_of[job], wants.task_of[job + 1]):
            put(room, wants, own, QUEUED)
    elif room.place[task] == QUEUED or room.server_of[room.place[task]] != server:
        put(room, wants, task, room.least[server])


@njit(types.boolean(ROOM, LIMITS, WANTS, LAYERS, types.int64, F1, SHEET), cache=True)
def host_task(room: Room, limits: Limits, wants: Wants, layers: Layers, task: int, value: Floats, sheet: Sheet) -> bool:
    """Put a task where the score is highest, the first of equals; False where no server can take it.

    A task that is on a GPU stays there where its own server scores highest, and its job stops where the queue does.
    """
    rows, scores, servers = sheet
    count = host_rows(room, limits, wants, task, value, rows, servers)
    if count == 0:
        return False
    score_rows(layers, rows, count, scores)
    best = 0
    for place in range(1, count):
        # More than equal: `tanh` differs in its last bits between libraries.
        if scores[place] > scores[best] + SAME_SCORE:
            best = place
    settle(room, wants, task, servers[best])
    return True


@njit(types.int64(VIEW, ROOM, LIMITS, WANTS, LAYERS, I1, types.int64), cache=True)
def place_in_order(
    view: Any, room: Room, limits: Limits, wants: Wants, layers: Layers, order: Ints, queued: int
) -> int:
    """Place the queued tasks of jobs in an order, each job whole or not at all; how many jobs were placed.

    Parameters
    ----------
    queued : how many jobs wait
    """
    sheet, placed = sheet_of(len(room.least)), 0
    for job in order:
        if not fits(room, limits, wants, job):
            continue
        tasks, done, result = waiting(room, wants, job), 0, told_of(view, job, queued)
        while done < len(tasks) and host_task(room, limits, wants, layers, tasks[done], result, sheet):
            done += 1
        if done == len(tasks):
            placed += 1
            continue
        # Whole or not at all: a part of a job holds GPUs and cannot run.
        for task in tasks[:done]:
            put(room, wants, task, QUEUED)
    return placed


@njit(types.void(VIEW, ROOM, LIMITS, WANTS, LAYERS, I1, types.int64), cache=True)
def move_tasks(view: Any, room: Room, limits: Limits, wants: Wants, layers: Layers, tasks: Ints, queued: int) -> None:
    """Move tasks that are on GPUs, one after another, or leave them, or stop their jobs, by the highest score."""
    sheet = sheet_of(len(room.least))
    for task in tasks:
        if room.place[task] != QUEUED:
            result = told_of(view, wants.job_of[task], queued)
            host_task(room, limits, wants, layers, task, result, sheet)
