"""A front: configurations to choose from, their values, the file that keeps them, and what is drawn beside it.

An SVG and a page with plots, the table and what it was searched on: a point a configuration, with what it is when
pointed at. PCS, Figure 3.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from jobcast.domain.elastic import Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.pipelines.experiments.search.evaluation import Objective, parse_objectives
from jobcast.pipelines.experiments.search.proposers import FLOOR
from jobcast.pipelines.report.files import write_text
from jobcast.pipelines.report.layout import Drawing, Table, render
from jobcast.pipelines.report.plots import INK, PALETTE, draw, legend_beside, plain_ticks
from jobcast.schedulers.elastic.config import WfqConfig, parse_config
from jobcast.traces.files import read_file, replacing
from jobcast.traces.table_files import parquet_metadata, read_parquet, write_parquet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDING = ".parquet"
ABOUT = "jobcast_front"
"""Key of the file's metadata under which lies what the front was searched on and how."""
AGAIN = "write one with jobcast search pcs"
PARAMETERS = ("T", "W", "zeta_min", "delta")


@dataclass(frozen=True, slots=True)
class Row:
    """A configuration of a front.

    Attributes
    ----------
    pick : its number
    config, parameters : and what it was made from, by name; T and W are None where it was not made from them
    train, test : values by objective, means over samples; None where nothing was simulated
    pareto : whether nothing of the front beats it on the test samples
    """

    pick: int
    config: WfqConfig
    parameters: Mapping[str, Any]
    train: tuple[float, ...] | None
    test: tuple[float, ...] | None
    pareto: bool


@dataclass(frozen=True, slots=True)
class Front:
    """What a search found.

    Attributes
    ----------
    objectives : in the order of the values
    rows : in the order of the picks: by the first objective on test samples
    references : values of other policies on the test samples, by name
    about : what it was searched on and how
    """

    objectives: tuple[Objective, ...]
    rows: tuple[Row, ...]
    references: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tested(self) -> Floats:
        """(n_pareto, n_objectives) values on test samples of the rows that nothing beats."""
        return np.array([row.test for row in self.rows if row.pareto and row.test is not None])

    def pick(self, number: int) -> Row:
        """A row by its number. Raises ConfigError that says which there are."""
        for row in self.rows:
            if row.pick == number:
                return row
        raise ConfigError(f"--pick {number}: the front has 0 to {len(self.rows) - 1}; choose one of them")


def check_front_path(path: Path) -> None:
    """Refuse a place for a front that is no Parquet file."""
    if path.suffix != ENDING:
        raise ConfigError(f"--out {path}: a front is a Parquet file; let the name end in {ENDING}")


def write_front(front: Front, path: Path) -> None:
    """One row a configuration, what it was searched on in the file's metadata. Raises ConfigError."""
    columns: dict[str, Any] = {"pick": [row.pick for row in front.rows], "pareto": [row.pareto for row in front.rows]}
    for at, objective in enumerate(front.objectives):
        for kind, values in (("test", [row.test for row in front.rows]), ("train", [row.train for row in front.rows])):
            # The default of too short a history was never simulated.
            rows = [one[at] if one else None for one in values]
            columns[f"{objective.label} {kind}"] = pl.Series(rows, dtype=pl.Float64)
    for name in PARAMETERS:
        columns[name] = pl.Series([_text(row.parameters.get(name)) for row in front.rows], dtype=pl.String)
    columns["queues"] = [len(row.config.rates) for row in front.rows]
    columns["config"] = [json.dumps(row.config.to_json()) for row in front.rows]
    # In the metadata: columns alone would not tell which figures are objectives.
    about = {"objectives": [one.label for one in front.objectives], "references": dict(front.references)}
    told_about = json.dumps({**about, **front.about})
    with replacing(path) as draft:
        write_parquet(pl.DataFrame(columns), draft, {ABOUT: told_about})


def _text(value: Any) -> str | None:
    """A parameter as text: there may be several W."""
    return None if value is None else json.dumps(value)


def read_front(path: Path) -> Front:
    """A front from its file. Raises ConfigError when it is none."""
    if not path.exists():
        raise ConfigError(f"{path}: no such file; write it with jobcast search pcs --out {path}")
    try:
        file = read_file(path)
        # The bytes are read once, so that table and metadata are of the same file.
        table = read_parquet(file, AGAIN)
        about = json.loads(parquet_metadata(file, AGAIN)[ABOUT])
        objectives = parse_objectives(",".join(about.pop("objectives")))
        references = {name: tuple(values) for name, values in about.pop("references").items()}
        rows = tuple(_row(described, objectives, path) for described in table.to_dicts())
    except TraceError as error:
        raise ConfigError(f"cannot be read as a front: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # Of a table or of what lies beside it when somebody else wrote them: columns that lack, values of other kinds.
        raise ConfigError(f"{path}: is no front ({type(error).__name__}: {error}); {AGAIN}") from error
    return Front(objectives, rows, references, about)


def _row(figures: Mapping[str, Any], objectives: tuple[Objective, ...], path: Path) -> Row:
    train, test = (tuple(figures[f"{one.label} {kind}"] for one in objectives) for kind in ("train", "test"))
    parameters = {name: json.loads(figures[name]) if figures[name] is not None else None for name in PARAMETERS}
    config = parse_config(json.loads(figures["config"]), f"{path}, pick {figures['pick']}")
    # Either all objectives were measured or none.
    known = test[0] is not None
    return Row(
        figures["pick"], config, parameters, train if known else None, test if known else None, figures["pareto"]
    )


def front_table(front: Front) -> str:
    """The front for a terminal: what may be chosen, then the policies shown beside it."""
    head = ["pick", *(one.label for one in front.objectives), *("T", "W", "zeta_min", "queues")]
    lines = [head]
    lines += [_cells(front, row, PARAMETERS[:3]) for row in front.rows if row.pareto]
    for name, shown in front.references.items():
        lines.append([name, *(figure_text(one) for one in shown), "", "", "", ""])
    # Numbers line up on the right, as wide as the widest.
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cells(front: Front, row: Row, parameters: Sequence[str]) -> list[str]:
    """A configuration's number, values on test samples, parameters and number of queues, as text."""
    values = [figure_text(one) for one in row.test] if row.test else ["-"] * len(front.objectives)
    rows = [figure_text(row.parameters.get(name)) for name in parameters]
    return [str(row.pick), *values, *rows, str(len(row.config.rates))]


def figure_text(value: Any) -> str:
    """A value as tables and plots show it."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return "/".join(figure_text(one) for one in value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


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
    # Of each pair the earlier objective is drawn upwards.
    pairs = combinations(range(len(front.objectives)), 2)
    return {f"{front.objectives[a].label} {front.objectives[b].label}": _plot(front, (b, a)) for a, b in pairs}


def _plot(front: Front, axes_of: tuple[int, int | None]) -> str:
    x, y = axes_of
    title = f"{_name(front, y)} against {_name(front, x)}"
    spots: list[tuple[float, float, str]] = []

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        # By axis, from all points, so that references fit too.
        logged = [_logged(front, one) for one in axes_of]
        for one, axis, is_log in zip(axes_of, ("x", "y"), logged, strict=True):
            axes.set(**{f"{axis}label": _name(front, one)})
            if is_log:
                axes.set(**{f"{axis}scale": "log"})
        points = _scatter(axes, front, axes_of, logged)
        legend_beside(axes)
        plain_ticks(*(axis for axis, is_log in zip((axes.xaxis, axes.yaxis), logged, strict=True) if is_log))
        # Only a laid out figure knows where its points lie.
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
    # More references than markers are not drawn.
    for marker, (name, values) in zip(MARKERS, front.references.items(), strict=False):
        x, y = (_shown(1.0 if one is None else values[one], log) for one, log in zip(axes_of, logged, strict=True))
        label = NAMES.get(name, name)
        axes.scatter([x], [y], s=44, marker=marker, color=INK if marker == MARKERS[0] else PALETTE[1], label=label)
        spots.append((x, y, f"{label}: {_values_text(front.objectives, values)}"))
    return spots


def _shown(value: float, logged: bool) -> float:
    return max(value, FLOOR) if logged else value


def _told(front: Front, row: Row) -> str:
    text = ", ".join(f"{name} {figure_text(value)}" for name, value in row.parameters.items() if value is not None)
    return (
        f"pick {row.pick}: {_values_text(front.objectives, row.test or ())}\n"
        f"{len(row.config.rates)} queues up to {_thresholds(row)}\n{text}"
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
        # A file of its own must name its space; inside a page the browser knows it.
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
    head = ("pick", *(one.title for one in front.objectives), *PARAMETERS, "queues", "beaten")
    rows = [[*_cells(front, row, PARAMETERS), "" if row.pareto else "yes"] for row in front.rows]
    for name, shown in front.references.items():
        rows.append([name, *(figure_text(one) for one in shown), *([""] * (len(PARAMETERS) + 2))])
    note = "T, W, zeta_min: PCS, section 3.3. Beaten: another one is no worse in any objective and better in one."
    return Table("Test samples, mean", head, rows, note=note)


def _facts(front: Front) -> list[tuple[str, str]]:
    searched: dict[str, Any] = dict(front.about.get("search", {}))
    seen: dict[str, Any] = dict(front.about.get("workload", {}))
    rows = [(name.replace("_", " "), _plain(value)) for name, value in searched.items()]
    rows.append(("configurations tried", str(front.about.get("configurations", 0))))
    kept = ("jobs", "gpus", "rate_per_h", "load", "size_variation")
    return rows + [(f"workload: {name.replace('_', ' ')}", _plain(seen[name])) for name in kept if name in seen]


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return "as seen" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value)
