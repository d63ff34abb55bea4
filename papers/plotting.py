"""Plots of the figures, as SVG files on white: panels by measure, lines, groups of bars, distributions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jobcast.pipelines.report.look import DASHES, INK, WIDE, Style, draw, styles
from jobcast.simulator.log import Spans
from papers.results import HOUR_S, Measure, Page

MOST_BARS_LABELLED = 12
LANE = 0.42
"""Height of a GPU's lane, inches."""
LABELLED = 0.025
"""Share of the chart's width from which on a bar holds its job's name."""
P = TypeVar("P")


def save(page: Page, title: str, paint: Callable[..., None], size: tuple[float, float] = WIDE, *shown: Any) -> None:
    """Draw `NAME.svg` into the folder of a page: what `paint` makes of an empty figure and of what is shown."""
    # A file on white, not a part of a page: there is no text colour that it could follow.
    svg = draw(title, lambda figure: paint(figure, *shown), size).replace("currentColor", INK)
    white = svg.replace("<svg ", '<svg style="background:white" ', 1)
    page.file("svg").write_text(white + "\n", encoding="utf-8")


def panels(
    page: Page,
    title: str,
    shown: Sequence[P],
    panel: Callable[[Axes, P], None],
    *,
    height: float,
    columns: int = 1,
    last: Callable[[Axes], object] | None = None,
    titled: bool = True,
    legend: bool = True,
    **shared: Any,
) -> None:
    """Draw `NAME.svg`: a panel each of what is shown, one legend of all.

    Parameters
    ----------
    panel : paints one of them
    height : of the figure, inches
    last : what is done to the last panel when all are painted
    titled : whether each has what it shows as its title, of a measure that one's
    shared : axes that panels share, as `subplots` takes them
    """

    def paint(figure: Figure) -> None:
        grid = np.atleast_1d(figure.subplots(-(-len(shown) // columns), columns, **shared)).ravel()
        for axes, one in zip(grid, shown, strict=False):
            if titled:
                axes.set_title(one.title if isinstance(one, Measure) else str(one), loc="left")
            panel(axes, one)
        for axes in grid[len(shown) :]:
            axes.set_visible(False)
        if last:
            last(grid[len(shown) - 1])
        if legend:
            figure.legend(*grid[0].get_legend_handles_labels(), loc="outside right center")

    save(page, title, paint, (WIDE[0], height))


def alike(always: Sequence[str], labels: Iterable[str]) -> dict[str, Style]:
    """Styles by which a policy looks alike in all figures of a paper: those of `always` keep theirs."""
    return styles([*always, *(label for label in labels if label not in always)])


def hatch(dashes: str, mark: str = "//") -> str:
    """Of a bar that shares its colour with another: what a line would tell by its dashes."""
    return "" if dashes == DASHES[0] else mark


def grouped(axes: Axes, cases: Sequence[str], values: Mapping[str, Sequence[float]], style: Mapping[str, Any]) -> None:
    """A group of bars a case, a bar a name; their values above them where there are few."""
    width = 0.82 / len(values)
    for i, (label, heights) in enumerate(values.items()):
        at = np.arange(len(cases)) + (i - (len(values) - 1) / 2) * width
        look: dict[str, Any] = {"color": style[label].color, "hatch": hatch(style[label].dashes), "edgecolor": "white"}
        drawn = axes.bar(at, heights, width * 0.92, label=label, **look)
        if len(cases) * len(values) <= MOST_BARS_LABELLED:
            axes.bar_label(drawn, fmt="%.3g", fontsize=7, padding=1)
    axes.set_xticks(np.arange(len(cases)), cases if len(cases) > 1 else [""] * len(cases), fontsize=8.5)
    axes.grid(axis="x", visible=False)


def lanes_of(spans: Spans, gpus: Sequence[int]) -> list[tuple[int, int, int]]:
    """(span, node, lane) of every GPU that a span holds: the first lanes of its node that are free.

    Parameters
    ----------
    gpus : (n_nodes,) of the nodes
    """
    free_s = [np.full(count, -np.inf) for count in gpus]
    found = []
    for at in np.lexsort((spans.job, spans.from_s)).tolist():
        node = max(0, int(spans.node[at]))  # GPUs that are known by number alone are of one node
        lanes = np.flatnonzero(free_s[node] <= spans.from_s[at])[: int(spans.gpus[at])]
        free_s[node][lanes] = spans.until_s[at]
        found += [(at, node, int(lane)) for lane in lanes]
    return found


def gantt(page: Page, title: str, spans: Spans, jobs: Sequence[str], nodes: Mapping[str, int]) -> None:
    """Draw `NAME.svg`: a lane a GPU, bars of the jobs that hold it.

    Parameters
    ----------
    jobs : (n_jobs,) their names
    nodes : GPUs by node, in order
    """
    gpus = list(nodes.values())
    first = np.concatenate([[0], np.cumsum(gpus)])
    labels = [f"{node}, GPU {at + 1}" if count > 1 else node for node, count in nodes.items() for at in range(count)]
    style, begin_s = styles(jobs), float(spans.from_s.min())
    span_h = (float(spans.until_s.max()) - begin_s) / HOUR_S

    def paint(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        for at, node, lane in lanes_of(spans, gpus):
            job, y = jobs[spans.job[at]], int(first[node]) + lane
            left, wide = (spans.from_s[at] - begin_s) / HOUR_S, (spans.until_s - spans.from_s)[at] / HOUR_S
            look, mark = style[job], hatch(style[job].dashes)
            axes.barh(y, wide, 0.8, left, color=look.color, hatch=mark, edgecolor="white", linewidth=0.8)
            # A name is wider than a short bar.
            if wide > LABELLED * span_h:
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
                axes.text(left + wide / 2, y, job, ha="center", va="center", fontsize=8, bbox=box)
        axes.set_yticks(range(len(labels)), labels)
        axes.set(xlabel="hours", xlim=(0, None))
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)

    save(page, title, paint, (WIDE[0], 1.2 + LANE * len(labels)))
