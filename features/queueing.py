"""What a trace without starts would have shown had its pools been short of GPUs.

Where no starts are on record jobs count as started when they were submitted: what was known at a submission is what a
cluster without queues would have known. A scheduler asks in queues, where jobs of one burst wait together and little
is known yet of those like the one that is submitted.
"""

import heapq
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.features.durations import column_number
from jobcast.traces.column_types import MICROSECONDS
from jobcast.traces.history import rows_by_pool
from jobcast.traces.table import Trace

LOAD = 0.9
"""GPUs that a pool's jobs have asked for until now, in the mean, of those that it has: queues that are long but end.
Not searched for; what it is worth on October 2017 of Philly stands in docs/sia.md."""
AT_ONCE = 1e-6
"""Times in rows are equal within this much of log(1 + seconds)."""


def shows_queues(trace: Trace) -> bool:
    """Whether starts are on record."""
    return "start_time" in trace.jobs.columns


def queued(trace: Trace, load: float = LOAD) -> Trace:
    """The trace as pools that start jobs in order of submission would have recorded it.

    At each submission a pool has as many GPUs as its jobs would have used in the mean until then, did none wait,
    divided by the load, and no fewer than its widest job so far: nothing that comes later counts.

    Parameters
    ----------
    trace : without starts; jobs that have not ended run to the last submission
    load : above 0
    """
    submit_s, gpus = trace.submit_s, trace.gpus
    # What has not ended is known to have run until then at least.
    latest_s = submit_s[-1] if len(trace) else np.nan
    runs_s = np.where(trace.ended, np.nan_to_num(trace.duration_s), latest_s - submit_s)
    start_s = submit_s.copy()
    for rows in rows_by_pool(trace).values():
        quota = _quotas(submit_s[rows], gpus[rows], runs_s[rows], load)
        start_s[rows] = _starts_in_order(submit_s[rows], gpus[rows], runs_s[rows], quota)
    # Traces hold whole microseconds.
    waits = pl.Series(np.round((start_s - submit_s) * MICROSECONDS).astype(np.int64)).cast(pl.Duration("us"))
    later = [pl.col(name) + waits for name in ("end_time", "known_time") if name in trace.jobs.columns]
    return replace(trace, jobs=trace.jobs.with_columns((pl.col("submit_time") + waits).alias("start_time"), *later))


def in_queues(rows: Floats, horizons_min: Sequence[float]) -> Bools:
    """Whether the last job of the same pool and width waited before it started, or waits still, (n_jobs,).

    Without queues a pool's last start of a width is its last arrival of that width.

    Parameters
    ----------
    rows : (n_jobs, F), see `durations.duration_columns`
    """
    names = ("pool_width log since start s", "pool log since like s")
    start, arrival = (rows[:, column_number(name, horizons_min)] for name in names)
    # By hand: `isclose` takes as long as all the trees that answer a row.
    at_once = (np.abs(start - arrival) <= AT_ONCE) | (np.isnan(start) & np.isnan(arrival))
    return np.asarray(~at_once)


def _quotas(submit_s: Floats, gpus: Ints, runs_s: Floats, load: float) -> Floats:
    """GPUs that a pool has at each submission, (n_jobs,)."""
    at_s = np.concatenate([submit_s, submit_s + runs_s])
    change = np.concatenate([gpus, -gpus]).astype(np.float64)
    order = np.argsort(at_s, kind="stable")
    at_s, used = at_s[order], np.cumsum(change[order])
    gpu_s = np.concatenate([[0.0], np.cumsum(used[:-1] * np.diff(at_s))])
    passed_s = submit_s - submit_s[0]
    # A second at least: at the first submission no time has passed.
    mean = np.interp(submit_s, at_s, gpu_s) / np.maximum(passed_s, 1.0)
    return np.asarray(np.maximum(np.ceil(mean / load), np.maximum.accumulate(gpus)))


def _starts_in_order(submit_s: Floats, gpus: Ints, runs_s: Floats, quota: Floats) -> Floats:
    """When the jobs of a pool start, (n_jobs,), if none starts before one that was submitted earlier."""
    start_s = np.empty(len(submit_s))
    running: list[tuple[float, int]] = []
    used, now_s = 0, -np.inf
    columns = (submit_s.tolist(), gpus.tolist(), runs_s.tolist(), quota.tolist())
    for row, (submitted_s, width, lasts_s, most) in enumerate(zip(*columns, strict=True)):
        now_s = max(submitted_s, now_s)
        # Ends free GPUs until the job fits, the first ones first; none may overtake it.
        while used + width > most:
            end_s, freed = heapq.heappop(running)
            now_s, used = max(now_s, end_s), used - freed
        start_s[row] = now_s
        used += width
        heapq.heappush(running, (now_s + lasts_s, width))
    return start_s
