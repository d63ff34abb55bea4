"""Compiled loops of the duration features: what the batch way and the live way both call.

One file, since numba's cache of an entry point notices changes of its own file only. `durations.py` says what the
columns mean. Groups of jobs are numbered; the last finished jobs of each lie in a ring of `DEEPEST` places.
"""

import math
from typing import Any

import numba
import numpy as np
from numba import types

from jobcast.domain.arrays import Floats, Ints

njit: Any = numba.njit

DEPTHS = (5, 20, 50)
"""How many of a group's last finished jobs are counted by bin."""
DEEPEST = DEPTHS[-1]
N_DEPTHS = len(DEPTHS)
GROUP_EXTRAS = 3
"""Columns of a group beside its counts: mean log run time, that of the last one, log time since it ended."""
STARTS = 50
"""How many of the pool's last started jobs are counted by bin, ended or running."""
LIKE_ARRIVALS = 20
"""Among how many of the pool's last arrivals those of the job's width are counted."""
ARRIVALS_BACK = 200
"""How many of the pool's last arrivals are searched for one of the job's width."""
ARRIVAL_WINDOWS_S = (300.0, 3600.0)
"""Windows in which the pool's arrivals are counted."""
ARRIVAL_COLUMNS = 3 + len(ARRIVAL_WINDOWS_S)

_INTS = types.Array(types.int64, 1, "C", readonly=True)
_INTS_2D = types.Array(types.int64, 2, "C", readonly=True)
_FLOATS = types.Array(types.float64, 1, "C", readonly=True)
_RING_BINS = types.Array(types.int64, 2, "C")
_RING_LOGS = types.Array(types.float64, 2, "C")
_COUNTED = types.Array(types.int64, 1, "C")
_INSTANTS = types.Array(types.float64, 1, "C")
_ROW = types.Array(types.float64, 1, "C")
_ROWS = types.Array(types.float64, 2, "C")
_STATE = (_RING_BINS, _RING_LOGS, _COUNTED, _INSTANTS)
_NOTE = types.void(*_STATE, _INTS, _FLOATS, types.float64, types.float64)
_FILL = types.void(*_STATE, _INTS, types.int64, types.float64, _ROW)
_SWEEP = types.void(*_STATE, _FLOATS, _FLOATS, _FLOATS, _INTS, _INTS, _INTS_2D, _FLOATS, _INTS, _ROWS)
_POOL = types.void(_FLOATS, _FLOATS, _FLOATS, _FLOATS, types.float64, types.float64, _FLOATS, _ROW)
_POOLS = types.void(_FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _INTS, types.int64, _ROWS)


@njit([_NOTE], cache=True)
def note(
    ring_bins: Ints,
    ring_logs: Floats,
    done: Ints,
    last_end_s: Floats,
    groups: Ints,
    edges_s: Floats,
    end_s: float,
    duration_s: float,
) -> None:
    """Enter a finished job into its groups.

    Parameters
    ----------
    ring_bins, ring_logs : (K, DEEPEST) duration bins and log run times of each group's last finished jobs
    done, last_end_s : (K,) how many of each group have finished, and when the last one did
    groups : (G,) the job's group of each kind, -1 for none
    edges_s : (B - 1,) inner edges of the bins, seconds
    """
    which, log_s = np.searchsorted(edges_s, duration_s), math.log(duration_s)
    for kind in range(groups.size):
        group = groups[kind]
        if group >= 0:
            place = done[group] % DEEPEST
            ring_bins[group, place] = which
            ring_logs[group, place] = log_s
            done[group] += 1
            last_end_s[group] = end_s


@njit([_FILL], cache=True)
def fill(
    ring_bins: Ints,
    ring_logs: Floats,
    done: Ints,
    last_end_s: Floats,
    groups: Ints,
    n_bins: int,
    now_s: float,
    row: Floats,
) -> None:
    """Write the groups' columns of a job's row: counts by depth and bin, then the extras; NaN where none finished."""
    width = N_DEPTHS * n_bins + GROUP_EXTRAS
    for kind in range(groups.size):
        group, first = groups[kind], kind * width
        extras = first + N_DEPTHS * n_bins
        row[first:extras] = 0.0
        if group < 0 or done[group] == 0:
            row[extras : extras + GROUP_EXTRAS] = np.nan
            continue
        count, total = min(done[group], DEEPEST), 0.0
        for back in range(count):
            place = (done[group] - 1 - back) % DEEPEST
            for depth in range(N_DEPTHS):
                if back < DEPTHS[depth]:
                    row[first + depth * n_bins + ring_bins[group, place]] += 1.0
            total += ring_logs[group, place]
        row[extras] = total / count
        row[extras + 1] = ring_logs[group, (done[group] - 1) % DEEPEST]
        row[extras + 2] = math.log1p(max(now_s - last_end_s[group], 0.0))


@njit([_SWEEP], cache=True)
def sweep(
    ring_bins: Ints,
    ring_logs: Floats,
    done: Ints,
    last_end_s: Floats,
    submit_s: Floats,
    end_s: Floats,
    duration_s: Floats,
    arrivals: Ints,
    finishes: Ints,
    groups: Ints,
    edges_s: Floats,
    rows_of: Ints,
    rows: Floats,
) -> None:
    """Fill the groups' columns of many jobs: completions before arrivals, in order of time.

    Parameters
    ----------
    arrivals, finishes : (N,) jobs in order of submission and of end
    groups : (N, G) groups of each job
    rows_of : (N,) row of each job in `rows`, -1 for none
    """
    finished = 0
    for job in arrivals:
        while finished < finishes.size and end_s[finishes[finished]] <= submit_s[job]:
            ended = finishes[finished]
            note(ring_bins, ring_logs, done, last_end_s, groups[ended], edges_s, end_s[ended], duration_s[ended])
            finished += 1
        if rows_of[job] >= 0:
            fill(
                ring_bins, ring_logs, done, last_end_s, groups[job], edges_s.size + 1, submit_s[job], rows[rows_of[job]]
            )


@njit([_POOL], cache=True)
def pool_columns(
    start_s: Floats,
    end_s: Floats,
    arrival_s: Floats,
    arrival_gpus: Floats,
    now_s: float,
    gpus: float,
    edges_s: Floats,
    row: Floats,
) -> None:
    """Write a job's width, and what its pool has started and been asked for before an instant.

    See `durations.duration_columns`.

    The columns are the last ones of `row`. Ends are only compared with the instant: those after it do not count.
    """
    n_bins = edges_s.size + 1
    first = row.size - 2 * n_bins - ARRIVAL_COLUMNS
    row[first - 1] = math.log2(gpus)
    row[first : first + 2 * n_bins] = 0.0
    started = int(np.searchsorted(start_s, now_s))
    for i in range(max(0, started - STARTS), started):
        ended = end_s[i] <= now_s
        lasted = end_s[i] - start_s[i] if ended else now_s - start_s[i]
        row[first + (0 if ended else n_bins) + np.searchsorted(edges_s, lasted)] += 1.0
    first += 2 * n_bins
    arrived = int(np.searchsorted(arrival_s, now_s))
    row[first] = math.log1p(now_s - arrival_s[arrived - 1]) if arrived else np.nan
    row[first + 1] = np.nan
    for i in range(arrived - 1, max(-1, arrived - 1 - ARRIVALS_BACK), -1):
        if arrival_gpus[i] == gpus:
            row[first + 1] = math.log1p(now_s - arrival_s[i])
            break
    row[first + 2] = 0.0
    for i in range(max(0, arrived - LIKE_ARRIVALS), arrived):
        row[first + 2] += arrival_gpus[i] == gpus
    for w in range(len(ARRIVAL_WINDOWS_S)):
        row[first + 3 + w] = math.log1p(arrived - np.searchsorted(arrival_s, now_s - ARRIVAL_WINDOWS_S[w]))


@njit([_POOLS], cache=True)
def pool_rows(
    start_s: Floats,
    end_s: Floats,
    arrival_s: Floats,
    arrival_gpus: Floats,
    submit_s: Floats,
    gpus: Floats,
    edges_s: Floats,
    rows_of: Ints,
    skipped: int,
    rows: Floats,
) -> None:
    """Fill the pool's columns of many jobs of one pool, each at its submission; `skipped` marks jobs without a row."""
    for job in range(submit_s.size):
        if rows_of[job] != skipped:
            pool_columns(start_s, end_s, arrival_s, arrival_gpus, submit_s[job], gpus[job], edges_s, rows[rows_of[job]])
