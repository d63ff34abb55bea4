"""Numbers, lengths of time, instants and names as people read them, and instants as they write them.

Three significant digits, units stated; instants are ISO-8601 or seconds from the epoch, without an offset UTC.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo

from jobcast.domain.times import iso as iso
from jobcast.domain.times import parse_time as parse_time

UNKNOWN = "–"
Shown = Callable[[float | None], str]
"""A way to show a number."""
DIGITS = 3
LEAST_SHOWN = 1e-4
LEAST_THREE_DIGITS = 1e-2
"""Below, three significant digits are more than four decimals."""

UNITS_S: tuple[tuple[str, float, float], ...] = (
    ("s", 1.0, 120.0),
    ("min", 60.0, 120 * 60.0),
    ("h", 3600.0, 72 * 3600.0),
    ("d", 86400.0, math.inf),
)
"""Units of time: name, seconds, and up to how many seconds the unit is used."""

_ZONE: ContextVar[tzinfo] = ContextVar("zone", default=UTC)


@contextmanager
def times_in(zone: tzinfo) -> Iterator[None]:
    """Pages tell times on this zone's clock while this lasts; else in UTC, the same in every checkout."""
    token = _ZONE.set(zone)
    try:
        yield
    finally:
        _ZONE.reset(token)


def shown_zone() -> tzinfo:
    """The zone of the clock that pages tell times on."""
    return _ZONE.get()


def moment(seconds: float | None) -> str:
    """An instant on the clock that is shown, to the minute.

    >>> moment(86400.0)
    '1970-01-02 00:00'
    >>> from zoneinfo import ZoneInfo
    >>> with times_in(ZoneInfo("Europe/Berlin")):
    ...     moment(86400.0)
    '1970-01-02 01:00'
    """
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    return f"{datetime.fromtimestamp(seconds, shown_zone()):%Y-%m-%d %H:%M}"


def instant(seconds: float | None) -> str:
    """An instant on the clock that is shown, in ISO-8601, to the second.

    >>> instant(86400.4), instant(None)
    ('1970-01-02T00:00:00Z', 'never')
    >>> from zoneinfo import ZoneInfo
    >>> with times_in(ZoneInfo("Europe/Berlin")):
    ...     instant(86400.4)
    '1970-01-02T01:00:00+01:00'
    """
    if seconds is None:
        return "never"
    at = datetime.fromtimestamp(round(seconds), shown_zone())
    return at.isoformat().replace("+00:00", "Z")


WRITTEN = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
"""An instant as notes tell it."""


def on_shown_clock(note: str) -> str:
    """A note with its instants on the clock that is shown.

    >>> from zoneinfo import ZoneInfo
    >>> with times_in(ZoneInfo("Europe/Berlin")):
    ...     on_shown_clock("began with the jobs of 1970-01-02T00:00:00Z: 3 running")
    'began with the jobs of 1970-01-02T01:00:00+01:00: 3 running'
    """
    if shown_zone() is UTC:
        return note
    return WRITTEN.sub(lambda found: instant(parse_time(found[0])), note)


FORECASTS_IN_WORDS = {
    "oracle": "exact coarse forecasts",
    "registry": "the champion's forecasts",
    "conservative": "conservative forecasts",
    "random": "random forecasts",
}


def number(value: float | int | None, digits: int = DIGITS) -> str:
    """A number with `digits` significant digits and thousands separators; whole numbers in full.

    >>> [number(x) for x in (11.234, 0.04567, 358871.2, 12345, 0.0, 99.96, -2.5, None)]
    ['11.2', '0.0457', '358,871', '12,345', '0', '100', '−2.50', '–']
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    # Counts are exact: all of their digits are told.
    if isinstance(value, int) or value == 0:
        return _minus(f"{value:,.0f}")
    if abs(value) < LEAST_SHOWN:
        return f"under {LEAST_SHOWN:g}" if value > 0 else f"over −{LEAST_SHOWN:g}"
    # First: 99.96 has three digits before the point once it is rounded.
    rounded = float(f"{value:.{digits}g}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    # Large numbers keep their digits before the point: 358,871 and not 359,000.
    return _minus(f"{rounded if decimals else value:,.{decimals}f}")


def brief(value: float | int | None) -> str:
    """As `number`, but small ones with four decimals: for the narrow columns of a terminal.

    >>> [brief(x) for x in (11.234, 0.0123456, 0.000661, -0.00004, -0.00003, 0.0)]
    ['11.2', '0.0123', '0.0007', '0.0000', '0.0000', '0']
    """
    if value is None or not math.isfinite(value) or not 0 < abs(value) < LEAST_THREE_DIGITS:
        return number(value)
    text = _minus(f"{value:.4f}")
    # No minus before nothing.
    return text.removeprefix("−") if float(f"{value:.4f}") == 0 else text


def percent(value: float | None) -> str:
    """A percentage.

    >>> percent(0.1834), percent(0.0), percent(None)
    ('0.183 %', '0 %', '–')
    """
    text = number(value)
    return text if text == UNKNOWN else f"{text} %"


def share(value: float | None) -> str:
    """A share of 1 as a percentage.

    >>> share(0.534)
    '53.4 %'
    """
    return percent(None if value is None else 100 * value)


def duration(seconds: float | None) -> str:
    """A length of time in the unit that suits it.

    >>> [duration(x) for x in (45.0, 600.0, 10 * 3600.0, 20 * 86400.0)]
    ['45.0 s', '10.0 min', '10.0 h', '20.0 d']
    """
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    name, unit_s = unit_for([seconds])
    return f"{number(seconds / unit_s)} {name}"


def unit_for(seconds: Iterable[float | None]) -> tuple[str, float]:
    """Name and seconds of the unit that suits the median of some lengths of time, for a whole column.

    >>> unit_for([30.0, 7200.0, 9000.0])
    ('h', 3600.0)
    """
    known = sorted(abs(s) for s in seconds if s is not None and math.isfinite(s))
    # The median: one outlier must not choose the unit of a column.
    middle = known[len(known) // 2] if known else 0.0
    return next((name, unit_s) for name, unit_s, most_s in UNITS_S if middle < most_s)


def signed(value: float | None, shown: Shown = number) -> str:
    """A change, with its sign.

    >>> signed(0.5), signed(-0.5), signed(0.0)
    ('+0.500', '−0.500', '0')
    """
    text = shown(value)
    return f"+{text}" if value is not None and math.isfinite(value) and value > 0 else text


def between(low: float | None, high: float | None, show: Shown = number) -> str:
    """An interval.

    >>> between(1.0, 2.5)
    '1.00 to 2.50'
    """
    if low is None or high is None or not math.isfinite(low) or not math.isfinite(high):
        return UNKNOWN
    return f"{show(low)} to {show(high)}"


def forecasts_in_words(kind: str | None) -> str:
    """A source of forecasts, as in "sia with ...".

    >>> forecasts_in_words("registry:challenger"), forecasts_in_words("noisy:0.2")
    ("the challenger's forecasts", 'forecasts that are wrong with probability 0.2')
    """
    kind = kind or ""
    source, _, argument = kind.partition(":")
    if source == "noisy":
        return f"forecasts that are wrong with probability {argument}"
    if source == "registry" and "=" in argument:
        return f"the forecasts of {argument.replace('=', ' ').replace(',', ', ')}"
    if source == "registry" and argument:
        return f"the {argument}'s forecasts"
    return FORECASTS_IN_WORDS.get(kind, f"{kind} forecasts")


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "job"), counted(2000, "pool")
    ('1 job', '2,000 pools')
    """
    return f"{number(count)} {noun}" + ("" if count == 1 else "s")


def listed(words: Sequence[str]) -> str:
    """Words as a sentence lists them.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def _minus(text: str) -> str:
    return text.replace("-", "−")
