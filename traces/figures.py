"""Figures of the jobs of a pool, or of a whole trace: SIA, section 2."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.traces.occupancy import largest_burst, share_followed, share_followed_at_random
from jobcast.traces.rhythm import clockwork
from jobcast.traces.table import Floats

BURST_S = 300.0
"""Five minutes, the period of SIA, Figure 3b."""
FOLLOW_S = 300.0
"""How soon after a completion an arrival counts as prompted by it; the least horizon of SIA, section 5.4.1."""
HOUR_S = 3600.0
"""Period of SIA, Figure 2."""
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
    quota : GPUs that its owners pay for, the last number where it changes; None where not given
    burst_share : burst_gpus over the quota; SIA, Figure 3b
    utilization_mean : mean share of the quota at work, from the first to the last submission of the trace
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
    open_ = np.isnan(jobs.duration_s)
    lasted_s = jobs.duration_s[~open_]
    p50_s, p90_s, p99_s = (float(q) for q in np.quantile(lasted_s, QUANTILES)) if len(lasted_s) else (UNKNOWN,) * 3
    gaps_s = np.diff(jobs.submit_s)
    gap_p50_s, _, gap_p99_s = (float(q) for q in np.quantile(gaps_s, QUANTILES)) if len(gaps_s) else (UNKNOWN,) * 3
    band = clockwork(jobs.submit_s)
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

    The quota that is told, and that bursts are compared with, is the last one.
    """
    last = int(quota[-1])
    share = float(busy.sum() / quota.sum())
    return replace(figures, quota=last, burst_share=figures.burst_gpus / last, utilization_mean=share)


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
