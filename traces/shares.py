"""Who and what the jobs are of: users, tags, states, kinds of GPU, by jobs and by work."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from jobcast.traces.table import Trace

GROUPS = ("user", "tag", "state", "gpu_type", "model")
MOST = 10
"""So many of a kind are named."""
UNTOLD = "(not told)"
HOUR_S = 3600.0


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
    told = [name for name in GROUPS if name in trace.jobs.columns and trace.jobs[name].null_count() < len(trace)]
    return {name: _shares(trace.jobs[name], hours) for name in told}


def _shares(values: pl.Series, hours: pl.Series) -> Shares:
    table = (
        pl.DataFrame({"name": values.cast(pl.String).fill_null(UNTOLD), "gpu_hours": hours})
        .group_by("name", maintain_order=True)
        .agg(pl.len().alias("jobs"), pl.col("gpu_hours").sum())
        .sort(["gpu_hours", "jobs", "name"], descending=[True, True, False])
        .select("name", "jobs", "gpu_hours")
    )
    top = tuple(Share(*row) for row in table.head(MOST).iter_rows())
    rest = table.slice(MOST)
    others = Share("others", int(rest["jobs"].sum()), float(rest["gpu_hours"].sum())) if rest.height else None
    return Shares(table.height, top, others)
