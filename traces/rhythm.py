"""When jobs come: week by week, hour of the week by hour of the week, and pools that run like clockwork."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.traces.table import Floats

HOUR_S, DAY_S, WEEK_S = 3600.0, 86400.0, 604800.0
FIRST_MONDAY_S = 4 * DAY_S
"""1970-01-05, the first Monday after the epoch."""
QUIET_WEEKS = 4
"""Weeks further than this from any job are not listed: two bursts ten years apart would list five hundred."""
BAND = 1.1
"""A narrow band: from a gap to a tenth more."""
LEAST_GAP_S = 60.0
"""Shorter gaps are those within a burst, and clocks of whole seconds repeat them."""
LEAST_GAPS = 50
CLOCKWORK = 0.25
"""A share of gaps in one narrow band that no random arrivals reach: a Poisson process has 3.5 % in its fullest."""


@dataclass(frozen=True, slots=True)
class Weeks:
    """Jobs submitted and their GPU-hours by week (Monday to Sunday, UTC) and pool, without long silences.

    Attributes
    ----------
    from_s : beginnings of the weeks within `QUIET_WEEKS` of one with jobs, seconds from the epoch, ascending
    jobs, gpu_hours : by pool, one number a week
    """

    from_s: tuple[float, ...]
    jobs: Mapping[str, tuple[int, ...]]
    gpu_hours: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Clockwork:
    """The fullest narrow band of gaps between submissions: where it lies, and the share of all gaps in it."""

    gap_s: float
    share: float


def weeks_of(submit_s: Floats, gpu_time_s: Floats, rows: Mapping[str, NDArray[np.int64]]) -> Weeks:
    """Jobs and GPU-hours by the week in which they were submitted.

    >>> rows = {"a": np.array([0, 1])}
    >>> weeks_of(np.array([4 * 86400.0, 11 * 86400.0]), np.array([3600.0, 7200.0]), rows)
    Weeks(from_s=(345600.0, 950400.0), jobs={'a': (1, 1)}, gpu_hours={'a': (1.0, 2.0)})
    """
    week = np.floor((submit_s - FIRST_MONDAY_S) / WEEK_S).astype(np.int64)
    near = np.unique(np.unique(week)[:, None] + np.arange(-QUIET_WEEKS, QUIET_WEEKS + 1))
    shown = near[(near >= week[0]) & (near <= week[-1])]
    place, count = np.searchsorted(shown, week), len(shown)
    jobs = {name: np.bincount(place[its], minlength=count) for name, its in rows.items()}
    hours = {name: np.bincount(place[its], gpu_time_s[its] / HOUR_S, count) for name, its in rows.items()}
    return Weeks(
        tuple(FIRST_MONDAY_S + WEEK_S * int(number) for number in shown),
        {name: tuple(counts.tolist()) for name, counts in jobs.items()},
        {name: tuple(sums.tolist()) for name, sums in hours.items()},
    )


def hour_of_week(submit_s: Floats) -> Floats:
    """Mean number of jobs submitted in each hour of the week, shape (7, 24), Monday first, UTC.

    The mean is over the times that the hour came between the first and the last submission; NaN where it never did.

    >>> float(hour_of_week(np.array([4 * 86400.0, 4 * 86400.0 + 60, 11 * 86400.0]))[0, 0])
    1.5
    """
    hour = np.floor((submit_s - FIRST_MONDAY_S) / HOUR_S).astype(np.int64)
    hours = 7 * 24
    jobs = np.bincount(hour % hours, minlength=hours).astype(np.float64)
    first, last = int(hour[0]), int(hour[-1])
    whole, rest = divmod(last - first + 1, hours)
    came = np.full(hours, float(whole))
    came[(first + np.arange(rest)) % hours] += 1.0
    mean: Floats = np.divide(jobs, came, out=np.full(hours, np.nan), where=came > 0)
    return mean.reshape(7, 24)


def clockwork(submit_s: Floats) -> Clockwork:
    """The fullest narrow band of the gaps of a pool; NaN where it has fewer than `LEAST_GAPS`.

    >>> clockwork(np.arange(100) * 600.0)
    Clockwork(gap_s=600.0, share=1.0)
    """
    gaps_s = np.diff(submit_s)
    long = np.sort(gaps_s[gaps_s >= LEAST_GAP_S])
    if len(gaps_s) < LEAST_GAPS or not len(long):
        return Clockwork(np.nan, np.nan)
    held = np.searchsorted(long, long * BAND, side="right") - np.arange(len(long))
    fullest = int(held.argmax())
    middle = float(np.median(long[fullest : fullest + held[fullest]]))
    return Clockwork(middle, float(held[fullest]) / len(gaps_s))
