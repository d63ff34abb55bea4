"""What generators of elastic jobs share: arrivals at a rate or to a load, and the canonical table.

Jobs as columns on their way from a generator to a trace.

Run times at a width as work on one GPU, by a table of speedups or linearly.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TraceError
from jobcast.traces.column_types import numbers_of
from jobcast.traces.csv_table import read_csv
from jobcast.traces.files import read_file
from jobcast.traces.speedups import Speedups, linear_speedups, read_speedups

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
    # ties keep the order in which jobs were drawn
    order = np.argsort(jobs.submit_s, kind="stable")
    # zero-padded, so that ids sort as submissions do
    width = len(str(max(len(jobs) - 1, 0)))
    return pl.DataFrame(
        {
            "job_id": [f"{row:0{width}d}" for row in range(len(jobs))],
            "pool": jobs.pool[order].tolist(),
            "submit_time": instants(start, jobs.submit_s[order]),
            "duration": np.round(jobs.duration_s[order], DURATION_DECIMALS),
            "gpus": jobs.gpus[order],
            "user": jobs.user[order].tolist(),
            "tag": jobs.tag[order].tolist(),
            "state": np.where(jobs.failed[order], "failed", "completed").tolist(),
        }
    )


def instants(start: datetime, since_s: Floats) -> pl.Series:
    """Instants so many seconds after the start, to the microsecond below."""
    # floor, not round: no job may leave the trace's span
    since_us = np.floor(since_s * MICROSECONDS).astype(np.int64)
    return pl.Series(round(start.timestamp() * MICROSECONDS) + since_us).cast(pl.Datetime("us", "UTC"))


def plain_frame(
    pool: str | NDArray[np.str_], start: datetime, submit_s: Floats, duration_s: Floats, gpus: NDArray[np.int64]
) -> pl.DataFrame:
    """`canonical_frame` of jobs without users, tags and states; `pool` is of all, or (n,)."""
    text, no = np.full(len(gpus), ""), np.zeros(len(gpus), dtype=np.bool_)
    pools = np.full(len(gpus), pool) if isinstance(pool, str) else pool
    jobs = JobColumns(submit_s, duration_s, gpus, no, pools, text, text)
    return canonical_frame(jobs, start).drop("user", "tag", "state")


DATA_VARIABLE = "JOBCAST_DATA"
SPEEDUPS_FILE = Path("pcs", "speedups.csv")
"""PCS's published table in such a folder."""


def data_file(relative: Path) -> str:
    """A file under the folder that JOBCAST_DATA names, empty where there is none."""
    folder = os.environ.get(DATA_VARIABLE)
    path = Path(folder, relative) if folder else None
    return str(path) if path is not None and path.is_file() else ""


def speedup_table(path: str, models: Sequence[str], most: NDArray[np.int64]) -> Speedups:
    """Table of a file, else a linear one for these models up to the widest job. Raises TraceError."""
    return read_speedups(path) if path else linear_speedups(int(most.max()), models)


def widths_speedups(models: Sequence[str], most: NDArray[np.int64], table: Speedups) -> Floats:
    """(n_jobs,) speedup of each job over one GPU on all its GPUs, packed.

    Raises ConfigError where the table does not know a model.
    """
    row = {model: table.row_of(model) for model in dict.fromkeys(models)}
    rows = np.array([row[model] for model in models])
    # packed; beyond the table the last width counts
    return np.asarray(table.speedup[rows, 0, np.minimum(most, table.speedup.shape[2] - 1)])


CDF = ("value", "share")
LEAST_GPUS = 0
"""Elastic jobs may be left without GPUs at any time, as in PCS's published traces."""


def instants_s(gaps: Floats, mean_s: float) -> Floats:
    """(n_jobs,) arrivals, the first at 0, from n_jobs - 1 gaps of mean 1.

    >>> instants_s(np.array([0.5, 1.5]), 60.0).tolist()
    [0.0, 30.0, 120.0]
    """
    return np.concatenate([[0.0], np.cumsum(gaps)]) * mean_s


def instants_at_load_s(gaps: Floats, service_s: Floats, gpus: int, load: float) -> Floats:
    """(n_jobs,) arrivals, the first at 0, at which services / (span x GPUs) is `load` but for microseconds.

    Exponential gaps so stretched are a Poisson process, given that a job arrives at either end.

    Parameters
    ----------
    gaps : (n_jobs - 1,) relative to one another
    service_s : (n_jobs,) seconds on one GPU
    gpus, load : as said, > 0
    """
    # 0 for a single job: it has no gaps to stretch
    total = float(gaps.sum())
    if total <= 0.0:
        return np.zeros(len(service_s))
    return instants_s(gaps, float(service_s.sum()) / (load * gpus) / total)


def elastic_frame(
    pool: str, start: datetime, submit_s: Floats, service_s: Floats, most: NDArray[np.int64], figures: Mapping[str, Any]
) -> pl.DataFrame:
    """Canonical table of elastic jobs, ids by submission.

    Parameters
    ----------
    pool, start : of all; the instant from which `submit_s` counts
    submit_s : (n_jobs,) ascending, so that rows stay in place
    service_s : (n_jobs,) seconds on one GPU
    most : (n_jobs,) GPUs
    figures : further columns by name, each (n_jobs,)
    """
    least = pl.Series("min_gpus", np.full(len(most), LEAST_GPUS), dtype=pl.Int64)
    columns = [least, *(pl.Series(name, values) for name, values in figures.items())]
    return plain_frame(pool, start, submit_s, service_s, most).with_columns(columns)


def drawn_from(path: str, count: int, rng: np.random.Generator) -> Floats:
    """(count,) numbers drawn from a distribution function on file, evenly between its points, as PCS's runs draw them.

    The file is a CSV of a value and the share of numbers up to it, ascending, under one line of names. Raises
    TraceError for another.
    """
    frame, place = read_csv(read_file(path))
    if frame.width != len(CDF) or not frame.height:
        raise TraceError(f"{path}: two columns are expected, a value and the share up to it; correct the file")
    values, shares = (numbers_of(frame[name], place).to_numpy() for name in frame.columns)
    # NaN is in no order either.
    if not ((np.diff(values) >= 0).all() and (np.diff(shares) >= 0).all() and shares[-1] == 1.0 and values[0] > 0.0):
        raise TraceError(f"{path}: values, more than 0, and shares, up to 1, must ascend; correct the file")
    return np.asarray(np.interp(rng.random(count), shares, values))
