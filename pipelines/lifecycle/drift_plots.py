"""Plots of drift: weeks on the x axis, limits as thin lines."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.pipelines.lifecycle.stability import PSI_LIMIT
from jobcast.pipelines.plots import INK, NARROW, WIDE, draw, legend_beside, percent_ticks, styles, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "os^Dv"
MOST_LABELS = 12
"""Weeks that are named below an axis."""
HEATMAP = "cividis"
DARK = 0.55
"""Share of the colour scale up to which a cell's number is written in white."""

SHOWN: Mapping[str, Mapping[str, str]] = {
    "will-jobs-arrive": {
        "base_rate": "Share of windows with arrivals by week",
        "bias": "Mean forecast less share with arrivals by week",
        "ece": "Calibration error by week",
        "miss_rate": "Windows with arrivals that the gate missed by week",
    },
    "new-load": {
        "coverage": "Windows whose load the estimate reached by week",
        "coverage_nonzero": "The same where load came, by week",
        "mean_load": "Mean load of a window by week",
        "over": "Estimates over loads by week",
    },
    "job-duration": {
        "accuracy": "Jobs whose likeliest bin was right by week",
        "log_loss": "Log loss by week",
        "ece": "Calibration error by week",
        "chosen_under": "Jobs told a bin that is too short by week",
    },
}
"""Figures that are drawn of each predictor, and their titles."""
SHARES = frozenset({"base_rate", "miss_rate", "coverage", "coverage_nonzero", "accuracy", "chosen_under", "bias"})
UNITS = {"mean_load": "GPUs", "over": "times the load", "log_loss": "nats", "ece": "mean |forecast − share|"}
SIGNS = {"coverage": -1.0, "accuracy": -1.0}
"""Figures that are off where they are low."""


def drift_plots(result: Mapping[str, Any]) -> dict[str, str]:
    """All plots of `drift.drift`'s result, by name: figures by week, then shifts of inputs and misses by pool."""
    weeks = [week["from"][:10] for week in result["weeks"]]
    plots = {}
    for figure, title in SHOWN[result["predictor"]].items():
        blocks = result["weeks"][0]["blocks"]
        series = {block: [week["blocks"][block].get(figure) for week in result["weeks"]] for block in blocks}
        plots[figure] = by_week(title, weeks, series, figure, _lines(result, figure))
    inputs = _inputs(result)
    if inputs:
        plots["inputs"] = heatmap(
            "Shift of inputs against training (stability index)", weeks, inputs, "{:.2f}", PSI_LIMIT
        )
    for block, misses in _misses(result).items():
        plots[f"misses_{block}"] = heatmap(
            f"Windows with arrivals missed by pool and week, {block} (%)", weeks, misses, "{:.0f}", 100.0
        )
    return plots


def by_week(
    title: str, weeks: Sequence[str], series: Mapping[str, Sequence[float | None]], figure: str, lines: Sequence[float]
) -> str:
    """A figure by week, a line a horizon; thin lines where it is to be watched and where it has drifted."""
    looks = styles(list(series))

    def paint(plot: "Figure") -> None:
        axes = plot.subplots()
        for line in lines:
            axes.axhline(line, color=INK, linewidth=0.9, alpha=0.6, linestyle="--")
        for marker, (label, values) in zip(MARKERS * len(series), series.items(), strict=False):
            points = np.array([np.nan if value is None else value for value in values])
            axes.plot(range(len(weeks)), points, label=label, color=looks[label].color, marker=marker, markersize=4)
        if figure in SHARES:
            percent_ticks(axes.yaxis)
        else:
            axes.set_ylabel(UNITS.get(figure, ""))
        _week_ticks(axes, weeks)
        if len(series) > 1:
            legend_beside(axes)

    return draw(title, paint, NARROW)


def heatmap(
    title: str, weeks: Sequence[str], rows: Mapping[str, Sequence[float | None]], form: str, least_top: float
) -> str:
    """A number a row and week, darker = less; empty where there is none; the scale reaches to `least_top` at least."""
    values = np.array([[np.nan if value is None else value for value in row] for row in rows.values()], dtype=float)

    def paint(plot: "Figure") -> None:
        axes = plot.subplots()
        top = float(np.nanmax(values, initial=least_top))
        axes.imshow(values, aspect="auto", cmap=HEATMAP, vmin=0.0, vmax=top)
        for row, column in np.argwhere(np.isfinite(values)):
            value = values[row, column]
            color = "white" if value <= DARK * top else "black"
            axes.text(column, row, form.format(value), ha="center", va="center", fontsize=8, color=color)
        axes.set_yticks(range(len(rows)), [wrapped(name) for name in rows])
        axes.grid(visible=False)
        _week_ticks(axes, weeks)

    return draw(title, paint, (WIDE[0], 1.4 + 0.3 * max(3, len(rows))))


def _week_ticks(axes: "Axes", weeks: Sequence[str]) -> None:
    step = -(-len(weeks) // MOST_LABELS)
    shown = range(0, len(weeks), step)
    axes.set_xticks(list(shown), [weeks[i][5:] for i in shown], rotation=45 if len(shown) > 6 else 0)
    axes.set_xlim(-0.5, len(weeks) - 0.5)
    axes.set_xlabel("week from (UTC)")


def _lines(result: Mapping[str, Any], figure: str) -> list[float]:
    """Where a figure is to be watched and where it has drifted."""
    limits = result["limits"].get(figure)
    if limits is None:
        return []
    base = result["nominal"].get(figure, 0.0)
    both = [base + SIGNS.get(figure, 1.0) * limits[name] for name in ("watch", "drifted")]
    return [*both, *(-line for line in both)] if figure == "bias" else both


def _inputs(result: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """The inputs that moved most in any week."""
    from jobcast.pipelines.lifecycle.drift import TOP_INPUTS

    weeks = [week["inputs"]["by_feature"] for week in result["weeks"]]
    most = {name: max(week.get(name, 0.0) for week in weeks) for week in weeks for name in week}
    names = sorted(most, key=lambda name: (-most[name], name))[:TOP_INPUTS]
    return {name: [week.get(name) for week in weeks] for name in names}


def _misses(result: Mapping[str, Any]) -> dict[str, dict[str, list[float | None]]]:
    """Miss rates in percent by horizon, pool and week."""
    if result["predictor"] != "will-jobs-arrive":
        return {}

    def percent(week: Mapping[str, Any], block: str, pool: str) -> float | None:
        rate = week["blocks"][block]["by_pool"][pool]["miss_rate"]
        return None if rate is None else 100.0 * rate

    return {
        block: {pool: [percent(week, block, pool) for week in result["weeks"]] for pool in result["pools"]}
        for block in result["weeks"][0]["blocks"]
    }
