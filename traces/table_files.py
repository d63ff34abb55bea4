"""Tables as files, CSV or Parquet: read as a whole, written under a temporary name first.

Parquet files of our own are sealed: a byte that changed on its way is found before anything of the file is believed.

The seal lies between the columns and the footer, where nothing of the file points: any Parquet reader skips it, and any
writer that saves the table again leaves it out. So a table that somebody edited is read like any other.

A trace is written with the same names in both forms.
"""

import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.check import REMEDY, Place, require_columns
from jobcast.traces.column_types import LARGEST_COUNT, numbers_of
from jobcast.traces.columns import UTC_TIME
from jobcast.traces.csv_table import read_csv
from jobcast.traces.files import FileBytes, PathLike, hushed, read_file, reason, replacing
from jobcast.traces.table import Trace

PARQUET_MAGIC = b"PAR1"
SEAL_BEGINS, SEAL_ENDS = b"\0jobcast sha256\0", b"\0jobcast sealed\0"
"""What stands around the digest, in hex, of all other bytes of the file."""
SEAL_BYTES = len(SEAL_BEGINS) + 64 + len(SEAL_ENDS)
ENOUGH_ALIKE = 8
"""Bytes around a digest that tell a seal, whatever became of the others."""
TAIL_BYTES = 8
"""A Parquet file ends in the length of its footer, 4 bytes little-endian, and the magic."""
BLOCK_BYTES = 1 << 20
AGAIN = "write or copy it again"
# else a file whose times are shown at +05:30, as pandas writes them, cannot be opened: polars knows zones by name
os.environ.setdefault("POLARS_IGNORE_TIMEZONE_PARSE_ERROR", "1")


def write_parquet(frame: pl.DataFrame, path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write a table, sealed; the same table gives the same bytes."""
    # neither times nor versions are written: equal tables give equal files
    frame.write_parquet(path, compression="zstd", statistics=True, metadata=dict(metadata) if metadata else None)
    with open(path, "r+b") as file:
        _seal(file)


def read_parquet(source: PathLike | FileBytes, remedy: str = AGAIN) -> pl.DataFrame:
    """Read a table, ours or anyone's; `remedy` is what the user is told to do about one that cannot be read.

    Raises
    ------
    TraceError
        The file cannot be read, is no Parquet, or is not what jobcast wrote: a byte of it has changed.
    """
    file = _checked(source, remedy)
    try:
        with hushed():  # polars tells of a panic by itself, beside the error that it raises
            frame = pl.read_parquet(io.BytesIO(file.data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise TraceError(f"{file.path}: not a Parquet file that can be read ({reason(error)}); {remedy}") from None
    bare = [name for name, dtype in frame.schema.items() if str(getattr(dtype, "time_zone", None))[0] in "+-"]
    return frame.with_columns(pl.col(bare).dt.convert_time_zone("UTC")) if bare else frame


def parquet_metadata(source: PathLike | FileBytes, remedy: str = AGAIN) -> dict[str, str]:
    """Texts that lie in the file beside its table, by key. Raises TraceError as `read_parquet`."""
    file = _checked(source, remedy)
    try:
        with hushed():
            return pl.read_parquet_metadata(io.BytesIO(file.data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise TraceError(f"{file.path}: not a Parquet file that can be read ({reason(error)}); {remedy}") from None


def is_parquet(head: bytes) -> bool:
    """Whether a file that begins so is Parquet."""
    return head.startswith(PARQUET_MAGIC)


def parquet_columns(path: PathLike) -> list[str]:
    """Names of the columns of a Parquet file; none of one that cannot be read."""
    try:
        with hushed():
            return list(pl.read_parquet_schema(Path(path)))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return []


def _seal(file: IO[bytes]) -> None:
    """Put the seal of an open Parquet file before its footer."""
    file.seek(-TAIL_BYTES, io.SEEK_END)
    # the format's own trailer: length of the footer, magic
    length = int.from_bytes(file.read(4), "little")
    at = file.seek(-TAIL_BYTES - length, io.SEEK_END)
    footer = file.read()
    file.seek(0)
    digest = hashlib.sha256()
    # block by block: tables may be larger than memory is free
    while block := file.read(min(BLOCK_BYTES, at - file.tell())):
        digest.update(block)
    digest.update(footer)
    file.write(SEAL_BEGINS + digest.hexdigest().encode() + SEAL_ENDS + footer)


def _checked(source: PathLike | FileBytes, remedy: str) -> FileBytes:
    file = source if isinstance(source, FileBytes) else read_file(source)
    if not _as_sealed(file.data):
        raise TraceError(f"{file.path}: is not what jobcast wrote, bytes of it have changed; restore it, or {remedy}")
    return file


def _as_sealed(data: bytes) -> bool:
    """Whether a file has no seal, or one that fits; damage to the seal itself does not pass for none."""
    # where the seal must stand, given what the trailer says
    at = len(data) - TAIL_BYTES - int.from_bytes(data[-TAIL_BYTES:-4], "little") - SEAL_BYTES
    seal = data[at : at + SEAL_BYTES] if at >= 0 else b""
    begins, ends = seal[: len(SEAL_BEGINS)], seal[-len(SEAL_ENDS) :]
    # a seal with a few wrong bytes is damage, not a file without a seal
    alike = sum(map(int.__eq__, begins + ends, SEAL_BEGINS + SEAL_ENDS))
    # looked for anywhere, too: a damaged trailer points elsewhere
    if alike < ENOUGH_ALIKE and SEAL_BEGINS not in data and SEAL_ENDS not in data:
        return True
    # slices of bytes would copy the file
    view = memoryview(data)
    digest = hashlib.sha256(view[: max(at, 0)])
    digest.update(view[at + SEAL_BYTES :])
    return seal == SEAL_BEGINS + digest.hexdigest().encode() + SEAL_ENDS


SUFFIXES = (".csv", ".parquet")
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})


def table_of(file: FileBytes) -> tuple[pl.DataFrame, Place]:
    """A table as it stands in its file; values of CSV are text. Raises TraceError where it cannot be read."""
    # by the suffix too: a damaged Parquet file should be told as one, not as a bad CSV
    if is_parquet(file.data) or Path(file.path).suffix.lower() in PARQUET_SUFFIXES:
        return read_parquet(file), Place(file.path)
    return read_csv(file)


def read_plain(path: PathLike, needed: Sequence[str]) -> tuple[pl.DataFrame, Place, FileBytes]:
    """Read a table that has rows and the columns that are needed; values of CSV are text.

    Raises
    ------
    TraceError
        The file cannot be read, a column is missing, or there are no rows.
    """
    file = read_file(path)
    frame, place = table_of(file)
    require_columns(frame.columns, place, needed)
    if frame.is_empty():
        raise TraceError(f"{place.path}: only a header, no rows; give at least one")
    return frame, place, file


def write_plain(frame: pl.DataFrame, path: PathLike) -> None:
    """Write a table as CSV or Parquet, by the suffix. Raises ConfigError where that cannot be."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(f"{os.fspath(path)}: the suffix must be {' or '.join(SUFFIXES)}; rename the file")
    with replacing(path) as temporary:
        if suffix == ".csv":
            try:
                frame.write_csv(temporary)
            except pl.exceptions.ComputeError as error:  # a column that we do not know holds lists, bytes, ...
                raise ConfigError(f"{os.fspath(path)}: {reason(error)}; name a file in .parquet") from None
        else:
            write_parquet(frame, temporary)


def names_in(values: pl.Series, place: Place, whose: str) -> pl.Series:
    """A column of names as text, such as of "a job". Raises TraceError where one is missing."""
    # other tools save ids of digits as numbers
    text = values.cast(pl.String)
    nameless = (text.str.strip_chars() == "").fill_null(True)
    place.refuse(nameless, text, f"must name {whose}", "fill it in or drop the row")
    return text


def floats_in(
    values: pl.Series,
    place: Place,
    low: float = 0.0,
    high: float = float("inf"),
    above: bool = False,
    missing: bool = False,
) -> Floats:
    """A column of finite numbers in [low, high], or (low, high] where they must be above; low -inf: of any.

    Nothing passes, as NaN, where it may be missing. Raises TraceError.
    """
    numbers = numbers_of(values, place)
    # NaN fails every comparison, but null does not: it is filled below
    fits = numbers.is_finite() & ((numbers > low) if above else (numbers >= low)) & (numbers <= high)
    what = "must be a finite number" if low == -np.inf else f"must be a number {'>' if above else '>='} {low:g}"
    what += f" and <= {high:g}" if np.isfinite(high) else ""
    place.refuse(~fits.fill_null(missing), values, what, REMEDY)
    return numbers.to_numpy()


def counts_in(
    values: pl.Series, place: Place, least: int = 1, most: float = LARGEST_COUNT, missing: bool = False
) -> pl.Series:
    """A column of whole numbers in [least, most]; nothing passes where it may be missing. Raises TraceError."""
    numbers = numbers_of(values, place)
    whole = numbers.is_finite() & (numbers >= least) & (numbers <= most) & (numbers == numbers.floor())
    # nobody means the largest number that a float holds exactly
    bounds = f">= {least}" if most == LARGEST_COUNT else f"from {least} to {most}"
    what = f"must be a whole number {bounds}{', or empty' if missing else ''}"
    place.refuse(~whole.fill_null(missing), values, what, REMEDY)
    return numbers.cast(pl.Int64)


ISO_MICROSECONDS = "%Y-%m-%dT%H:%M:%S%.6fZ"


def write_trace(trace: Trace, path: PathLike) -> None:
    """Write a trace as CSV or Parquet, by the suffix of `path`; the same trace gives the same bytes.

    CSV holds times as ISO-8601 in UTC to the microsecond. The file is written under a temporary name first.

    Raises
    ------
    ConfigError
        The suffix is neither .csv nor .parquet, or the file cannot be written.
    """
    jobs = trace.jobs
    # Parquet has a type for times, CSV needs them spelt out
    if Path(path).suffix.lower() == ".csv":
        times = [name for name, dtype in jobs.schema.items() if dtype == UTC_TIME]
        jobs = jobs.with_columns(pl.col(times).dt.strftime(ISO_MICROSECONDS))
    write_plain(jobs, path)
