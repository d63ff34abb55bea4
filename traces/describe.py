"""A trace's character, pool by pool and in all: the figures by which SIA, section 2, describes its workloads."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from jobcast.domain.errors import TraceError
from jobcast.domain.jobs import Pool
from jobcast.traces.curves import Curve, cdf
from jobcast.traces.figures import (
    HOUR_S,
    UNKNOWN,
    Figures,
    JobColumns,
    against_quota,
    closed_loop,
    figures_of,
    mean_loop,
)
from jobcast.traces.history import rows_by_pool
from jobcast.traces.occupancy import busy_gpus
from jobcast.traces.table import Floats, Source, Trace


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
        `burst_share` (Figure 3b, over pools), `duration_spread` (Figure 3c, over pools)
    utilization_hourly : share of all quotas at work, hour by hour, shape (n_hours,); empty without quotas
    """

    name: str
    source: Source
    notes: tuple[str, ...]
    dropped: Mapping[str, int]
    total: Figures
    pools: Mapping[str, Figures]
    curves: Mapping[str, Curve]
    utilization_hourly: tuple[float, ...] = field(repr=False, default=())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: what is unknown is None, names of widths are text."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def describe(trace: Trace, pools: Sequence[Pool] | None = None) -> Description:
    """Describe a trace; with `pools` also against their quotas.

    Utilisation takes jobs to run as the trace says, or from their submission where it does not; it may then
    exceed 1, since nothing queues.

    Raises
    ------
    TraceError
        The trace holds no jobs.
    """
    if not len(trace):
        raise TraceError(f"{trace.name}: no jobs to describe; widen the window or give another trace")
    gpus = trace.gpus.astype(np.float64)
    jobs = JobColumns(trace.submit_s, trace.start_s, trace.end_s, gpus, trace.duration_s, trace.gpu_time_s)
    of_pool = {name: jobs.of(rows) for name, rows in rows_by_pool(trace).items()}
    loops = {name: closed_loop(its) for name, its in of_pool.items()}
    span_s = float(jobs.submit_s[-1] - jobs.submit_s[0])
    total = figures_of(jobs, span_s, mean_loop(list(loops.values())))
    figures = {name: figures_of(its, span_s, loops[name]) for name, its in of_pool.items()}
    hourly: Floats = np.empty(0)
    quotas = {pool.name: pool.quota for pool in pools or () if pool.name in of_pool}
    if quotas:
        edges_s = _hours(jobs.submit_s)
        busy = {name: _busy(of_pool[name], edges_s) for name in quotas}
        figures |= {name: against_quota(figures[name], quotas[name], busy[name]) for name in quotas}
        together: Floats = np.sum(list(busy.values()), axis=0)
        total = against_quota(total, sum(quotas.values()), together)
        if len(quotas) < len(figures):
            total = replace(total, burst_share=UNKNOWN)
        hourly = together / sum(quotas.values())
    return Description(
        trace.name,
        trace.source,
        trace.notes,
        dict(trace.dropped),
        total,
        figures,
        _curves(list(figures.values()), list(of_pool.values()), hourly),
        tuple(hourly.tolist()),
    )


def _hours(submit_s: Floats) -> Floats:
    """Whole hours that hold the span of the submissions, as edges; at least one."""
    first, last = math.floor(submit_s[0] / HOUR_S), math.ceil(submit_s[-1] / HOUR_S)
    return np.arange(first, max(last, first + 1) + 1) * HOUR_S


def _busy(jobs: JobColumns, edges_s: Floats) -> Floats:
    return busy_gpus(jobs.start_s, jobs.end_s, jobs.gpus, edges_s)


def _curves(figures: Sequence[Figures], jobs: Sequence[JobColumns], hourly: Floats) -> dict[str, Curve]:
    def over_pools(figure: str) -> Curve:
        return cdf(np.array([getattr(one, figure) for one in figures], dtype=np.float64))

    return {
        "utilization_hourly": cdf(hourly),
        "interarrival_s": cdf(np.concatenate([np.diff(its.submit_s) for its in jobs])),
        "interarrival_cv": over_pools("interarrival_cv"),
        "burst_share": over_pools("burst_share"),
        "duration_spread": over_pools("duration_spread"),
    }


def _plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
