"""Tables beside a trace, as CSV or Parquet: read as a whole, written under a temporary name first."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.check import REMEDY, Place, require_columns
from jobcast.traces.csv_table import read_csv
from jobcast.traces.files import FileBytes, PathLike, read_file, replacing
from jobcast.traces.parquet import is_parquet, read_parquet, write_parquet
from jobcast.traces.table import Floats
from jobcast.traces.typed import LARGEST_COUNT, numbers_of

SUFFIXES = (".csv", ".parquet")


def read_plain(path: PathLike, needed: Sequence[str]) -> tuple[pl.DataFrame, Place, FileBytes]:
    """Read a table that has rows and the columns that are needed; values of CSV are text.

    Raises
    ------
    TraceError
        The file cannot be read, a column is missing, or there are no rows.
    """
    file = read_file(path)
    frame, place = (read_parquet(file), Place(file.path)) if is_parquet(file.data) else read_csv(file)
    require_columns(frame.columns, place, needed)
    if frame.is_empty():
        raise TraceError(f"{place.path}: only a header, no rows; give at least one")
    return frame, place, file


def write_plain(frame: pl.DataFrame, path: PathLike) -> None:
    """Write a table as CSV or Parquet, by the suffix. Raises ConfigError if it cannot be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(f"{os.fspath(path)}: the suffix must be {' or '.join(SUFFIXES)}; rename the file")
    with replacing(path) as temporary:
        if suffix == ".csv":
            frame.write_csv(temporary)
        else:
            write_parquet(frame, temporary)


def names_in(values: pl.Series, place: Place) -> pl.Series:
    """A column of job ids as text. Raises TraceError where one is missing."""
    text = values.cast(pl.String)
    place.refuse((text.str.strip_chars() == "").fill_null(True), text, "must name a job", "fill it in or drop the row")
    return text


def floats_in(
    values: pl.Series, place: Place, low: float = 0.0, high: float = float("inf"), above: bool = False
) -> Floats:
    """A column of finite numbers in [low, high], or (low, high] where they must be above. Raises TraceError."""
    numbers = numbers_of(values, place)
    fits = numbers.is_finite() & ((numbers > low) if above else (numbers >= low)) & (numbers <= high)
    what = f"must be a number {'>' if above else '>='} {low:g}" + (f" and <= {high:g}" if np.isfinite(high) else "")
    place.refuse(~fits.fill_null(False), values, what, REMEDY)
    return numbers.to_numpy()


def counts_in(values: pl.Series, place: Place, least: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A column of whole numbers from `least` on. Raises TraceError."""
    numbers = numbers_of(values, place)
    whole = numbers.is_finite() & (numbers >= least) & (numbers <= LARGEST_COUNT) & (numbers == numbers.floor())
    place.refuse(~whole.fill_null(False), values, f"must be a whole number >= {least}", REMEDY)
    return numbers.cast(pl.Int64).to_numpy()
