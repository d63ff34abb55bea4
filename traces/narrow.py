"""Text in its leanest type where all of it fits: wall-clock times and numbers take an eighth of the room."""

import polars as pl

WALL_CLOCK = "%Y-%m-%d %H:%M:%S"
MISSING = ("None", "none", "NONE", "nan", "NaN", "NaT", "null", "NULL", "N/A", "NA", "-")
"""How programs write that a time or a number is not there."""


def lean_times(values: pl.Series) -> pl.Series:
    """Text as wall-clock timestamps where all of it is written so, else the text; MISSING is null.

    >>> lean_times(pl.Series(["2020-04-01 00:00:10", "None"])).to_list()
    [datetime.datetime(2020, 4, 1, 0, 0, 10), None]
    >>> lean_times(pl.Series(["2020-04-01", "-"])).to_list()
    ['2020-04-01', None]
    """
    times = values.str.strptime(pl.Datetime("us"), WALL_CLOCK, strict=False)
    if times.null_count() == values.null_count():
        return times
    given = _without_missing(values)
    return times if times.null_count() == given.null_count() else given


def lean_numbers(values: pl.Series, dtype: type[pl.Float64] | type[pl.Int64] = pl.Float64) -> pl.Series:
    """Text as numbers where all of it is, else the text; MISSING is null.

    >>> lean_numbers(pl.Series(["3600", "nan"])).to_list()
    [3600.0, None]
    """
    numbers = _cast(values, dtype)
    if numbers.null_count() == values.null_count() and not _holds_nan(numbers):
        return numbers
    given = _without_missing(values)
    numbers = _cast(given, dtype)
    return numbers if numbers.null_count() == given.null_count() else given


def lean_counts(values: pl.Series) -> pl.Series:
    """Text as whole numbers where all of it is, as numbers where it is that, else the text."""
    counts = lean_numbers(values, pl.Int64)
    return counts if counts.dtype == pl.Int64 else lean_numbers(values)


def _cast(values: pl.Series, dtype: type[pl.Float64] | type[pl.Int64]) -> pl.Series:
    return values.cast(dtype, strict=False)


def _holds_nan(numbers: pl.Series) -> bool:
    return numbers.dtype == pl.Float64 and bool(numbers.is_nan().any())


def _without_missing(values: pl.Series) -> pl.Series:
    stripped = values.str.strip_chars()
    missing = stripped.is_in(MISSING) | (stripped == "")
    return stripped.set(missing, None)
