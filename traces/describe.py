"""A trace's character, pool by pool and in all: the figures by which SIA, section 2, describes its workloads.

Who and what the jobs are of: users, tags, states, kinds of GPU, by jobs and by work.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import TraceError
from jobcast.domain.hardware import PoolsTable, Quota
from jobcast.domain.jobs import Pool
from jobcast.domain.memory import need_memory
from jobcast.traces.history import rows_by_pool
from jobcast.traces.outliers import SPANS, YEAR_S
from jobcast.traces.table import Source, Trace
from jobcast.traces.trace_stats import (
    QUIET_WEEKS,
    UNKNOWN,
    Curve,
    Figures,
    JobColumns,
    Weeks,
    against_quota,
    busy_gpus,
    cdf,
    closed_loop,
    figures_of,
    hour_of_week,
    mean_loop,
    weeks_of,
)

GROUPS = ("user", "tag", "state", "gpu_type", "model")
MOST = 10
"""So many of a kind are named."""
UNTOLD = "(not told)"


@dataclass(frozen=True, slots=True)
class Share:
    """Jobs and GPU-hours of one user, tag, state, ..."""

    name: str
    jobs: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class Shares:
    """Those with most GPU-hours of one kind, and what is left for the others.

    Attributes
    ----------
    count : how many there are
    top : the busiest, by GPU-hours
    others : all the others together, None where there are none
    """

    count: int
    top: tuple[Share, ...]
    others: Share | None


def shares_of(trace: Trace) -> Mapping[str, Shares]:
    """Shares by each of `GROUPS` that the trace tells; jobs that do not tell it count together as one."""
    hours = pl.Series("gpu_hours", trace.gpu_time_s / HOUR_S)
    rows = [name for name in GROUPS if name in trace.jobs.columns and trace.jobs[name].null_count() < len(trace)]
    return {name: _shares(trace.jobs[name], hours) for name in rows}


def _shares(values: pl.Series, hours: pl.Series) -> Shares:
    table = (
        pl.DataFrame({"name": values.cast(pl.String).fill_null(UNTOLD), "gpu_hours": hours})
        .group_by("name", maintain_order=True)
        .agg(pl.len().alias("jobs"), pl.col("gpu_hours").sum())
        # the name breaks ties, so that reports do not flicker
        .sort(["gpu_hours", "jobs", "name"], descending=[True, True, False])
        .select("name", "jobs", "gpu_hours")
    )
    top = tuple(Share(*row) for row in table.head(MOST).iter_rows())
    rest = table.slice(MOST)
    others = Share("others", int(rest["jobs"].sum()), float(rest["gpu_hours"].sum())) if rest.height else None
    return Shares(table.height, top, others)


HOUR_BYTES, WEEK_BYTES, HOURS_A_WEEK = 24, 200, 168
"""An hour of a pool: quota, GPUs at work, their quotient; a week: two numbers, in Python and as JSON."""
REMEDY = "correct the times, describe a part of the trace, or allow more with --memory"


@dataclass(frozen=True, slots=True)
class Description:
    """Figures of a trace and the curves that plots of it need.

    Attributes
    ----------
    name, source, notes, dropped : of the trace
    total : figures of all jobs together
    pools : figures by pool, names ascending
    curves : distribution functions: `utilization_hourly` (Figure 2, over hours, all pools with a quota together),
        `interarrival_s` (over all gaps within pools), `interarrival_cv` (Figure 3a, over pools),
        `burst_share` (Figure 3b, over pools), `duration_spread` (Figure 3c, over pools), `duration_s` and `wait_s`
        (over jobs)
    weeks : jobs and GPU-hours by week and pool, without long silences; they begin as the clock of the zone shows
    hour_of_week : mean jobs submitted by hour of the week, 7 days (Monday first) of 24 hours
    shares : jobs and GPU-hours by user, tag, state, ... where the trace tells them
    quota_changes : how often the quotas change within the span
    utilization_hourly : share of all quotas at work, hour by hour, shape (n_hours,); empty without quotas
    """

    name: str
    source: Source
    notes: tuple[str, ...]
    dropped: Mapping[str, int]
    total: Figures
    pools: Mapping[str, Figures]
    curves: Mapping[str, Curve]
    weeks: Weeks
    hour_of_week: tuple[tuple[float, ...], ...]
    shares: Mapping[str, Shares]
    quota_changes: int = 0
    utilization_hourly: tuple[float, ...] = field(repr=False, default=())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: what is unknown is None, names of widths are text."""
        return dict(_plain(asdict(self)))


def describe(trace: Trace, pools: Sequence[Pool] | PoolsTable | None = None, zone: tzinfo = UTC) -> Description:
    """Describe a trace; with `pools` also against their quotas, which may change over time.

    Weeks and hours of the week are those of the clock of `zone`.

    Utilisation takes jobs to run as the trace says, or from their submission where it does not; it may then
    exceed 1, since nothing queues. An elastic job is taken to hold all the GPUs that it can use, for its work on one
    GPU over their number.

    Raises
    ------
    TraceError
        The trace holds no jobs.
    MemoryLimitError
        Its hours and weeks, pool by pool, would need more memory than they may take.
    """
    if not len(trace):
        raise TraceError(f"{trace.name}: no jobs to describe; widen the window or give another trace")
    jobs = _columns(trace)
    rows = rows_by_pool(trace)
    # before the arrays are made: one job of the year 1970 makes half a million hours
    _check_memory(jobs.submit_s, len(rows), pools)
    of_pool = {name: jobs.of(its) for name, its in rows.items()}
    loops = {name: closed_loop(its) for name, its in of_pool.items()}
    span_s = float(jobs.submit_s[-1] - jobs.submit_s[0])
    total = figures_of(jobs, span_s, mean_loop(list(loops.values())))
    # What holds within one pool says nothing of several that are interleaved.
    total = replace(total, clockwork_gap_s=UNKNOWN, clockwork_share=UNKNOWN)
    figures = {name: figures_of(its, span_s, loops[name]) for name, its in of_pool.items()}
    hourly: Floats = np.empty(0)
    edges_s = _hours(jobs.submit_s)
    quotas = _quotas(pools, edges_s, of_pool)
    if quotas:
        # what ran before a pool's first quota is a share of nothing
        busy = {name: np.where(quota > 0, _busy(of_pool[name], edges_s), 0.0) for name, quota in quotas.items()}
        figures |= {name: against_quota(figures[name], quotas[name], busy[name]) for name in quotas}
        together, paid = (np.sum(list(parts.values()), axis=0) for parts in (busy, quotas))
        total = against_quota(total, paid, together)
        # a burst over all pools against the quotas of some would be no share
        if len(quotas) < len(figures):
            total = replace(total, burst_share=UNKNOWN)
        hourly = np.divide(together, paid, out=np.zeros(len(paid)), where=paid > 0)
    return Description(
        name=trace.name,
        source=trace.source,
        notes=(*trace.notes, *_elastic_notes(trace), *_endless_notes(trace)),
        dropped=dict(trace.dropped),
        total=total,
        pools=figures,
        curves=_curves(list(figures.values()), jobs, list(of_pool.values()), hourly),
        weeks=weeks_of(jobs.submit_s, jobs.gpu_time_s, rows, zone),
        hour_of_week=tuple(map(tuple, hour_of_week(jobs.submit_s, zone).tolist())),
        shares=shares_of(trace),
        quota_changes=sum(int(np.count_nonzero(np.diff(quota))) for quota in quotas.values()),
        utilization_hourly=tuple(hourly.tolist()),
    )


def _columns(trace: Trace) -> JobColumns:
    submit_s, start_s = trace.submit_s, trace.start_s
    result = trace.jobs["start_time"].is_not_null().to_numpy() if "start_time" in trace.jobs.columns else False
    # start_s falls back to the submission, which would show as waits of 0
    wait_s = np.where(result, start_s - submit_s, np.nan)
    gpus = trace.gpus.astype(np.float64)
    return JobColumns(submit_s, start_s, _end_s(trace), gpus, trace.duration_s, trace.gpu_time_s, wait_s)


def _end_s(trace: Trace) -> Floats:
    """When jobs ended; an elastic job whose end is not told is taken to hold all its GPUs and to scale linearly."""
    end_s, scaling = trace.end_s, trace.elastic
    if "end_time" in trace.jobs.columns:
        # an end that is told needs no guess
        scaling &= trace.jobs["end_time"].is_null().to_numpy()
    return np.where(scaling & trace.ended, trace.start_s + trace.duration_s / np.maximum(trace.gpus, 1), end_s)


def _elastic_notes(trace: Trace) -> tuple[str, ...]:
    """What figures mean for jobs whose duration is that on one GPU."""
    count = int(trace.elastic.sum())
    if not count:
        return ()
    which = "jobs are elastic" if count == len(trace) else f"{count:,} of {len(trace):,} jobs are elastic"
    return (f"{which}: their widths are the most that they can use, their run times those on one GPU",)


def _endless_notes(trace: Trace) -> tuple[str, ...]:
    """Jobs that run on for years after the trace: it may be so, but all figures and replays go by them."""
    years = trace.duration_s / YEAR_S
    endless = np.flatnonzero(trace.duration_s > max(YEAR_S, SPANS * float(np.ptp(trace.submit_s))))
    if not len(endless):
        return ()
    which = f"{len(endless):,} of {len(trace):,} jobs run for years, up to {np.nanmax(years):,.1f}"
    return (f"duration: {which}; the first is {trace.jobs['job_id'][int(endless[0])]}",)


def _quotas(pools: Sequence[Pool] | PoolsTable | None, edges_s: Floats, known: Mapping[str, Any]) -> dict[str, Floats]:
    """Quotas by pool, hour by hour, of the pools that have jobs; 0 before a pool's first quota."""
    if isinstance(pools, PoolsTable):
        rows = [quota for quota in pools.quotas if quota.pool in known]
    else:
        rows = [Quota(pool.name, pool.quota) for pool in pools or () if pool.name in known]
    series: dict[str, Floats] = {}
    # later quotas overwrite earlier ones from their instant on
    for quota in sorted(rows, key=lambda quota: quota.from_s):
        its = series.setdefault(quota.pool, np.zeros(len(edges_s) - 1))
        its[edges_s[:-1] >= quota.from_s] = quota.gpus
    return {name: its for name, its in sorted(series.items()) if its.any()}


def _check_memory(submit_s: Floats, count: int, pools: Sequence[Pool] | PoolsTable | None) -> None:
    """Refuse a span whose hours and weeks would take too much."""
    hours = float(submit_s[-1] - submit_s[0]) / HOUR_S
    # silences are not listed, so jobs bound the weeks, too
    weeks = min(hours / HOURS_A_WEEK, (2 * QUIET_WEEKS + 1) * len(submit_s))
    size = HOUR_BYTES * hours * (count + 1 if pools else 1) + WEEK_BYTES * weeks * count
    need_memory(size, f"{hours / 24:,.0f} days of {count:,} pools, hour by hour,", REMEDY)


def _hours(submit_s: Floats) -> Floats:
    """Whole hours that hold the span of the submissions, as edges; at least one."""
    # whole hours of the clock, at least one
    first, last = math.floor(submit_s[0] / HOUR_S), math.ceil(submit_s[-1] / HOUR_S)
    return np.arange(first, max(last, first + 1) + 1) * HOUR_S


def _busy(jobs: JobColumns, edges_s: Floats) -> Floats:
    return busy_gpus(jobs.start_s, jobs.end_s, jobs.gpus, edges_s)


def _curves(
    figures: Sequence[Figures], jobs: JobColumns, of_pool: Sequence[JobColumns], hourly: Floats
) -> dict[str, Curve]:
    def over_pools(figure: str) -> Curve:
        return cdf(np.array([getattr(one, figure) for one in figures], dtype=np.float64))

    return {
        "utilization_hourly": cdf(hourly),
        "interarrival_s": cdf(np.concatenate([np.diff(its.submit_s) for its in of_pool])),
        "interarrival_cv": over_pools("interarrival_cv"),
        "burst_share": over_pools("burst_share"),
        "duration_spread": over_pools("duration_spread"),
        "duration_s": cdf(jobs.duration_s),
        "wait_s": cdf(jobs.wait_s),
    }


def _plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
