"""Histories of pools: the events of a trace as columns that features read."""

import numpy as np
import polars as pl

from jobcast.domain.history import PoolHistory
from jobcast.traces.table import Floats, Trace


def pool_histories(trace: Trace) -> dict[str, PoolHistory]:
    """All events of a trace by pool, names ascending.

    Jobs run as the trace says; without start and end times a job runs from its submission for its duration. One that
    waits when the trace ends has arrived and not started; one that runs has started and not ended.
    """
    submit_s, start_s, end_s = trace.submit_s, trace.start_s, trace.end_s
    gpus, duration_s = trace.gpus.astype(np.float64), trace.duration_s
    return {
        name: _pool_history(submit_s[rows], gpus[rows], start_s[rows], end_s[rows], duration_s[rows])
        for name, rows in rows_by_pool(trace).items()
    }


def rows_by_pool(trace: Trace) -> dict[str, np.ndarray]:
    """Positions of each pool's jobs, ascending, by pool, names ascending."""
    grouped = trace.jobs.select("pool").with_row_index("row").group_by("pool").agg(pl.col("row")).sort("pool")
    return {name: np.sort(rows.to_numpy()) for name, rows in zip(grouped["pool"], grouped["row"], strict=True)}


def _pool_history(submit_s: Floats, gpus: Floats, start_s: Floats, end_s: Floats, duration_s: Floats) -> PoolHistory:
    by_start = np.argsort(start_s, kind="stable")[: np.isfinite(start_s).sum()]
    by_end = np.argsort(end_s, kind="stable")[: np.isfinite(end_s).sum()]
    return PoolHistory(
        arrival_s=submit_s,
        arrival_gpus=gpus,
        start_s=start_s[by_start],
        end_s=end_s[by_start],
        completion_s=end_s[by_end],
        completion_duration_s=duration_s[by_end],
    )
