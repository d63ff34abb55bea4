"""PCS, Figure 10 (section 5.4): wrong sizes, and a load other than the one that was searched for."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.domain.elastic import Floats
from jobcast.pipelines.experiments.search.evaluation import parse_objectives, simulated
from papers.pcs.figure3 import Trial, Value
from papers.pcs.fronts import APPS, APPS_60, NAMES, SEARCHES, behind, configs, fresh_samples, front_of
from papers.pcs.plotting import TALL_PANEL, WIDE, save, style_of
from papers.pcs.runs import TITLES, Task, run_all
from papers.pcs.tables import percent, share, write_runs
from papers.pcs.workloads import automl
from papers.runs import Means, in_parallel, means
from papers.sheets import Claim, claims, grid, number, picture, write_csv, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = tuple(range(5))
NOISES = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
FIFO, AFS = TITLES["elastic_fifo"], TITLES["afs"]
NEAR = 0.1
"""Within so much of the front. PCS, section 5.4."""
SEARCHED, MISSED = "searched at 80 %", "searched at 60 %"
ABOUT = (
    f"Workload 1, {len(SEEDS)} draws of 300 apps at 80 % load, ideal simulation. Declared sizes are the true ones "
    "times a factor drawn evenly from 1 - p to 1 + p, at least 0.01; policies and forecasts go by what is declared. "
    "AFS is told true sizes."
)
ABOUT_LOAD = (
    "Configurations that were searched at 60 % load, on the five fresh samples of the search at 80 %, beside "
    "that search's front. Off the front: by which share a configuration is worse, in the figure in which it does "
    "worse, than the row of the front that is closest to it."
)


def figure10(data: Path, out: Path, fronts: Path) -> None:
    """Write the figure's page, tables and plots into a folder."""
    done = run_all(_tasks(fronts))
    found = means(done)
    write_runs(out, "figure10", done)
    loads = _at_another_load(data, fronts)
    for name, values in loads.items():
        rows = [tuple(f"{value:.6g}" for value in one) for one in values]
        write_csv(out, f"figure10-{name.replace(' %', '').replace(' ', '-')}", ("jct:mean", "error:mean"), rows)
    save(
        out,
        "figure10",
        "Wrong sizes and loads",
        lambda figure: _paint(figure, found, loads),
        (WIDE[0], 1.3 * TALL_PANEL),
    )
    off = behind(loads[MISSED], loads[SEARCHED])
    parts = ["# Figure 10: wrong sizes and loads", ABOUT, _table(found), picture("figure10", "Wrong sizes and loads")]
    parts += ["## Another load", ABOUT_LOAD, _off_table(off), "## Against the paper", claims(_claims(found, off))]
    write_page(out, "figure10", parts)


def _case(noise: float) -> str:
    return share(noise)


def _tasks(fronts: Path) -> list[Task]:
    chosen = configs(front_of(fronts, APPS))
    tasks = []
    for seed in SEEDS:
        for noise in NOISES:
            scenario = automl(seed, noise=noise)
            tasks += [Task(_case(noise), name, scenario, config=config) for name, config in chosen.items()]
            tasks.append(Task(_case(noise), FIFO, scenario, "elastic_fifo"))
        tasks.append(Task(_case(0.0), AFS, automl(seed), "afs"))
    return tasks


def _at_another_load(data: Path, fronts: Path) -> dict[str, Floats]:
    """(n, 2) mean JCT, s, and mean error, %, at 80 % load of what was searched there and at 60 %."""
    searching = SEARCHES[APPS]
    world, samples = fresh_samples(data, searching)
    sources = {SEARCHED: front_of(fronts, APPS), MISSED: front_of(fronts, APPS_60)}
    trials = [
        Trial(name, str(row.pick), world, row.config, sample)
        for name, front in sources.items()
        for row in front.rows
        if row.pareto
        for sample in samples
    ]
    objectives = parse_objectives(searching.objectives)
    values: dict[str, dict[str, list[Floats]]] = {name: {} for name in sources}

    def one(trial: Trial) -> Value:
        return Value(
            trial.cluster, trial.name, np.array(simulated(trial.world, trial.candidate, trial.sample, objectives))
        )

    for value in in_parallel(one, trials, lambda value: f"{value.cluster}, row {value.name}"):
        values[value.cluster].setdefault(value.name, []).append(value.values)
    return {name: np.array([np.mean(of, axis=0) for of in rows.values()]) for name, rows in values.items()}


def _table(found: Means) -> str:
    head = (
        "sizes off by up to",
        *(f"{name}, mean error %" for name in (FIFO, *NAMES)),
        *(f"{name}, JCT / AFS's" for name in NAMES),
    )
    afs = found[_case(0.0), AFS]["mean_jct_s"]
    rows = [
        (
            _case(noise),
            *(percent(found[_case(noise), name]["mean_error_pct"]) for name in (FIFO, *NAMES)),
            *(number(found[_case(noise), name]["mean_jct_s"] / afs, 3) for name in NAMES),
        )
        for noise in NOISES
    ]
    return grid(head, rows)


def _off_table(off: Floats) -> str:
    levels = (0.02, 0.05, NEAR, 0.2)
    rows = [(share(level), share(float(np.mean(off <= level)))) for level in levels]
    return grid(("off the front by at most", f"of the {len(off)} configurations searched at 60 %"), rows)


def _claims(found: Means, off: Floats) -> list[Claim]:
    def errors(name: str) -> list[float]:
        return [found[_case(noise), name]["mean_error_pct"] for noise in NOISES]

    afs = found[_case(0.0), AFS]["mean_jct_s"]
    worst = max(found[_case(noise), NAMES[0]]["mean_jct_s"] for noise in NOISES) / afs
    grown = (
        max(found[_case(noise), NAMES[0]]["mean_jct_s"] for noise in NOISES) / found[_case(0.0), NAMES[0]]["mean_jct_s"]
    )
    alike = float(np.corrcoef(errors(FIFO), errors(NAMES[1]))[0, 1])
    near = float(np.mean(off <= NEAR))
    return [
        Claim(
            "error of PCS-bal follows FIFO's as sizes get worse (correlation)", "same trend", number(alike), alike > 0.9
        ),
        Claim("worst mean JCT of PCS-jct / AFS's with true sizes", "within 1.05", number(worst), worst <= 1.05),
        Claim("worst mean JCT of PCS-jct / its own with true sizes", "little", number(grown), None),
        Claim("configurations within 10 % of the front at a load missed", "75 %", share(near), near >= 0.5),
    ]


def _paint(figure: "Figure", found: Means, loads: dict[str, Floats]) -> None:
    left, middle, right = figure.subplots(1, 3)
    shares = [100 * noise for noise in NOISES]
    for name in (FIFO, *NAMES):
        left.plot(
            shares, [found[_case(noise), name]["mean_error_pct"] for noise in NOISES], label=name, **style_of(name).line
        )
    for name in NAMES:
        middle.plot(shares, [found[_case(noise), name]["mean_jct_s"] / 60 for noise in NOISES], **style_of(name).line)
    middle.axhline(found[_case(0.0), AFS]["mean_jct_s"] / 60, label=AFS + ", true sizes", **style_of(AFS).line)
    left.set(xlabel="sizes off by up to, %", ylabel="mean prediction error, %", ylim=(0, None))
    middle.set(xlabel="sizes off by up to, %", ylabel="mean JCT, minutes")
    middle.set_ylim(0, 1.15 * middle.get_ylim()[1])
    for (name, values), marker in zip(loads.items(), ("o", "s"), strict=True):
        right.plot(
            values[:, 0] / 60,
            values[:, 1],
            marker=marker,
            markersize=4,
            linestyle="",
            label=name,
            color=style_of(name, (SEARCHED,)).color,
        )
    right.set(xlabel="mean JCT at 80 % load, minutes", ylabel="mean prediction error, %")
    for axes in (left, middle, right):
        axes.legend(fontsize=8)
