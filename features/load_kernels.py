"""The compiled loop of the features of past loads: a scheduler asks for one instant of every pool, and waits.

`load_features.py` says what the columns mean and imports this file when it first computes, since importing numba takes
a second. GPUs are whole numbers, so sums of them are exact: rows are the same to the last bit whether many instants
or one are asked for, and whether the arrays hold later events or not.
"""

from typing import Any

import numba
import numpy as np
from numba import types

from jobcast.domain.arrays import Floats, Ints

njit: Any = numba.njit
SPARE_S = 1.0
"""Arrivals this much older than the oldest edge are summed too, whose float64 may be rounded either way."""
_IN = types.Array(types.float64, 1, "C", readonly=True)
_COUNTS = types.Array(types.int64, 1, "C", readonly=True)
_OUT = types.Array(types.float64, 3, "C")


@njit
def _total(arrival_s: Floats, total: Floats, first: int, last: int, at_s: float) -> float:
    """GPUs of the arrivals first .. last - 1 that came up to an instant, by halving."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if arrival_s[middle] <= at_s:
            low = middle + 1
        else:
            high = middle
    return float(total[low - first])


@njit
def _totals(arrival_s: Floats, gpus: Floats, from_s: float, until_s: float) -> tuple[int, int, Floats]:
    """First and last (exclusive) arrival in (from, until], and the running total of their GPUs from 0 on."""
    first = int(np.searchsorted(arrival_s, from_s, side="right"))
    last = int(np.searchsorted(arrival_s, until_s, side="right"))
    total = np.zeros(last - first + 1)
    for j in range(first, last):
        total[j - first + 1] = total[j - first] + gpus[j]
    return first, last, total


@njit([_OUT(_IN, _IN, _IN, _IN, _COUNTS, _COUNTS, _IN)], cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def past_loads(
    arrival_s: Floats,
    gpus: Floats,
    ticks_s: Floats,
    horizons_s: Floats,
    maxima: Ints,
    means: Ints,
    periods_s: Floats,
) -> Floats:
    """GPUs by column, (T, H, 2 + len(maxima) + len(means) + 2 len(periods)).

    Parameters
    ----------
    arrival_s, gpus : (n,) arrivals of a pool, ascending, and their widths
    ticks_s : (T,) ascending instants
    horizons_s : (H,)
    maxima, means : ascending numbers of windows whose largest and mean load are columns
    periods_s : of the columns of the load a period ago, and of the load of a period per k
    """
    windows = max(maxima[-1], means[-1])
    rows = np.zeros((ticks_s.size, horizons_s.size, 2 + maxima.size + means.size + 2 * periods_s.size))
    if not ticks_s.size:
        return rows
    longest_s = max(horizons_s.max() * windows, periods_s.max())
    first, last, total = _totals(arrival_s, gpus, ticks_s[0] - longest_s - SPARE_S, ticks_s[-1])
    loads = np.empty(windows)
    for i in range(ticks_s.size):
        now_s = ticks_s[i]
        for h in range(horizons_s.size):
            horizon_s = horizons_s[h]
            row = rows[i, h]
            newer = _total(arrival_s, total, first, last, now_s)
            for back in range(windows):
                older = _total(arrival_s, total, first, last, now_s - horizon_s * (back + 1))
                loads[back] = newer - older
                newer = older
            row[0], row[1] = loads[0], loads[1]
            column = 2
            for count in maxima:
                row[column] = loads[:count].max()
                column += 1
            for count in means:
                row[column] = loads[:count].sum() / count
                column += 1
            for period_s in periods_s:
                length_s = min(horizon_s, period_s)
                end_s = now_s - period_s + length_s
                ended = _total(arrival_s, total, first, last, end_s)
                row[column] = ended - _total(arrival_s, total, first, last, end_s - length_s)
                column += 1
            for period_s in periods_s:
                known = _total(arrival_s, total, first, last, now_s)
                load = known - _total(arrival_s, total, first, last, now_s - period_s)
                row[column] = load * horizon_s / period_s
                column += 1
    return rows
