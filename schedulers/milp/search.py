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
def _from(used: Ints, begin: int, end: int, room: int) -> int:
    """The step of [begin, end) from which on at most `room` GPUs are used in all of it."""
    while end > begin and used[end - 1] <= room:
        end -= 1
    return end


@numba.njit("void(i8[::1], i8[::1], i8[::1], i8[::1], i8, i8[::1], i8[::1], i8[::1])", cache=True)
def insert(
    submit: Ints, duration: Ints, width: Ints, cutoff: Ints, gpus: int, order: Ints, used: Ints, start: Ints
) -> None:
    """Move each job, in this order, to its earliest start beside all others.

    Those not moved yet stand at their cut-offs. `used` (steps,) and `start` (n_jobs,) are written.
    """
    used[:] = 0
    for job in range(len(submit)):
        start[job] = cutoff[job]
        _hold(used, cutoff[job], cutoff[job] + duration[job], width[job])
    for job in order:
        _hold(used, cutoff[job], cutoff[job] + duration[job], -width[job])
        begin = submit[job]
        # All starts until behind the last step in the way would meet it too; at its cut-off it fits.
        while True:
            behind = _from(used, begin, begin + duration[job], gpus - width[job])
            if behind == begin:
                break
            begin = behind
        start[job] = begin
        _hold(used, begin, begin + duration[job], width[job])


@numba.njit(cache=True)
def _shift(order: Ints, place: int, target: int) -> None:
    job = order[place]
    for at in range(place, target):
        order[at] = order[at + 1]
    for at in range(place, target, -1):
        order[at] = order[at - 1]
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
    insert(submit, duration, width, cutoff, gpus, order, used, start)
    least, best = start.sum(), start.copy()
    for attempt in range(len(picks)):
        place = picks[attempt]
        target = min(max(place + shifts[attempt], 0), len(order) - 1)
        _shift(order, place, target)
        insert(submit, duration, width, cutoff, gpus, order, used, start)
        wait = start.sum()
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
    end = np.zeros(len(submit), np.int64)  # until a job starts
    used = np.zeros((cutoff + duration).max(), np.int64)
    now = submit.min()
    while not end.all():
        used[:] = 0
        for job in range(len(submit)):
            _hold(used, now, end[job], width[job])
        for job in order:
            if end[job]:
                continue
            if submit[job] <= now and _from(used, now, now + duration[job], gpus - width[job]) == now:
                end[job] = now + duration[job]
                _hold(used, now, end[job], width[job])
            # Who cannot start yet keeps its reservation, as in Figure 6.
            else:
                _hold(used, cutoff[job], cutoff[job] + duration[job], width[job])
        later = len(used)
        for job in range(len(submit)):
            if submit[job] > now:
                later = min(later, submit[job])
            if end[job] > now:
                later = min(later, end[job])
        now = later
    return end - duration


# Shares of a job after which the relaxation's start counts as its place in an order.
PARTS = np.linspace(0.05, 1.0, 20)
# Mean number of places that a job is moved by in an order.
REACH = 10.0


def virtual_clock_starts(instance: Instance) -> Ints:
    """Starts under SIA_VC on the grid, (n_jobs,). SIA, section 5.1."""

    order = np.lexsort((np.arange(len(instance)), instance.cutoff))
    return virtual_clock(*_arrays(instance), order)


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
    return improve_order(*_arrays(instance), order.copy(), picks, shifts)


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
