"""Figures of the jobs of a pool, or of a whole trace: SIA, section 2.

Empirical distribution functions, thinned to what a plot can show.

GPUs at work and GPUs arriving over time, from columns of job times.

When jobs come: week by week, hour of the week by hour of the week, and pools that run like clockwork.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, tzinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import DAY_S, HOUR_S, WEEK_S
from jobcast.traces.column_types import instant_s, wall_clock_s

MOST_POINTS = 200
"""Steps of half a percent: finer than a plot shows."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of a distribution function: a share `y` of the values is at most `x`, both ascending."""

    x: tuple[float, ...]
    y: tuple[float, ...]


def cdf(values: Floats) -> Curve:
    """Empirical distribution function of the finite values, at most `MOST_POINTS` points of it.

    >>> cdf(np.array([3.0, 1.0, np.nan]))
    Curve(x=(1.0, 3.0), y=(0.5, 1.0))
    """
    known = np.sort(values[np.isfinite(values)])
    if not len(known):
        return Curve((), ())
    points = min(len(known), MOST_POINTS)
    # ceiling division of whole numbers: the last point is always the largest value
    rank = -(-np.arange(1, points + 1) * len(known) // points)
    return Curve(tuple(known[rank - 1].tolist()), tuple((rank / len(known)).tolist()))


def busy_gpus(start_s: Floats, end_s: Floats, gpus: Floats, edges_s: Floats) -> Floats:
    """Mean number of GPUs at work between consecutive edges, shape (n_edges - 1,).

    Parameters
    ----------
    start_s, end_s, gpus : (n_jobs,) when jobs ran, in seconds, and their widths, in any order; infinite: not yet
    edges_s : (n_edges,) ascending instants

    >>> start_s, end_s, gpus = np.array([0.0, 50.0]), np.array([100.0, 150.0]), np.array([2.0, 4.0])
    >>> busy_gpus(start_s, end_s, gpus, np.array([0.0, 100.0, 200.0]))
    array([4., 2.])
    """
    # what began minus what ended, without a loop over jobs and hours
    done = _work_since(start_s, gpus, edges_s) - _work_since(end_s, gpus, edges_s)
    return np.diff(done) / np.diff(edges_s)


def largest_burst(arrival_s: Floats, gpus: Floats, window_s: float) -> float:
    """Most GPUs that arrive within any `window_s` seconds, both ends included.

    >>> largest_burst(np.array([0.0, 200.0, 400.0]), np.array([1.0, 2.0, 4.0]), 300.0)
    6.0
    """
    # prefix sums: the GPUs of any run of arrivals in one subtraction
    total = np.concatenate(([0.0], np.cumsum(gpus)))
    after = np.searchsorted(arrival_s, arrival_s + window_s, side="right")
    return float(np.max(total[after] - total[:-1], initial=0.0))


def share_followed(instant_s: Floats, arrival_s: Floats, window_s: float) -> float:
    """Share of instants t with an arrival in (t, t + window_s]; NaN without instants.

    >>> share_followed(np.array([0.0, 100.0]), np.array([50.0]), 60.0)
    0.5
    """
    if not len(instant_s):
        return float("nan")
    after = np.searchsorted(arrival_s, instant_s + window_s, side="right")
    return float(np.mean(after > np.searchsorted(arrival_s, instant_s, side="right")))


def share_followed_at_random(arrival_s: Floats, window_s: float) -> float:
    """Probability of an arrival in (t, t + window_s] for t uniform between the first and the last arrival.

    Exact: of each gap between arrivals, the last `window_s` seconds are followed by one. NaN without a gap.

    >>> share_followed_at_random(np.array([0.0, 100.0, 110.0]), 45.0)
    0.5
    """
    # exact, where drawing random instants would add noise
    gaps_s = np.diff(arrival_s)
    span_s = float(gaps_s.sum())
    return float(np.minimum(gaps_s, window_s).sum()) / span_s if span_s else float("nan")


def _work_since(since_s: Floats, gpus: Floats, edges_s: Floats) -> Floats:
    """GPU-seconds done up to each edge by jobs that began at `since_s` and never ended."""
    # infinite times sort last and never begin
    order = np.argsort(since_s, kind="stable")[: np.isfinite(since_s).sum()]
    # relative to the first edge: seconds of the epoch times GPUs lose digits
    ahead_s = since_s[order] - edges_s[0]
    count = np.searchsorted(ahead_s, edges_s - edges_s[0], side="right")
    width = np.concatenate(([0.0], np.cumsum(gpus[order])))[count]
    begun = np.concatenate(([0.0], np.cumsum(gpus[order] * ahead_s)))[count]
    return np.asarray(width * (edges_s - edges_s[0]) - begun)


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
    """Jobs submitted and their GPU-hours by week (Monday to Sunday) and pool, without long silences.

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


def weeks_of(submit_s: Floats, gpu_time_s: Floats, rows: Mapping[str, NDArray[np.int64]], zone: tzinfo = UTC) -> Weeks:
    """Jobs and GPU-hours by the week in which they were submitted, on the clock of `zone`.

    >>> rows = {"a": np.array([0, 1])}
    >>> weeks_of(np.array([4 * 86400.0, 11 * 86400.0]), np.array([3600.0, 7200.0]), rows)
    Weeks(from_s=(345600.0, 950400.0), jobs={'a': (1, 1)}, gpu_hours={'a': (1.0, 2.0)})
    """
    week = np.floor((wall_clock_s(submit_s, zone) - FIRST_MONDAY_S) / WEEK_S).astype(np.int64)
    # weeks with jobs and their neighbours; far silences would swamp a plot
    near = np.unique(np.unique(week)[:, None] + np.arange(-QUIET_WEEKS, QUIET_WEEKS + 1))
    shown = near[(near >= week[0]) & (near <= week[-1])]
    place, count = np.searchsorted(shown, week), len(shown)
    jobs = {name: np.bincount(place[its], minlength=count) for name, its in rows.items()}
    hours = {name: np.bincount(place[its], gpu_time_s[its] / HOUR_S, count) for name, its in rows.items()}
    return Weeks(
        tuple(instant_s(FIRST_MONDAY_S + WEEK_S * int(number), zone) for number in shown),
        {name: tuple(counts.tolist()) for name, counts in jobs.items()},
        {name: tuple(sums.tolist()) for name, sums in hours.items()},
    )


def hour_of_week(submit_s: Floats, zone: tzinfo = UTC) -> Floats:
    """Mean number of jobs submitted in each hour of the week on the clock of `zone`, shape (7, 24), Monday first.

    The mean is over the times that the hour came between the first and the last submission; NaN where it never did.
    Where the clock is put back an hour comes twice, where it is put forward not at all.

    >>> float(hour_of_week(np.array([4 * 86400.0, 4 * 86400.0 + 60, 11 * 86400.0]))[0, 0])
    1.5
    """
    begin_s, end_s = (submit_s[[0, -1]] - wall_clock_s(submit_s[[0, -1]], zone) % HOUR_S).tolist()
    hours_s = begin_s + HOUR_S * np.arange(round((end_s - begin_s) / HOUR_S) + 1)
    jobs, came = (_by_hour_of_week(wall_clock_s(at_s, zone)) for at_s in (submit_s, hours_s))
    mean: Floats = np.divide(jobs, came, out=np.full(len(came), np.nan), where=came > 0)
    return mean.reshape(7, 24)


def _by_hour_of_week(wall_s: Floats) -> Floats:
    """How many instants fall into each hour of the week, shape (168,)."""
    hours = 7 * 24
    hour = np.floor((wall_s - FIRST_MONDAY_S) / HOUR_S).astype(np.int64)
    return np.bincount(hour % hours, minlength=hours).astype(np.float64)


def clockwork(gaps_s: Floats, band: float = BAND) -> Clockwork:
    """The fullest band, from a gap to `band` times it, of the gaps of a pool; NaN of fewer than `LEAST_GAPS`.

    >>> clockwork(np.full(99, 600.0))
    Clockwork(gap_s=600.0, share=1.0)
    """
    # sorted, so that each band is a stretch found by bisection
    long = np.sort(gaps_s[gaps_s >= LEAST_GAP_S])
    if len(gaps_s) < LEAST_GAPS or not len(long):
        return Clockwork(np.nan, np.nan)
    held = np.searchsorted(long, long * band, side="right") - np.arange(len(long))
    fullest = int(held.argmax())
    middle = float(np.median(long[fullest : fullest + held[fullest]]))
    # over all gaps: bursts count against a clock
    return Clockwork(middle, float(held[fullest]) / len(gaps_s))


BURST_S = 300.0
"""Five minutes, the period of SIA, Figure 3b."""
FOLLOW_S = 300.0
"""How soon after a completion an arrival counts as prompted by it; the least horizon of SIA, section 5.4.1."""
UNKNOWN = math.nan
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a pool or of the whole trace; NaN where a trace does not tell.

    Attributes
    ----------
    jobs : number of jobs
    running, waiting : how many of them had not ended, of those whose start is known and of the others
    without_gpus : how many of them ask for no GPUs
    first_submit_s, last_submit_s, span_s : when they were submitted, seconds from the epoch, and over how long
    gpu_hours : sum of width x duration, of the jobs that ended
    load_gpus : GPU-time over the span of the whole trace, in GPUs
    widths : number of jobs by width
    gpus_mean : mean width
    duration_p50_s, duration_p90_s, duration_p99_s, duration_mean_s : run times
    duration_spread : 99th percentile of the run times over their median; SIA, Figure 3c
    interarrival_cv, interarrival_p50_s, interarrival_p99_s : times between submissions; SIA, Figure 3a
    burst_gpus : most GPUs that arrive within five minutes
    clockwork_gap_s, clockwork_share : the fullest narrow band of those times, and the share of them in it
    wait_p50_s, wait_p90_s, wait_mean_s : from submission to start, of the jobs whose start the trace tells
    waits_known : number of those jobs
    followed_after_completion : share of completions with an arrival in the five minutes after
    followed_at_random : the same at a random time; less than after completions = a closed loop
    quota : GPUs that its owners pay for, the last number where it changes, 0 of a pool that is gone; None: not given
    burst_share : burst_gpus over the quota; SIA, Figure 3b
    utilization_mean : mean share of the quota at work, over the hours of the clock from the trace's first to its last
        submission in which there was a quota
    """

    jobs: int
    first_submit_s: float
    last_submit_s: float
    span_s: float
    gpu_hours: float
    load_gpus: float
    widths: Mapping[int, int]
    gpus_mean: float
    duration_p50_s: float
    duration_p90_s: float
    duration_p99_s: float
    duration_mean_s: float
    duration_spread: float
    interarrival_cv: float
    interarrival_p50_s: float
    interarrival_p99_s: float
    clockwork_gap_s: float
    clockwork_share: float
    burst_gpus: float
    followed_after_completion: float
    followed_at_random: float
    wait_p50_s: float = UNKNOWN
    wait_p90_s: float = UNKNOWN
    wait_mean_s: float = UNKNOWN
    waits_known: int = 0
    quota: int | None = None
    burst_share: float = UNKNOWN
    utilization_mean: float = UNKNOWN
    running: int = 0
    waiting: int = 0
    without_gpus: int = 0


@dataclass(frozen=True, slots=True)
class JobColumns:
    """Columns of some of a trace's jobs, by submission; `wait_s` is NaN where the trace does not tell the start."""

    submit_s: Floats
    start_s: Floats
    end_s: Floats
    gpus: Floats
    duration_s: Floats
    gpu_time_s: Floats
    wait_s: Floats

    def of(self, rows: NDArray[np.int64]) -> "JobColumns":
        """Columns of the jobs at these positions."""
        return JobColumns(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True, slots=True)
class Loop:
    """Whether arrivals follow completions, in one pool or in the mean over completions of several."""

    completions: int
    followed: float
    at_random: float


def figures_of(jobs: JobColumns, span_s: float, loop: Loop) -> Figures:
    """Figures that need no quota; `span_s` = from the first to the last submission of the whole trace."""
    # run times of open jobs are not known, their widths and arrivals are
    open_ = np.isnan(jobs.duration_s)
    lasted_s = jobs.duration_s[~open_]
    p50_s, p90_s, p99_s = (float(q) for q in np.quantile(lasted_s, QUANTILES)) if len(lasted_s) else (UNKNOWN,) * 3
    gaps_s = np.diff(jobs.submit_s)
    gap_p50_s, _, gap_p99_s = (float(q) for q in np.quantile(gaps_s, QUANTILES)) if len(gaps_s) else (UNKNOWN,) * 3
    # also of the whole trace, where describe() blanks it
    band = clockwork(gaps_s)
    widths, counts = np.unique(jobs.gpus.astype(np.int64), return_counts=True)
    return Figures(
        jobs=len(jobs.submit_s),
        first_submit_s=float(jobs.submit_s[0]),
        last_submit_s=float(jobs.submit_s[-1]),
        span_s=float(jobs.submit_s[-1] - jobs.submit_s[0]),
        gpu_hours=float(jobs.gpu_time_s.sum()) / HOUR_S,
        load_gpus=float(jobs.gpu_time_s.sum()) / span_s if span_s else UNKNOWN,
        widths=dict(zip(widths.tolist(), counts.tolist(), strict=True)),
        gpus_mean=float(jobs.gpus.mean()),
        duration_p50_s=p50_s,
        duration_p90_s=p90_s,
        duration_p99_s=p99_s,
        duration_mean_s=float(lasted_s.mean()) if len(lasted_s) else UNKNOWN,
        duration_spread=p99_s / p50_s,
        interarrival_cv=_variation(gaps_s),
        interarrival_p50_s=gap_p50_s,
        interarrival_p99_s=gap_p99_s,
        clockwork_gap_s=band.gap_s,
        clockwork_share=band.share,
        burst_gpus=largest_burst(jobs.submit_s, jobs.gpus, BURST_S),
        followed_after_completion=loop.followed,
        followed_at_random=loop.at_random,
        **_waits(jobs.wait_s),
        running=int((open_ & np.isfinite(jobs.start_s)).sum()),
        waiting=int(np.isinf(jobs.start_s).sum()),
        without_gpus=int((jobs.gpus == 0.0).sum()),
    )


def _waits(wait_s: Floats) -> dict[str, Any]:
    """Figures of the waiting times that are known."""
    known = wait_s[np.isfinite(wait_s)]
    if not len(known):
        return {}
    p50_s, p90_s = (float(q) for q in np.quantile(known, QUANTILES[:2]))
    return {"wait_p50_s": p50_s, "wait_p90_s": p90_s, "wait_mean_s": float(known.mean()), "waits_known": len(known)}


def against_quota(figures: Figures, quota: Floats, busy: Floats) -> Figures:
    """Figures that need a quota added to those that do not; both hour by hour: the quota, and GPUs at work.

    The quota that is told, and that bursts are compared with, is the last one; of a pool that is gone by then it is 0,
    with which nothing is compared.
    """
    last = int(quota[-1])
    share, burst = float(busy.sum() / quota.sum()), figures.burst_gpus / last if last else UNKNOWN
    return replace(figures, quota=last, burst_share=burst, utilization_mean=share)


def _variation(gaps_s: Floats) -> float:
    """Coefficient of variation: standard deviation over mean; 1 for a Poisson process."""
    return float(gaps_s.std() / gaps_s.mean()) if len(gaps_s) and gaps_s.any() else UNKNOWN


def closed_loop(jobs: JobColumns) -> Loop:
    """Completions between the first and the last arrival of a pool, and what follows them."""
    inside = (jobs.end_s >= jobs.submit_s[0]) & (jobs.end_s < jobs.submit_s[-1])
    followed = share_followed(jobs.end_s[inside], jobs.submit_s, FOLLOW_S)
    return Loop(int(inside.sum()), followed, share_followed_at_random(jobs.submit_s, FOLLOW_S))


def mean_loop(loops: Sequence[Loop]) -> Loop:
    """Means over pools, both weighted by completions, so that busy pools count alike in the two."""
    known = [loop for loop in loops if loop.completions]
    weights = [loop.completions for loop in known]
    if not known:
        return Loop(0, UNKNOWN, UNKNOWN)
    followed = float(np.average([loop.followed for loop in known], weights=weights))
    return Loop(sum(weights), followed, float(np.average([loop.at_random for loop in known], weights=weights)))
