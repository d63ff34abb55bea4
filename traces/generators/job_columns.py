"""Jobs as columns on their way from a generator to a trace."""

from dataclasses import dataclass, fields
from datetime import datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

MICROSECONDS = 1e6
DURATION_DECIMALS = 3  # milliseconds: finer than any scheduler's clock, and short in a CSV file


@dataclass(frozen=True, slots=True)
class JobColumns:
    """Jobs of one burst, user, bot or pool, in no particular order.

    Attributes
    ----------
    submit_s : (n,) seconds since the start of the trace
    duration_s, gpus, failed : (n,) run time in seconds, gang width, whether the job crashed
    pool, user, tag : (n,) text
    """

    submit_s: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    gpus: NDArray[np.int64]
    failed: NDArray[np.bool_]
    pool: NDArray[np.str_]
    user: NDArray[np.str_]
    tag: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.submit_s)


def concat(parts: list[JobColumns]) -> JobColumns:
    """All jobs of the parts, one part after another; at least one part."""
    names = [f.name for f in fields(JobColumns)]
    return JobColumns(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def canonical_frame(jobs: JobColumns, start: datetime) -> pl.DataFrame:
    """Canonical table: ids are row numbers from 0 in order of submission (ties: the given order), zero-padded."""
    order = np.argsort(jobs.submit_s, kind="stable")
    start_us = round(start.timestamp() * MICROSECONDS)
    submit_us = start_us + np.floor(jobs.submit_s[order] * MICROSECONDS).astype(np.int64)
    width = len(str(max(len(jobs) - 1, 0)))
    return pl.DataFrame(
        {
            "job_id": [f"{row:0{width}d}" for row in range(len(jobs))],
            "pool": jobs.pool[order].tolist(),
            "submit_time": pl.Series(submit_us).cast(pl.Datetime("us", "UTC")),
            "duration": np.round(jobs.duration_s[order], DURATION_DECIMALS),
            "gpus": jobs.gpus[order],
            "user": jobs.user[order].tolist(),
            "tag": jobs.tag[order].tolist(),
            "state": np.where(jobs.failed[order], "failed", "completed").tolist(),
        }
    )
