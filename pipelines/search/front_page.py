"""The front as files beside its table: an SVG, and a page with plots, the table and what it was searched on.

The front to choose from, drawn: a point a configuration, with what it is when pointed at. PCS, Figure 3.
"""

import re
from collections.abc import Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.domain.elastic import Floats
from jobcast.pipelines.files import write_text
from jobcast.pipelines.report.layout import Drawing, Table, render
from jobcast.pipelines.report.plots import INK, PALETTE, draw, legend_beside, plain_ticks
from jobcast.pipelines.search.evaluating import Objective
from jobcast.pipelines.search.front import Front, Row, figure_text
from jobcast.pipelines.search.proposing import FLOOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (9.0, 5.2)
LOG_RATIO = 30.0
"""Values that span more are drawn on a logarithmic axis; there those below `FLOOR` lie at it."""
HOVER_RADIUS = 7.0
MARKERS = ("s", "^", "D", "v")
NAMES = {"elastic_fifo": "FIFO, the default", "srsf": "SRSF (Tiresias)"}


def front_plots(front: Front) -> dict[str, str]:
    """An SVG for each pair of objectives, by their labels; none where nothing was simulated.

    With a single objective the configurations' numbers of queues are the other axis.
    """
    if not len(front.tested):
        return {}
    if len(front.objectives) == 1:
        return {front.objectives[0].label: _plot(front, (0, None))}
    pairs = combinations(range(len(front.objectives)), 2)
    return {f"{front.objectives[a].label} {front.objectives[b].label}": _plot(front, (b, a)) for a, b in pairs}


def _plot(front: Front, axes_of: tuple[int, int | None]) -> str:
    x, y = axes_of
    title = f"{_name(front, y)} against {_name(front, x)}"
    spots: list[tuple[float, float, str]] = []

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        logged = [_logged(front, one) for one in axes_of]
        for one, axis, is_log in zip(axes_of, ("x", "y"), logged, strict=True):
            axes.set(**{f"{axis}label": _name(front, one)})
            if is_log:
                axes.set(**{f"{axis}scale": "log"})
        points = _scatter(axes, front, axes_of, logged)
        legend_beside(axes)
        plain_ticks(*(axis for axis, is_log in zip((axes.xaxis, axes.yaxis), logged, strict=True) if is_log))
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # what was laid out is where the points to be pointed at lie
        at = axes.transData.transform([(a, b) for a, b, _ in points]) / figure.bbox.size
        spots.extend((a, b, text) for (a, b), (_, _, text) in zip(at.tolist(), points, strict=True))

    return _with_titles(draw(title, paint, SIZE), spots)


def _name(front: Front, at: int | None) -> str:
    return "queues" if at is None else front.objectives[at].title


def _value(front: Front, row: Row, at: int | None) -> float:
    if at is None:
        return float(len(row.config.rates))
    return row.test[at] if row.test else np.nan


def _all_values(front: Front, at: int) -> Floats:
    return np.array([row.test[at] for row in front.rows if row.test] + [one[at] for one in front.references.values()])


def _logged(front: Front, at: int | None) -> bool:
    if at is None:
        return False
    values = np.maximum(_all_values(front, at), FLOOR)
    return bool(values.max() / values.min() > LOG_RATIO)


def _scatter(
    axes: "Axes", front: Front, axes_of: tuple[int, int | None], logged: Sequence[bool]
) -> list[tuple[float, float, str]]:
    """Draw all points; where each lies in the axes' units, and what it is."""
    spots = []
    kinds: tuple[tuple[bool, str, dict[str, Any]], ...] = (
        (True, "to choose from", {"color": PALETTE[0]}),
        (False, "beaten on test samples", {"facecolors": "none", "edgecolors": PALETTE[0], "alpha": 0.5}),
    )
    for pareto, label, look in kinds:
        rows = [row for row in front.rows if row.pareto == pareto and row.test]
        at = [[_shown(_value(front, row, one), log) for one, log in zip(axes_of, logged, strict=True)] for row in rows]
        if not rows:
            continue
        xs, ys = np.transpose(at)
        axes.scatter(xs, ys, s=26, label=label, **look)
        spots += [(x, y, _told(front, row)) for (x, y), row in zip(at, rows, strict=True)]
        if pareto:
            for (x, y), row in zip(at, rows, strict=True):
                axes.annotate(str(row.pick), (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)
    for marker, (name, values) in zip(MARKERS, front.references.items(), strict=False):
        x, y = (_shown(1.0 if one is None else values[one], log) for one, log in zip(axes_of, logged, strict=True))
        label = NAMES.get(name, name)
        axes.scatter([x], [y], s=44, marker=marker, color=INK if marker == MARKERS[0] else PALETTE[1], label=label)
        spots.append((x, y, f"{label}: {_values_text(front.objectives, values)}"))
    return spots


def _shown(value: float, logged: bool) -> float:
    return max(value, FLOOR) if logged else value


def _told(front: Front, row: Row) -> str:
    told = ", ".join(f"{name} {figure_text(value)}" for name, value in row.parameters.items() if value is not None)
    return (
        f"pick {row.pick}: {_values_text(front.objectives, row.test or ())}\n"
        f"{len(row.config.rates)} queues up to {_thresholds(row)}\n{told}"
    )


def _thresholds(row: Row) -> str:
    return ", ".join("any size" if one == np.inf else f"{one:,.0f} s" for one in row.config.thresholds)


def _values_text(objectives: Sequence[Objective], values: Sequence[float]) -> str:
    return ", ".join(f"{one.label} {figure_text(value)}" for one, value in zip(objectives, values, strict=True))


def _with_titles(svg: str, spots: Sequence[tuple[float, float, str]]) -> str:
    """Lay a clear circle with a title over each point, given as shares of the figure from below left."""
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    if box is None:
        raise ValueError("an SVG without a viewBox has no place for titles")
    width, height = float(box[1]), float(box[2])
    circles = "".join(
        f'<circle cx="{x * width:.2f}" cy="{(1.0 - y) * height:.2f}" r="{HOVER_RADIUS:g}" fill="transparent">'
        f"<title>{escape(text)}</title></circle>\n"
        for x, y, text in spots
    )
    return svg.removesuffix("</svg>") + circles + "</svg>"


TEMPLATE = "front.html.j2"
CAPTION = (
    "Means over samples of the workload that the search did not see. Point at a configuration to see what it is; "
    "numbers are those to pick. On logarithmic axes what is less than 0.01 lies at 0.01."
)


def write_plots(front: Front, out: Path) -> list[Path]:
    """Write front.svg and front.html beside front.parquet; the SVG shows the first two objectives. What was written."""
    plots = front_plots(front)
    written = []
    if plots:
        svg = next(iter(plots.values()))
        named = svg if "xmlns=" in svg else svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        write_text(out.with_suffix(".svg"), named + "\n")
        written.append(out.with_suffix(".svg"))
    write_text(out.with_suffix(".html"), front_page(front, plots))
    return [*written, out.with_suffix(".html")]


def front_page(front: Front, plots: dict[str, str]) -> str:
    """A self-contained page."""
    return render(
        TEMPLATE,
        title="Configurations of PCS to choose from",
        facts=_facts(front),
        table=_table(front),
        figures=[Drawing(svg, CAPTION) for svg in plots.values()],
    )


def _table(front: Front) -> Table:
    parameters = ("T", "W", "zeta_min", "delta")
    head = ("pick", *(one.title for one in front.objectives), *parameters, "queues", "beaten")
    rows = []
    for row in front.rows:
        values = [figure_text(one) for one in row.test] if row.test else ["-"] * len(front.objectives)
        told = [figure_text(row.parameters.get(name)) for name in parameters]
        rows.append((str(row.pick), *values, *told, str(len(row.config.rates)), "" if row.pareto else "yes"))
    for name, shown in front.references.items():
        rows.append((name, *(figure_text(one) for one in shown), *([""] * (len(parameters) + 2))))
    note = "T, W, zeta_min: PCS, section 3.3. Beaten: another one is no worse in any objective and better in one."
    return Table("Test samples, mean", head, rows, note=note)


def _facts(front: Front) -> list[tuple[str, str]]:
    searched: dict[str, Any] = dict(front.about.get("search", {}))
    seen: dict[str, Any] = dict(front.about.get("workload", {}))
    told = [(name.replace("_", " "), _plain(value)) for name, value in searched.items()]
    told.append(("configurations tried", str(front.about.get("configurations", 0))))
    kept = ("jobs", "gpus", "rate_per_h", "load", "size_variation")
    return told + [(f"workload: {name.replace('_', ' ')}", _plain(seen[name])) for name in kept if name in seen]


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return "as seen" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value)
