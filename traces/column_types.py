"""Columns brought to their canonical types: from numbers, timestamps and text.

Text in its leanest type where all of it fits: wall-clock times and numbers take an eighth of the room.

Times as people write them, brought to UTC: ISO-8601 with or without an offset, or seconds from the epoch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError
from jobcast.domain.times import FIRST_YEAR, LAST_YEAR, MOST_OFFSET_MIN, may_be_a_date
from jobcast.traces.check import REMEDY, Place, require_columns
from jobcast.traces.columns import COLUMNS, UTC_TIME, Kind

MICROSECONDS = 1_000_000
ISO_PATTERN = (
    r"^(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<clock>\d{2}:\d{2})(?:(?P<second>:\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?)?"
    r" ?(?P<offset>[Zz]|UTC|[+-]\d{2}(?::?\d{2})?)?$"
)
BASIC = (
    (r"^(\d{4})(\d{2})(\d{2})($|T)", "$1-$2-$3$4"),
    (r"^(\d{4}-\d{2}-\d{2}T\d{2})(\d{2})(\d{2})", "$1:$2:$3"),
    (r"^(\d{4}-\d{2}-\d{2}T\d{2})(\d{2})($|[^\d:])", "$1:$2$3"),
)
"""ISO-8601 without dashes and colons (20171102T093000Z), piece by piece with them."""
SERIAL_FROM, SERIAL_UNTIL = 36526.0, 54788.0
"""Spreadsheets count days from 1900: the years 2000 to 2049."""
FIRST_S, LAST_S = -2208988800.0, 7258118399.999999
"""The first and the last instant of those years, UTC, seconds from the epoch."""
YEARS = f"must lie in the years {FIRST_YEAR} to {LAST_YEAR}"
MILLISECONDS = "seconds from the epoch are meant, divide milliseconds by 1,000"
Read = tuple[pl.Series, tuple[str, ...]]
"""A column and the notes on what was decided while reading it."""
HOW = "write ISO-8601 (2017-10-02T09:30:00Z) or seconds from the epoch"
AMBIGUOUS = "may be a date or seconds, in every row"
HOW_PLAIN = "write dates with dashes (2017-10-02), seconds with a decimal point (2017.0)"


@dataclass(frozen=True, slots=True)
class Clock:
    """How to read times that carry no offset.

    Attributes
    ----------
    timezone : IANA name of the zone that they are local to; None reads them as UTC
    strict : whether a missing offset is an error when no zone is given
    """

    timezone: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.timezone is not None:
            zone_named(self.timezone)


def read_times(values: pl.Series, place: Place, clock: Clock) -> Read:
    """Bring a column to UTC timestamps of microseconds.

    Parameters
    ----------
    values : timestamps (naive or of any zone), text, or numbers of seconds from the epoch; nulls stay nulls
    place : where the column stands, for errors
    clock : how to read times without an offset

    Returns
    -------
    The column as Datetime("us", "UTC"), and notes on what was decided.

    Raises
    ------
    TraceError
        A value is no time or lies outside of the years 1900 to 2199, the column mixes times with and without an
        offset, or one lacks it under `strict`.
    """
    utc, notes = _read(values, place, clock)
    # checked again in UTC: a zone may move a time over the edge
    seconds = utc.dt.epoch("us") / MICROSECONDS
    place.refuse((seconds < FIRST_S) | (seconds > LAST_S), values, YEARS, HOW)
    return utc, notes


def _read(values: pl.Series, place: Place, clock: Clock) -> Read:
    # an empty column of CSV or Parquet, whatever it was to hold
    if values.dtype == pl.Null:
        return values.cast(UTC_TIME), ()
    # before any arithmetic, which overflows in the far years
    if values.dtype.is_temporal():
        _refuse_other_years(values, place)
    if isinstance(values.dtype, pl.Datetime):
        return _from_timestamps(values, place, clock)
    if values.dtype == pl.Date:
        return _localised(values.cast(pl.Datetime("us")), values, place, clock)
    if values.dtype == pl.String:
        return _from_text(values, place, clock)
    if values.dtype.is_numeric():
        return _from_seconds(values.cast(pl.Float64), values, place), _unused(values.name, clock)
    place.refuse_type(values.name, "times", f"{values.dtype}")


def read_instant(text: str, place: Place) -> float:
    """One time as seconds from the epoch; without an offset it is UTC.

    >>> read_instant("1970-01-02", Place("example"))
    86400.0
    """
    times, _ = read_times(pl.Series("time", [text]), place, Clock())
    return float(times.dt.timestamp("us").item()) / MICROSECONDS


def _refuse_other_years(values: pl.Series, place: Place) -> None:
    """Refuse timestamps that no calendar can hold, before a library tries to make dates of them."""
    units = {pl.Date: 1 / 86400.0, pl.Datetime("ms"): 1e3, pl.Datetime("us"): 1e6, pl.Datetime("ns"): 1e9}
    zoneless = pl.Datetime(values.dtype.time_unit) if isinstance(values.dtype, pl.Datetime) else values.dtype
    if zoneless in units:
        seconds = values.to_physical().cast(pl.Float64) / units[zoneless]
        day_s = 86400.0  # an offset may move a time out of the years or into them
        place.refuse((seconds < FIRST_S - day_s) | (seconds > LAST_S + day_s), values, YEARS, HOW)


def _from_timestamps(values: pl.Series, place: Place, clock: Clock) -> Read:
    zone = values.dtype.time_zone  # type: ignore[attr-defined]
    whole = values.dt.cast_time_unit("us")
    if zone is None:
        return _localised(whole, values, place, clock)
    # UTC is what is expected, so nothing is worth a note
    notes = () if zone == "UTC" else (f"{values.name}: converted from {zone} to UTC",)
    return whole.dt.convert_time_zone("UTC"), (*notes, *_unused(values.name, clock))


def _from_seconds(seconds: pl.Series, values: pl.Series, place: Place) -> pl.Series:
    place.refuse(~seconds.is_finite(), values, "must be seconds from the epoch", HOW)
    place.refuse((seconds < FIRST_S) | (seconds > LAST_S), values, YEARS, MILLISECONDS)
    return (seconds * MICROSECONDS).round().cast(pl.Int64).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")


def _from_text(values: pl.Series, place: Place, clock: Clock) -> Read:
    """Text: all numbers, or else all ISO-8601."""
    text = values.str.strip_chars()
    # blanks alone are no value
    text = text.set(text == "", None)
    # a column is numbers as a whole or not at all: 2017 among dates is a year
    seconds = text.cast(pl.Float64, strict=False)
    if seconds.null_count() == text.null_count():
        said = _perhaps_dates(text, seconds, values, place, clock)
        return _from_seconds(seconds, values, place), (*said, *_unused(values.name, clock))
    # three replacements over a column are dear, and few files need them
    if text.str.contains(BASIC[0][0]).any():
        for basic, extended in BASIC:
            text = text.str.replace(basic, extended)
    parts = text.str.extract_groups(ISO_PATTERN).struct.unnest()
    wall = _wall_clock(parts)
    place.refuse(wall.is_null() & text.is_not_null(), values, "must be a time", HOW)
    offset = parts["offset"]
    # no offset anywhere: one clock for all
    if offset.null_count() == len(offset):
        return _localised(wall, values, place, clock)
    bare = offset.is_null() & text.is_not_null()
    place.refuse(bare, values, "has no offset while other rows have one", "give every row an offset, or none")
    utc = wall - _offset(offset, values, place)
    return utc.dt.replace_time_zone("UTC").alias(values.name), _unused(values.name, clock)


def _wall_clock(parts: pl.DataFrame) -> pl.Series:
    """Naive timestamps from the parts of ISO-8601 texts; null where a text is no time."""
    # padded on the right: .5 is 500,000 microseconds
    fraction = pl.col("fraction").fill_null("0").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64)
    second = pl.concat_str(
        pl.col("day"), pl.lit(" "), pl.col("clock").fill_null("00:00"), pl.col("second").fill_null(":00")
    )
    whole = second.str.strptime(pl.Datetime("us"), "%Y-%m-%d %H:%M:%S", strict=False)
    return parts.select((whole + pl.duration(microseconds=fraction)).alias("wall")).to_series()


def _perhaps_dates(
    text: pl.Series, seconds: pl.Series, values: pl.Series, place: Place, clock: Clock
) -> tuple[str, ...]:
    """Refuse a column all of whose numbers may be years or dates; a note on one that may hold a spreadsheet's days."""
    known = seconds.is_not_null()
    if not known.any():
        return ()
    # 20171002 as seconds would lie in 1970, and nobody would notice
    if all(map(may_be_a_date, text.drop_nulls())):
        place.refuse(known, values, AMBIGUOUS, HOW_PLAIN)
    # only a note: real seconds of 1970 are as likely in test data
    fits = seconds.is_between(SERIAL_FROM, SERIAL_UNTIL)
    if not (fits | ~known).all():
        return ()
    if clock.strict:
        place.refuse(known, values, "may be a day as spreadsheets count, or seconds", HOW)
    return (f"{values.name}: read as seconds from the epoch, though all may be days as spreadsheets count: {HOW}",)


def _offset(offset: pl.Series, values: pl.Series, place: Place) -> pl.Series:
    """Distance of a wall clock from UTC, from texts such as Z, +08:00, -0700."""
    # +08, +0800 and +08:00 become the same four digits
    digits = offset.str.replace_all(r"[^0-9]", "").str.pad_end(4, "0")
    beyond = digits.str.slice(2, 2).cast(pl.Int64)
    minutes = digits.str.slice(0, 2).cast(pl.Int64) * 60 + beyond
    place.refuse((minutes > MOST_OFFSET_MIN) | (beyond > 59), values, "has an offset beyond 14 hours", HOW)
    signed = pl.select(pl.when(offset.str.starts_with("-")).then(-minutes).otherwise(minutes)).to_series()
    return (signed * 60 * MICROSECONDS).cast(pl.Duration("us"))


def _unused(name: str, clock: Clock) -> tuple[str, ...]:
    """Note on a zone that was given for times that are absolute already."""
    return (f"{name}: times are absolute, {clock.timezone} was not applied",) if clock.timezone else ()


def _localised(wall: pl.Series, values: pl.Series, place: Place, clock: Clock) -> Read:
    """Naive timestamps read in the clock's zone."""
    name = values.name
    if clock.timezone is None:
        if clock.strict:
            place.refuse(values.is_not_null(), values, "has no offset", "name the zone with --timezone ZONE")
        return wall.dt.replace_time_zone("UTC").alias(name), (f"{name}: times without an offset read as UTC",)
    # twice, since polars cannot tell which times were ambiguous
    first = wall.dt.replace_time_zone(clock.timezone, ambiguous="earliest", non_existent="null")
    last = wall.dt.replace_time_zone(clock.timezone, ambiguous="latest", non_existent="null")
    notes = [f"{name}: times without an offset read as {clock.timezone}"]
    if twice := int((first != last).sum()):
        notes.append(f"{name}: {twice} occur twice in {clock.timezone}, read as the earlier instant")
    utc = first.dt.convert_time_zone("UTC")
    # spring's missing hour: polars has no rule for it, zoneinfo has (PEP 495)
    skipped = (utc.is_null() & wall.is_not_null()).arg_true()
    if len(skipped):
        zone = zone_named(clock.timezone)
        moved = [_shifted(wall[int(index)], zone) for index in skipped]
        utc = utc.scatter(skipped, pl.Series(moved, dtype=UTC_TIME))
        notes.append(f"{name}: {len(skipped)} do not exist in {clock.timezone}, shifted forward")
    return utc.alias(name), tuple(notes)


def later_instants(values: pl.Series, earlier: pl.Series, clock: Clock) -> pl.Series:
    """The later instant of each time that occurs twice; null elsewhere, and where times hang on no zone's clock.

    Parameters
    ----------
    values : times without an offset
    earlier : the same as `read_times` reads them
    clock : by which it did
    """
    if clock.timezone is None or values.dtype != pl.Datetime("us"):
        return pl.Series(earlier.name, [None], dtype=earlier.dtype).new_from_index(0, len(earlier))
    last = values.dt.replace_time_zone(clock.timezone, ambiguous="latest", non_existent="null")
    last = last.dt.convert_time_zone("UTC")
    return last.set((last == earlier).fill_null(True), None).alias(earlier.name)


def _shifted(wall: datetime, zone: ZoneInfo) -> datetime:
    """Instant of a wall-clock time that the zone skips: as if the clock had not been put forward yet."""
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def zone_named(name: str) -> ZoneInfo:
    """A zone by its IANA name. Raises ConfigError where there is none."""
    try:
        return ZoneInfo(name)
    # zoneinfo raises these for unknown, malformed and unreadable names
    except (KeyError, ValueError, OSError):
        raise ConfigError(f"timezone {name!r} is not known; give an IANA name such as Europe/Berlin") from None


def wall_clock_s(instants_s: Floats, zone: tzinfo) -> Floats:
    """What a zone's clock shows at instants (seconds from the epoch), as seconds from its own 1970-01-01T00:00.

    >>> wall_clock_s(np.array([0.0, 0.5]), ZoneInfo("Europe/Berlin"))
    array([3600. , 3600.5])
    """
    shown = pl.Series(np.round(instants_s * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    local = shown.dt.convert_time_zone(str(zone)).dt.replace_time_zone(None)
    return local.dt.epoch("us").to_numpy() / 1e6


def instant_s(wall_s: float, zone: tzinfo) -> float:
    """When a zone's clock shows a time, given as `wall_clock_s` tells it: the earlier instant where there are two.

    >>> instant_s(3600.0, ZoneInfo("Europe/Berlin"))
    0.0
    """
    return datetime.fromtimestamp(wall_s, UTC).replace(tzinfo=zone).timestamp()


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
    # first without looking for words: nearly all logs have none
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
    numbers = values.cast(dtype, strict=False)
    # "nan" reads as a number, but stands for a missing one.
    if numbers.null_count() == values.null_count() and not numbers.is_nan().any():
        return numbers
    given = _without_missing(values)
    numbers = given.cast(dtype, strict=False)
    return numbers if numbers.null_count() == given.null_count() else given


def lean_counts(values: pl.Series) -> pl.Series:
    """Text as whole numbers where all of it is, as numbers where it is that, else the text."""
    counts = lean_numbers(values, pl.Int64)
    return counts if counts.dtype == pl.Int64 else lean_numbers(values)


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
    # frames made in Python have typed times, for which the clock does not matter
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
    # an empty id is an error later, an empty user is nobody
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
    # float64 would lose digits above 2^53
    if values.dtype.is_integer():
        place.refuse(values > LARGEST_COUNT, values, "is too large", REMEDY)
        return values.cast(pl.Int64), ()
    numbers = numbers_of(values, place)
    bad = ~numbers.is_finite() | (numbers.abs() > LARGEST_COUNT)
    place.refuse(bad, values, "must be a finite whole number", REMEDY)
    # a fraction of a GPU still takes a GPU away from others, and a fraction below 0 is no 0
    whole = numbers.sign() * numbers.abs().ceil()
    fractions = int((whole != numbers).sum())
    if fractions and values.name not in ROUNDED_UP:
        place.refuse(whole != numbers, values, "must be a whole number", REMEDY)
    notes = (f"{values.name}: fractions rounded up in {fractions} of {len(values)} rows",) if fractions else ()
    return whole.cast(pl.Int64), notes


ROUNDED_UP = frozenset({"gpus", "min_gpus"})


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


_TYPED: dict[Kind, Callable[[pl.Series, Place, Clock], Read]] = {
    Kind.TEXT: _text,
    Kind.NUMBER: _number,
    Kind.COUNT: _count,
    Kind.TIME: read_times,
    Kind.FLAG: _flag,
}
