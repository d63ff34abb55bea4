"""What a written time may mean, wherever times are read."""

import re
from datetime import datetime, timedelta

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
