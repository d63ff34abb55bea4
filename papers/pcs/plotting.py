"""Plots of PCS's figures: distributions, trade-offs and bars by policy, which looks alike in all of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jobcast.pipelines.report.charts import thin_cdf
from jobcast.pipelines.report.look import INK, WIDE, Style, legend_beside
from papers.pcs.runs import TITLES
from papers.plotting import alike, hatch, save
from papers.results import Page

PCS = ("PCS-jct", "PCS-bal", "PCS-pred")
ALWAYS = (
    *PCS,
    *(TITLES[name] for name in ("elastic_fifo", "srsf", "afs", "elastic_themis", "elastic_fair", "elastic_las")),
)
TALL_PANEL = 2.9


def style_of(label: str, labels: Sequence[str] = ALWAYS) -> Style:
    """The style of a policy, or of a label among others."""
    plain = label.removesuffix(" (published)")
    return alike(labels, [plain])[plain]


def distributions(axes: Axes, values: Mapping[str, Sequence[float]], said: str, most: float | None = None) -> None:
    """Distribution functions, a line a name, up to `most`."""
    for label, numbers in values.items():
        x, share = thin_cdf(numbers)
        axes.step(np.append(0.0, x), np.append(0.0, share), where="post", label=label, **style_of(label).line)
    axes.set(xlabel=said, ylabel="share of jobs", ylim=(0, 1.02), xlim=(0, most))
    legend_beside(axes)


def scatter(axes: Axes, points: Mapping[str, tuple[float, float]], xlabel: str, ylabel: str) -> None:
    """A point a name, named beside it."""
    for label, (x, y) in points.items():
        axes.plot([x], [y], marker="o", linestyle="", color=style_of(label).color, label=label)
        axes.annotate(label, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)
    axes.set(xlabel=xlabel, ylabel=ylabel)


def jct_and_errors(page: Page, title: str, rows: Mapping[str, Mapping[str, float]]) -> None:
    """Draw `NAME.svg`: mean JCT over the lowest, and mean errors with a line to the 99th percentile, by policy."""
    lowest = min(figures["mean_jct_s"] for figures in rows.values())

    def paint(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for at, (label, figures) in enumerate(rows.items()):
            style = style_of(label)
            # Lines for what is published, crosses for what shares its colour with another.
            mark = "//" if "published" in label else hatch(style.dashes, "xx")
            look: dict[str, Any] = {"color": style.color, "hatch": mark, "edgecolor": "white"}
            left.bar(at, figures["mean_jct_s"] / lowest, 0.8, **look)
            right.bar(at, figures["mean_error_pct"], 0.8, **look)
            right.plot([at, at], [figures["mean_error_pct"], figures["p99_error_pct"]], color=INK, linewidth=1.2)
        for axes, said in ((left, "mean JCT / lowest"), (right, "mean prediction error (line: to the p99), %")):
            axes.set_xticks(range(len(rows)), list(rows), rotation=60, ha="right", fontsize=8)
            axes.set_title(said, loc="left")
            axes.grid(axis="x", visible=False)
        # Errors reach from none to thousands of percent.
        right.set_yscale("symlog", linthresh=1.0)
        right.set_ylim(0, None)
        right.yaxis.set_major_formatter("{x:g}")

    save(page, title, paint, (WIDE[0], 1.7 * TALL_PANEL))
