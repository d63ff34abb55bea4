"""The front as files beside its table: an SVG, and a page with plots, the table and what it was searched on."""

from pathlib import Path
from typing import Any

from jobcast.pipelines.files import write_text
from jobcast.pipelines.page import Drawing, Table, render
from jobcast.pipelines.search.front import Front, figure_text
from jobcast.pipelines.search.front_plot import front_plots

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
