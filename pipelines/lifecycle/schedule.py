"""When versions are trained, and on what, in a walk through a trace."""

import re
from dataclasses import dataclass

from jobcast.domain.errors import ConfigError

DAY_S = 86400.0
WEEK_DAYS = 7.0
NAMED_DAYS = {"daily": 1.0, "weekly": WEEK_DAYS}
FIRST_WEEKS = 3.0
"""Training time before the first version."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One version: trained on [from_s, until_s), scored on [until_s, next_s); epoch seconds."""

    from_s: float
    until_s: float
    next_s: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often to train anew.

    Attributes
    ----------
    every_days : days between trainings
    first_weeks : weeks before the first training
    window_days : days that each training looks back; None = all since the beginning
    """

    every_days: float = WEEK_DAYS
    first_weeks: float = FIRST_WEEKS
    window_days: float | None = None

    def stretches(self, begin_s: float, end_s: float) -> list[Stretch]:
        """Trainings in [begin_s, end_s], in order of time; the last one's next stretch may be cut short or empty.

        >>> [one.until_s / DAY_S for one in Schedule(first_weeks=1).stretches(0.0, 16 * DAY_S)]
        [7.0, 14.0]
        """
        found: list[Stretch] = []
        until_s = begin_s + self.first_weeks * WEEK_DAYS * DAY_S
        while until_s <= end_s:
            from_s = begin_s if self.window_days is None else max(begin_s, until_s - self.window_days * DAY_S)
            next_s = until_s + self.every_days * DAY_S
            found.append(Stretch(from_s, until_s, min(next_s, end_s)))
            until_s = next_s
        return found


def parse_every(text: str) -> float:
    """`--retrain weekly`, `daily` or `Nd`: days; ConfigError for anything else.

    >>> parse_every("weekly"), parse_every("10d")
    (7.0, 10.0)
    """
    if text in NAMED_DAYS:
        return NAMED_DAYS[text]
    match = re.fullmatch(r"(\d{1,4})d", text)
    if match is None or int(match[1]) < 1:
        raise ConfigError(f"--retrain {text}: write weekly, daily or a number of days, as in 14d")
    return float(match[1])
