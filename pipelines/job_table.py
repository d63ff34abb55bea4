"""The result of a simulation as a table, one row a job."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload
from jobcast.traces.files import replacing
from jobcast.traces.parquet import write_parquet

MICROSECOND_DIGITS = 6
TIMES = ("submit_time", "start_time", "end_time", "trace_submit_time")
PREDICTED = "predicted_end_time"
DURATION_BIN = "duration_bin"
"""Column of the duration bin that a policy was told of a job, such as 5-60min."""


def check_job_table(path: Path) -> None:
    """ConfigError unless the ending names a format."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ConfigError(f"--out {path}: end the name in .csv or .parquet")


def job_table(
    log: RunLog,
    workload: Workload,
    nodes: Mapping[int, Sequence[int]] | None = None,
    bins: Sequence[str | None] | None = None,
) -> pl.DataFrame:
    """One row a job in the trace's order; times in seconds from the epoch, empty where a job never ran.

    Of a closed-loop run `submit_time` is when a job arrived in it, and `trace_submit_time` when in the trace.

    Where duration bins were forecast (`bins`: labels, a job each), a column holds them. Where jobs sat on nodes
    (`nodes`: by seq), a column holds those of each job's last start: `3`, `0+3`.
    """
    table = pl.DataFrame(
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
    if bins is not None:
        table = table.with_columns(pl.Series(DURATION_BIN, bins, dtype=pl.String))
    if log.trace_submit_s is not None:
        table = table.with_columns(trace_submit_time=log.trace_submit_s)
    if nodes is None:
        return table
    named = ["+".join(map(str, nodes[job.seq])) if job.seq in nodes else None for job in workload.jobs]
    return table.with_columns(pl.Series("nodes", named, dtype=pl.String))


def write_job_table(
    log: RunLog,
    workload: Workload,
    path: Path,
    nodes: Mapping[int, Sequence[int]] | None = None,
    bins: Sequence[str | None] | None = None,
) -> None:
    """Write CSV (times in seconds from the epoch, to the microsecond) or Parquet (UTC timestamps)."""
    write_table(job_table(log, workload, nodes, bins), path)


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table whose times are seconds from the epoch: CSV to the microsecond, Parquet with UTC timestamps."""
    check_job_table(path)
    times = [name for name in (*TIMES, PREDICTED) if name in table.columns]
    with replacing(path) as draft:
        if path.suffix.lower() == ".csv":
            table.write_csv(draft, float_precision=MICROSECOND_DIGITS, float_scientific=False)
        else:
            micro = [(pl.col(name) * 1e6).round().cast(pl.Int64) for name in times]
            stamps = [column.cast(pl.Datetime("us", "UTC")) for column in micro]
            write_parquet(table.with_columns(stamps), draft)
