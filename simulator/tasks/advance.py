"""Time that passes: iterations done, completions at their instants, epochs finished, accounts. Compiled."""

import numpy as np

from jobcast.simulator.tasks.moves import release
from jobcast.simulator.tasks.rates import STATE, WORLD, inner, outer, types
from jobcast.simulator.tasks.state import ACTIVE, TaskState, TaskWorld
from jobcast.simulator.tasks.workload import EPOCH_DUST

DUST_S = 1e-6
"""A job ends within a round that it would miss by less than this for adding floats up."""
NONE_MOVED, SOME_MOVED, SOME_ENDED = range(3)
"""What a stretch of time brought: no job got on, some did, some ended."""


@inner(types.void(WORLD, STATE, types.int64))
def _finish_epochs(world: TaskWorld, state: TaskState, job: int) -> None:
    """Show the metric at the end of the latest epoch, and what was gained."""
    if state.done[job] >= world.iterations[job] * (1.0 - EPOCH_DUST):
        reached = world.epochs[job]
    else:
        reached = min(int(state.done[job] / world.jobs.epoch_iterations[job] + EPOCH_DUST), world.epochs[job])
    while state.epoch[job] < reached:
        state.epoch[job] += 1
        now = world.metric[job, state.epoch[job]]
        gain = max(0.0, now - world.metric[job, state.epoch[job] - 1])
        state.accuracy[job], state.last_gain[job] = now, gain
        state.all_gain[job] = gain + (0.0 if np.isnan(state.all_gain[job]) else state.all_gain[job])


@inner(types.boolean(WORLD, STATE, types.int64, types.float64, types.float64))
def _pass_time(world: TaskWorld, state: TaskState, job: int, from_s: float, to_s: float) -> bool:
    """One active job from an instant to another; whether it got on or ended."""
    goal, rate, before = min(world.iterations[job], state.limit[job]), state.rate[job], state.done[job]
    begin_s, end_s, ended = max(from_s, state.stalled_until_s[job]), to_s, False
    if before >= goal:
        end_s, ended = from_s, True
    elif rate > 0.0 and begin_s < to_s:
        done_s = begin_s + (goal - before) / rate
        ended = done_s <= to_s + DUST_S
        if ended:
            end_s = min(done_s, to_s)
        state.done[job] = goal if ended else min(goal, before + rate * (to_s - begin_s))
    gained = state.done[job] - before
    if from_s <= world.deadline_s[job]:
        part_s = max(0.0, world.deadline_s[job] - begin_s)
        state.deadline_done[job] = state.done[job] if world.deadline_s[job] >= end_s else before + rate * part_s
    state.edge_mb[job] += gained * state.iteration_mb[job]
    if state.placed[job] == 0:
        state.waited_s[job] += end_s - from_s
    elif state.placed[job] == world.jobs.task_of[job + 1] - world.jobs.task_of[job]:
        state.ran_s[job] += end_s - from_s
        state.gpu_s[job] += (end_s - from_s) * state.gpu_share[job]
    if gained > 0.0:
        _finish_epochs(world, state, job)
    if ended:
        state.end_s[job] = end_s
    return ended or gained > 0.0


@outer(types.int64(WORLD, STATE, types.float64, types.float64))
def advance(world: TaskWorld, state: TaskState, from_s: float, to_s: float) -> int:
    """All active jobs from an instant to another, at the rates that they have; those that end leave."""
    left, news, before = 0, NONE_MOVED, state.counts[ACTIVE]
    for i in range(before):
        job = state.active[i]
        if state.placed[job] == 0 and state.done[job] < state.limit[job]:  # a short way for the many that wait
            state.waited_s[job] += to_s - from_s
            state.active[left] = job
            left += 1
            continue
        if _pass_time(world, state, job, from_s, to_s):
            news = max(news, SOME_MOVED)
        if np.isnan(state.end_s[job]):
            state.active[left] = job
            left += 1
        else:
            release(world, state, job, state.end_s[job])
            state.is_active[job] = False
            news = SOME_ENDED
    state.counts[ACTIVE] = left
    return news
