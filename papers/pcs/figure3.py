"""PCS, Figure 3 (section 3.2): Pareto fronts of mean JCT and prediction error for two virtual clusters."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jobcast.domain.arrays import Floats
from jobcast.pipelines.experiments.search.evaluation import Candidate, parse_objectives
from jobcast.pipelines.report.look import INK, WIDE
from papers.pcs import fronts
from papers.pcs.fronts import CLUSTERS, NAMES, Sources, fresh_samples, tried
from papers.pcs.plotting import TALL_PANEL, style_of
from papers.pcs.published import CONFIGURED, THEIRS, published_configs
from papers.pcs.runs import PAPERS, TITLES, percent, share
from papers.plotting import save
from papers.results import HOUR_S, Claim, Page, claims, grid, number

OBJECTIVES = parse_objectives("jct:mean,error:mean,error:p99")
SEARCHED = parse_objectives(fronts.MEANS)
WITHIN = 0.02
"""A front matches a configuration that is nowhere better than some row of it by more."""
Rows = dict[str, Floats]
"""(3,) mean JCT in s, mean and p99 error in %, means over samples, by name; rows of the front are called by picks."""
Chosen = dict[int, str]
"""Names of configurations by their picks."""


def figure3(sources: Sources, page: Page) -> None:
    """Write the figure's page, tables and plots into a folder."""
    found = tried([trial for cluster in CLUSTERS for trial in _trials(sources, cluster)], OBJECTIVES)
    for cluster, rows in found.items():
        table = [(name, *(f"{value:.6g}" for value in of)) for name, of in rows.items()]
        page.named(f"figure3-{cluster}").csv(("name", *(one.label for one in OBJECTIVES)), table)
    chosen = {
        cluster: {row.pick: name for name, row in fronts.picks(sources.front(key)).items()}
        for cluster, key in CLUSTERS.items()
    }

    save(page, "Pareto fronts of two clusters", _paint, (WIDE[0], 2 * TALL_PANEL), found, chosen)
    tables = [part for cluster, rows in found.items() for part in (f"## {cluster}", _table(rows, chosen[cluster]))]
    said = claims(claim for cluster, rows in found.items() for claim in _claims(cluster, rows))
    page.write(tables=tables, claims=said)


def _trials(sources: Sources, cluster: str) -> list[fronts.Trial]:
    world, samples = fresh_samples(sources.data, fronts.SEARCHES[CLUSTERS[cluster]])
    rows = sources.front(CLUSTERS[cluster]).rows
    candidates: dict[str, Candidate] = {str(row.pick): row.config for row in rows if row.pareto}
    candidates |= {TITLES[name]: name for name in PAPERS}
    if cluster == CONFIGURED:
        candidates |= published_configs(sources.data)
    return [fronts.Trial(cluster, name, world, one, sample) for name, one in candidates.items() for sample in samples]


def _split(rows: Rows) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The front's rows, and the others."""
    mine = {name: of for name, of in rows.items() if name.isdigit()}
    return mine, {name: of for name, of in rows.items() if name not in mine}


def _named(rows: Rows, chosen: Chosen) -> list[tuple[str, Floats]]:
    """The chosen rows of the front by name, and the others."""
    mine, others = _split(rows)
    return [*((chosen[int(pick)], of) for pick, of in mine.items() if int(pick) in chosen), *others.items()]


def _table(rows: Rows, chosen: Chosen) -> str:
    lowest = min(of[0] for of in _split(rows)[0].values())
    lines = [
        (name, number(of[0] / HOUR_S), number(of[0] / lowest), percent(of[1]), percent(of[2]))
        for name, of in _named(rows, chosen)
    ]
    return grid(("", "mean JCT h", "x", "mean error %", "p99 error %"), lines)


def _claims(cluster: str, rows: Rows) -> list[Claim]:
    mine, others = _split(rows)
    values = np.array(list(mine.values()))
    front, lowest, quickest = values[:, :2], values[:, 0].min(), others[TITLES["srsf"]]
    made = []
    for at, part, said in ((1, 2, "mean JCT above the lowest that halves Tiresias's mean error"),
                           (2, 10, "the same for a tenth of its p99 error")):  # fmt: skip
        enough = values[values[:, at] <= quickest[at] / part, 0]
        result = f"{share(enough.min() / lowest - 1)} more" if len(enough) else "none"
        made.append(Claim(f"{cluster}: {said}", "small", result))
    for name in THEIRS:
        if name in others:
            apart = float(fronts.uncovered(others[name][None, :2], front)[0])
            said = f"{cluster}: {name} better than the front's nearest row by at most"
            made.append(Claim(said, f"our aim: {share(WITHIN)}", share(apart, 1), apart <= WITHIN))
    return made


def _paint(figure: Figure, found: dict[str, Rows], chosen: dict[str, Chosen]) -> None:
    panels = figure.subplots(2, len(found))
    for column, (cluster, rows) in enumerate(found.items()):
        for axes, (measure, at) in zip(panels[:, column], (("mean", 1), ("p99", 2)), strict=True):
            _one(axes, rows, at, chosen[cluster])
            axes.set_ylabel(f"{measure} error, %")
        panels[0][column].set_title(f"cluster {cluster}", loc="left")
        panels[1][column].set_xlabel("mean JCT / lowest of the front")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside right center", fontsize=8)


def _one(axes: Axes, rows: Rows, at: int, chosen: Chosen) -> None:
    mine = _split(rows)[0].values()
    lowest = min(of[0] for of in mine)
    front = np.array([(of[0] / lowest, of[at]) for of in mine])
    # Rows of a front are joined only in the figures that were searched for: in others they need not be in order.
    line = "-" if OBJECTIVES[at] in SEARCHED else ""
    axes.plot(*front.T, marker="o", markersize=3, color=INK, linewidth=0.8, linestyle=line, label="front")
    for name, of in _named(rows, chosen):
        marker, filled = ("D", "none") if name in THEIRS else ("o" if name in NAMES else "s", "full")
        color = style_of(name).color
        axes.plot([of[0] / lowest], [of[at]], marker=marker, fillstyle=filled, linestyle="", color=color, label=name)
    axes.margins(x=0.06, y=0.06)
