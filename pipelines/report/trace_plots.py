"""Charts of a trace: when its jobs come and how long they run and wait, how idle, bursty and skewed it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.clock import DAY_S, HOUR_S, WEEK_S
from jobcast.pipelines.report.backtest_charts import busy
from jobcast.pipelines.report.charts import (
    Axis,
    Chart,
    bands,
    chart,
    colour,
    curves,
    line_at,
    milliseconds,
    records,
    shade,
    zoomed,
)
from jobcast.pipelines.report.formatting import shown_zone

MOST_BARS = 120
MOST_POOLS = 25
WIDTH_CLASSES = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 2**31))
MOST_STACKED = 6
"""So many pools have a colour of their own; the others are one together."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DISCRETE_POINTS = 60
"""Distribution functions of fewer points are drawn with a dot at each."""

CDFS: dict[str, tuple[str, Axis, float | None]] = {
    "duration_s": ("Run times of jobs", Axis("run time (log scale)", "length", "log"), None),
    "wait_s": ("Waiting times of jobs", Axis("submission to start (log scale)", "length", "log"), None),
    "utilization_hourly": ("Hourly utilisation, all pools together", Axis("share of all quotas", "share"), None),
    "interarrival_s": (
        "Times between submissions in a pool",
        Axis("to the next submission (log scale)", "length", "log"),
        None,
    ),
    "interarrival_cv": ("Variation of times between submissions", Axis("deviation / mean, by pool", scale="log"), 1.0),
    "burst_share": ("Largest burst over the quota", Axis("GPUs in 5 min / quota, by pool", scale="log"), 1.0),
    "duration_spread": ("Spread of durations", Axis("99th percentile / median, by pool", scale="log"), 10.0),
}
"""Curves of a description: title, x axis, a value to compare with."""


def trace_plots(description: Mapping[str, Any], submit_s: ArrayLike | None = None) -> dict[str, Chart]:
    """All charts that a description has data for, by name.

    Parameters
    ----------
    description : `traces.describe.Description.to_dict()`
    submit_s : submit times of all jobs, for the chart of arrivals over time
    """
    known = description.get("curves", {})
    plots = {name: paint(description) for name, (key, paint) in _RHYTHM.items() if description.get(key)}
    plots |= {name: distribution(name, known[name]) for name in CDFS if _has_place(name, known.get(name, {}))}
    pools = description.get("pools", {})
    if pools:
        plots["widths"] = widths_by_pool({name: figures["widths"] for name, figures in pools.items()})
    if submit_s is not None and np.size(submit_s):
        plots["arrivals"] = arrivals(submit_s)
    hourly = description.get("utilization_hourly")
    if hourly:
        first_s = description["total"]["first_submit_s"] // HOUR_S * HOUR_S
        # Runs that the trace does not time may overlap to more than all GPUs.
        shares = np.minimum(np.asarray(hourly, dtype=float), 1.0)
        plots["utilization"] = busy(first_s + HOUR_S * np.arange(len(hourly)), shares)
    return plots


def _has_place(name: str, curve: Mapping[str, Sequence[float]]) -> bool:
    """Whether there is anything to draw: zero has no place on a logarithmic axis."""
    values = curve.get("x", ())
    return any(value > 0 for value in values) if CDFS[name][1].scale == "log" else bool(values)


def distribution(name: str, curve: Mapping[str, Sequence[float]]) -> Chart:
    """A distribution function of a description. SIA, Figure 2 (`utilization_hourly`) and Figures 3a to 3c."""
    title, axis, mark = CDFS[name]
    x, y = np.asarray(curve["x"], dtype=float), np.asarray(curve["y"], dtype=float)
    if axis.scale == "log":
        # Captions say that values of zero count.
        x, y = x[x > 0], y[x > 0]
    return curves(
        title, {"all": (x, y)}, axis, Axis("at or below", "share", low=0.0, high=1.0),
        dots=len(x) <= DISCRETE_POINTS, beside=[line_at("x", mark)] if mark else [], height=220,
    )  # fmt: skip


def widths_by_pool(widths: Mapping[str, Mapping[Any, int]]) -> Chart:
    """Shares of a pool's jobs by their GPUs, a band a pool, pools with most jobs first. SIA, section 2."""
    import altair as alt

    counts = {pool: _by_class(table) for pool, table in widths.items()}
    largest = sorted(counts, key=lambda pool: (-counts[pool].sum(), pool))[:MOST_POOLS]
    shown = [i for i in range(len(WIDTH_CLASSES)) if any(counts[pool][i] for pool in largest)]
    cells = [(pool, place, i) for pool in largest for place, i in enumerate(shown)]
    names = [f"{_class_name(*WIDTH_CLASSES[i])} GPU{'s' * (i > 0)}" for i in shown]
    x = Axis("jobs of the pool", "share", low=0.0, high=1.0)
    return bands(
        "Widths of jobs by pool",
        largest,
        {
            "row": [pool for pool, *_ in cells],
            "place": [place for _, place, _ in cells],
            "series": [names[place] for _, place, _ in cells],
            "value": [counts[pool][i] / counts[pool].sum() for pool, _, i in cells],
        },
        {"type": "bar"},
        {"shorthand": "value", "stack": True, **x.settings()},
        color=alt.Color("series:N", sort=names, scale=alt.Scale(scheme="cividis"), legend=alt.Legend()),
        order=alt.Order("place:Q"),
        tooltip=[{"field": "row", "title": "pool"}, {"field": "series", "title": "width"}, x.tooltip("value")],
    )


def _by_class(widths: Mapping[Any, int]) -> Any:
    return np.array([sum(n for width, n in widths.items() if a <= int(width) <= b) for a, b in WIDTH_CLASSES])


def _class_name(low: int, high: int) -> str:
    if low == high:
        return f"{low}"
    return f"{low} to {high}" if high < WIDTH_CLASSES[-1][1] else f"{low} or more"


def arrivals(submit_s: ArrayLike) -> Chart:
    """Jobs submitted over time, by hour in short traces and by day or more in long ones."""
    times_ms = milliseconds(submit_s)
    span_s = float(times_ms.max() - times_ms.min()) / 1000.0
    # The finest step that leaves bars wide enough to see.
    step_s = next((s for s in (HOUR_S, 6 * HOUR_S, DAY_S, 7 * DAY_S) if span_s / s <= MOST_BARS), 28 * DAY_S)
    # On whole steps of the clock that is shown, so that days begin at its midnight.
    edges = np.arange(times_ms.min() // (1000 * step_s), times_ms.max() // (1000 * step_s) + 2) * step_s * 1000
    unit = f"{step_s / HOUR_S:g} h" if step_s < DAY_S else f"{step_s / DAY_S:g} d"
    counts = np.histogram(times_ms, edges)[0]
    y = Axis(f"jobs in {unit}", "count")
    return _bars("Jobs submitted over time", edges[:-1], edges[1:], {"jobs": counts}, y, 170)


def _bars(title: str, begins: Any, ends: Any, parts: Mapping[str, Any], y: Axis, height: int) -> Chart:
    """Numbers by stretch of time, in milliseconds of the clock that is shown, stacked."""
    import altair as alt

    base = np.zeros(len(begins))
    columns: dict[str, list[Any]] = {name: [] for name in ("series", "x", "x2", "low", "high", "value")}
    for name, values in parts.items():
        top = base + values
        for key, cells in zip(columns, ([name] * len(begins), begins, ends, base, top, values), strict=True):
            columns[key] += list(cells)
        base = top
    x = Axis(f"{shown_zone()}", "time")
    labels = list(parts)
    drawn = alt.Chart(records(**columns), name="bars").mark_rect(stroke="white", strokeWidth=0.4, clip=True)
    encoded = drawn.encode(
        x=alt.X("x", **x.settings()),
        x2="x2:T",
        y=alt.Y("low", **y.settings(nice=True)),
        y2="high:Q",
        color=colour(labels),
        tooltip=[{"field": "series"}, Axis("from", "time").tooltip("x"), y.tooltip("value")],
    )
    return chart(title, zoomed(encoded), height)


def weeks(kind: str, title: str, amount: Axis) -> Callable[[Mapping[str, Any]], Chart]:
    """Jobs or GPU-hours by the week of submission, pools stacked, the busiest by GPU-hours with their own colour."""

    def paint(description: Mapping[str, Any]) -> Chart:
        table = description["weeks"]
        begins = milliseconds(table["from_s"])
        # One order for both charts, so that a colour is one pool.
        named = sorted(table["gpu_hours"], key=lambda pool: (-sum(table["gpu_hours"][pool]), pool))
        parts = _stacked({pool: np.asarray(table[kind][pool], dtype=float) for pool in named})
        return _bars(title, begins, begins + 1000 * WEEK_S, parts, amount, 190)

    return paint


def _stacked(by_pool: Mapping[str, Any]) -> dict[str, Any]:
    """The first pools, and all the others as one."""
    names = list(by_pool)
    # A rest of one pool is shown as itself.
    if len(names) <= MOST_STACKED + 1:
        return dict(by_pool)
    others = np.sum([by_pool[name] for name in names[MOST_STACKED:]], axis=0)
    return {name: by_pool[name] for name in names[:MOST_STACKED]} | {f"{len(names) - MOST_STACKED} others": others}


def week_map(description: Mapping[str, Any]) -> Chart:
    """Jobs submitted by hour of the week, as a map of colours."""
    import altair as alt

    jobs = description["hour_of_week"]
    cells = [(day, hour, value) for day, row in zip(DAYS, jobs, strict=True) for hour, value in enumerate(row)]
    days, hours, values = zip(*cells, strict=True)
    return bands(
        "When jobs come",
        DAYS,
        {"row": days, "hour": hours, "to": [hour + 1 for hour in hours], "value": values},
        {"type": "rect"},
        {
            "shorthand": "hour:Q",
            "title": f"hour of the day ({shown_zone()})",
            "scale": alt.Scale(domain=[0, 24], nice=False),
            "axis": alt.Axis(values=list(range(0, 25, 3)), grid=False),
        },
        x2="to:Q",
        color=shade("jobs an hour"),
        tooltip=[{"field": "row", "title": "day"}, {"field": "hour"}, Axis("jobs an hour").tooltip("value")],
    )


_RHYTHM: dict[str, tuple[str, Callable[[Mapping[str, Any]], Chart]]] = {
    "weeks_jobs": ("weeks", weeks("jobs", "Jobs by week and pool", Axis("jobs in the week", "count"))),
    "weeks_work": ("weeks", weeks("gpu_hours", "Work by week and pool", Axis("GPU-hours in the week"))),
    "hour_of_week": ("hour_of_week", week_map),
}
"""Name -> what of a description it needs, and how it is drawn."""
