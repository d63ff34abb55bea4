"""The figures of a trace's pools as columns: one list of them for the page and for the terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobcast.pipelines.wording import UNKNOWN, duration, number, share

Row = Mapping[str, Any]
"""Figures of a pool, as `traces.figures.Figures` in JSON."""


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of a pool.

    Attributes
    ----------
    head : its name, unit included
    key : what `Figures` calls it
    show : how it is shown
    short : its name in a terminal, empty = not shown there
    on_page : whether a page shows it
    """

    head: str
    key: str
    show: Callable[[Any], str]
    short: str = ""
    on_page: bool = True


def gpus(value: float | None) -> str:
    """A number of GPUs, whole where it is.

    >>> gpus(8.0), gpus(2.5)
    ('8', '2.50')
    """
    return number(int(value) if value is not None and value == int(value) else value)


COLUMNS = (
    Column("jobs", "jobs", number, "jobs"),
    Column("GPU-hours", "gpu_hours", number),
    Column("quota (GPUs)", "quota", number, "quota"),
    Column("load (GPUs)", "load_gpus", number, "load", on_page=False),
    Column("utilisation", "utilization_mean", share, "util."),
    Column("mean width (GPUs)", "gpus_mean", number, "mean GPUs"),
    Column("median run time", "duration_p50_s", duration, "median"),
    Column("99th percentile", "duration_p99_s", duration, "p99"),
    Column("median wait", "wait_p50_s", duration),
    Column("90th percentile", "wait_p90_s", duration),
    Column("variation of gaps", "interarrival_cv", number, "CV gaps"),
    Column("largest burst (GPUs)", "burst_gpus", gpus, "burst"),
    Column("completions followed", "followed_after_completion", share),
    Column("the same at random", "followed_at_random", share),
)
NOTE = (
    "Gaps are the times between submissions; their variation = standard "
    "deviation over mean, 1 = at random. A burst is what arrives within five minutes. Followed = by an arrival in the "
    "pool within five minutes."
)


def pool_table(pools: Mapping[str, Row], terminal: bool = False) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of all pools; on a page, columns that no pool fills are left out."""
    columns = [column for column in COLUMNS if column.short] if terminal else _filled(pools.values())
    heads = ["pool", *(column.short if terminal else column.head for column in columns)]
    rows = [[name, *(column.show(its.get(column.key)) for column in columns)] for name, its in pools.items()]
    return heads, rows


def _filled(rows: Any) -> Sequence[Column]:
    known = list(rows)
    shown = [column for column in COLUMNS if column.on_page]
    return [column for column in shown if any(column.show(its.get(column.key)) != UNKNOWN for its in known)]
