"""Decisions carried out: compiled. Nothing impossible gets through."""

import numpy as np

from jobcast.domain.tasks import BANDWIDTH, MEMORY, QUEUED, Floats, Ints
from jobcast.simulator.tasks.faults import (
    CHANGED,
    LIMIT_ABOVE,
    LIMIT_DONE,
    NO_GPU,
    NO_LIMITED,
    NO_MEMORY,
    NO_STOP,
    NO_TASK,
    TWICE,
    UNCHANGED,
)
from jobcast.simulator.tasks.rates import (
    FLOATS,
    INTS,
    STATE,
    WORLD,
    count_overloads,
    inner,
    measure,
    outer,
    set_rates,
    types,
)
from jobcast.simulator.tasks.state import (
    ACTIVE,
    CULPRIT,
    MOVES,
    OVERLOADED_NOW,
    OVERLOADS,
    WHERE,
    TaskState,
    TaskWorld,
)

SLACK = 1e-9
"""Share by which memory and limits may be missed for adding floats up."""
UNTOUCHED, STOPPED, RAN, HELD = range(4)
"""Marks of jobs during a decision."""


@inner(types.int64(STATE, types.int64, types.int64, types.int64))
def _fault(state: TaskState, status: int, culprit: int, where: int) -> int:
    """A fault, with who is to blame and where."""
    state.counts[CULPRIT] = culprit
    state.counts[WHERE] = where
    return status


@inner(types.void(STATE, types.int64, types.int64, types.float64))
def _record(state: TaskState, task: int, gpu: int, now_s: float) -> None:
    """A task is on another GPU from now on, or on none."""
    row = state.counts[MOVES]
    state.moves[row, 0], state.moves[row, 1], state.moves[row, 2] = task, gpu, now_s
    state.counts[MOVES] = row + 1


@inner(types.void(WORLD, STATE, types.int64, types.float64))
def _rest(world: TaskWorld, state: TaskState, task: int, now_s: float) -> None:
    """A task goes back to the queue, where it counts as using what it uses at rest."""
    if state.gpu_of[task] != QUEUED:
        _record(state, task, QUEUED, now_s)
    state.gpu_of[task] = QUEUED
    for kind in range(4):
        state.task_load[task, kind] = world.jobs.demand[task, kind]


@inner(types.void(WORLD, STATE, types.int64, types.float64))
def release(world: TaskWorld, state: TaskState, job: int, now_s: float) -> None:
    """Take all tasks of a job off their GPUs."""
    for task in range(world.jobs.task_of[job], world.jobs.task_of[job + 1]):
        _rest(world, state, task, now_s)
    state.placed[job] = 0
    state.rate[job] = 0.0
    state.stalled_until_s[job] = -np.inf


@inner(types.int64(WORLD, STATE, types.float64, INTS))
def _stop(world: TaskWorld, state: TaskState, now_s: float, stop: Ints) -> int:
    """Stop jobs; a stop of a job that holds nothing changes nothing."""
    status = UNCHANGED
    for job in stop:
        if job < 0 or job >= len(state.done) or not state.is_active[job]:
            return int(_fault(state, NO_STOP, job, 0))
        if state.placed[job] > 0:
            release(world, state, job, now_s)
            state.preemptions[job] += 1
            state.mark[job] = STOPPED
            status = CHANGED
    return status


@inner(types.void(WORLD, STATE, types.int64, types.int64))
def _owe(world: TaskWorld, state: TaskState, task: int, server: int) -> None:
    """A task that was on a GPU before goes to another, or to one again: its job will stand still for that."""
    job, before = world.jobs.job_of[task], state.last_server[task]
    if state.owed_s[job] == 0.0:
        state.owed_s[job] = world.restart_s
    if before != server:
        moved_mb = world.model_mb[job] * world.jobs.size_share[task]
        capacity = world.cluster.capacity
        state.moved_mb[job] += moved_mb
        state.owed_s[job] += moved_mb / min(capacity[before, BANDWIDTH], capacity[server, BANDWIDTH])


@inner(types.void(WORLD, STATE, types.float64, types.int64, types.int64))
def _put(world: TaskWorld, state: TaskState, now_s: float, task: int, gpu: int) -> None:
    """Put a task on another GPU than it is on, or back to the queue."""
    job, before = world.jobs.job_of[task], state.gpu_of[task]
    if gpu == QUEUED:
        state.placed[job] -= 1
        _rest(world, state, task, now_s)
        return
    _record(state, task, gpu, now_s)
    state.gpu_of[task] = gpu
    if before == QUEUED:
        state.placed[job] += 1
    else:
        state.migrations[job] += 1
    server = world.cluster.server_of[gpu]
    if state.last_server[task] >= 0:
        _owe(world, state, task, server)
    state.last_server[task] = server


@inner(types.int64(WORLD, STATE, types.float64, INTS, INTS))
def _place(world: TaskWorld, state: TaskState, now_s: float, tasks: Ints, gpus: Ints) -> int:
    """Put tasks where they belong."""
    jobs, status = world.jobs, UNCHANGED
    for i in range(len(tasks)):
        task, gpu = tasks[i], gpus[i]
        if task < 0 or task >= len(state.gpu_of) or not state.is_active[jobs.job_of[task]]:
            return int(_fault(state, NO_TASK, task, 0))
        if gpu < QUEUED or gpu >= len(world.cluster.server_of):
            return int(_fault(state, NO_GPU, task, gpu))
        if state.seen[task]:
            return int(_fault(state, TWICE, task, 0))
        state.seen[task] = True
        job = jobs.job_of[task]
        if state.mark[job] == UNTOUCHED:
            whole = state.placed[job] == jobs.task_of[job + 1] - jobs.task_of[job]
            state.mark[job] = RAN if whole else HELD
        if gpu != state.gpu_of[task]:
            _put(world, state, now_s, task, gpu)
            status = CHANGED
    return status


@inner(types.void(WORLD, STATE, types.float64, INTS, INTS))
def _settle(world: TaskWorld, state: TaskState, now_s: float, stop: Ints, tasks: Ints) -> None:
    """Starts, stand-stills and stops of the jobs that a decision touched; marks are wiped."""
    jobs = world.jobs
    for task in tasks:
        job = jobs.job_of[task]
        state.seen[task] = False
        whole = state.placed[job] == jobs.task_of[job + 1] - jobs.task_of[job]
        if state.mark[job] == RAN and not whole:
            state.preemptions[job] += 1
        state.mark[job] = UNTOUCHED
        if whole and state.owed_s[job] > 0.0:
            state.stalled_until_s[job] = max(state.stalled_until_s[job], now_s + state.owed_s[job])
            state.owed_s[job] = 0.0
        if whole and np.isnan(state.start_s[job]):
            state.start_s[job] = now_s
    for job in stop:
        state.mark[job] = UNTOUCHED


@inner(types.int64(WORLD, STATE, INTS))
def _check_memory(world: TaskWorld, state: TaskState, tasks: Ints) -> int:
    """Whether all servers have the memory that their tasks need; else the last task put on one that has not."""
    demand, task_of = world.jobs.demand, world.jobs.task_of
    capacity, server_of = world.cluster.capacity, world.cluster.server_of
    gpu_of, active, placed = state.gpu_of, state.active, state.placed
    used = np.zeros(len(capacity))
    for i in range(state.counts[ACTIVE]):
        job = active[i]
        if placed[job] == 0:
            continue
        for task in range(task_of[job], task_of[job + 1]):
            if gpu_of[task] != QUEUED:
                used[server_of[gpu_of[task]]] += demand[task, MEMORY]
    for i in range(len(tasks) - 1, -1, -1):
        gpu = gpu_of[tasks[i]]
        if gpu != QUEUED:
            server = server_of[gpu]
            if used[server] > capacity[server, MEMORY] * (1.0 + SLACK):
                return int(_fault(state, NO_MEMORY, tasks[i], server))
    return CHANGED


@inner(types.int64(WORLD, STATE, INTS, FLOATS))
def _set_limits(world: TaskWorld, state: TaskState, limited: Ints, limits: Floats) -> int:
    """Set after how many iterations jobs will stop; a status."""
    status = UNCHANGED
    for i in range(len(limited)):
        job, limit = limited[i], limits[i]
        if job < 0 or job >= len(state.done) or not state.is_active[job]:
            return int(_fault(state, NO_LIMITED, job, 0))
        if not limit >= state.done[job] * (1.0 - SLACK):  # NaN neither
            return int(_fault(state, LIMIT_DONE, job, i))
        if limit > world.jobs.iterations[job] * (1.0 + SLACK):
            return int(_fault(state, LIMIT_ABOVE, job, i))
        if limit != state.limit[job]:
            state.limit[job] = min(max(limit, state.done[job]), world.jobs.iterations[job])
            status = CHANGED
    return status


@inner(types.int64(WORLD, STATE, types.float64, INTS, INTS, INTS))
def _move(world: TaskWorld, state: TaskState, now_s: float, stop: Ints, tasks: Ints, gpus: Ints) -> int:
    """Stop jobs, then put tasks where they belong, all at once; a status. After a fault the state is of no use."""
    stopped = _stop(world, state, now_s, stop)
    if stopped > CHANGED:
        return int(stopped)
    placed = _place(world, state, now_s, tasks, gpus)
    if placed > CHANGED:
        return int(placed)
    _settle(world, state, now_s, stop, tasks)
    if placed == CHANGED:
        placed = _check_memory(world, state, tasks)
    return int(max(stopped, placed))


@outer(types.int64(WORLD, STATE, types.float64, types.int64, types.boolean, INTS, INTS, INTS, INTS, FLOATS))
def carry_out(
    world: TaskWorld,
    state: TaskState,
    now_s: float,
    slot: int,
    stale: bool,
    stop: Ints,
    tasks: Ints,
    gpus: Ints,
    limited: Ints,
    limits: Floats,
) -> int:
    """Carry out a decision and set rates by it; a status. `stale`: rates must be set even where nothing changes."""
    status = _set_limits(world, state, limited, limits)
    if status <= CHANGED:
        status = max(status, _move(world, state, now_s, stop, tasks, gpus))
    if status > CHANGED:
        return int(status)
    if status == CHANGED:
        measure(world, state, slot)
    if status == CHANGED or stale:
        set_rates(world, state)
        count_overloads(world, state)
    state.counts[OVERLOADS] += state.counts[OVERLOADED_NOW]
    return int(status)
