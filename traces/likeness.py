"""An audit of a trace that is to be shared: how like the log it is, and what it gives away.

Gives away: a membership attack (was this job in the log that the release was made of?) and a linkage attack (which rows
of the release may be this job, of which a part is known?).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.stats import ks_2samp

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import DAY_S, HOUR_S, WEEK_S
from jobcast.traces.columns import UTC_TIME
from jobcast.traces.table import Trace
from jobcast.traces.trace_stats import FIRST_MONDAY_S, hour_of_week

Release = Callable[[Trace, int], Trace]
"""Makes what would be shared of a trace and a seed."""
Shown = Callable[[Trace, int], Floats]
"""Makes records (see `records`) of a trace and a seed: what an attacker sees of a release."""

SCALES_S = {"5min": 300.0, "1h": HOUR_S, "6h": 6 * HOUR_S, "1day": DAY_S}
BOOTSTRAPS = 200
LEAST_GAP_S = 1.0
STEPS_PER_OCTAVE = 4
"""Run times within a fourth of an octave (19 %) are the same to the linkage attack."""
UNITS = {"hours": 1.0, "log2_width": 0.5, "log_run_time": 0.2, "log_gap": 0.5}
"""Differences of a feature that count as 1 in the distance of two records."""


def dispersion(submit_s: Floats, window_s: float) -> float:
    """Index of dispersion: variance over mean of the jobs that come in windows; 1 for a Poisson process.

    >>> dispersion(np.array([0.0, 1.0, 2.0, 100.0, 101.0, 399.0]), 100.0)
    0.8333333333333334
    """
    counts = np.bincount(((submit_s - submit_s[0]) // window_s).astype(np.int64))
    return float(counts.var() / counts.mean())


def likeness(
    log: Trace, release: Trace, words: Mapping[str, str] | None = None, weeks: int | None = None
) -> dict[str, Any]:
    """Distances between a log and what was made of it.

    Parameters
    ----------
    log, release : the two
    words : pools of the release by pools of the log; None = the same names
    weeks : length of the release; None = the log's. Loads are compared for as long as both last

    Returns
    -------
    `ks`: largest distance between distribution functions of widths, run times and gaps between submissions of a pool;
    `dispersion`: of both, by window; `week_profile_tv`: total variation between jobs by hour of the week, in [0, 1];
    `load_error_mean`, `load_error_max`: difference of GPU-time by pool and week over the pool's mean week, of the pools
    with any; `gpu_time`: the release's over the log's.
    """
    named = log.jobs["pool"].replace(dict(words or {}))
    renamed = replace(log, jobs=log.jobs.with_columns(pool=named))
    ks = {
        "widths": ks_2samp(log.gpus, release.gpus).statistic,
        "run_times": ks_2samp(log.duration_s[log.ended], release.duration_s[release.ended]).statistic,
        "gaps": ks_2samp(_gaps_s(renamed), _gaps_s(release)).statistic,
    }
    ours, theirs = (np.nan_to_num(hour_of_week(one.submit_s)).ravel() for one in (log, release))
    loads = _loads(renamed, renamed, weeks), _loads(release, renamed, weeks)
    # of a pool of cores alone there is no load that an error could be a share of
    busy = loads[0].sum(axis=1) > 0.0
    errors = (np.abs(loads[1] - loads[0])[busy] / loads[0][busy].mean(axis=1, keepdims=True)).ravel()
    return {
        "jobs": {"log": len(log), "release": len(release)},
        "gpu_time": float(release.gpu_time_s.sum() / max(log.gpu_time_s.sum(), 1e-9)),
        "ks": {name: float(value) for name, value in ks.items()},
        "dispersion": {
            name: {"log": dispersion(log.submit_s, s), "release": dispersion(release.submit_s, s)}
            for name, s in SCALES_S.items()
        },
        "week_profile_tv": float(np.abs(ours / ours.sum() - theirs / theirs.sum()).sum() / 2),
        "load_error_mean": float(errors.mean()) if len(errors) else 0.0,
        "load_error_max": float(errors.max(initial=0.0)),
    }


def _gaps_s(trace: Trace) -> Floats:
    """Gaps between submissions of a pool; one of 0 where no pool has two jobs."""
    order = np.argsort(trace.jobs["pool"].rank("dense").to_numpy(), kind="stable")
    pool = trace.jobs["pool"].rank("dense").to_numpy()[order]
    gaps = np.diff(trace.submit_s[order])[np.diff(pool) == 0]
    return gaps if len(gaps) else np.zeros(1)


def _loads(trace: Trace, like: Trace, length: int | None) -> Floats:
    """GPU-seconds by pool of `like` and week from the trace's first submission on, (n_pools, n_weeks).

    Weeks are those of `like`, or its first `length`, of which the last may be a part of one.
    """
    pools, span_s = like.pools, like.submit_s[-1] - like.submit_s[0]
    weeks = int(span_s // WEEK_S) + 1
    index = trace.jobs["pool"].replace_strict(pools, range(len(pools)), default=-1).to_numpy()
    since_s = trace.submit_s - trace.submit_s[0]
    week = (since_s // WEEK_S).astype(np.int64)
    known = index >= 0
    if length is not None:
        weeks = min(weeks, length)
        # What is longer than `like` goes on in the week that is a part of one there.
        known &= since_s <= span_s
    known &= week < weeks
    sums = np.bincount(index[known] * weeks + week[known], trace.gpu_time_s[known], len(pools) * weeks)
    return sums.astype(np.float64).reshape(len(pools), weeks)


@dataclass(frozen=True, slots=True)
class Attack:
    """How well an attacker does: area under the ROC curve, its 90 % bootstrap interval, and the halves' units."""

    auc: float
    low: float
    high: float
    members: int
    others: int
    units: int


def membership(log: Trace, release: Release, by: str, seed: int = 0) -> Attack | None:
    """An attack on half of a log: who lies near a record of the release was in it, the attacker says.

    The log's weeks or users are halved at random. The release of either half is scored on both; the mean of the two
    areas cancels whatever makes one half easier to be near to. Intervals draw whole weeks or users. None where there
    are fewer than two of them to halve, or a half has no job that ended.

    Parameters
    ----------
    log : the whole
    release : what is shared of half of it
    by : "weeks" or "users"
    seed : of the halves, the releases and the bootstrap
    """
    return attack(log, lambda half, number: records(release(half, number)), by, seed)


def attack(log: Trace, shown: Shown, by: str, seed: int = 0) -> Attack | None:
    """`membership`, of what is `shown` of half of a log."""
    unit = _weeks(log) if by == "weeks" else _users(log)
    count = int(unit.max(initial=0)) + 1
    if count < 2:
        return None
    rng = np.random.default_rng(seed)
    side = rng.permutation(np.arange(count) % 2)[unit]
    halves = [_packed(log, side == number) for number in (0, 1)]
    if not all(half.ended.any() for half in halves):
        return None
    ours = [records(half) for half in halves]
    scores: list[Floats] = []
    for number in (0, 1):
        tree = KDTree(shown(halves[number], seed))
        scores.append(-tree.query(np.concatenate((ours[number], ours[1 - number])))[0])
    ends = [unit[(side == number) & log.ended] for number in (0, 1)]
    ones = np.ones(count)
    area = _area(scores, ends, ones)
    drawn = [_area(scores, ends, rng.multinomial(count, ones / count).astype(np.float64)) for _ in range(BOOTSTRAPS)]
    low, high = np.nanquantile(drawn, (0.05, 0.95))
    return Attack(area, float(low), float(high), len(ends[0]), len(ends[1]), count)


def _weeks(trace: Trace) -> NDArray[np.int64]:
    """(n_jobs,) weeks with jobs, Monday to Sunday, numbered from 0."""
    return _numbered(np.floor((trace.submit_s - FIRST_MONDAY_S) / WEEK_S))


def _users(trace: Trace) -> NDArray[np.int64]:
    """(n_jobs,) users, numbered from 0; jobs without are one."""
    if "user" not in trace.jobs.columns:
        return np.zeros(len(trace), dtype=np.int64)
    return _numbered(trace.jobs["user"].fill_null("").rank("dense").to_numpy())


def _numbered(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _packed(trace: Trace, rows: NDArray[np.bool_]) -> Trace:
    """Some of the jobs, whole weeks without any left out, so that no hole tells which half it is."""
    half = replace(trace, jobs=trace.jobs.filter(pl.Series(rows)))
    week = np.floor((half.submit_s - FIRST_MONDAY_S) / WEEK_S)
    back_us = ((week - week.min() - _weeks(half)) * WEEK_S * 1e6).astype(np.int64)
    back = pl.Series(back_us).cast(pl.Duration("us"))
    times = [pl.col(name) - back for name, dtype in half.jobs.schema.items() if dtype == UTC_TIME]
    return replace(half, jobs=half.jobs.with_columns(times))


def records(trace: Trace) -> Floats:
    """Records of the jobs that ended, (n_jobs, 6), in units of `UNITS`.

    Hour of the week (two columns: a circle), width, run time, gaps to the job before and after in the pool.
    """
    # distances around the week, as along a circle of 168 hours
    angle = 2 * np.pi * ((trace.submit_s - FIRST_MONDAY_S) % WEEK_S) / WEEK_S
    radius = WEEK_S / HOUR_S / (2 * np.pi * UNITS["hours"])
    order = np.argsort(trace.jobs["pool"].rank("dense").to_numpy(), kind="stable")
    pool = trace.jobs["pool"].rank("dense").to_numpy()[order]
    gaps = np.where(np.diff(pool) == 0, np.diff(trace.submit_s[order]), WEEK_S)
    before, after = np.empty(len(trace)), np.empty(len(trace))
    before[order], after[order] = np.append(WEEK_S, gaps), np.append(gaps, WEEK_S)
    columns = [
        radius * np.cos(angle),
        radius * np.sin(angle),
        np.log2(trace.gpus + 1.0) / UNITS["log2_width"],
        np.log(np.nan_to_num(trace.duration_s, nan=1.0)) / UNITS["log_run_time"],
        np.log(np.maximum(before, LEAST_GAP_S)) / UNITS["log_gap"],
        np.log(np.maximum(after, LEAST_GAP_S)) / UNITS["log_gap"],
    ]
    return np.column_stack(columns)[trace.ended]


def _area(scores: Sequence[Floats], units: Sequence[NDArray[np.int64]], weight: Floats) -> float:
    """Mean over the two halves as members of the area under the ROC curve, where each unit counts `weight` times."""
    areas = [
        weighted_auc(scores[number], np.repeat([1.0, 0.0], [len(units[number]), len(units[1 - number])]),
                     weight[np.concatenate((units[number], units[1 - number]))])
        for number in (0, 1)
    ]  # fmt: skip
    return float(np.mean(areas))


def weighted_auc(scores: Floats, member: Floats, weight: Floats) -> float:
    """Probability that a member scores above another, ties half; NaN where there are none of either.

    >>> weighted_auc(np.array([3.0, 1.0, 2.0, 1.0]), np.array([1.0, 1.0, 0.0, 0.0]), np.ones(4))
    0.625
    """
    place = _numbered(scores)
    ours, theirs = np.bincount(place, weight * member), np.bincount(place, weight * (1.0 - member))
    below = np.cumsum(theirs) - theirs / 2
    pairs = float(ours.sum() * theirs.sum())
    return float((ours * below).sum()) / pairs if pairs else float("nan")


def linkage(log: Trace, export: Trace) -> dict[str, float | None]:
    """What somebody finds in an export who knows of a job its hour of the week, width and, roughly, run time.

    Returns
    -------
    `median_set`: rows that look so, in the median over the log's jobs; `alone`: share of jobs whose look just one row
    has; `missed`: share whose look no row has, as the hour or the run time moved over an edge; `alone_by_wait`: of the
    jobs that waited, the share whose waiting time, to the second, just one row has (an export keeps it), None of none.
    """
    looks = [_looks(one) for one in (log, export)]
    found = looks[0].join(looks[1].group_by(pl.all()).len(), on=looks[0].columns, how="left")["len"].fill_null(0)
    counts = found.to_numpy()
    waits, shown = (np.round(one.start_s - one.submit_s) for one in (log, export))
    waits, rows = waits[waits > 0.0], dict(zip(*np.unique(shown, return_counts=True), strict=True))
    return {
        "median_set": float(np.median(counts)) if len(counts) else 0.0,
        "alone": float((counts == 1).mean()) if len(counts) else 0.0,
        "missed": float((counts == 0).mean()) if len(counts) else 0.0,
        "alone_by_wait": float(np.mean([rows.get(wait) == 1 for wait in waits])) if len(waits) else None,
    }


def _looks(trace: Trace) -> pl.DataFrame:
    hour = np.floor((trace.submit_s - FIRST_MONDAY_S) / HOUR_S).astype(np.int64) % (7 * 24)
    size = np.floor(np.log2(np.nan_to_num(trace.duration_s, nan=1.0)) * STEPS_PER_OCTAVE).astype(np.int64)
    return pl.DataFrame({"hour": hour, "gpus": trace.gpus, "size": size}).filter(pl.Series(trace.ended))
