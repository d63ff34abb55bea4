"""A front: configurations to choose from, their values, the file that keeps them, and what is drawn beside it.

An SVG and a page with plots, the table and what it was searched on: a point a configuration, with what it is when
pointed at. PCS, Figure 3.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.pipelines.experiments.search.evaluation import Objective, parse_objectives
from jobcast.pipelines.report.charts import DOT_PX, MUTED, NAME_PX, PALETTE, Axis, Chart, chart, colour, records, svg_of
from jobcast.pipelines.report.files import write_text
from jobcast.pipelines.report.formatting import number
from jobcast.pipelines.report.layout import Drawing, Finding, Table, aligned, render
from jobcast.schedulers.elastic.config import WfqConfig, parse_config
from jobcast.traces.files import read_file, replacing
from jobcast.traces.table_files import parquet_metadata, read_parquet, write_parquet

FLOOR = 0.01
"""Added to both sides of a ratio of objectives, % or seconds: an error of 0.001 % is no worse than one of 0."""
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
        metadata = parquet_metadata(file, AGAIN)
        # Any other Parquet file, an empty one too.
        if ABOUT not in metadata or not table.height:
            raise ConfigError(f"{path}: is no front: it holds no configuration of a search; {AGAIN}")
        about = json.loads(metadata[ABOUT])
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
    shown = [row for row in front.rows if row.pareto]
    # Raw numbers have no T and no W.
    told = [name for name in PARAMETERS[:3] if any(row.parameters.get(name) is not None for row in shown)]
    lines = [["pick", *(one.label for one in front.objectives), *told, "queues"]]
    lines += [_cells(front, row, told) for row in shown]
    for name, values in front.references.items():
        lines.append([name, *(figure_text(_exact(one)) for one in values), *[""] * (len(told) + 1)])
    return aligned(lines, words=0)


def _cells(front: Front, row: Row, parameters: Sequence[str]) -> list[str]:
    """A configuration's number, values on test samples, parameters and number of queues, as text."""
    values = [figure_text(_exact(one)) for one in row.test] if row.test else ["-"] * len(front.objectives)
    rows = [figure_text(row.parameters.get(name)) for name in parameters]
    return [str(row.pick), *values, *rows, str(len(row.config.rates))]


def figure_text(value: Any) -> str:
    """A value as tables and plots show it."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return "/".join(figure_text(one) for one in value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


LOG_RATIO = 30.0
"""Values that span more are drawn on a logarithmic axis; there those below `FLOOR` lie at it."""
NAMES = {"elastic_fifo": "FIFO, the default", "srsf": "SRSF (Tiresias)"}
SUGGESTED, CHOICE, BEATEN = "suggested", "to choose from", "beaten on test samples"
LOOKS = {SUGGESTED: ("diamond", PALETTE[2]), CHOICE: ("circle", PALETTE[0]), BEATEN: ("circle", MUTED)}
REFERENCES = ("square", "triangle-up", "cross", "triangle-down")


def suggested(front: Front) -> Row | None:
    """The configuration nearest to the best of every objective, each scaled by what the front spans (its knee)."""
    rows = [row for row in front.rows if row.pareto and row.test]
    if not rows:
        return None
    values = front.tested
    span = np.ptp(values, axis=0)
    away = (values - values.min(axis=0)) / np.where(span > 0, span, 1.0)
    return rows[int(np.argmin((away**2).sum(axis=1)))]


def front_plots(front: Front, name: str = "FRONT") -> dict[str, Chart]:
    """A chart for each pair of objectives, by their labels; none where nothing was simulated.

    With a single objective the configurations' numbers of queues are the other axis.

    Parameters
    ----------
    name : of the front's file, for the command that a click on a configuration tells
    """
    if not len(front.tested):
        return {}
    if len(front.objectives) == 1:
        return {front.objectives[0].label: _plot(front, (0, None), name)}
    # Of each pair the earlier objective is drawn upwards.
    pairs = combinations(range(len(front.objectives)), 2)
    return {f"{front.objectives[a].label} {front.objectives[b].label}": _plot(front, (b, a), name) for a, b in pairs}


def _plot(front: Front, axes_of: tuple[int, int | None], name: str) -> Chart:
    import altair as alt

    points = _points(front, axes_of, name)
    labels = list(dict.fromkeys(one["series"] for one in points))
    # On top of what lies at the same place.
    points.sort(key=lambda one: one["series"] == SUGGESTED)
    references = dict(zip((one for one in labels if one not in LOOKS), REFERENCES * len(labels), strict=False))
    shapes = {one: references[one] if one in references else LOOKS[one][0] for one in labels}
    colours = {one: PALETTE[1] if one in references else LOOKS[one][1] for one in labels}
    data = records(**{key: [one[key] for one in points] for key in points[0]})
    base = alt.Chart(data).encode(
        x=alt.X("x", **_axis(front, axes_of[0], DOT_PX)), y=alt.Y("y", **_axis(front, axes_of[1], NAME_PX))
    )
    marks = base.mark_point(filled=True, size=90, opacity=0.9).encode(
        color=colour(labels, colours, legend=True),
        shape=alt.Shape("series:N", scale=alt.Scale(domain=labels, range=list(shapes.values()))),
        tooltip=[alt.Tooltip("told:N", title="configuration")],
    )
    # One label: numbers of all would lie over one another; a tooltip tells them.
    inward = alt.expr("scale('x', datum.x) > width / 2 ? 'right' : 'left'")
    names = base.mark_text(dy=-12, align=inward).encode(text="name:N")
    return chart(f"{_name(front, axes_of[1])} against {_name(front, axes_of[0])}", alt.layer(marks, names), 340)


def _axis(front: Front, at: int | None, room_px: int) -> dict[str, Any]:
    logged = _logged(front, at)
    return Axis(_name(front, at) + " (log scale)" * logged, scale="log" if logged else "linear").settings(
        padding=room_px
    )


def _points(front: Front, axes_of: tuple[int, int | None], name: str) -> list[dict[str, Any]]:
    """A record a configuration and reference: where it lies, what it is, the command that takes it."""
    best, logged = suggested(front), [_logged(front, one) for one in axes_of]

    def placed(values: Sequence[float], queues: int) -> dict[str, float]:
        at = (float(queues) if one is None else _told_value(front, one, values[one]) for one in axes_of)
        return {key: max(value, FLOOR) if log else value for key, value, log in zip("xy", at, logged, strict=True)}

    found = []
    for row in front.rows:
        if row.test is not None:
            kind = SUGGESTED if row is best else CHOICE if row.pareto else BEATEN
            found.append(
                placed(row.test, len(row.config.rates))
                | {"series": kind, "told": _told(front, row), "name": f"pick {row.pick}" if row is best else ""}
                | {"command": f"jobcast search apply {name} --pick {row.pick} --out config.json"}
            )
    for reference, values in front.references.items():
        label = NAMES.get(reference, reference)
        told = f"{label}: {_values_text(front, values)}"
        found.append(placed(values, 1) | {"series": label, "told": told, "name": "", "command": ""})
    return found


def _name(front: Front, at: int | None) -> str:
    return "queues" if at is None else front.objectives[at].title.replace("(s)", "(h)")


def _told_value(front: Front, at: int, value: float) -> float:
    """A value of an objective; lengths of time in hours, in which people read them."""
    return value / HOUR_S if front.objectives[at].title.endswith("(s)") else value


def _logged(front: Front, at: int | None) -> bool:
    if at is None:
        return False
    given = [row.test[at] for row in front.rows if row.test] + [one[at] for one in front.references.values()]
    values = np.maximum(given, FLOOR)
    return bool(values.max() / values.min() > LOG_RATIO)


def _told(front: Front, row: Row) -> str:
    text = ", ".join(f"{name} {figure_text(value)}" for name, value in row.parameters.items() if value is not None)
    sizes = ", ".join("any size" if one == np.inf else f"{one:,.0f} s" for one in row.config.thresholds)
    return (
        f"pick {row.pick}: {_values_text(front, row.test or ())}; {len(row.config.rates)} queues up to {sizes}; {text}"
    )


def _values_text(front: Front, values: Sequence[float]) -> str:
    return ", ".join(
        f"{_name(front, at)} {page_text(_told_value(front, at, value))}" for at, value in enumerate(values)
    )


def page_text(value: float) -> str:
    """A value on a page; rounding errors are nothing."""
    return number(_exact(value))


def _exact(value: float) -> float:
    """A value of an objective as people read it: rounding errors are nothing."""
    return 0.0 if abs(value) < FLOOR * 1e-6 else value


TEMPLATE = "front.html.j2"
CAPTION = (
    "Means over samples of the workload that the search did not see. Point at a configuration to see what it is, click "
    "it for the command that takes it. On logarithmic axes what is less than 0.01 lies at 0.01."
)


def write_plots(front: Front, out: Path) -> list[Path]:
    """Write front.svg and front.html beside front.parquet; the SVG shows the first two objectives. What was written."""
    plots = front_plots(front, out.name)
    written = []
    if plots:
        write_text(out.with_suffix(".svg"), svg_of(next(iter(plots.values()))) + "\n")
        written.append(out.with_suffix(".svg"))
    write_text(out.with_suffix(".html"), front_page(front, plots, out.name))
    return [*written, out.with_suffix(".html")]


def front_page(front: Front, plots: dict[str, Chart], name: str = "FRONT") -> str:
    """A self-contained page."""
    best = suggested(front)
    return render(
        TEMPLATE,
        title="Configurations of PCS to choose from",
        command=f"jobcast search apply {name} --pick {best.pick if best else 0} --out config.json",
        finding=_finding(front, best),
        facts=_facts(front),
        table=_table(front),
        figures=[Drawing(one, CAPTION) for one in plots.values()],
    )


def _finding(front: Front, best: Row | None) -> Finding:
    """Which configuration to take if nothing else is wished for, and how it does beside the references."""
    if best is None or best.test is None:
        return Finding("Nothing was simulated: the default is all that there is to choose from.", ())
    lead = f"If no objective matters more than another, take pick {best.pick}: {_values_text(front, best.test)}."
    beside = [f"{NAMES.get(name, name)}: {_values_text(front, values)}." for name, values in front.references.items()]
    why = "It lies nearest to the best of each objective, each scaled by what the front spans."
    return Finding(lead, [why, *beside])


def _table(front: Front) -> Table:
    head = ("pick", *(_name(front, at) for at in range(len(front.objectives))), *PARAMETERS, "queues", "beaten")

    def told(values: Sequence[float] | None) -> list[str]:
        if values is None:
            return ["-"] * len(front.objectives)
        return [page_text(_told_value(front, at, value)) for at, value in enumerate(values)]

    rows = []
    for row in front.rows:
        cells = _cells(front, row, PARAMETERS)
        cells[1 : 1 + len(front.objectives)] = told(row.test)
        rows.append([*cells, "" if row.pareto else "yes"])
    for name, shown in front.references.items():
        rows.append([name, *told(shown), *([""] * (len(PARAMETERS) + 2))])
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
