"""PCS, Figure 10 (section 5.4): wrong sizes, and a load other than the one that was searched for."""

import numpy as np
from matplotlib.figure import Figure

from jobcast.domain.arrays import Floats
from jobcast.pipelines.experiments.search.evaluation import parse_objectives
from jobcast.pipelines.report.look import WIDE
from papers.pcs.fronts import APPS, APPS_60, NAMES, SEARCHES, Sources, Trial, behind, fresh_samples, tried
from papers.pcs.plotting import TALL_PANEL, style_of
from papers.pcs.runs import TITLES, Task, automl, percent, run, share
from papers.plotting import save
from papers.results import Means, Page, grid, means, number, result, run_all

SEEDS = tuple(range(5))
NOISES = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
FIFO, AFS = TITLES["elastic_fifo"], TITLES["afs"]
LEVELS = (0.02, 0.05, 0.1, 0.2)
NEAR = 0.1
"""Within so much of the front. PCS, section 5.4."""
SEARCHED, MISSED = "searched at 80 %", "searched at 60 %"


def figure10(sources: Sources, page: Page) -> None:
    """Write the figure's page, tables and plots into a folder."""
    found = means(page.runs(run_all(run, _tasks(sources))))
    loads = _at_another_load(sources)
    for name, values in loads.items():
        rows = [tuple(f"{value:.6g}" for value in one) for one in values]
        page.named(f"figure10-{name.replace(' %', '').replace(' ', '-')}").csv(("jct:mean", "error:mean"), rows)

    save(page, "Wrong sizes and loads", _paint, (WIDE[0], 1.3 * TALL_PANEL), found, loads)
    off = behind(loads[MISSED], loads[SEARCHED])
    head = ("off the front by at most", f"of the {len(off)} configurations searched at 60 %")
    levels = grid(head, ((share(level), share(float(np.mean(off <= level)))) for level in LEVELS))
    page.write(seeds=len(SEEDS), table=_table(found), off=levels, **_found(found, off))


def _tasks(sources: Sources) -> list[Task]:
    chosen, tasks = sources.configs(APPS), []
    for seed in SEEDS:
        for noise in NOISES:
            scenario = automl(seed, noise=noise)
            tasks += [Task(share(noise), name, scenario, config=config) for name, config in chosen.items()]
            tasks.append(Task(share(noise), FIFO, scenario, "elastic_fifo"))
        tasks.append(Task(share(0.0), AFS, automl(seed), "afs"))
    return tasks


def _at_another_load(sources: Sources) -> dict[str, Floats]:
    """(n, 2) mean JCT, s, and mean error, %, at 80 % load of what was searched there and at 60 %."""
    world, samples = fresh_samples(sources.data, SEARCHES[APPS])
    trials = [
        Trial(case, f"row {row.pick}", world, row.config, sample)
        for case, key in ((SEARCHED, APPS), (MISSED, APPS_60))
        for row in sources.front(key).rows
        if row.pareto
        for sample in samples
    ]
    found = tried(trials, parse_objectives(SEARCHES[APPS].objectives))
    return {case: np.array(list(rows.values())) for case, rows in found.items()}


def _over_noises(found: Means, name: str, key: str) -> list[float]:
    return [found[share(noise), name][key] for noise in NOISES]


def _table(found: Means) -> str:
    named = (FIFO, *NAMES)
    head = (*(f"{name}, mean error %" for name in named), *(f"{name}, JCT / AFS's" for name in NAMES))
    afs = found[share(0.0), AFS]["mean_jct_s"]
    errors = [map(percent, _over_noises(found, name, "mean_error_pct")) for name in named]
    jcts = [[number(value / afs, 3) for value in _over_noises(found, name, "mean_jct_s")] for name in NAMES]
    return grid(("sizes off by up to", *head), zip(map(share, NOISES), *errors, *jcts, strict=True))


def _found(found: Means, off: Floats) -> dict[str, str]:
    afs, jcts = found[share(0.0), AFS]["mean_jct_s"], _over_noises(found, NAMES[0], "mean_jct_s")
    fifo, ours = (_over_noises(found, name, "mean_error_pct") for name in (FIFO, NAMES[1]))
    alike, near = float(np.corrcoef(fifo, ours)[0, 1]), float(np.mean(off <= NEAR))
    worst = max(jcts) / afs
    return {
        "alike": result(number(alike), alike > 0.9),
        "worst": result(number(worst), worst <= 1.05),
        "grown": result(number(max(jcts) / jcts[0])),
        "near": result(share(near), near >= 0.5),
    }


def _paint(figure: Figure, found: Means, loads: dict[str, Floats]) -> None:
    left, middle, right = figure.subplots(1, 3)
    shares = [100 * noise for noise in NOISES]
    for name in (FIFO, *NAMES):
        left.plot(shares, _over_noises(found, name, "mean_error_pct"), label=name, **style_of(name).line)
    for name in NAMES:
        jct_min = [value / 60 for value in _over_noises(found, name, "mean_jct_s")]
        middle.plot(shares, jct_min, **style_of(name).line)
    middle.axhline(found[share(0.0), AFS]["mean_jct_s"] / 60, label=AFS + ", true sizes", **style_of(AFS).line)
    left.set(xlabel="sizes off by up to, %", ylabel="mean prediction error, %", ylim=(0, None))
    middle.set(xlabel="sizes off by up to, %", ylabel="mean JCT, minutes")
    # Room for the legend above the lines.
    middle.set_ylim(0, 1.15 * middle.get_ylim()[1])
    for (name, values), marker in zip(loads.items(), ("o", "s"), strict=True):
        color = style_of(name, (SEARCHED,)).color
        right.plot(values[:, 0] / 60, values[:, 1], marker=marker, markersize=4, linestyle="", label=name, color=color)
    right.set(xlabel="mean JCT at 80 % load, minutes", ylabel="mean prediction error, %")
    for axes in (left, middle, right):
        axes.legend(fontsize=8)
