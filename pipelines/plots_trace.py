"""Plots of a trace: how idle, bursty and skewed it is. SIA, Figures 2 and 3."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.pipelines.plots import INK, NARROW, PALETTE, WIDE, date_ticks, draw, percent_ticks, plain_ticks, wrapped
from jobcast.pipelines.plots_backtest import utilisation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOUR_S = 3600.0
DAY_S = 86400.0
MOST_BARS = 120
MOST_POOLS = 25
WIDTH_CLASSES = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 2**31))
DISCRETE_POINTS = 60
"""Distribution functions of fewer points are drawn with a dot at each."""

CDFS: dict[str, tuple[str, str, bool, float | None]] = {
    "utilization_hourly": ("Hourly utilisation, all pools together", "share of all quotas at work", False, None),
    "interarrival_s": ("Times between submissions in a pool", "seconds to the next submission", True, None),
    "interarrival_cv": ("Variation of times between submissions", "standard deviation / mean, by pool", True, 1.0),
    "burst_share": ("Largest burst over the quota", "GPUs asked for in 5 min / quota, by pool", True, 1.0),
    "duration_spread": ("Spread of durations", "99th percentile / median, by pool", True, 10.0),
}
"""Curves of a description: title, x axis, whether it is logarithmic, a value to compare with."""


def trace_plots(description: Mapping[str, Any], submit_s: ArrayLike | None = None) -> dict[str, str]:
    """All plots that a description has data for, by name, wide ones last.

    Parameters
    ----------
    description : `traces.describe.Description.to_dict()`
    submit_s : submit times of all jobs, for the plot of arrivals over time
    """
    curves = description.get("curves", {})
    plots = {name: distribution(name, curves[name]) for name in CDFS if curves.get(name, {}).get("x")}
    pools = description.get("pools", {})
    if pools:
        plots["widths"] = widths_by_pool({name: figures["widths"] for name, figures in pools.items()})
    if submit_s is not None and np.size(submit_s):
        plots["arrivals"] = arrivals(submit_s)
    hourly = description.get("utilization_hourly")
    if hourly:
        first_s = description["total"]["first_submit_s"] // HOUR_S * HOUR_S
        times_s = first_s + HOUR_S * np.arange(len(hourly))
        shares = np.minimum(np.asarray(hourly, dtype=float), 1.0)
        plots["utilization"] = utilisation({"all pools": (times_s, shares)}, title="Utilisation over time")
    return plots


def distribution(name: str, curve: Mapping[str, Sequence[float]]) -> str:
    """A distribution function of a description. SIA, Figure 2 (`utilization_hourly`) and Figures 3a to 3c."""
    title, label, log, mark = CDFS[name]
    x, y = np.asarray(curve["x"], dtype=float), np.asarray(curve["y"], dtype=float)
    if log:
        x, y = x[x > 0], y[x > 0]

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        if mark:
            axes.axvline(mark, color=INK, linewidth=0.9, alpha=0.6)
        axes.step(x, y, where="post", color=PALETTE[0], marker="o" if len(x) <= DISCRETE_POINTS else "", markersize=3)
        if log and len(x):
            axes.set_xscale("log")
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
    step_s = next((s for s in (HOUR_S, 6 * HOUR_S, DAY_S, 7 * DAY_S) if span_s / s <= MOST_BARS), 28 * DAY_S)
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
