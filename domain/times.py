"""What a written time may mean, wherever times are read."""

import math
import re
from datetime import UTC, datetime, timedelta

from jobcast.domain.errors import ConfigError

FIRST_YEAR, LAST_YEAR = 1900, 2199
"""Years that a trace's times may lie in: those of shifted traces begin about 1970, milliseconds read as seconds lie
thousands of years ahead."""
MOST_OFFSET_MIN = 14 * 60
"""No clock on Earth is further from UTC (Kiribati)."""
YEAR, BASIC_DATE = re.compile(r"\d{4}"), re.compile(r"\d{8}")


def has_an_offset_of_earth(instant: datetime) -> bool:
    """Whether an instant hangs on a clock that there may be; one without an offset does.

    >>> has_an_offset_of_earth(datetime.fromisoformat("2017-11-06T00:00+14:00"))
    True
    >>> has_an_offset_of_earth(datetime.fromisoformat("2017-11-06T00:00-14:01"))
    False
    """
    # An instant without an offset is taken for UTC elsewhere.
    return abs(instant.utcoffset() or timedelta(0)) <= timedelta(minutes=MOST_OFFSET_MIN)


def may_be_a_date(text: str) -> bool:
    """Whether a number may also be meant as a year, or as a date without dashes.

    >>> [may_be_a_date(text) for text in ("2017", "20171106", "20171106.0", "20171356", "3600")]
    [True, True, False, False, False]
    """
    if YEAR.fullmatch(text):
        return FIRST_YEAR <= int(text) <= LAST_YEAR
    # Strptime takes fewer digits, too.
    if not BASIC_DATE.fullmatch(text):
        return False
    try:
        return FIRST_YEAR <= datetime.strptime(text, "%Y%m%d").year <= LAST_YEAR
    except ValueError:
        return False


FIRST_S, LAST_S = -62135596800.0, 253402300799.0
"""0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: what ISO-8601 can write in four digits of a year."""


def parse_time(text: str, option: str = "time") -> float:
    """Seconds from the epoch.

    >>> parse_time("1970-01-02")
    86400.0
    >>> parse_time("1970-01-01T01:00:00+01:00")
    0.0
    >>> parse_time("12.5")
    12.5
    """
    plain = text.strip()
    # 20171106 is a date to most people, and seconds in 1970 to a computer.
    if may_be_a_date(plain):
        raise ConfigError(f"{option}: {text!r} may be a date or seconds; write it with dashes, or seconds as {plain}.0")
    seconds = _seconds(plain)
    # NaN, of what is no time at all, fails here too.
    if not FIRST_S <= seconds <= LAST_S:
        raise ConfigError(f"{option}: {text!r} is no instant; write 2017-11-06T00:00:00Z or seconds from the epoch")
    return seconds


def iso(seconds: float | None) -> str | None:
    """ISO-8601 in UTC; what lies beyond the years 1 to 9999 is shown as their ends.

    >>> iso(86400.0)
    '1970-01-02T00:00:00Z'
    """
    if seconds is None:
        return None
    # datetime knows no other years.
    instant = datetime.fromtimestamp(min(max(seconds, FIRST_S), LAST_S), UTC)
    return instant.isoformat(timespec="microseconds" if instant.microsecond else "seconds").replace("+00:00", "Z")


def _seconds(text: str) -> float:
    """Seconds from the epoch; not-a-number for what is no time."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    if not has_an_offset_of_earth(instant):
        return math.nan
    # Without an offset UTC, never the time of this computer.
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
