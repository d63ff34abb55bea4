"""Times and lengths of time as Slurm writes them."""

import polars as pl

from jobcast.traces.check import Place
from jobcast.traces.times import Clock, Read, read_times

UNKNOWN = ("unknown", "none", "n/a", "invalid", "(null)", "none assigned", "")
"""How Slurm writes that a time, a name or a length is not there."""
WALL_CLOCK = "%Y-%m-%dT%H:%M:%S"
ELAPSED = r"^(?:(?:(?P<d>\d{1,6})-)?(?P<h>\d{1,6}):)?(?P<m>\d{1,6}):(?P<s>\d{1,6}(?:\.\d{1,9})?)$"
DAY_S, HOUR_S, MINUTE_S = 86400.0, 3600.0, 60.0
HOW = "write [days-]hours:minutes:seconds, or use ElapsedRaw"


def known(values: pl.Series) -> pl.Series:
    """Text without the words for what is unknown.

    >>> known(pl.Series(["a", "Unknown", " "])).to_list()
    ['a', None, None]
    """
    bare = values.str.strip_chars()
    return bare.set(bare.str.to_lowercase().is_in(UNKNOWN), None)


def times(values: pl.Series, place: Place, clock: Clock) -> Read:
    """Times of the cluster's wall clock, or seconds from the epoch, brought to UTC; unknown ones are null."""
    wall = values.str.strptime(pl.Datetime("us"), WALL_CLOCK, strict=False)
    given = values if wall.null_count() == values.null_count() else known(values)
    return read_times(wall if wall.null_count() == given.null_count() else given, place, clock)


def elapsed_s(values: pl.Series, place: Place) -> pl.Series:
    """Seconds, from a number of them or from [days-]hours:minutes:seconds.

    >>> elapsed_s(pl.Series(["90", "1-02:00:01", "00:05", None]), Place("example")).to_list()
    [90.0, 93601.0, 5.0, None]
    """
    given = known(values)
    numbers = given.cast(pl.Float64, strict=False)
    if numbers.null_count() == given.null_count():
        return numbers
    parts = given.str.extract_groups(ELAPSED).struct.unnest().cast(pl.Float64)
    days, hours = parts["d"].fill_null(0.0), parts["h"].fill_null(0.0)
    clock = days * DAY_S + hours * HOUR_S + parts["m"] * MINUTE_S + parts["s"]
    seconds = numbers.zip_with(numbers.is_not_null(), clock)
    place.refuse(seconds.is_null() & given.is_not_null(), values, "must be a length of time", HOW)
    return seconds
