"""Plots of the figures, as SVG files on white: panels by measure, lines, groups of bars, distributions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from jobcast.pipelines.report.plots import DASHES, INK, WIDE, draw

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS_LABELLED = 12
P = TypeVar("P")


def save(out: Path, name: str, title: str, paint: "Callable[[Figure], None]", size: tuple[float, float] = WIDE) -> None:
    """Draw `NAME.svg` into a folder, made where it is missing."""
    # A file on white, not a part of a page: there is no text colour that it could follow.
    svg = draw(title, paint, size).replace("currentColor", INK)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.svg").write_text(svg.replace("<svg ", '<svg style="background:white" ', 1) + "\n", encoding="utf-8")


def panels(
    out: Path,
    name: str,
    title: str,
    shown: Sequence[P],
    panel: "Callable[[Axes, P], None]",
    *,
    height: float,
    columns: int = 1,
    last: "Callable[[Axes], object] | None" = None,
    legend: bool = True,
    **shared: Any,
) -> None:
    """Draw `NAME.svg`: a panel each of what is shown, one legend of all.

    Parameters
    ----------
    panel : paints one of them
    height : of the figure, inches
    last : what is done to the last panel when all are painted
    shared : axes that panels share, as `subplots` takes them
    """

    def paint(figure: "Figure") -> None:
        grid = np.atleast_1d(figure.subplots(-(-len(shown) // columns), columns, **shared)).ravel()
        for axes, one in zip(grid, shown, strict=False):
            panel(axes, one)
        for axes in grid[len(shown) :]:
            axes.set_visible(False)
        if last:
            last(grid[len(shown) - 1])
        if legend:
            figure.legend(*grid[0].get_legend_handles_labels(), loc="outside right center")

    save(out, name, title, paint, (WIDE[0], height))


def hatch(dashes: str, mark: str = "//") -> str:
    """Of a bar that shares its colour with another: what a line would tell by its dashes."""
    return "" if dashes == DASHES[0] else mark


def grouped(
    axes: "Axes", cases: Sequence[str], values: Mapping[str, Sequence[float]], style: Mapping[str, Any]
) -> None:
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
