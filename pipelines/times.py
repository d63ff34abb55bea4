"""Instants as users write them: ISO-8601 or seconds from the epoch; without an offset, UTC."""

import math
from datetime import UTC, datetime

from jobcast.domain.errors import ConfigError


def parse_time(text: str, option: str = "time") -> float:
    """Seconds from the epoch.

    >>> parse_time("1970-01-02")
    86400.0
    >>> parse_time("1970-01-01T01:00:00+01:00")
    0.0
    >>> parse_time("12.5")
    12.5
    """
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        if math.isfinite(seconds):
            return seconds
        raise ConfigError(f"{option}: {text!r} is no instant; write 2017-11-06T00:00:00Z or seconds from the epoch")
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{option}: {text!r} is no instant; write 2017-11-06T00:00:00Z or seconds from the epoch"
        ) from None
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def iso(seconds: float | None) -> str | None:
    """ISO-8601 in UTC.

    >>> iso(86400.0)
    '1970-01-02T00:00:00Z'
    """
    if seconds is None:
        return None
    instant = datetime.fromtimestamp(seconds, UTC)
    return instant.isoformat(timespec="microseconds" if instant.microsecond else "seconds").replace("+00:00", "Z")
