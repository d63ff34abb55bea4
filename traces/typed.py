"""Columns brought to their canonical types: from numbers, timestamps and text.

Text in its leanest type where all of it fits: wall-clock times and numbers take an eighth of the room.
"""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from jobcast.traces.check import REMEDY, Place, require_columns
from jobcast.traces.columns import COLUMNS, Kind
from jobcast.traces.times import Clock, read_times

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


LARGEST_COUNT = 2.0**53
"""Counts beyond this are not exact in float64."""
FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class Typed:
    """A frame whose canonical columns have their canonical types, and what was decided on the way."""

    frame: pl.DataFrame
    notes: tuple[str, ...]


def typed_columns(frame: pl.DataFrame, place: Place, clock: Clock | None = None) -> Typed:
    """Bring the canonical columns of a frame to their types; other columns are kept as they are.

    Raises
    ------
    TraceError
        A required column is missing, or a column or a value in it is of another kind.
    """
    require_columns(frame.columns, place)
    clock = clock or Clock()
    notes: list[str] = []
    columns = []
    for values in frame.get_columns():
        if values.name in COLUMNS:
            values, said = _TYPED[COLUMNS[values.name].kind](values, place, clock)
            notes += said
        columns.append(values)
    return Typed(pl.DataFrame(columns), tuple(notes))


def _text(values: pl.Series, place: Place, clock: Clock) -> tuple[pl.Series, tuple[str, ...]]:
    if values.dtype.is_float() or values.dtype.is_nested() or values.dtype in (pl.Binary, pl.Object):
        _wrong_type(values, "text", place)
    text = values.cast(pl.String)
    if not COLUMNS[values.name].required:
        text = text.set(text == "", None)
    return text, ()


def numbers_of(values: pl.Series, place: Place) -> pl.Series:
    """A column as numbers, whatever it is called; nulls stay nulls.

    Raises
    ------
    TraceError
        A value is no number; the line names the first.
    """
    if values.dtype == pl.String:
        numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
        place.refuse(numbers.is_null() & values.is_not_null(), values, "must be a number", REMEDY)
        return numbers
    if not (values.dtype.is_numeric() or values.dtype == pl.Null):
        _wrong_type(values, "a number", place)
    return values.cast(pl.Float64)


def _number(values: pl.Series, place: Place, clock: Clock) -> tuple[pl.Series, tuple[str, ...]]:
    return numbers_of(values, place), ()


def _count(values: pl.Series, place: Place, clock: Clock) -> tuple[pl.Series, tuple[str, ...]]:
    """Whole numbers; fractions of a GPU are rounded up and counted."""
    if values.dtype.is_integer():
        place.refuse(values > LARGEST_COUNT, values, "is too large", REMEDY)
        return values.cast(pl.Int64), ()
    numbers, _ = _number(values, place, clock)
    bad = ~numbers.is_finite() | (numbers.abs() > LARGEST_COUNT)
    place.refuse(bad, values, "must be a finite whole number", REMEDY)
    whole = numbers.ceil()
    fractions = int((whole != numbers).sum())
    if fractions and values.name not in ROUNDED_UP:
        place.refuse(whole != numbers, values, "must be a whole number", REMEDY)
    notes = (f"{values.name}: fractions rounded up in {fractions} of {len(values)} rows",) if fractions else ()
    return whole.cast(pl.Int64), notes


ROUNDED_UP = frozenset({"gpus", "min_gpus"})


def _time(values: pl.Series, place: Place, clock: Clock) -> tuple[pl.Series, tuple[str, ...]]:
    return read_times(values, place, clock)


def _flag(values: pl.Series, place: Place, clock: Clock) -> tuple[pl.Series, tuple[str, ...]]:
    if values.dtype == pl.Boolean:
        return values, ()
    if values.dtype.is_nested():
        _wrong_type(values, "true or false", place)
    words = values.cast(pl.String).str.strip_chars().str.to_lowercase()
    flags = words.replace_strict(FLAGS, default=None, return_dtype=pl.Boolean)
    place.refuse(flags.is_null() & values.is_not_null(), values, "must be true or false", REMEDY)
    return flags, ()


def _wrong_type(values: pl.Series, wanted: str, place: Place) -> None:
    known = values.drop_nulls()
    place.refuse_type(values.name, wanted, f"{values.dtype} ({known[0]!r})" if len(known) else f"{values.dtype}")


_TYPED: dict[Kind, Callable[[pl.Series, Place, Clock], tuple[pl.Series, tuple[str, ...]]]] = {
    Kind.TEXT: _text,
    Kind.NUMBER: _number,
    Kind.COUNT: _count,
    Kind.TIME: _time,
    Kind.FLAG: _flag,
}
