"""Compiled parts of SIA by risk: how soon lent GPUs may be missed, and the first job that may borrow them.

Importing numba takes a second, so only what computes imports this file.
"""

from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from jobcast.domain import tolerance

njit: Any = numba.njit
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_FLOATS = types.Array(types.float64, 1, "C")
_FLOATS_2D = types.Array(types.float64, 2, "C")
_FLOATS_3D = types.Array(types.float64, 3, "C")
_INTS = types.Array(types.int64, 1, "C")
NOBODY = -1


@njit([_FLOATS(_FLOATS, types.float64, types.float64, _FLOATS, _FLOATS)], cache=True)
def with_pool(chances: Floats, pending: float, unused: float, loads: Floats, weights: Floats) -> Floats:
    """Distribution of the GPUs needed by some pools and one more, independent of them; both (free + 2,).

    Position n holds the chance of n GPUs, the last one that of any number beyond what is free. The pool needs
    min(pending + load, unused) with the load's `weights`; `loads` ascend.
    """
    last, more = len(chances) - 1, np.zeros_like(chances)
    i = 0
    while i < len(loads):
        need, weight = min(pending + loads[i], unused), 0.0
        j = i
        while j < len(loads) and min(pending + loads[j], unused) == need:
            weight += weights[j]
            j += 1
        if i == 0 and j == len(loads):
            weight = 1.0  # without rounding: a certain need stays certain
        shift = min(int(np.ceil(need - tolerance.GPUS)), last)
        for n in range(last + 1):
            if chances[n] > 0.0:
                more[min(n + shift, last)] += weight * chances[n]
        i = j
    return more


@njit([_FLOATS_2D(_FLOATS, _FLOATS, _FLOATS_3D, _FLOATS, types.int64, _FLOATS_2D)], cache=True)
def overstays(pending: Floats, unused: Floats, loads: Floats, weights: Floats, free: int, minutes: Floats) -> Floats:
    """Expected overstay in minutes by the job's width and duration bin, (free + 1, bins).

    Parameters
    ----------
    pending, unused : (pools,) GPUs that pending jobs ask for, and quota that is not in use
    loads : (pools, horizons, atoms) GPUs to arrive within each horizon, ascending by atom
    weights : (atoms,) chance of each atom
    free : idle GPUs
    minutes : (bins, horizons + 2) minutes at risk for a chance of 1 of being missed at once, within each horizon,
        and later
    """
    horizons, bins = loads.shape[1], minutes.shape[0]
    missed = np.zeros((horizons + 2, free + 1))  # by horizon and GPUs left to others: chance that these need more
    nothing, certain = np.zeros(1), np.ones(1)
    for step in range(horizons + 1):
        chances = np.zeros(free + 2)
        chances[0] = 1.0
        for pool in range(len(pending)):
            if step == 0 or pending[pool] >= unused[pool]:
                chances = with_pool(chances, pending[pool], unused[pool], nothing, certain)
            else:
                chances = with_pool(chances, pending[pool], unused[pool], loads[pool, step - 1], weights)
        beyond = chances[free + 1]
        for left in range(free, -1, -1):
            missed[step, left] = beyond if step == 0 else max(beyond, missed[step - 1, left])
            beyond += chances[left]
    missed[horizons + 1, :] = 1.0
    found = np.full((free + 1, bins), np.inf)
    for gpus in range(free + 1):
        for one in range(bins):
            total = 0.0
            for step in range(horizons + 2):
                total += minutes[one, step] * missed[step, free - gpus]
            found[gpus, one] = total
    return found


@njit(
    [types.int64(types.int64, types.int64, _INTS, _INTS, _FLOATS_2D, types.int64, _FLOATS_2D, types.float64)],
    cache=True,
)
def first_within(
    begin: int, end: int, gpus: Ints, lanes: Ints, chances: Floats, max_lane: int, overstay: Floats, budget: float
) -> int:
    """Position in [begin, end) of the first job of the lanes whose expected overstay keeps to the budget, or NOBODY.

    Parameters
    ----------
    gpus, lanes : (n,) widths, 0 for jobs that are gone, and duration bins
    chances : (n, bins) of each duration bin
    overstay : as `overstays` gives it; wider jobs than it has rows do not fit
    """
    widest = overstay.shape[0] - 1
    for i in range(begin, end):
        if 0 < gpus[i] <= widest and lanes[i] <= max_lane:
            expected = 0.0
            for one in range(overstay.shape[1]):
                if chances[i, one] > 0.0:
                    expected += chances[i, one] * overstay[gpus[i], one]
            if expected <= budget + tolerance.GPUS:
                return i
    return NOBODY
