"""PCS, Figure 3 (section 3.2): Pareto fronts of mean JCT and prediction error for two virtual clusters."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.domain.elastic import Floats
from jobcast.pipelines.experiments.search.evaluation import Candidate, World, parse_objectives, simulated
from jobcast.pipelines.experiments.search.workload_samples import Sample
from jobcast.pipelines.report.plots import INK
from papers.pcs.fronts import CLUSTERS, MEANS, NAMES, SEARCHES, fresh_samples, front_of, picks, uncovered
from papers.pcs.measured import CONFIGURED, THEIRS, published_configs
from papers.pcs.plotting import TALL_PANEL, WIDE, save, style_of
from papers.pcs.runs import TITLES
from papers.pcs.tables import percent, share
from papers.runs import in_parallel
from papers.sheets import HOUR_S, Claim, claims, grid, number, picture, write_csv, write_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OBJECTIVES = parse_objectives("jct:mean,error:mean,error:p99")
SEARCHED = parse_objectives(MEANS)
OTHERS = ("elastic_fifo", "srsf", "afs", "elastic_themis")
WITHIN = 0.02
"""A front matches a configuration that is nowhere better than some row of it by more."""
ABOUT = (
    "Rows of the front that none beats, on five samples that the search did not see, and other policies on the same "
    "samples. JCT is relative to the lowest of the front. The paper's JCTs are normalised too, by what it does not say."
)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A candidate on one sample.

    Attributes
    ----------
    cluster, name : of what; the rows of a front are called by their picks
    """

    cluster: str
    name: str
    world: World
    candidate: Candidate
    sample: Sample


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What came out: (3,) mean JCT in s, mean and p99 error in %."""

    cluster: str
    name: str
    values: Floats


Found = dict[str, dict[str, Floats]]
"""By cluster and name, means over samples."""


def figure3(data: Path, out: Path, fronts: Path) -> None:
    """Write the figure's page, tables and plots into a folder."""
    trials = [trial for cluster in CLUSTERS for trial in _trials(data, cluster, fronts)]
    values: dict[tuple[str, str], list[Floats]] = {}
    for one in in_parallel(_try, trials, lambda one: f"{one.cluster} {one.name}"):
        values.setdefault((one.cluster, one.name), []).append(one.values)
    found: Found = {cluster: {} for cluster in CLUSTERS}
    for (cluster, name), of in values.items():
        found[cluster][name] = np.mean(of, axis=0)
    for cluster, rows in found.items():
        table = [(name, *(f"{value:.6g}" for value in of)) for name, of in rows.items()]
        write_csv(out, f"figure3-{cluster}", ("name", *(one.label for one in OBJECTIVES)), table)
    chosen = {
        cluster: {row.pick: name for name, row in picks(front_of(fronts, key)).items()}
        for cluster, key in CLUSTERS.items()
    }
    save(
        out,
        "figure3",
        "Pareto fronts of two clusters",
        lambda figure: _paint(figure, found, chosen),
        (WIDE[0], 2 * TALL_PANEL),
    )
    parts = ["# Figure 3: Pareto fronts of two clusters", ABOUT, picture("figure3", "Pareto fronts")]
    for cluster, rows in found.items():
        parts += [f"## {cluster}", _table(rows, chosen[cluster])]
    write_page(out, "figure3", [*parts, "## Against the paper", claims(_claims(found, chosen))])


def _trials(data: Path, cluster: str, fronts: Path) -> list[Trial]:
    front = front_of(fronts, CLUSTERS[cluster])
    world, samples = fresh_samples(data, SEARCHES[CLUSTERS[cluster]])
    candidates: dict[str, Candidate] = {str(row.pick): row.config for row in front.rows if row.pareto}
    candidates |= {TITLES[name]: name for name in OTHERS}
    if cluster == CONFIGURED:
        candidates |= published_configs(data)
    return [Trial(cluster, name, world, one, sample) for name, one in candidates.items() for sample in samples]


def _try(trial: Trial) -> Value:
    found = simulated(trial.world, trial.candidate, trial.sample, OBJECTIVES)
    return Value(trial.cluster, trial.name, np.array(found))


def _split(rows: Mapping[str, Floats]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The front's rows, and the others."""
    mine = {name: of for name, of in rows.items() if name.isdigit()}
    return mine, {name: of for name, of in rows.items() if name not in mine}


def _table(rows: Mapping[str, Floats], chosen: Mapping[int, str]) -> str:
    mine, others = _split(rows)
    lowest = min(of[0] for of in mine.values())
    named = {chosen[int(pick)]: of for pick, of in mine.items() if int(pick) in chosen} | others
    lines = [
        (name, number(of[0] / HOUR_S), number(of[0] / lowest), percent(of[1]), percent(of[2]))
        for name, of in named.items()
    ]
    return grid(("", "mean JCT h", "x", "mean error %", "p99 error %"), lines)


def _claims(found: Found, chosen: Mapping[str, Mapping[int, str]]) -> list[Claim]:
    made = []
    for cluster, rows in found.items():
        mine, others = _split(rows)
        front = np.array([of[:2] for of in mine.values()])
        lowest, quickest = front[:, 0].min(), others[TITLES["srsf"]]
        half = [of[0] / lowest for of in front if of[1] <= quickest[1] / 2]
        told = f"{share(min(half) - 1)} more" if half else "none"
        made.append(
            Claim(f"{cluster}: mean JCT above the lowest that halves Tiresias's mean error", "small", told, None)
        )
        tenth = [of[0] / lowest for of in mine.values() if of[2] <= others[TITLES["srsf"]][2] / 10]
        told = f"{share(min(tenth) - 1)} more" if tenth else "none"
        made.append(Claim(f"{cluster}: the same for a tenth of its p99 error", "small", told, None))
        for name in THEIRS:
            if name in others:
                apart = float(uncovered(others[name][None, :2], front)[0])
                made.append(
                    Claim(
                        f"{cluster}: {name} better than the front's nearest row by at most",
                        f"our aim: {share(WITHIN)}",
                        share(apart, 1),
                        apart <= WITHIN,
                    )
                )
    return made


def _paint(figure: "Figure", found: Found, chosen: Mapping[str, Mapping[int, str]]) -> None:
    panels = figure.subplots(2, len(found))
    for column, (cluster, rows) in enumerate(found.items()):
        for axes, (measure, at) in zip(panels[:, column], (("mean", 1), ("p99", 2)), strict=True):
            _one(axes, rows, at, chosen[cluster])
            axes.set_ylabel(f"{measure} error, %")
        panels[0][column].set_title(f"cluster {cluster}", loc="left")
        panels[1][column].set_xlabel("mean JCT / lowest of the front")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside right center", fontsize=8)


def _one(axes: "Axes", rows: Mapping[str, Floats], at: int, chosen: Mapping[int, str]) -> None:
    mine, others = _split(rows)
    lowest = min(of[0] for of in mine.values())
    front = np.array([(of[0] / lowest, of[at]) for of in mine.values()])
    line = "-" if OBJECTIVES[at] in SEARCHED else ""
    axes.plot(*front.T, marker="o", markersize=3, color=INK, linewidth=0.8, linestyle=line, label="front")
    for name, of in [*((chosen[int(pick)], of) for pick, of in mine.items() if int(pick) in chosen), *others.items()]:
        marker, filled = ("D", "none") if name in THEIRS else ("o" if name in NAMES else "s", "full")
        color = style_of(name).color
        axes.plot([of[0] / lowest], [of[at]], marker=marker, fillstyle=filled, linestyle="", color=color, label=name)
    axes.margins(x=0.06, y=0.06)
