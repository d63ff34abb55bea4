"""The project's own form of a trace: Parquet, or CSV with the same names."""

import io
import os
from pathlib import Path

import polars as pl

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.check import Place
from jobcast.traces.columns import COLUMNS, REQUIRED, UTC_TIME, Kind
from jobcast.traces.csv_table import header_of, read_csv
from jobcast.traces.files import FileBytes, PathLike, read_file, reason, replacing
from jobcast.traces.table import Source, Trace
from jobcast.traces.times import Clock
from jobcast.traces.typed import typed_columns

PARQUET_MAGIC = b"PAR1"
ISO_MICROSECONDS = "%Y-%m-%dT%H:%M:%S%.6fZ"


class CanonicalReader:
    """Reads canonical traces. Each bad row is an error: none is dropped, and nothing is half-read."""

    name = "canonical"
    needs = REQUIRED

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` is Parquet, or CSV with the columns that a trace needs."""
        return head.startswith(PARQUET_MAGIC) or set(REQUIRED) <= set(header_of(head))

    def read(self, path: PathLike, timezone: str | None = None, strict: bool = False) -> Trace:
        """Read a canonical CSV or Parquet file.

        Parameters
        ----------
        path : the file
        timezone : IANA zone of times without an offset; None reads them as UTC, and a note says so
        strict : make a missing offset an error where no zone is given

        Raises
        ------
        TraceError
            The file cannot be read, or a row of it cannot be used; the line names the first such row.
        ConfigError
            The zone is not known.
        """
        clock = Clock(timezone, strict)
        file = read_file(path)
        parquet = file.data.startswith(PARQUET_MAGIC) or Path(path).suffix in PARQUET_SUFFIXES
        frame, place = _read_parquet(file) if parquet else read_csv(file)
        typed = typed_columns(frame, place, clock)
        source = Source(file.path, file.sha256, frame.height)
        return Trace.from_frame(typed.frame, name=file.name, source=source, notes=typed.notes, place=place)


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


def _write_parquet(jobs: pl.DataFrame, path: Path) -> None:
    jobs.write_parquet(path, compression="zstd", statistics=True)


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet}
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})


def _read_parquet(file: FileBytes) -> tuple[pl.DataFrame, Place]:
    place = Place(file.path)
    try:
        frame = pl.read_parquet(io.BytesIO(file.data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise TraceError(
            f"{file.path}: not a Parquet file that can be read ({reason(error)}); write or copy it again"
        ) from None
    for values in frame.get_columns():
        if values.name in COLUMNS:
            _check_type(values, COLUMNS[values.name].kind, place)
    return frame, place


def _check_type(values: pl.Series, kind: Kind, place: Place) -> None:
    """Refuse text where numbers or times belong: Parquet has types, and a wrong one is a mistake upstream."""
    wanted, fits = {
        Kind.TEXT: ("text", values.dtype in (pl.String, pl.Categorical, pl.Enum) or values.dtype.is_integer()),
        Kind.NUMBER: ("numbers", values.dtype.is_numeric()),
        Kind.COUNT: ("whole numbers", values.dtype.is_numeric()),
        Kind.TIME: ("timestamps", isinstance(values.dtype, pl.Datetime)),
        Kind.FLAG: ("true or false", values.dtype == pl.Boolean),
    }[kind]
    if not fits and values.dtype != pl.Null:
        place.refuse_type(values.name, wanted, f"{values.dtype}")
