"""Writing traces in the project's own form: Parquet, or CSV with the same names."""

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.traces.columns import UTC_TIME
from jobcast.traces.files import PathLike, replacing
from jobcast.traces.parquet import write_parquet
from jobcast.traces.table import Trace

ISO_MICROSECONDS = "%Y-%m-%dT%H:%M:%S%.6fZ"


def write_trace(trace: Trace, path: PathLike) -> None:
    """Write a trace as CSV or Parquet, by the suffix of `path`; the same trace gives the same bytes.

    CSV holds times as ISO-8601 in UTC to the microsecond. The file is written under a temporary name first.

    Raises
    ------
    ConfigError
        The suffix is neither .csv nor .parquet, or the file cannot be written.
    """
    write = _WRITERS.get(Path(path).suffix.lower())
    if write is None:
        raise ConfigError(f"{os.fspath(path)}: the suffix must be {' or '.join(_WRITERS)}; rename the file")
    with replacing(path) as temporary:
        write(trace.jobs, temporary)


def _write_csv(jobs: pl.DataFrame, path: Path) -> None:
    times = [name for name, dtype in jobs.schema.items() if dtype == UTC_TIME]
    jobs.with_columns(pl.col(times).dt.strftime(ISO_MICROSECONDS)).write_csv(path)


_WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {".csv": _write_csv, ".parquet": write_parquet}
