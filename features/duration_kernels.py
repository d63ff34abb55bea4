"""Compiled loops of the duration features: what the batch way and the live way both call.

One file, since numba's cache of an entry point notices changes of its own file only. `durations.py` says what the
columns mean. Groups of jobs are numbered; of each job the one before it in each of its groups is kept, so that what
was known at an instant can be told after it, too.
"""

import math

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F2, I1, I2, READ_F1, READ_I1, READ_I2, njit, types
from jobcast.features.duration_tables import Finished, Started, SweptJobs

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

STARTED_KINDS = (0, 1, 3, 4)
"""Kinds of groups whose started jobs are counted; as in `durations.STARTED`."""
START_DEPTHS = (5, 20)
"""How many of a group's last started jobs are counted, by bin of their run time or of their run time so far."""
START_EXTRAS = 2
"""Columns of a group's started jobs beside their counts."""
JUST_STARTED_S = 300.0
"""A start since then is counted as one of the job's own burst."""
DAY_S = 86400.0

_FINISHED = types.NamedTuple([F1, I1, F1, I2, I1], Finished)
_STARTED = types.NamedTuple([F1, F1, I2, I1], Started)
_JOBS = types.NamedTuple([F1, F1, F1, F1, F1, I1, I1, I1, I2, I1], SweptJobs)
_NOTE = types.void(_FINISHED, types.int64, READ_I1, READ_F1, types.float64, types.float64)
_BEGIN = types.void(_STARTED, types.int64, READ_I1, types.float64, types.float64)
_NOTE_ALL = types.void(_FINISHED, types.int64, READ_I2, READ_F1, READ_F1, READ_F1)
_BEGIN_ALL = types.void(_STARTED, types.int64, READ_I2, READ_F1)
_FILL = types.void(_FINISHED, _STARTED, READ_I1, READ_F1, types.float64, types.float64, F1)
_SWEEP = types.void(_FINISHED, _STARTED, _JOBS, READ_F1, F2)
_POOL = types.void(READ_F1, READ_F1, READ_F1, READ_F1, types.float64, types.float64, READ_F1, F1)
_POOLS = types.void(READ_F1, READ_F1, READ_F1, READ_F1, READ_F1, READ_F1, READ_F1, READ_I1, types.int64, F2)


@njit([_NOTE], cache=True)
def note(table: Finished, count: int, groups: Ints, edges_s: Floats, ended_s: float, duration_s: float) -> None:
    """Enter a finished job into its groups, as number `count` of all that have finished.

    Parameters
    ----------
    groups : (G,) the job's group of each kind, -1 for none
    edges_s : (B - 1,) inner edges of the bins, seconds
    """
    # Appended, never changed: rows of the past can be asked for at any later time.
    table.end_s[count] = ended_s
    table.bins[count] = np.searchsorted(edges_s, duration_s)
    table.logs[count] = math.log(duration_s)
    for kind in range(groups.size):
        group = groups[kind]
        if group >= 0:
            table.before[count, kind] = table.last[group]
            table.last[group] = count


@njit([_BEGIN], cache=True)
def begin(table: Started, count: int, groups: Ints, started_s: float, ended_s: float) -> None:
    """Enter a started job into its groups, as number `count` of all that have started; as `note`.

    Its end may be put in later, and is infinite until then.
    """
    table.start_s[count] = started_s
    # Infinite while it runs; put in place when it ends.
    table.end_s[count] = ended_s
    for kind in range(groups.size):
        group = groups[kind]
        if group >= 0:
            table.before[count, kind] = table.last[group]
            table.last[group] = count


@njit([_NOTE_ALL], cache=True)
def note_all(table: Finished, count: int, groups: Ints, edges_s: Floats, ended_s: Floats, duration_s: Floats) -> None:
    """As `note`, of jobs one after the other, the first as number `count`; `groups` (n, G), the rest (n,)."""
    for row in range(ended_s.size):
        note(table, count + row, groups[row], edges_s, ended_s[row], duration_s[row])


@njit([_BEGIN_ALL], cache=True)
def begin_all(table: Started, count: int, groups: Ints, started_s: Floats) -> None:
    """As `begin`, of jobs one after the other, the first as number `count`, none of which has ended."""
    for row in range(started_s.size):
        begin(table, count + row, groups[row], started_s[row], np.inf)


@njit([_FILL], cache=True)
def fill(
    finished: Finished, started: Started, groups: Ints, edges_s: Floats, limit_s: float, now_s: float, row: Floats
) -> None:
    """Write the groups' columns of a job's row as of an instant, which may have passed, and those of what it asks.

    Finished jobs: counts by depth and bin, then the extras; NaN where none finished. Started ones: by depth counts of
    the ended by bin and of the running by bin of their run time so far, then the extras.
    """
    n_bins = edges_s.size + 1
    width = N_DEPTHS * n_bins + GROUP_EXTRAS
    for kind in range(groups.size):
        first = kind * width
        extras = first + N_DEPTHS * n_bins
        row[first:extras] = 0.0
        one = groups[kind]
        if one >= 0:
            one = finished.last[one]
        # What ended after the instant is passed over: a late question sees what was known then.
        while one >= 0 and finished.end_s[one] > now_s:
            one = finished.before[one, kind]
        if one < 0:
            # Trees tell a missing number from 0 s.
            row[extras : extras + GROUP_EXTRAS] = np.nan
            continue
        row[extras + 1] = finished.logs[one]
        row[extras + 2] = math.log1p(now_s - finished.end_s[one])
        back, total = 0, 0.0
        while one >= 0 and back < DEEPEST:
            for depth in range(N_DEPTHS):
                if back < DEPTHS[depth]:
                    row[first + depth * n_bins + finished.bins[one]] += 1.0
            total += finished.logs[one]
            back += 1
            one = finished.before[one, kind]
        row[extras] = total / back
    first = groups.size * width
    for kind in STARTED_KINDS:
        extras = first + 2 * len(START_DEPTHS) * n_bins
        row[first : extras + START_EXTRAS] = 0.0
        one = groups[kind]
        if one >= 0:
            one = started.last[one]
        # A start at the instant itself is not known yet: starts come after arrivals.
        while one >= 0 and started.start_s[one] >= now_s:
            one = started.before[one, kind]
        row[extras] = math.log1p(now_s - started.start_s[one]) if one >= 0 else np.nan
        back, recent = 0, 0
        while one >= 0 and back < START_DEPTHS[-1]:
            ended = started.end_s[one] <= now_s
            # Of a running job its age: a lower bound, counted in columns of its own.
            lasted = (started.end_s[one] if ended else now_s) - started.start_s[one]
            place = first + (0 if ended else n_bins) + np.searchsorted(edges_s, lasted)
            for depth in range(len(START_DEPTHS)):
                if back < START_DEPTHS[depth]:
                    row[place + depth * 2 * n_bins] += 1.0
            recent += started.start_s[one] > now_s - JUST_STARTED_S
            back += 1
            one = started.before[one, kind]
        row[extras + 1] = math.log1p(recent)
        first = extras + START_EXTRAS
    row[first] = math.log(limit_s) if math.isfinite(limit_s) else np.nan
    turn = 2.0 * math.pi * (now_s % DAY_S) / DAY_S
    row[first + 1], row[first + 2] = math.sin(turn), math.cos(turn)


@njit([_SWEEP], cache=True)
def sweep(finished: Finished, started: Started, jobs: SweptJobs, edges_s: Floats, rows: Floats) -> None:
    """Fill the columns that `fill` writes of many jobs: completions before arrivals, in order of time."""
    starts_s, ends_s = jobs.start_s[jobs.starts], jobs.end_s[jobs.finishes]
    ended, begun = 0, 0
    for job in jobs.arrivals:
        now_s = jobs.submit_s[job]
        # Up to the submission itself: at one instant ends come before arrivals.
        for one in jobs.finishes[ended : np.searchsorted(ends_s, now_s, "right")]:
            note(finished, ended, jobs.groups[one], edges_s, jobs.end_s[one], jobs.duration_s[one])
            ended += 1
        # Strictly before: at one instant starts come after arrivals.
        for one in jobs.starts[begun : np.searchsorted(starts_s, now_s)]:
            begin(started, begun, jobs.groups[one], jobs.start_s[one], jobs.end_s[one])
            begun += 1
        if jobs.row[job] >= 0:
            fill(finished, started, jobs.groups[job], edges_s, jobs.limit_s[job], now_s, rows[jobs.row[job]])


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
    # Counted from the end, so that the groups' columns need not be known here.
    first = row.size - 2 * n_bins - ARRIVAL_COLUMNS
    row[first - 1] = math.log2(gpus)
    row[first:] = 0.0
    started = int(np.searchsorted(start_s, now_s))
    for i in range(max(0, started - STARTS), started):
        ended = end_s[i] <= now_s
        lasted = end_s[i] - start_s[i] if ended else now_s - start_s[i]
        row[first + (0 if ended else n_bins) + np.searchsorted(edges_s, lasted)] += 1.0
    first += 2 * n_bins
    arrived = int(np.searchsorted(arrival_s, now_s))
    row[first] = math.log1p(now_s - arrival_s[arrived - 1]) if arrived else np.nan
    like_s = np.nan
    for i in range(max(0, arrived - ARRIVALS_BACK), arrived):
        if arrival_gpus[i] == gpus:
            like_s = arrival_s[i]
    row[first + 1] = math.log1p(now_s - like_s)
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
        # Jobs without a row still count in what others see.
        if rows_of[job] != skipped:
            pool_columns(start_s, end_s, arrival_s, arrival_gpus, submit_s[job], gpus[job], edges_s, rows[rows_of[job]])
