"""GPUs that will be free over time, as a step function: what is held until when, and reservations. Compiled.

Instants that lie within a microsecond of one another are one step: sums in another order do not make slivers.
"""

from math import inf, isnan, nan
from typing import NamedTuple

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.compiled import F1, njit, types

F8, I8 = types.float64, types.int64
# Each job makes so many steps at most: where its reservation was, and where it will be.
STEPS_ROOM = 4


class Availability:
    """Free GPUs from an instant on.

    Parameters
    ----------
    now_s, free : the instant, and the GPUs that are free from it on if nothing ends
    changes_s, gpus : (n,) instants from then on, and how many GPUs come free then; below 0 those that are taken
    jobs : how many will ask for reservations
    """

    def __init__(self, now_s: float, free: float, changes_s: Floats, gpus: Floats, jobs: int) -> None:
        order = np.argsort(changes_s, kind="stable")
        self._at_s, self._free = np.empty((2, 1 + len(order) + STEPS_ROOM * jobs))
        self._count = _first_steps(now_s, free, changes_s[order], gpus[order], self._at_s, self._free)

    def reserve(self, jobs: "Reserving", first: int, free: float, anew: bool) -> int:
        """Give jobs their reservations in order, up to one that can start now: its place, or how many they are.

        Parameters
        ----------
        jobs : whose reservations are changed in place
        first : place of the first of them
        free : GPUs that are free now
        anew : whether jobs that have one look for an earlier one
        """
        place, self._count = _reserve(self._at_s, self._free, self._count, *jobs, first, free, anew)
        return int(place)


class Reserving(NamedTuple):
    """Jobs in order that ask for reservations, (n,): GPUs, seconds, GPUs that limits leave, and where theirs begin."""

    gpus: Floats
    run_s: Floats
    rooms: Floats
    reserved_s: Floats


@njit(I8(F8, F8, F1, F1, F1, F1), cache=True)
def _first_steps(now_s: float, free: float, changes_s: Floats, gpus: Floats, at_s: Floats, steps: Floats) -> int:
    at_s[0], steps[0], count = now_s, free, 1
    for row in range(len(changes_s)):
        if changes_s[row] > at_s[count - 1] + tolerance.INSTANT_S:
            at_s[count], steps[count] = changes_s[row], steps[count - 1]
            count += 1
        steps[count - 1] += gpus[row]
    return count


@njit(F8(F1, F1, I8, F8, F8), cache=True)
def _earliest(at_s: Floats, free: Floats, count: int, gpus: float, run_s: float) -> float:
    start_s, fits = at_s[0], False
    for step in range(count):
        # All steps from its start on have room, and they reach its end.
        if fits and at_s[step] >= start_s + run_s - tolerance.INSTANT_S:
            break
        if free[step] < gpus - tolerance.GPUS:
            fits = False
        elif not fits:
            start_s, fits = at_s[step], True
    return float(start_s) if fits else inf


@njit(I8(F1, F1, I8, F8), cache=True)
def _split(at_s: Floats, free: Floats, count: int, when_s: float) -> int:
    """Number of steps once one begins at an instant."""
    place = np.searchsorted(at_s[:count], when_s - tolerance.INSTANT_S)
    if place < count and at_s[place] <= when_s + tolerance.INSTANT_S:
        return count
    for step in range(count, place, -1):
        at_s[step], free[step] = at_s[step - 1], free[step - 1]
    at_s[place], free[place] = when_s, free[place - 1]
    return count + 1


@njit(I8(F1, F1, I8, F8, F8, F8), cache=True)
def _take(at_s: Floats, free: Floats, count: int, from_s: float, until_s: float, gpus: float) -> int:
    count = _split(at_s, free, _split(at_s, free, count, from_s), until_s)
    first = np.searchsorted(at_s[:count], from_s - tolerance.INSTANT_S)
    for step in range(first, np.searchsorted(at_s[:count], until_s - tolerance.INSTANT_S)):
        free[step] -= gpus
    return count


@njit(types.UniTuple(I8, 2)(F1, F1, I8, F1, F1, F1, F1, I8, F8, types.boolean), cache=True)
def _reserve(
    at_s: Floats, free: Floats, count: int,
    gpus: Floats, run_s: Floats, rooms: Floats, reserved_s: Floats,
    first: int, left: float, anew: bool,
) -> tuple[int, int]:  # fmt: skip
    now_s = at_s[0]
    for place in range(first, len(gpus)):
        had_s, held = reserved_s[place], gpus[place] > rooms[place]
        if isnan(had_s) or held or anew:
            if not isnan(had_s):
                count = _take(at_s, free, count, had_s, had_s + run_s[place], -gpus[place])
            when_s = inf if held else _earliest(at_s, free, count, gpus[place], run_s[place])
            reserved_s[place] = nan
            # Held by a limit, or there is never room.
            if when_s < inf:
                count = _take(at_s, free, count, when_s, when_s + run_s[place], gpus[place])
                reserved_s[place] = when_s
        if reserved_s[place] <= now_s + tolerance.INSTANT_S and gpus[place] <= left:
            return place, count
    return len(gpus), count
