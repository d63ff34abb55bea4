"""Compiled loops of the arrival features: one pass over ascending instants, moving pointers, no look past them.

One file, since numba's cache of an entry point notices changes of its own file only. `arrivals.py` says what
the columns mean and imports this file when it first computes, since importing numba takes a second.

Rows must be the same to the last bit whether many instants or one are asked for, and whether the arrays hold
later events or not. So sums run over the window's own events, oldest first: no differences of running totals.

The compiled loop of the features of past loads: a scheduler asks for one instant of every pool, and waits.

`load_features.py` says what the columns mean and imports this file when it first computes, since importing numba takes
a second. GPUs are whole numbers, so sums of them are exact: rows are the same to the last bit whether many instants
or one are asked for, and whether the arrays hold later events or not.
"""

import math

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F3, I1, READ_F1, READ_I1, njit, types

HOUR_S = 3600.0
DAY_S = 86400.0
WEEK_S = 7 * DAY_S
MONDAY_OFFSET_S = 3 * DAY_S
"""1970-01-01 was a Thursday: epoch + 3 days, modulo a week, counts from Monday."""
SATURDAY_S = 5 * DAY_S
"""Start of the weekend, counted from Monday."""

PERIODS_S = (HOUR_S, DAY_S)
PERIODS_BACK = 3
"""p in {one hour, one day}, x in {1, 2, 3}. SIA, Table 9."""
LOOKBACKS = (1.0, 10.0, 100.0)
"""x in {1, 10, 10^2}: recent windows in horizons. SIA, Table 9."""
LIKE_JOBS = 50
"""Completions that the expected run time of a running job is the geometric mean of."""
FALLBACK_DURATION_S = HOUR_S
"""Expected run time where the pool has no completion yet: the middle quantum of SIA, section 5.4.1."""
LONGEST_QUIET_S = 60 * DAY_S
"""Times since the last event are capped here, and a pool without one is taken to have been quiet so long."""
RECENT_GAPS = 20
"""Gaps between arrivals that the gap statistics describe."""
RENEWAL_GAPS = 200
"""Gaps between arrivals that the renewal probability is counted from."""
PRIOR_GAPS = 1.0
"""Weight, in gaps, of the memoryless guess that the renewal probability starts from."""
RATE_WINDOW_S = WEEK_S
"""Window of the pool's arrival rate."""

PERIODIC = 0
RECENT_ARRIVALS = PERIODIC + PERIODS_BACK * len(PERIODS_S)
RECENT_COMPLETIONS = RECENT_ARRIVALS + len(LOOKBACKS)
FUTURE_COMPLETIONS = RECENT_COMPLETIONS + len(LOOKBACKS)
CALENDAR = FUTURE_COMPLETIONS + 2
QUIET = CALENDAR + 5
GAPS = QUIET + 2
RENEWAL = GAPS + 4
RATE = RENEWAL + 1
RECENT_GPUS = RATE + 1
N_COLUMNS = RECENT_GPUS + 1
"""First column of each block, and the number of columns."""
RUNNING, STARTED, FINISHED = 0, 1, 2
"""Marks of what `_future_completions` has read: jobs that it holds, starts, completions."""
N_MARKS = 3


@njit
def _until(times: Floats, at: int, instant: float) -> int:
    """Number of times <= instant, given that the first `at` are: gallop, then halve."""
    # Instants ascend, so the place sought is mostly near: doubling steps find it in O(log distance).
    step = 1
    while at + step <= times.size and times[at + step - 1] <= instant:
        at += step
        step *= 2
    end = min(at + step - 1, times.size)
    while at < end:
        middle = (at + end) // 2
        if times[middle] <= instant:
            at = middle + 1
        else:
            end = middle
    return at


@njit
def _before(times: Floats, at: int, instant: float) -> int:
    """Number of times < instant, given that the first `at` are."""
    return int(_until(times, at, np.nextafter(instant, -np.inf)))  # no float lies between the two


@njit
def _periodic(rows: Floats, arrival_s: Floats, ticks_s: Floats, horizons_s: Floats) -> None:
    """Arrivals in (t - x p, min(t - x p + k, t)]."""
    column = PERIODIC
    for period_s in PERIODS_S:
        for back in range(1, PERIODS_BACK + 1):
            first = 0
            last = np.zeros(horizons_s.size, np.int64)
            for i in range(ticks_s.size):
                from_s = ticks_s[i] - back * period_s
                first = _until(arrival_s, first, from_s)
                for h in range(horizons_s.size):
                    # Never beyond the instant: what the paper prints reaches into the future.
                    until_s = min(from_s + horizons_s[h], ticks_s[i])
                    last[h] = _until(arrival_s, last[h], until_s)
                    rows[i, h, column] = last[h] - first
            column += 1


@njit
def _recent(rows: Floats, column: int, times: Floats, ticks_s: Floats, horizons_s: Floats) -> None:
    """Events in [t - x k, t]."""
    for lookback in LOOKBACKS:
        last = 0
        first = np.zeros(horizons_s.size, np.int64)
        for i in range(ticks_s.size):
            last = _until(times, last, ticks_s[i])
            for h in range(horizons_s.size):
                first[h] = _before(times, first[h], ticks_s[i] - lookback * horizons_s[h])
                rows[i, h, column] = last - first[h]
        column += 1


@njit
def _recent_gpus(rows: Floats, arrival_s: Floats, arrival_gpus: Floats, ticks_s: Floats, horizons_s: Floats) -> None:
    """Log of 1 + GPUs that arrived in [t - k, t]."""
    last = 0
    first = np.zeros(horizons_s.size, np.int64)
    for i in range(ticks_s.size):
        last = _until(arrival_s, last, ticks_s[i])
        for h in range(horizons_s.size):
            first[h] = _before(arrival_s, first[h], ticks_s[i] - horizons_s[h])
            # Summed anew, oldest first: differences of running totals would differ in their last bits.
            gpus = 0.0
            for j in range(first[h], last):
                gpus += arrival_gpus[j]
            rows[i, h, RECENT_GPUS] = math.log1p(gpus)


@njit
def _geometric_mean(durations_s: Floats, end: int) -> float:
    """Geometric mean of the last LIKE_JOBS of the first `end` durations, end > 0."""
    first = max(0, end - LIKE_JOBS)
    logs = 0.0
    for j in range(first, end):
        logs += math.log(durations_s[j])
    return math.exp(logs / (end - first))


@njit
def _count_left(row: Floats, age_s: float, expected_s: float, horizons_s: Floats) -> None:
    """Count a running job as expected to end within k, or later. Who outlived its expectation runs as long again."""
    # A heavy tail: who has run long is expected to run long.
    left_s = expected_s - age_s if expected_s > age_s else age_s
    for h in range(horizons_s.size):
        row[h, FUTURE_COMPLETIONS + (0 if left_s <= horizons_s[h] else 1)] += 1.0


@njit
def _future_completions(
    row: Floats,
    start_s: Floats,
    end_s: Floats,
    completion_s: Floats,
    completion_duration_s: Floats,
    now_s: float,
    horizons_s: Floats,
    running: Ints,
    expected_s: Floats,
    marks: Ints,
    mean_s: Floats,
) -> None:
    """Running jobs (start <= t < end) expected to end within k, and later, at an instant no earlier than the last.

    `running` and `expected_s` hold who had started before the last instant and not ended, `marks` and `mean_s` how far
    the columns were read. Who starts at the instant itself is counted and not kept, for ends of that same instant may
    still be to come, which its expectation counts.
    """
    row[:, FUTURE_COMPLETIONS : FUTURE_COMPLETIONS + 2] = 0.0
    kept = 0
    for r in range(marks[RUNNING]):
        job = running[r]
        # Compacts the list in place; the order of starts stays.
        if end_s[job] > now_s:
            running[kept], expected_s[kept] = job, expected_s[r]
            _count_left(row, now_s - start_s[job], expected_s[r], horizons_s)
            kept += 1
    marks[RUNNING] = kept
    started = marks[STARTED]
    while started < start_s.size and start_s[started] <= now_s:
        if end_s[started] > now_s:
            finished = _until(completion_s, marks[FINISHED], start_s[started])
            # The mean is worked out once for all starts between two completions.
            if finished != marks[FINISHED]:
                mean_s[0] = _geometric_mean(completion_duration_s, finished)
                marks[FINISHED] = finished
            running[kept], expected_s[kept] = started, mean_s[0]
            _count_left(row, now_s - start_s[started], mean_s[0], horizons_s)
            kept += 1
        started += 1
        # Only now are they kept: at the same instant a later call may know of further completions.
        if start_s[started - 1] < now_s:
            marks[RUNNING], marks[STARTED] = kept, started


@njit
def _calendar(rows: Floats, ticks_s: Floats) -> None:
    """Hour of day and day of week (UTC) as angles, and whether it is the weekend."""
    for i in range(ticks_s.size):
        day = 2.0 * math.pi * (ticks_s[i] % DAY_S) / DAY_S
        since_monday_s = (ticks_s[i] + MONDAY_OFFSET_S) % WEEK_S
        week = 2.0 * math.pi * since_monday_s / WEEK_S
        rows[i, :, CALENDAR] = math.sin(day)
        rows[i, :, CALENDAR + 1] = math.cos(day)
        rows[i, :, CALENDAR + 2] = math.sin(week)
        rows[i, :, CALENDAR + 3] = math.cos(week)
        rows[i, :, CALENDAR + 4] = 1.0 if since_monday_s >= SATURDAY_S else 0.0


@njit
def _quiet(rows: Floats, column: int, times: Floats, ticks_s: Floats) -> None:
    """Log of 1 + seconds since the last event."""
    last = 0
    for i in range(ticks_s.size):
        last = _until(times, last, ticks_s[i])
        quiet_s = min(ticks_s[i] - times[last - 1], LONGEST_QUIET_S) if last > 0 else LONGEST_QUIET_S
        rows[i, :, column] = math.log1p(quiet_s)


@njit
def _describe_gaps(arrival_s: Floats, n: int, value: Floats) -> None:
    """Write log1p of mean, median and last gap, and the coefficient of variation, of the last gaps before n."""
    # N arrivals have n - 1 gaps between them.
    count = min(n - 1, RECENT_GAPS)
    if count < 1:
        value[0] = value[1] = value[3] = math.log1p(LONGEST_QUIET_S)
        value[2] = 0.0
        return
    gaps = np.empty(count)
    for j in range(count):
        gaps[j] = arrival_s[n - count + j] - arrival_s[n - count + j - 1]
    mean = (arrival_s[n - 1] - arrival_s[n - 1 - count]) / count
    squares = 0.0
    for gap in gaps:
        squares += (gap - mean) ** 2
    value[0] = math.log1p(mean)
    value[3] = math.log1p(gaps[count - 1])
    # Last: the figures above need their order in time.
    gaps.sort()
    value[1] = math.log1p((gaps[(count - 1) // 2] + gaps[count // 2]) / 2.0)
    value[2] = math.sqrt(squares / count) / mean if mean > 0.0 else 0.0


@njit
def _gaps(rows: Floats, arrival_s: Floats, ticks_s: Floats) -> None:
    """Statistics of the last gaps; those of many instants between two arrivals are computed once."""
    result = np.empty(4)
    n, known = 0, -1
    for i in range(ticks_s.size):
        n = _until(arrival_s, n, ticks_s[i])
        # Instants lie closer than arrivals: most rows repeat the one before.
        if n != known:
            known = n
            _describe_gaps(arrival_s, n, result)
        for column in range(4):
            rows[i, :, GAPS + column] = result[column]


@njit
def _renewal(rows: Floats, arrival_s: Floats, ticks_s: Floats, horizons_s: Floats) -> None:
    """P(gap <= w + k | gap > w), w = time since the last arrival, from the last gaps and a memoryless prior."""
    n = 0
    for i in range(ticks_s.size):
        n = _until(arrival_s, n, ticks_s[i])
        count = max(0, min(n - 1, RENEWAL_GAPS))
        waited_s = mean_s = LONGEST_QUIET_S
        if count > 0:
            waited_s = ticks_s[i] - arrival_s[n - 1]
            mean_s = (arrival_s[n - 1] - arrival_s[n - 1 - count]) / count
        beyond = 0
        for j in range(n - count, n):
            # Gaps that were longer than the time waited so far.
            beyond += arrival_s[j] - arrival_s[j - 1] > waited_s
        for h in range(horizons_s.size):
            longer = 0
            for j in range(n - count, n):
                longer += arrival_s[j] - arrival_s[j - 1] > waited_s + horizons_s[h]
            # Where nothing was seen, arrivals without memory at the mean rate.
            guess = 1.0 - math.exp(-horizons_s[h] / mean_s) if mean_s > 0.0 else 1.0
            rows[i, h, RENEWAL] = (beyond - longer + PRIOR_GAPS * guess) / (beyond + PRIOR_GAPS)


@njit
def _rate(rows: Floats, arrival_s: Floats, ticks_s: Floats) -> None:
    """Log of (1 + arrivals in (t - 7 d, t]) per hour."""
    first, last = 0, 0
    for i in range(ticks_s.size):
        first = _until(arrival_s, first, ticks_s[i] - RATE_WINDOW_S)
        last = _until(arrival_s, last, ticks_s[i])
        rows[i, :, RATE] = math.log((1.0 + last - first) * HOUR_S / RATE_WINDOW_S)


@njit
def _fill(
    rows: Floats,
    arrival_s: Floats,
    arrival_gpus: Floats,
    completion_s: Floats,
    ticks_s: Floats,
    horizons_s: Floats,
) -> None:
    """All columns but the future completions'."""
    _periodic(rows, arrival_s, ticks_s, horizons_s)
    _recent(rows, RECENT_ARRIVALS, arrival_s, ticks_s, horizons_s)
    _recent(rows, RECENT_COMPLETIONS, completion_s, ticks_s, horizons_s)
    _calendar(rows, ticks_s)
    _quiet(rows, QUIET, arrival_s, ticks_s)
    _quiet(rows, QUIET + 1, completion_s, ticks_s)
    _gaps(rows, arrival_s, ticks_s)
    _renewal(rows, arrival_s, ticks_s, horizons_s)
    _rate(rows, arrival_s, ticks_s)
    _recent_gpus(rows, arrival_s, arrival_gpus, ticks_s, horizons_s)


@njit([F3(*(READ_F1,) * 8)], cache=True)
def feature_rows(
    arrival_s: Floats,
    arrival_gpus: Floats,
    start_s: Floats,
    end_s: Floats,
    completion_s: Floats,
    completion_duration_s: Floats,
    ticks_s: Floats,
    horizons_s: Floats,
) -> Floats:
    """Feature rows of one pool, shape (T, H, N_COLUMNS), for ascending ticks; see `arrivals.arrival_features`."""
    rows = np.empty((ticks_s.size, horizons_s.size, N_COLUMNS))
    running, expected_s = np.empty(start_s.size, np.int64), np.empty(start_s.size)
    marks, mean_s = np.zeros(N_MARKS, np.int64), np.array([FALLBACK_DURATION_S])
    for i in range(ticks_s.size):
        _future_completions(
            rows[i], start_s, end_s, completion_s, completion_duration_s, ticks_s[i], horizons_s, running, expected_s,
            marks, mean_s,
        )  # fmt: skip
    _fill(rows, arrival_s, arrival_gpus, completion_s, ticks_s, horizons_s)
    return rows


SPARE_S = 1.0
"""Arrivals this much older than the oldest edge are summed too, whose float64 may be rounded either way."""


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
    # GPUs are whole numbers: their running total is exact, and differences of it are.
    total = np.zeros(last - first + 1)
    for j in range(first, last):
        total[j - first + 1] = total[j - first] + gpus[j]
    return first, last, total


@njit
def _past_loads(
    rows: Floats,
    begin: int,
    arrival_s: Floats,
    gpus: Floats,
    ticks_s: Floats,
    horizons_s: Floats,
    maxima: Ints,
    means: Ints,
    periods_s: Floats,
) -> None:
    """Write what `past_loads` gives, from a column on."""
    windows = max(maxima[-1], means[-1])
    if not ticks_s.size:
        return
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
                # Each edge is looked up once: the older one of a window is the newer one of the next.
                older = _total(arrival_s, total, first, last, now_s - horizon_s * (back + 1))
                loads[back] = newer - older
                newer = older
            row[begin], row[begin + 1] = loads[0], loads[1]
            column = begin + 2
            for count in maxima:
                row[column] = loads[:count].max()
                column += 1
            for count in means:
                row[column] = loads[:count].sum() / count
                column += 1
            for period_s in periods_s:
                length_s = min(horizon_s, period_s)
                # A window longer than the period is cut at the instant.
                end_s = now_s - period_s + length_s
                ended = _total(arrival_s, total, first, last, end_s)
                row[column] = ended - _total(arrival_s, total, first, last, end_s - length_s)
                column += 1
            for period_s in periods_s:
                known = _total(arrival_s, total, first, last, now_s)
                load = known - _total(arrival_s, total, first, last, now_s - period_s)
                row[column] = load * horizon_s / period_s
                column += 1


@njit([F3(READ_F1, READ_F1, READ_F1, READ_F1, READ_I1, READ_I1, READ_F1)], cache=True)  # type: ignore[untyped-decorator, unused-ignore]
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
    columns = 2 + maxima.size + means.size + 2 * periods_s.size
    rows = np.zeros((ticks_s.size, horizons_s.size, columns))
    _past_loads(rows, 0, arrival_s, gpus, ticks_s, horizons_s, maxima, means, periods_s)
    return rows


@njit([types.void(*(READ_F1,) * 8, READ_I1, READ_I1, READ_F1, I1, F1, I1, F1, F3)], cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def instant_rows(
    arrival_s: Floats,
    arrival_gpus: Floats,
    start_s: Floats,
    end_s: Floats,
    completion_s: Floats,
    completion_duration_s: Floats,
    tick_s: Floats,
    horizons_s: Floats,
    maxima: Ints,
    means: Ints,
    periods_s: Floats,
    running: Ints,
    expected_s: Floats,
    marks: Ints,
    mean_s: Floats,
    rows: Floats,
) -> None:
    """Write `feature_rows` and beside them `past_loads` of one instant, tick_s of shape (1,), into rows (1, H, F).

    What had ended before is not walked over: `running`, `expected_s`, `marks` and `mean_s` are kept from instant to
    instant, see `_future_completions`.
    """
    _future_completions(
        rows[0], start_s, end_s, completion_s, completion_duration_s, tick_s[0], horizons_s, running, expected_s,
        marks, mean_s,
    )  # fmt: skip
    # The other columns find their windows by search: nothing is kept for them.
    _fill(rows, arrival_s, arrival_gpus, completion_s, tick_s, horizons_s)
    _past_loads(rows, N_COLUMNS, arrival_s, arrival_gpus, tick_s, horizons_s, maxima, means, periods_s)
