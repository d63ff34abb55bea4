"""When users are at work: sessions on local days, and the instant at which a plan can be carried out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.traces.generators.campus_config import DAY_HOURS, DAY_S, HOUR_S, CampusConfig

WEEKDAYS = 5
WEEK_DAYS = 7


@dataclass(frozen=True, slots=True)
class Sessions:
    """Stretches of work, ascending and apart. begin_s, end_s : (n,) seconds since the start of the trace."""

    begin_s: NDArray[np.float64]
    end_s: NDArray[np.float64]

    def at_or_after(self, instant_s: float) -> tuple[float, bool] | None:
        """First instant at work from `instant_s` on, and whether it begins a session; None after the last session.

        >>> week = Sessions(np.array([10.0, 30.0]), np.array([20.0, 40.0]))
        >>> week.at_or_after(15.0), week.at_or_after(20.0), week.at_or_after(40.0)
        ((15.0, False), (30.0, True), None)
        """
        index = int(np.searchsorted(self.end_s, instant_s, side="right"))
        if index == len(self.end_s):
            return None
        begin_s = float(self.begin_s[index])
        return (instant_s, False) if begin_s <= instant_s else (begin_s, True)


def draw_sessions(zone_h: float, config: CampusConfig, rng: np.random.Generator) -> Sessions:
    """One user's sessions within the trace: at most one a local day."""
    days = np.arange(-1, config.weeks * WEEK_DAYS + 1)  # local days reach over the ends of UTC days
    weekday = days % WEEK_DAYS < WEEKDAYS  # the trace starts on a Monday
    works = rng.random(len(days)) < np.where(weekday, config.attendance, config.weekend_attendance)
    begin_h = config.office_start_h + config.office_jitter_h * rng.standard_normal(len(days))
    length_h = config.office_hours + config.office_jitter_h * rng.standard_normal(len(days))
    begin_s = days * DAY_S + (begin_h - zone_h) * HOUR_S
    end_s = begin_s + np.clip(length_h, 0, DAY_HOURS) * HOUR_S
    begin_s, end_s = begin_s[works], end_s[works]
    begin_s[1:] = np.maximum(begin_s[1:], end_s[:-1])
    begin_s, end_s = np.clip(begin_s, 0, config.span_s), np.clip(end_s, 0, config.span_s)
    return Sessions(begin_s[end_s > begin_s], end_s[end_s > begin_s])
