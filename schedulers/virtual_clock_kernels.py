"""SIA_VC's plan of the cluster over time: one pass of the scheduler over it. Compiled.

Jobs are known by their rank in the order of virtual start time, then submission. Where a rank's job starts virtually
is an instant of the plan; use of the cluster only rises at such instants, so that the plan need not know others.

The plan is a tree over ranks. Leaf r holds the GPUs in use at virtual start r by the running jobs and the reservations
of ranks up to r. `peak[node]` is the largest of its leaves but for what its ancestors add, `added[node]` what it adds
to all of its leaves; node 1 is the root, nodes 2i and 2i + 1 are the children of i, leaf r is node len(peak) / 2 + r.

Importing numba takes a second, so only what computes imports this file.
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

njit: Any = numba.njit
types: Any = numba.types
FLOATS = types.Array(types.float64, 1, "C")
INTS = types.Array(types.int64, 1, "C")


@njit(types.int64(INTS, INTS, types.int64, types.int64), cache=True)
def first_above(peak: Ints, added: Ints, begin: int, most: int) -> int:
    """First leaf from `begin` on that holds more than `most`; the number of leaves if there is none."""
    leaves = len(peak) // 2
    if begin >= leaves:
        return leaves
    node = leaves + begin
    above = 0  # what the node's ancestors add
    parent = node // 2
    while parent >= 1:
        above += added[parent]
        parent //= 2
    while peak[node] + above <= most:
        while node % 2 == 1:  # nothing to the right of it below its parent
            if node == 1:
                return leaves
            node //= 2
            above -= added[node]
        node += 1
    while node < leaves:
        above += added[node]
        node *= 2
        if peak[node] + above <= most:
            node += 1
    return node - leaves


@njit(types.void(INTS, INTS, types.int64), cache=True)
def _renew(peak: Ints, added: Ints, node: int) -> None:
    """Work out the ancestors of a node anew."""
    node //= 2
    while node >= 1:
        peak[node] = max(peak[2 * node], peak[2 * node + 1]) + added[node]
        node //= 2


@njit(types.void(INTS, INTS, types.int64, types.int64, types.int64), cache=True)
def add(peak: Ints, added: Ints, begin: int, end: int, gpus: int) -> None:
    """Add GPUs to the leaves from `begin` up to `end`, that one left out."""
    if begin >= end:
        return
    leaves = len(peak) // 2
    low, high = begin + leaves, end + leaves
    while low < high:
        if low % 2 == 1:
            peak[low] += gpus
            added[low] += gpus
            low += 1
        if high % 2 == 1:
            high -= 1
            peak[high] += gpus
            added[high] += gpus
        low //= 2
        high //= 2
    _renew(peak, added, begin + leaves)
    _renew(peak, added, end - 1 + leaves)


@njit(types.float64(types.float64, types.float64), cache=True)
def _end_s(begin_s: float, duration_s: float) -> float:
    """From when on a job is over for others, later than its begin however short it is: it needs its GPUs to begin."""
    return float(max(begin_s + duration_s - tolerance.INSTANT_S, np.nextafter(begin_s, np.inf)))


@njit(types.void(FLOATS, FLOATS, INTS, INTS, types.int64, types.int64, types.float64, types.int64), cache=True)
def move(
    start_s: Floats, duration_s: Floats, peak: Ints, added: Ints, rank: int, first: int, now_s: float, gpus: int
) -> None:
    """A job starts now: it runs in [now, now + duration), and is no longer reserved for from its virtual start on.

    `first` is the first rank with a virtual start after now. Where both overlap, nothing changes.
    """
    ends = np.searchsorted(start_s, _end_s(now_s, duration_s[rank]))
    released = np.searchsorted(start_s, _end_s(start_s[rank], duration_s[rank]))
    add(peak, added, first, min(rank, ends), gpus)
    add(peak, added, max(rank, ends), released, -gpus)


@njit(types.void(INTS, types.int64, types.int64), cache=True)
def _file(pending: Ints, count: int, rank: int) -> None:
    place = count
    while place > 0 and pending[place - 1] > rank:
        pending[place] = pending[place - 1]
        place -= 1
    pending[place] = rank


_PASS = types.int64(
    FLOATS, FLOATS, INTS, INTS, INTS, INTS, INTS, types.int64, INTS, types.float64, types.int64, types.int64, INTS
)


@njit(_PASS, cache=True)
def run_pass(
    start_s: Floats,
    duration_s: Floats,
    gpus: Ints,
    kind: Ints,
    peak: Ints,
    added: Ints,
    pending: Ints,
    count: int,
    arrived: Ints,
    now_s: float,
    free: int,
    total: int,
    started: Ints,
) -> int:
    """File what has arrived, visit the pending jobs by rank, start those that are schedulable; how many started.

    Figure 6 begins its pass again after each start. That comes to the same: a start adds to the running jobs and takes
    away a reservation that no job before it looks at, so that those stay unschedulable.

    A job of rank r is schedulable if it fits the idle GPUs, and no instant before now + duration that is a virtual
    start of a rank below r has more GPUs in use than it leaves. The first instant of that kind is the same for all jobs
    of a width, whatever r, so that it is looked for once a width and start.

    Parameters
    ----------
    start_s : (n,) virtual starts by rank, ascending
    duration_s, gpus : (n,) of the jobs
    kind : (n,) number of the width, from 0
    peak, added : the plan; changes
    pending : ranks of pending jobs, ascending, in its first `count` places; changes
    arrived : ranks of those that have arrived since the last pass
    now_s : the instant
    free, total : GPUs of the cluster, idle and all
    started : filled with the ranks to start, in order
    """
    for rank in arrived:
        _file(pending, count, rank)
        count += 1
    soon_s = now_s + tolerance.INSTANT_S
    first = np.searchsorted(start_s, soon_s, side="right")
    kinds = kind.max() + 1
    known = np.zeros(kinds, dtype=np.bool_)
    barrier = np.empty(kinds, dtype=np.int64)  # by kind: first rank that leaves too little
    kept = done = 0
    for place in range(count):
        if free <= 0 and done == 0:  # nothing can start, nothing is to be moved up
            break
        rank = pending[place]
        width = gpus[rank]
        if width <= free:
            of = kind[rank]
            if not known[of]:
                known[of] = True
                barrier[of] = first_above(peak, added, first, total - width)
            if rank <= barrier[of] or _end_s(now_s, duration_s[rank]) <= start_s[barrier[of]]:
                move(start_s, duration_s, peak, added, rank, first, now_s, width)
                free -= width
                known[:] = False
                started[done] = rank
                done += 1
                continue
        if start_s[rank] <= soon_s:  # its reservation has begun
            free -= width
        pending[kept] = rank
        kept += 1
    return done
