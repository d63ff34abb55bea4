"""The result of a simulation as a table, one row a job."""

from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload
from jobcast.traces.files import replacing

MICROSECOND_DIGITS = 6
TIMES = ("submit_time", "start_time", "end_time")


def check_job_table(path: Path) -> None:
    """ConfigError unless the ending names a format."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ConfigError(f"--out {path}: end the name in .csv or .parquet")


def job_table(log: RunLog, workload: Workload) -> pl.DataFrame:
    """One row a job in submission order; times in seconds from the epoch, empty where a job never ran."""
    return pl.DataFrame(
        {
            "job_id": [job.job_id for job in workload.jobs],
            "pool": [job.pool for job in workload.jobs],
            "submit_time": log.submit_s,
            "start_time": log.start_s,
            "end_time": log.end_s,
            "gpus": log.gpus.astype(np.int64),
            "duration": [outcome.duration_s for outcome in workload.outcomes],
            "preemptions": log.preemptions.astype(np.int64),
            "dedicated": log.dedicated.astype(bool),
        }
    ).with_columns(pl.col("start_time", "end_time").fill_nan(None))


def write_job_table(log: RunLog, workload: Workload, path: Path) -> None:
    """Write CSV (times in seconds from the epoch, to the microsecond) or Parquet (UTC timestamps)."""
    check_job_table(path)
    table = job_table(log, workload)
    with replacing(path) as draft:
        if path.suffix.lower() == ".csv":
            table.with_columns(pl.col(*TIMES).round(MICROSECOND_DIGITS)).write_csv(draft, float_scientific=False)
        else:
            micro = [(pl.col(name) * 1e6).round().cast(pl.Int64) for name in TIMES]
            stamps = [column.cast(pl.Datetime("us", "UTC")) for column in micro]
            table.with_columns(stamps).write_parquet(draft)
