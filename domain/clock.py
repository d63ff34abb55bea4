"""Instants as people say them, in their own time zone."""

from dataclasses import dataclass
from datetime import datetime, tzinfo
from math import ceil, floor

from jobcast.domain.times import LAST_S

MINUTE_S, HOUR_S, DAY_S, WEEK_S = 60.0, 3600.0, 86400.0, 604800.0


@dataclass(frozen=True, slots=True)
class Clock:
    """Instants as somebody at `at_s` (seconds from the epoch) says them; without a `zone` as this computer's clock."""

    at_s: float
    zone: tzinfo | None = None

    @property
    def name(self) -> str:
        """Of the zone, at the instant."""
        return str(self.zone) if self.zone is not None else self._local(self.at_s).astimezone().tzname() or "local time"

    def said(self, seconds: float) -> str:
        """The time of day, with the day where it is not today.

        >>> from datetime import UTC
        >>> [Clock(50_700.0, UTC).said(one) for one in (56_400.0, 94_200.0, 1e6)]
        ['15:40', '02:10 (tomorrow)', '1970-01-12 13:46']

        An hour that a day has twice is told apart:

        >>> from zoneinfo import ZoneInfo
        >>> autumn = Clock(1_729_980_000.0, ZoneInfo("Europe/Berlin"))
        >>> [autumn.said(1_729_980_000.0 + 3600.0 * hours) for hours in (1, 2, 3, 4)]
        ['01:00', '02:00 CEST', '02:00 CET', '03:00']
        """
        then, days = self._local(seconds), (self._local(seconds).date() - self._local(self.at_s).date()).days
        day = {0: "", 1: " (tomorrow)", -1: " (yesterday)"}.get(days)
        return self.dated(seconds) if day is None else f"{_time(then)}{day}"

    def dated(self, seconds: float) -> str:
        """With its day in any case."""
        then = self._local(seconds)
        return f"{then:%Y-%m-%d} {_time(then)}"

    def between(self, low_s: float, high_s: float) -> str:
        """An interval in whole minutes that holds the one that is given.

        >>> from datetime import UTC
        >>> clock = Clock(50_700.0, UTC)
        >>> clock.between(50_710.0, 56_390.0), clock.between(56_000.0, 56_390.0), clock.between(56_401.0, 56_401.0)
        ('by 15:40', 'between 15:33 and 15:40', 'at 15:40')
        """
        first, last = floor(low_s / MINUTE_S), ceil(high_s / MINUTE_S)
        low, high = self.said(first * MINUTE_S), self.said(last * MINUTE_S)
        if high_s < self.at_s + MINUTE_S:
            return "within a minute"
        if last - first <= 1:
            return f"at {low}"
        return f"by {high}" if low_s < self.at_s + MINUTE_S else f"between {low} and {high}"

    def _local(self, seconds: float) -> datetime:
        # A day is left for zones east and west of Greenwich.
        return datetime.fromtimestamp(min(seconds, LAST_S - DAY_S), self.zone)


def _time(then: datetime) -> str:
    offsets = {then.replace(fold=fold).utcoffset() for fold in (0, 1)}
    return f"{then:%H:%M}" if len(offsets) == 1 else f"{then:%H:%M %Z}"
