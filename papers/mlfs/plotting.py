"""Plots of MLFS's figures: a panel a measure over x, and distributions of completion times."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.pipelines.report.plots import WIDE, styles
from papers.mlfs.measures import Measure
from papers.mlfs.rows import ROWS
from papers.mlfs.tables import of_case
from papers.mlfs.units import Done
from papers.plotting import save
from papers.runs import Means

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = tuple(row.title for row in ROWS)
COLUMNS = 3
TALL_PANEL = 2.6
FIRST_MIN = 1.0


def _styles(labels: Sequence[str]) -> Mapping[str, dict[str, Any]]:
    """Lines by which a policy looks alike in all figures."""
    known = styles([*TITLES, *(label for label in labels if label not in TITLES)])
    return {label: known[label].line for label in labels}


def over_x(out: Path, name: str, title: str, found: Means, measures: Sequence[Measure]) -> None:
    """Draw `NAME.svg`: a panel a measure, a line a policy over the cases."""
    cases = list(dict.fromkeys(case for case, _ in found))
    names = list(dict.fromkeys(label for _, label in found))
    style = _styles(names)
    lines = -(-len(measures) // COLUMNS)

    def paint(figure: "Figure") -> None:
        panels = np.atleast_1d(figure.subplots(lines, min(COLUMNS, len(measures)))).ravel()
        for axes, measure in zip(panels, measures, strict=False):
            for label in names:
                values = [of_case(found, case)[label][measure.key] * measure.scale for case in cases]
                axes.plot(range(len(cases)), values, marker="o", markersize=3, label=label, **style[label])
            axes.set_xticks(range(len(cases)), [case.removeprefix("x = ") for case in cases])
            axes.set_title(measure.title, loc="left")
        for axes in panels[len(measures) :]:
            axes.set_visible(False)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")

    save(out, name, title, paint, (WIDE[0], max(1.3, lines) * TALL_PANEL))


def jct_cdfs(out: Path, name: str, title: str, done: Sequence[Done], cases: Sequence[str]) -> None:
    """Draw `NAME.svg`: distributions of completion times, a panel a case; draws put together."""
    names = list(dict.fromkeys(one.name for one in done))
    style = _styles(names)

    def panel(axes: "Axes", case: str) -> None:
        for label in names:
            pooled = np.sort(np.concatenate([one.jct_s for one in done if (one.case, one.name) == (case, label)]))
            axes.plot(pooled / 60.0, np.linspace(0.0, 1.0, len(pooled)), label=label, **style[label])
        axes.set(xscale="log", xlabel="JCT, min", ylabel="share of jobs", ylim=(0, 1.02), xlim=(FIRST_MIN, None))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_title(case, loc="left")

    def paint(figure: "Figure") -> None:
        panels = np.atleast_1d(figure.subplots(1, len(cases)))
        for axes, case in zip(panels, cases, strict=True):
            panel(axes, case)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")

    save(out, name, title, paint, (WIDE[0], 1.4 * TALL_PANEL))
