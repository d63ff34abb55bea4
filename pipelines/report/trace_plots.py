"""Plots of a trace: when its jobs come and how long they run and wait, how idle, bursty and skewed it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.pipelines.report.plots import (
    INK,
    NARROW,
    PALETTE,
    WIDE,
    date_ticks,
    draw,
    percent_ticks,
    plain_ticks,
    utilisation,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOUR_S = 3600.0
DAY_S = 86400.0
MOST_BARS = 120
MOST_POOLS = 25
WIDTH_CLASSES = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 2**31))
LENGTHS = frozenset({"duration_s", "wait_s", "interarrival_s"})
"""Distributions of lengths of time, marked in seconds, minutes, hours and days."""
LENGTH_TICKS = {
    "0.01 s": 0.01, "1 s": 1.0, "10 s": 10.0, "1 min": 60.0, "10 min": 600.0, "1 h": 3600.0, "6 h": 21600.0,
    "1 d": 86400.0, "1 week": 604800.0, "1 month": 2592000.0,
}  # fmt: skip
MOST_STACKED = 6
"""So many pools have a colour of their own; the others are one together."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DISCRETE_POINTS = 60
"""Distribution functions of fewer points are drawn with a dot at each."""

CDFS: dict[str, tuple[str, str, bool, float | None]] = {
    "duration_s": ("Run times of jobs", "run time", True, None),
    "wait_s": ("Waiting times of jobs", "from submission to start", True, None),
    "utilization_hourly": ("Hourly utilisation, all pools together", "share of all quotas at work", False, None),
    "interarrival_s": ("Times between submissions in a pool", "to the next submission", True, None),
    "interarrival_cv": ("Variation of times between submissions", "standard deviation / mean, by pool", True, 1.0),
    "burst_share": ("Largest burst over the quota", "GPUs asked for in 5 min / quota, by pool", True, 1.0),
    "duration_spread": ("Spread of durations", "99th percentile / median, by pool", True, 10.0),
}
"""Curves of a description: title, x axis, whether it is logarithmic, a value to compare with."""


def trace_plots(description: Mapping[str, Any], submit_s: ArrayLike | None = None) -> dict[str, str]:
    """All plots that a description has data for, by name.

    Parameters
    ----------
    description : `traces.describe.Description.to_dict()`
    submit_s : submit times of all jobs, for the plot of arrivals over time
    """
    curves = description.get("curves", {})
    rhythm = {name: paint(description) for name, paint in _RHYTHM.items() if description.get(name)}
    plots = rhythm | {name: distribution(name, curves[name]) for name in CDFS if curves.get(name, {}).get("x")}
    pools = description.get("pools", {})
    if pools:
        plots["widths"] = widths_by_pool({name: figures["widths"] for name, figures in pools.items()})
    if submit_s is not None and np.size(submit_s):
        plots["arrivals"] = arrivals(submit_s)
    hourly = description.get("utilization_hourly")
    if hourly:
        first_s = description["total"]["first_submit_s"] // HOUR_S * HOUR_S
        times_s = first_s + HOUR_S * np.arange(len(hourly))
        # Runs that the trace does not time may overlap to more than all GPUs.
        shares = np.minimum(np.asarray(hourly, dtype=float), 1.0)
        plots["utilization"] = utilisation({"all pools": (times_s, shares)}, title="Utilisation over time")
    return plots


def distribution(name: str, curve: Mapping[str, Sequence[float]]) -> str:
    """A distribution function of a description. SIA, Figure 2 (`utilization_hourly`) and Figures 3a to 3c."""
    title, label, log, mark = CDFS[name]
    x, y = np.asarray(curve["x"], dtype=float), np.asarray(curve["y"], dtype=float)
    if log:
        # Zero has no place on a logarithmic axis; captions say that such values count.
        x, y = x[x > 0], y[x > 0]

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        if mark:
            axes.axvline(mark, color=INK, linewidth=0.9, alpha=0.6)
        axes.step(x, y, where="post", color=PALETTE[0], marker="o" if len(x) <= DISCRETE_POINTS else "", markersize=3)
        if log and len(x):
            axes.set_xscale("log")
            if name in LENGTHS:
                _length_ticks(axes)
            else:
                plain_ticks(axes.xaxis)
        if name == "utilization_hourly":
            percent_ticks(axes.xaxis)
        axes.set_ylim(0, 1.02)
        percent_ticks(axes.yaxis)
        axes.set_xlabel(label + (" (log scale)" if log else ""))
        axes.set_ylabel("at or below")

    return draw(title, paint, NARROW)


def widths_by_pool(widths: Mapping[str, Mapping[Any, int]]) -> str:
    """Shares of a pool's jobs by their GPUs, a bar a pool, pools with most jobs first. SIA, section 2."""
    from matplotlib import colormaps

    counts = {pool: _by_class(table) for pool, table in widths.items()}
    largest = sorted(counts, key=lambda pool: (-counts[pool].sum(), pool))[:MOST_POOLS]
    shown = [i for i in range(len(WIDTH_CLASSES)) if any(counts[pool][i] for pool in largest)]

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        left = np.zeros(len(largest))
        for place, i in enumerate(shown):
            part = np.array([counts[pool][i] / counts[pool].sum() for pool in largest])
            color = colormaps["cividis"](place / max(1, len(shown) - 1))
            axes.barh(
                [wrapped(pool) for pool in largest],
                part,
                left=left,
                color=color,
                label=_class_name(*WIDTH_CLASSES[i]),
                height=0.72,
            )
            left += part
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        percent_ticks(axes.xaxis)
        axes.set_xlabel("jobs of the pool")
        axes.grid(visible=False)
        axes.legend(title="GPUs", loc="center left", bbox_to_anchor=(1.01, 0.5))

    return draw("Widths of jobs by pool", paint, (WIDE[0], 1.6 + 0.27 * max(4, len(largest))))


def _by_class(widths: Mapping[Any, int]) -> Any:
    return np.array([sum(n for width, n in widths.items() if a <= int(width) <= b) for a, b in WIDTH_CLASSES])


def _class_name(low: int, high: int) -> str:
    if low == high:
        return f"{low}"
    return f"{low} to {high}" if high < WIDTH_CLASSES[-1][1] else f"{low} or more"


def arrivals(submit_s: ArrayLike) -> str:
    """Jobs submitted over time, by hour in short traces and by day or more in long ones."""
    times = np.asarray(submit_s, dtype=float)
    span_s = float(times.max() - times.min())
    # The finest step that leaves bars wide enough to see.
    step_s = next((s for s in (HOUR_S, 6 * HOUR_S, DAY_S, 7 * DAY_S) if span_s / s <= MOST_BARS), 28 * DAY_S)
    # On whole steps since the epoch, so that days begin at midnight UTC.
    edges = np.arange(times.min() // step_s, times.max() // step_s + 2) * step_s
    counts = np.histogram(times, edges)[0]
    unit = f"{step_s / HOUR_S:g} h" if step_s < DAY_S else f"{step_s / DAY_S:g} d"

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.bar(edges[:-1], counts, width=0.9 * step_s, align="edge", color=PALETTE[0])
        axes.set_ylabel(f"jobs submitted in {unit}")
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,g}")
        axes.set_xlabel("UTC")
        axes.grid(axis="x", visible=False)
        date_ticks(axes)

    return draw("Jobs submitted over time", paint, (WIDE[0], 3.0))


def _length_ticks(axes: Any) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    low, high = axes.get_xlim()
    shown = {name: at for name, at in LENGTH_TICKS.items() if low <= at <= high}
    axes.xaxis.set_major_locator(FixedLocator(list(shown.values())))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(list(shown), fontsize=8)


def weeks(description: Mapping[str, Any]) -> str:
    """Jobs and GPU-hours by the week of submission, pools stacked, the busiest by GPU-hours with their own colour."""
    table = description["weeks"]
    starts = np.asarray(table["from_s"], dtype=float)
    # One order for both panels, so that a colour is one pool.
    named = sorted(table["gpu_hours"], key=lambda pool: (-sum(table["gpu_hours"][pool]), pool))
    parts = {
        kind: _stacked({pool: np.asarray(table[kind][pool], dtype=float) for pool in named})
        for kind in ("jobs", "gpu_hours")
    }

    def paint(figure: "Figure") -> None:
        panels = figure.subplots(2, 1, sharex=True)
        for axes, (kind, label) in zip(panels, (("jobs", "jobs"), ("gpu_hours", "GPU-hours")), strict=True):
            base = np.zeros(len(starts))
            for place, (pool, values) in enumerate(parts[kind].items()):
                look = {"color": PALETTE[place % len(PALETTE)], "alpha": 1.0 if place < MOST_STACKED else 0.45}
                axes.bar(starts, values, 0.9 * WEEK_S, bottom=base, align="edge", label=wrapped(pool), **look)
                base += values
            axes.set_ylabel(label)
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:,g}")
            axes.grid(axis="x", visible=False)
        date_ticks(panels[-1])
        panels[-1].set_xlabel("week of submission, from Monday (UTC); the first and the last may be cut")
        panels[0].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))

    return draw("Jobs and work by week and pool", paint, (WIDE[0], 4.8))


def _stacked(by_pool: Mapping[str, Any]) -> dict[str, Any]:
    """The first pools, and all the others as one."""
    names = list(by_pool)
    # A rest of one pool is shown as itself.
    if len(names) <= MOST_STACKED + 1:
        return dict(by_pool)
    others = np.sum([by_pool[name] for name in names[MOST_STACKED:]], axis=0)
    return {name: by_pool[name] for name in names[:MOST_STACKED]} | {f"{len(names) - MOST_STACKED} others": others}


def week_map(description: Mapping[str, Any]) -> str:
    """Jobs submitted by hour of the week, as a map of colours."""
    jobs = np.array(
        [[np.nan if cell is None else cell for cell in day] for day in description["hour_of_week"]], dtype=float
    )

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        mesh = axes.pcolormesh(np.arange(25), np.arange(8), jobs, cmap="cividis", vmin=0, edgecolors="none")
        axes.invert_yaxis()
        axes.set_yticks(np.arange(7) + 0.5, DAYS)
        axes.set_xticks(range(0, 25, 3))
        axes.set_xlabel("hour of the day (UTC)")
        axes.grid(visible=False)
        figure.colorbar(mesh, ax=axes, label="jobs an hour", pad=0.01)

    return draw("When jobs come", paint, (WIDE[0], 3.0))


WEEK_S = 7 * DAY_S
_RHYTHM: dict[str, Callable[[Mapping[str, Any]], str]] = {"weeks": weeks, "hour_of_week": week_map}
