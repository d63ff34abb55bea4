"""Small queues: a trace of one pool in order of submission, and a table of snapshots of it."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from jobcast.traces.readers.queue_snapshots import AHEAD
from jobcast.traces.table import Trace

DAY_S = 86400.0
BEGIN = datetime(2021, 5, 1, tzinfo=UTC)


def snapshot_frame(days: int = 12, a_day: int = 40, seed: int = 0) -> pl.DataFrame:
    """Jobs that were pending at noon of some days; those of more cores wait longer."""
    rng = np.random.default_rng(seed)
    n = days * a_day
    noon = [BEGIN + timedelta(days=int(day), hours=12) for day in np.repeat(np.arange(days), a_day)]
    cores = rng.choice([1, 4, 16, 64], n)
    wait_s = np.maximum(2.0, 600.0 * cores * rng.lognormal(0.0, 0.5, n))
    before_s = rng.integers(0, 40_000, n)
    told = {
        "job_id": [f"{number:04d}" for number in range(n)],
        "pool": rng.choice(["p1", "p2"], n),
        "account": rng.choice(["a1", "a2", "a3"], n),
        "submit_time": [at - timedelta(seconds=int(s)) for at, s in zip(noon, before_s, strict=True)],
        "snapshot_time": noon,
        "start_time": [at + timedelta(seconds=int(s)) for at, s in zip(noon, wait_s, strict=True)],
        "end_time": [at + timedelta(seconds=int(s) + 3600) for at, s in zip(noon, wait_s, strict=True)],
        "req_cpus": cores,
        "req_mem_total": 4096 * cores,
        "gpus": rng.choice([0, 1], n, p=[0.8, 0.2]),
        "time_limit_s": np.full(n, 7200),
        "priority": rng.uniform(0.0, 1.0, n),
    }
    return pl.DataFrame({**told, **{name: rng.integers(0, 50, n) for name in AHEAD}})


def queued_trace(rows: list[tuple], **more: list) -> Trace:
    """Jobs of (submit, start, run time), seconds, of one GPU each; None for what has not come."""
    columns = list(zip(*rows, strict=True))
    frame = pl.DataFrame(
        {
            "job_id": [str(number) for number in range(len(rows))],
            "pool": ["p"] * len(rows),
            "submit_time": columns[0],
            "start_time": columns[1],
            "duration": columns[2],
            "gpus": [1] * len(rows),
            **more,
        },
        strict=False,
    )
    times = pl.col("submit_time", "start_time").cast(pl.Float64)
    return Trace.from_frame(frame.with_columns(times), name="made")
