"""Schedules from rules of thumb and from a compiled search: what branch and bound begins with."""

from collections.abc import Iterator

import numba
import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.schedulers.milp.instance import Instance
from jobcast.schedulers.milp.programme import Steps


@numba.njit(cache=True)
def _hold(used: Ints, begin: int, end: int, gpus: int) -> None:
    for step in range(begin, end):
        used[step] += gpus


@numba.njit(cache=True)
def _fits(used: Ints, begin: int, end: int, room: int) -> int:
    """-1 where at most `room` GPUs are used in all of [begin, end), else the last step there where more are."""
    for step in range(end - 1, begin - 1, -1):
        if used[step] > room:
            return step
    return -1


@numba.njit("i8(i8[::1], i8[::1], i8[::1], i8[::1], i8, i8[::1], i8[::1], i8[::1])", cache=True)
def insert(
    submit: Ints, duration: Ints, width: Ints, cutoff: Ints, gpus: int, order: Ints, used: Ints, start: Ints
) -> int:
    """Move each job, in this order, to its earliest start beside all others; returns the total wait.

    Those not moved yet stand at their cut-offs. `used` (steps,) and `start` (n_jobs,) are written.
    """
    used[:] = 0
    for job in range(len(submit)):
        start[job] = cutoff[job]
        _hold(used, cutoff[job], cutoff[job] + duration[job], width[job])
    total = 0
    for job in order:
        # It cannot be moved.
        if cutoff[job] == submit[job]:
            continue
        _hold(used, cutoff[job], cutoff[job] + duration[job], -width[job])
        begin = submit[job]
        while begin < cutoff[job]:
            clash = _fits(used, begin, begin + duration[job], gpus - width[job])
            if clash < 0:
                break
            # Behind the last step in the way: all starts between would meet it too.
            begin = min(clash + 1, cutoff[job])
        start[job] = begin
        total += begin - submit[job]
        _hold(used, begin, begin + duration[job], width[job])
    return total


@numba.njit(cache=True)
def _shift(order: Ints, place: int, target: int) -> None:
    job = order[place]
    step = 1 if target > place else -1
    for at in range(place, target, step):
        order[at] = order[at + step]
    order[target] = job


@numba.njit("i8[::1](i8[::1], i8[::1], i8[::1], i8[::1], i8, i8[::1], i8[::1], i8[::1])", cache=True)
def improve_order(
    submit: Ints, duration: Ints, width: Ints, cutoff: Ints, gpus: int, order: Ints, picks: Ints, shifts: Ints
) -> Ints:
    """Shift jobs within an order, (n_jobs,) changed in place, keeping what is no worse; the best starts, (n_jobs,).

    `picks` are positions in the order, `shifts` by how many places to move what stands there, (n_tries,) each.
    """
    used = np.zeros((cutoff + duration).max(), np.int64)
    start = np.zeros(len(submit), np.int64)
    least = insert(submit, duration, width, cutoff, gpus, order, used, start)
    best = start.copy()
    for attempt in range(len(picks)):
        place = picks[attempt]
        target = min(max(place + shifts[attempt], 0), len(order) - 1)
        _shift(order, place, target)
        wait = insert(submit, duration, width, cutoff, gpus, order, used, start)
        if wait < least:
            best[:] = start
        # Equal ones are kept as well, so that the search can cross plateaus.
        if wait <= least:
            least = wait
        else:
            _shift(order, target, place)
    return best


@numba.njit("i8[::1](i8[::1], i8[::1], i8[::1], i8[::1], i8, i8[::1])", cache=True)
def virtual_clock(submit: Ints, duration: Ints, width: Ints, cutoff: Ints, gpus: int, order: Ints) -> Ints:
    """Starts under SIA_VC, (n_jobs,); `order` sorts jobs by virtual start, which is the cut-off. SIA, Figure 6."""
    start = np.full(len(submit), -1, np.int64)
    used = np.zeros((cutoff + duration).max(), np.int64)
    now, left = submit.min(), len(submit)
    while left > 0:
        used[:] = 0
        for job in range(len(submit)):
            if start[job] >= 0 and start[job] + duration[job] > now:
                _hold(used, now, start[job] + duration[job], width[job])
        for job in order:
            if start[job] >= 0:
                continue
            if submit[job] <= now and _fits(used, now, now + duration[job], gpus - width[job]) < 0:
                start[job] = now
                left -= 1
                _hold(used, now, now + duration[job], width[job])
            # Who cannot start yet keeps its reservation, as in Figure 6.
            else:
                _hold(used, cutoff[job], cutoff[job] + duration[job], width[job])
        later = len(used)
        for job in range(len(submit)):
            if submit[job] > now:
                later = min(later, submit[job])
            if start[job] >= 0 and start[job] + duration[job] > now:
                later = min(later, start[job] + duration[job])
        now = later
    return start


# Shares of a job after which the relaxation's start counts as its place in an order.
PARTS = np.linspace(0.05, 1.0, 20)
# Mean number of places that a job is moved by in an order.
REACH = 10.0


def virtual_clock_starts(instance: Instance) -> Ints:
    """Starts under SIA_VC on the grid, (n_jobs,). SIA, section 5.1."""

    order = np.lexsort((np.arange(len(instance)), instance.cutoff))
    found: Ints = virtual_clock(*_arrays(instance), order)
    return found


def inserted(instance: Instance, order: Ints) -> Ints:
    """Starts when jobs are moved forward from their cut-offs in this order, each as far as the others allow."""

    start = np.zeros(len(instance), dtype=np.int64)
    insert(*_arrays(instance), order, np.zeros(instance.steps, dtype=np.int64), start)
    return start


def improved(instance: Instance, order: Ints, tries: int, seed: int) -> Ints:
    """The best starts found by moving jobs within an order, (n_jobs,)."""

    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(instance), tries)
    shifts = (1 + rng.exponential(REACH, tries).astype(np.int64)) * rng.choice([-1, 1], tries)
    found: Ints = improve_order(*_arrays(instance), order.copy(), picks, shifts)
    return found


def plain_orders(instance: Instance) -> Iterator[Ints]:
    """By submission, by work, by width, by cut-off, by run time."""
    work = instance.width * instance.duration
    for first, second in (
        (instance.submit, work),
        (work, instance.submit),
        (instance.width, instance.duration),
        (instance.cutoff, work),
        (instance.duration, instance.width),
    ):
        yield np.lexsort((second, first))


def relaxed_orders(instance: Instance, steps: Steps, share: Floats) -> Iterator[Ints]:
    """By when the relaxation has begun a part of each job, for several parts; by its mean start and mean middle."""
    sums = np.cumsum(share)
    begun = sums - (sums[steps.first[:-1]] - share[steps.first[:-1]])[steps.job]
    for part in PARTS:
        reached = np.flatnonzero(begun >= part - tolerance.COSTS)
        place = np.full(len(instance), steps.start.max())
        jobs, at = np.unique(steps.job[reached], return_index=True)
        place[jobs] = steps.start[reached[at]]
        yield np.argsort(place, kind="stable")
        yield np.argsort(place + part * instance.duration, kind="stable")
    mean = np.add.reduceat(share * steps.start, steps.first[:-1])
    yield np.argsort(mean, kind="stable")
    yield np.argsort(mean + instance.duration / 2, kind="stable")


def _arrays(instance: Instance) -> tuple[Ints, Ints, Ints, Ints, int]:
    return instance.submit, instance.duration, instance.width, instance.cutoff, instance.gpus
