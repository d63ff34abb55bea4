"""Histories of pools: the events of a trace as columns that features read."""

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.history import FinishedJob, PoolHistory, StartedJob
from jobcast.traces.table import Trace


def pool_histories(trace: Trace) -> dict[str, PoolHistory]:
    """All events of a trace by pool, names ascending.

    Jobs run as the trace says; without start and end times a job runs from its submission for its duration. One that
    waits when the trace ends has arrived and not started; one that runs has started and not ended. An end counts from
    when it was known (`Trace.known_s`): until then the job runs.
    """
    submit_s, start_s, known_s = trace.submit_s, trace.start_s, trace.known_s
    gpus, duration_s = trace.gpus.astype(np.float64), trace.duration_s
    return {
        name: _pool_history(submit_s[rows], gpus[rows], start_s[rows], known_s[rows], duration_s[rows])
        for name, rows in rows_by_pool(trace).items()
    }


def histories_of(trace: Trace, pools: Collection[str]) -> dict[str, PoolHistory]:
    """Events of some pools."""
    return {name: history for name, history in pool_histories(trace).items() if name in pools}


def rows_by_pool(trace: Trace) -> dict[str, np.ndarray]:
    """Positions of each pool's jobs, ascending, by pool, names ascending."""
    grouped = trace.jobs.select("pool").with_row_index("row").group_by("pool").agg(pl.col("row")).sort("pool")
    # group_by keeps no order within groups unless asked
    return {name: np.sort(rows.to_numpy()) for name, rows in zip(grouped["pool"], grouped["row"], strict=True)}


def _pool_history(submit_s: Floats, gpus: Floats, start_s: Floats, known_s: Floats, duration_s: Floats) -> PoolHistory:
    # stable: jobs that start at once stay in order of submission; infinite starts are last
    by_start = np.argsort(start_s, kind="stable")[: np.isfinite(start_s).sum()]
    # by when the end was known, as forecasts would have learnt of it
    by_end = np.argsort(known_s, kind="stable")[: np.isfinite(known_s).sum()]
    return PoolHistory(
        arrival_s=submit_s,
        arrival_gpus=gpus,
        start_s=start_s[by_start],
        end_s=known_s[by_start],
        completion_s=known_s[by_end],
        completion_duration_s=duration_s[by_end],
    )


class TraceHistory:
    """What a trace tells of its jobs at one instant; implements `domain.history.History`.

    Parameters
    ----------
    trace : its jobs; none submitted after the instant
    at_s : seconds from the epoch

    Attributes
    ----------
    jobs : all of them
    active : those that wait or run at the instant, as far as was known, in the trace's order
    """

    def __init__(self, trace: Trace, at_s: float) -> None:
        self.now_s = at_s
        self.jobs, duration_s = trace.to_jobs()
        # once: each is made anew from the table
        start_s, known_s = trace.start_s, trace.known_s
        self.active = tuple(self.jobs[row] for row in np.flatnonzero(known_s > at_s).tolist())
        # whole, since features cut by the instant themselves
        self._pools = pool_histories(trace)
        # newest last: callers ask for what came after a count
        order = np.argsort(known_s, kind="stable")
        ended = order[known_s[order] <= at_s].tolist()
        started = np.argsort(start_s, kind="stable")[: int((start_s <= at_s).sum())].tolist()
        self._started = [StartedJob(self.jobs[row], float(start_s[row])) for row in started]
        self._ended = [FinishedJob(self.jobs[row], float(known_s[row]), float(duration_s[row])) for row in ended]

    @property
    def pools(self) -> Sequence[str]:
        """Names of the pools, ascending."""
        return list(self._pools)

    def pool(self, name: str) -> PoolHistory:
        """Events of one pool; what comes after the instant is there too, and no feature at it reads it."""
        return self._pools[name]

    def finished_since(self, count: int) -> Sequence[FinishedJob]:
        """Jobs in the order in which their ends were known, without the first `count`."""
        return self._ended[count:]

    def started_since(self, count: int) -> Sequence[StartedJob]:
        """Starts in order of time, without the first `count`."""
        return self._started[count:]
