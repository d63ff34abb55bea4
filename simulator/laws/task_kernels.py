"""Jobs of tasks, compiled: what tasks use, how fast jobs get on with it, decisions carried out, time that passes.

Importing numba takes a second, so only what computes imports this file.
"""

from collections.abc import Collection
from functools import partial
from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import B1, F1, F2, I1, njit, types
from jobcast.domain.iteration_kernels import Places, iteration
from jobcast.domain.tasks import BANDWIDTH, CPU, GPU, MEMORY, QUEUED, TaskCluster, TaskJobs
from jobcast.simulator.laws.task_state import (
    ACTIVE,
    CULPRIT,
    INT_COLUMNS,
    MOVES,
    OVERLOADED,
    OVERLOADED_NOW,
    OVERLOADS,
    SLOT_S,
    STATE_INTS,
    STATUS,
    TURNED,
    WHERE,
    TaskState,
    TaskWorld,
)

inner: Any = partial(njit, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For what only compiled code calls: without the ways in from Python, which take longer to compile than it does."""
outer: Any = partial(njit, cache=True, no_cfunc_wrapper=True)


KINDS = (GPU, CPU, MEMORY, BANDWIDTH)
FLAGS_OF = ("is_server", "is_active")
SQUARES = ("demand", "capacity", "metric", "task_load", "load", "moves", "ready_s", "step_s", "next_step_s")
STRAGGLERS = ("stragglers", "straggler_factor", "straggler_s")
SCALARS = dict.fromkeys(("origin_s", "fluctuation", "restart_s", *STRAGGLERS), types.float64) | {"seed": types.int64}


def _type_of(kind: Any, ints: Collection[str], **known: Any) -> Any:
    """The compiled type of a tuple of columns, told by their names; one row of floats where nothing is said."""
    result = dict.fromkeys(ints, I1) | dict.fromkeys(FLAGS_OF, B1) | dict.fromkeys(SQUARES, F2)
    result |= SCALARS | known
    return types.NamedTuple([result.get(name, F1) for name in kind._fields], kind)


JOBS = _type_of(TaskJobs, INT_COLUMNS)
CLUSTER = _type_of(TaskCluster, INT_COLUMNS)
WORLD = _type_of(TaskWorld, ("epochs", "edge_order"), jobs=JOBS, cluster=CLUSTER)
STATE = _type_of(TaskState, STATE_INTS)
UNCHANGED, CHANGED, NO_TASK, NO_GPU, NO_MEMORY, LIMIT_DONE, LIMIT_ABOVE, NO_COPY = range(8)
"""How carrying out a decision ends: nothing changed, something did, or what the policy did wrong."""
UNTOUCHED, STOPPED, RAN, HELD = range(4)
"""Marks of jobs during a decision."""
WIDEST_DRAW = 2.0
LEAST_FACTOR = 0.1
"""Draws are clipped to +-2 deviations; a task uses at least a tenth of what it uses at rest."""
GOLDEN, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""SplitMix64: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014."""


@inner(types.uint64(types.uint64))
def _mixed(number: Any) -> Any:
    """SplitMix64's next number after a state."""
    # Wraps around at 2^64, as it should.
    number = number + GOLDEN
    number = (number ^ (number >> np.uint64(30))) * MIX_1
    number = (number ^ (number >> np.uint64(27))) * MIX_2
    return number ^ (number >> np.uint64(31))


@inner(types.float64(types.int64, types.int64, types.int64))
def normal(seed: int, task: int, slot: int) -> float:
    """A draw of the standard normal distribution that is a pure function of whom and when it is about (Box-Muller)."""
    # A hash of whom and when: draws do not depend on the order in which they are made.
    key = _mixed(_mixed(_mixed(np.uint64(seed)) ^ np.uint64(task)) ^ np.uint64(slot))
    first = 1.0 - float(~key >> np.uint64(11)) * 2.0**-53  # in (0, 1]
    second = float(_mixed(key) >> np.uint64(11)) * 2.0**-53
    return float(np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second))


@inner(types.float64(types.float64, types.int64, types.int64, types.int64))
def _factor(fluctuation: float, seed: int, task: int, slot: int) -> float:
    """By how much a task on a GPU uses more than at rest in a slot."""
    drawn = max(-WIDEST_DRAW, min(WIDEST_DRAW, normal(seed, task, slot)))
    return float(max(LEAST_FACTOR, 1.0 + fluctuation * drawn))


@inner(types.float64(types.int64, types.int64))
def _uniform(key: int, number: int) -> float:
    """A draw between 0 and 1 that is a pure function of a key and a number."""
    return float(_mixed(_mixed(np.uint64(key)) ^ np.uint64(number)) >> np.uint64(11)) * 2.0**-53


@inner(types.float64(WORLD, types.int64, types.int64))
def _slowness(world: TaskWorld, server: int, slot: int) -> float:
    """How many times as long tasks compute on a server in a slot; its spells begin at an instant of its own."""
    # A key of each server's own, for any seed.
    key = world.seed * 1_000_003 - 1 - server
    spell = int(np.floor(slot * SLOT_S / world.straggler_s + _uniform(key, -1)))
    return float(world.straggler_factor if _uniform(key, spell) < world.stragglers else 1.0)


@outer(types.void(WORLD, STATE, types.int64))
def measure(world: TaskWorld, state: TaskState, slot: int) -> None:
    """Fill what tasks, servers and GPUs use in a slot.

    Here and below, arrays that loops need are taken out of their tuples first: to take one out costs as much as a
    task's turn.
    """
    demand, task_of, server_of = world.jobs.demand, world.jobs.task_of, world.cluster.server_of
    load, gpu_load, task_load = state.load, state.gpu_load, state.task_load
    active, placed, gpu_of, factors, slots = state.active, state.placed, state.gpu_of, state.factor, state.factor_slot
    copy_of = state.copy_of
    load[:] = 0.0
    gpu_load[:] = 0.0
    for server in range(len(load)):
        state.slow[server] = _slowness(world, server, slot)
    for i in range(state.counts[ACTIVE]):
        job = active[i]
        if placed[job] == 0:
            continue
        for task in range(task_of[job], task_of[job + 1]):
            gpu = gpu_of[task]
            if gpu == QUEUED:
                continue
            # A draw is made when it is first needed in a slot, and kept.
            if slots[task] != slot:
                slots[task] = slot
                factors[task] = _factor(world.fluctuation, world.seed, task, slot)
            for kind in KINDS:
                # Memory does not fluctuate: what fits must go on fitting.
                task_load[task, kind] = demand[task, kind] * (1.0 if kind == MEMORY else factors[task])
            for gpu in (gpu_of[task], copy_of[task]):
                if gpu != QUEUED:
                    gpu_load[gpu] += task_load[task, GPU]
                    for kind in KINDS:
                        load[server_of[gpu], kind] += task_load[task, kind]


@inner(types.void(WORLD, STATE))
def count_overloads(world: TaskWorld, state: TaskState) -> None:
    """Count the servers of which any resource is overloaded."""
    capacity = world.cluster.capacity
    state.counts[OVERLOADED_NOW] = 0
    for server in range(len(capacity)):
        for kind in KINDS:
            if state.load[server, kind] > OVERLOADED * capacity[server, kind]:
                state.counts[OVERLOADED_NOW] += 1
                # A server counts once, however many of its resources are short.
                break


@inner(types.void(WORLD, STATE))
def set_rates(world: TaskWorld, state: TaskState) -> None:
    """How fast the active jobs get on from now on: not at all, unless all their tasks are on GPUs."""
    load, capacity = state.load, world.cluster.capacity
    cores, links = np.empty(len(capacity)), np.empty(len(capacity))
    for server in range(len(capacity)):
        cores[server] = max(1.0, load[server, CPU] / capacity[server, CPU])
        links[server] = max(1.0, load[server, BANDWIDTH] / capacity[server, BANDWIDTH])
    task_of, placed, active, rate = world.jobs.task_of, state.placed, state.active, state.rate
    hosts, where, copies = world.cluster.server_of, state.gpu_of, state.copy_of
    places = Places(world.edge_order, hosts, where, copies, state.task_load, state.gpu_load, cores, links, state.slow)
    for i in range(state.counts[ACTIVE]):
        job = active[i]
        # In part on GPUs is not enough: tasks wait for one another.
        if placed[job] == task_of[job + 1] - task_of[job]:
            taken_s, crossing_mb, share = iteration(world.jobs, places, job, state.ready_s, state.next_step_s)
            rate[job] = 1.0 / taken_s
            state.iteration_mb[job], state.gpu_share[job] = crossing_mb, share
        else:
            rate[job] = 0.0


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


@inner(types.void(STATE, types.int64, types.int64, types.float64))
def _copy_to(state: TaskState, task: int, gpu: int, now_s: float) -> None:
    """A task's copy is on another GPU from now on, or on none."""
    if gpu != state.copy_of[task]:
        _record(state, ~task, gpu, now_s)
        state.copy_of[task], state.step_s[task, 1], state.next_step_s[task, 1] = gpu, np.nan, np.nan


@inner(types.void(WORLD, STATE, types.int64, types.float64))
def _rest(world: TaskWorld, state: TaskState, task: int, now_s: float) -> None:
    """A task goes back to the queue, where it counts as using what it uses at rest; without it there is no copy."""
    if state.gpu_of[task] != QUEUED:
        _record(state, task, QUEUED, now_s)
        _copy_to(state, task, QUEUED, now_s)
        state.step_s[task, 0] = np.nan
    state.gpu_of[task] = QUEUED
    for kind in KINDS:
        state.task_load[task, kind] = world.jobs.demand[task, kind]


@inner(types.void(WORLD, STATE, types.int64, types.float64))
def release(world: TaskWorld, state: TaskState, job: int, now_s: float) -> None:
    """Take all tasks of a job off their GPUs."""
    for task in range(world.jobs.task_of[job], world.jobs.task_of[job + 1]):
        _rest(world, state, task, now_s)
    state.placed[job] = 0


@outer(types.void(WORLD, STATE, types.int64, types.float64))
def stop(world: TaskWorld, state: TaskState, job: int, now_s: float) -> None:
    """Stop a job. The decision that it is of must be carried out with it among the stopped ones."""
    release(world, state, job, now_s)
    state.preemptions[job] += 1
    state.mark[job] = STOPPED


@inner(types.void(WORLD, STATE, types.int64, types.int64))
def _owe(world: TaskWorld, state: TaskState, task: int, server: int) -> None:
    """A task that was on a GPU before goes to another, or to one again: its job will stand still for that."""
    job, before = world.jobs.job_of[task], state.last_server[task]
    # One restart, however many of its tasks move.
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
    state.gpu_of[task], state.step_s[task, 0] = gpu, np.nan
    if before == QUEUED:
        state.placed[job] += 1
    else:
        state.migrations[job] += 1
    server = world.cluster.server_of[gpu]
    if state.last_server[task] != QUEUED:
        _owe(world, state, task, server)
    state.last_server[task] = server


@inner(types.void(WORLD, STATE, types.int64))
def _touch(world: TaskWorld, state: TaskState, job: int) -> None:
    """Mark a job as it was before the decision; what comes later in it must not overwrite that."""
    if state.mark[job] == UNTOUCHED:
        whole = state.placed[job] == world.jobs.task_of[job + 1] - world.jobs.task_of[job]
        state.mark[job] = RAN if whole else HELD


@inner(types.int64(WORLD, STATE, types.int64, types.int64))
def _unfit(world: TaskWorld, state: TaskState, task: int, gpu: int) -> int:
    """A fault where there is no such active task, or no such GPU; else UNCHANGED."""
    if task not in range(len(state.gpu_of)) or not state.is_active[world.jobs.job_of[task]]:
        return int(_fault(state, NO_TASK, task, task))
    if gpu not in range(QUEUED, len(world.cluster.server_of)):
        return int(_fault(state, NO_GPU, task, gpu))
    return UNCHANGED


@inner(types.int64(WORLD, STATE, types.float64, I1, I1))
def _place(world: TaskWorld, state: TaskState, now_s: float, tasks: Ints, gpus: Ints) -> int:
    """Put tasks where they belong."""
    jobs, status = world.jobs, UNCHANGED
    for i in range(len(tasks)):
        task, gpu = tasks[i], gpus[i]
        fault = _unfit(world, state, task, gpu)
        if fault != UNCHANGED:
            return int(fault)
        _touch(world, state, jobs.job_of[task])
        if gpu != state.gpu_of[task]:
            _put(world, state, now_s, task, gpu)
            status = CHANGED
    return status


@inner(types.int64(WORLD, STATE, types.float64, I1, I1))
def _duplicate(world: TaskWorld, state: TaskState, now_s: float, tasks: Ints, gpus: Ints) -> int:
    """Put copies of tasks where they belong; one that joins a job that ran costs it what a move of the task does."""
    jobs, status = world.jobs, UNCHANGED
    for i in range(len(tasks)):
        task, gpu = tasks[i], gpus[i]
        fault = _unfit(world, state, task, gpu)
        if fault != UNCHANGED:
            return int(fault)
        if gpu != QUEUED and state.gpu_of[task] == QUEUED:
            return int(_fault(state, NO_COPY, task, gpu))
        if gpu != state.copy_of[task]:
            _touch(world, state, jobs.job_of[task])
            if gpu != QUEUED and state.mark[jobs.job_of[task]] == RAN:
                _owe(world, state, task, world.cluster.server_of[gpu])
            _copy_to(state, task, gpu, now_s)
            status = CHANGED
    return status


@inner(types.void(WORLD, STATE, types.float64, I1, I1))
def _settle(world: TaskWorld, state: TaskState, now_s: float, stopped: Ints, tasks: Ints) -> None:
    """Starts, stand-stills and stops of the jobs that a decision touched; marks are wiped."""
    jobs = world.jobs
    for task in tasks:
        job = jobs.job_of[task]
        if state.mark[job] == UNTOUCHED:
            continue
        ran, whole = state.mark[job] == RAN, state.placed[job] == jobs.task_of[job + 1] - jobs.task_of[job]
        state.mark[job] = UNTOUCHED
        if ran != whole:
            state.turned[state.counts[TURNED]] = job
            state.counts[TURNED] += 1
        if ran and not whole:
            state.preemptions[job] += 1
        if whole:
            state.stalled_until_s[job] = max(state.stalled_until_s[job], now_s + state.owed_s[job])
            state.owed_s[job] = 0.0
            # The first time alone; NaN until then.
            state.start_s[job] = np.fmin(state.start_s[job], now_s)
    for job in stopped:
        state.mark[job] = UNTOUCHED


@outer(F1(WORLD, STATE))
def used_memory(world: TaskWorld, state: TaskState) -> Floats:
    """(n_servers,) GB that the tasks on each need."""
    demand, task_of, server_of = world.jobs.demand, world.jobs.task_of, world.cluster.server_of
    gpu_of, active, placed = state.gpu_of, state.active, state.placed
    used = np.zeros(len(world.cluster.capacity))
    for i in range(state.counts[ACTIVE]):
        job = active[i]
        if placed[job] == 0:
            continue
        for task in range(task_of[job], task_of[job + 1]):
            for gpu in (gpu_of[task], state.copy_of[task]):
                if gpu != QUEUED:
                    used[server_of[gpu]] += demand[task, MEMORY]
    return used


@inner(types.int64(WORLD, STATE, I1, I1))
def _check_memory(world: TaskWorld, state: TaskState, tasks: Ints, gpu_of: Ints) -> int:
    """Whether all servers have the memory that their tasks need; else the last task put on one that has not.

    `gpu_of` : (n_tasks,) of the tasks, or of their copies
    """
    capacity, server_of = world.cluster.capacity, world.cluster.server_of
    used = used_memory(world, state)
    # From the last: that is the move that went too far.
    for task in tasks[::-1]:
        gpu = gpu_of[task]
        if gpu != QUEUED:
            server = server_of[gpu]
            if used[server] > capacity[server, MEMORY] * (1.0 + tolerance.SHARES):
                return int(_fault(state, NO_MEMORY, task, server))
    return CHANGED


@inner(types.int64(WORLD, STATE, I1, F1))
def _set_limits(world: TaskWorld, state: TaskState, limited: Ints, limits: Floats) -> int:
    """Set after how many iterations jobs will stop; a status."""
    status = UNCHANGED
    for i in range(len(limited)):
        job, limit = limited[i], limits[i]
        # Dust below what is done is taken for it.
        if not limit >= state.done[job] * (1.0 - tolerance.SHARES):  # NaN neither
            return int(_fault(state, LIMIT_DONE, job, i))
        if limit > world.jobs.iterations[job] * (1.0 + tolerance.SHARES):
            return int(_fault(state, LIMIT_ABOVE, job, i))
        if limit != state.limit[job]:
            # Within dust: brought into range.
            state.limit[job] = min(max(limit, state.done[job]), world.jobs.iterations[job])
            status = CHANGED
    return status


@inner(types.int64(WORLD, STATE, types.float64, I1, I1, I1, I1, I1))
def _move(
    world: TaskWorld, state: TaskState, now_s: float, stopped: Ints, tasks: Ints, gpus: Ints, copied: Ints, to: Ints
) -> int:
    """Put tasks and copies where they belong, all at once; a status. After a fault the state is of no use."""
    placed = _place(world, state, now_s, tasks, gpus)
    if placed <= CHANGED:
        placed = max(placed, _duplicate(world, state, now_s, copied, to))
    if placed > CHANGED:
        return int(placed)
    _settle(world, state, now_s, stopped, np.concatenate((tasks, copied)))
    if placed == CHANGED:
        placed = max(
            _check_memory(world, state, tasks, state.gpu_of), _check_memory(world, state, copied, state.copy_of)
        )
    return int(max(placed, CHANGED if len(stopped) else UNCHANGED))


@inner(types.float64(WORLD, STATE, types.float64))
def _expect(world: TaskWorld, state: TaskState, now_s: float) -> float:
    """Note when jobs will be over if nothing changes; the first of these instants."""
    soonest = np.inf
    for i in range(state.counts[ACTIVE]):
        job = state.active[i]
        # The true end or the limit, whichever comes first.
        left = min(world.iterations[job], state.limit[job]) - state.done[job]
        if left <= 0.0:
            state.at_s[job] = now_s
        elif state.rate[job] > 0.0:
            state.at_s[job] = max(now_s, state.stalled_until_s[job]) + left / state.rate[job]
        else:
            state.at_s[job] = np.inf
        soonest = min(soonest, state.at_s[job])
    return soonest


@outer(types.float64(WORLD, STATE, types.float64, types.int64, types.boolean, *[I1] * 6, F1))
def carry_out(
    world: TaskWorld,
    state: TaskState,
    now_s: float,
    slot: int,
    stale: bool,
    stopped: Ints,
    tasks: Ints,
    gpus: Ints,
    copied: Ints,
    to: Ints,
    limited: Ints,
    limits: Floats,
) -> float:
    """Carry out a decision, of which the stops were, and set rates by it; when the next job will be over.

    How that ended stands in `counts[STATUS]`. `stale`: rates must be set even where nothing changes.
    """
    state.counts[TURNED] = 0
    status = _set_limits(world, state, limited, limits)
    if status <= CHANGED:
        status = max(status, _move(world, state, now_s, stopped, tasks, gpus, copied, to))
    state.counts[STATUS] = status
    # After a fault nothing of the state means anything: the caller raises.
    if status > CHANGED:
        return np.inf
    if status == CHANGED:
        measure(world, state, slot)
    if status == CHANGED or stale:
        set_rates(world, state)
        count_overloads(world, state)
    # At every decision, also where nothing changed: it is a sum over decisions.
    state.counts[OVERLOADS] += state.counts[OVERLOADED_NOW]
    return float(_expect(world, state, now_s))


@inner(types.void(WORLD, STATE, types.int64))
def _finish_epochs(world: TaskWorld, state: TaskState, job: int) -> None:
    """Show the metric at the end of the latest epoch, and what was gained."""
    # The last epoch may be a short one.
    if state.done[job] >= world.iterations[job] * (1.0 - tolerance.EPOCHS):
        reached = world.epochs[job]
    else:
        reached = min(int(state.done[job] / world.jobs.epoch_iterations[job] + tolerance.EPOCHS), world.epochs[job])
    while state.epoch[job] < reached:
        state.epoch[job] += 1
        now = world.metric[job, state.epoch[job]]
        gain = max(0.0, now - world.metric[job, state.epoch[job] - 1])
        state.accuracy[job], state.last_gain[job] = now, gain
        state.all_gain[job] = gain + (0.0 if np.isnan(state.all_gain[job]) else state.all_gain[job])


@inner(types.boolean(WORLD, STATE, types.int64, types.float64, types.float64, types.boolean))
def _pass_time(world: TaskWorld, state: TaskState, job: int, from_s: float, to_s: float, ends: bool) -> bool:
    """One active job from an instant to another, or to its end before that; whether it got on."""
    goal, rate, before = min(world.iterations[job], state.limit[job]), state.rate[job], state.done[job]
    begin_s, end_s = max(from_s, state.stalled_until_s[job]), to_s
    if ends:
        # At the exact instant, not at the round's end.
        end_s = from_s if before >= goal else min(begin_s + (goal - before) / rate, to_s)
        state.done[job] = max(goal, before)
    else:
        state.done[job] = min(goal, before + rate * max(0.0, to_s - begin_s))
    gained = state.done[job] - before
    # The lesser of two numbers, where one that does not run and has no deadline has but one (0 x inf is none).
    state.deadline_done[job] += np.fmin(gained, rate * max(0.0, world.deadline_s[job] - begin_s))
    state.edge_mb[job] += gained * state.iteration_mb[job]
    if state.placed[job] == world.jobs.task_of[job + 1] - world.jobs.task_of[job]:
        state.ran_s[job] += end_s - from_s
        state.gpu_s[job] += (end_s - from_s) * state.gpu_share[job]
    if gained > 0.0:
        _finish_epochs(world, state, job)
        # Only what an iteration has gone on with is known.
        begin, end = world.jobs.task_of[job], world.jobs.task_of[job + 1]
        state.step_s[begin:end] = state.next_step_s[begin:end]
    if ends:
        state.end_s[job] = end_s
    return bool(gained > 0.0)


@outer(types.boolean(WORLD, STATE, types.float64, types.float64))
def advance(world: TaskWorld, state: TaskState, from_s: float, to_s: float) -> bool:
    """All active jobs from an instant to another, at the rates that they have; whether any got on."""
    moved = False
    for i in range(state.counts[ACTIVE]):
        job = state.active[i]
        if state.placed[job] == 0:
            state.waited_s[job] += to_s - from_s
        elif _pass_time(world, state, job, from_s, to_s, False):
            moved = True
    return moved


@outer(types.float64(WORLD, STATE, types.int64, types.float64, types.float64))
def finish(world: TaskWorld, state: TaskState, job: int, from_s: float, to_s: float) -> float:
    """A job ends by an instant, as `at_s` says; it leaves its GPUs. When the next one will be over."""
    _pass_time(world, state, job, from_s, to_s, True)
    release(world, state, job, state.end_s[job])
    state.is_active[job], left, soonest = False, 0, np.inf
    for i in range(state.counts[ACTIVE]):
        if state.active[i] != job:
            state.active[left] = state.active[i]
            # The same walk closes the gap and finds who is next.
            soonest = min(soonest, state.at_s[state.active[i]])
            left += 1
    state.counts[ACTIVE] = left
    return soonest
