"""Instants as users write them: ISO-8601 or seconds from the epoch; without an offset, UTC."""

import math
from datetime import UTC, datetime

from jobcast.domain.errors import ConfigError
from jobcast.domain.times import has_an_offset_of_earth, may_be_a_date

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
    if may_be_a_date(plain):
        raise ConfigError(f"{option}: {text!r} may be a date or seconds; write it with dashes, or seconds as {plain}.0")
    seconds = _seconds(plain)
    if not FIRST_S <= seconds <= LAST_S:
        raise ConfigError(f"{option}: {text!r} is no instant; write 2017-11-06T00:00:00Z or seconds from the epoch")
    return seconds


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
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def iso(seconds: float | None) -> str | None:
    """ISO-8601 in UTC; what lies beyond the years 1 to 9999 is shown as their ends.

    >>> iso(86400.0)
    '1970-01-02T00:00:00Z'
    """
    if seconds is None:
        return None
    instant = datetime.fromtimestamp(min(max(seconds, FIRST_S), LAST_S), UTC)
    return instant.isoformat(timespec="microseconds" if instant.microsecond else "seconds").replace("+00:00", "Z")
