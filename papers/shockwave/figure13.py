"""Shockwave, Figure 13 (section 8.10): run times that are wrong."""

from pathlib import Path

from matplotlib.axes import Axes

from jobcast.pipelines.report.look import PALETTE
from papers.plotting import panels
from papers.results import Means, Measure, Page, grid, number, result, run_all
from papers.shockwave.figure10 import mix
from papers.shockwave.runs import HIGH, LOW, PANELS, SHOCKWAVE, UNFAIR, Task, medians, ranged, run

MARKED_PCT = 5.0
"""A makespan that grows by less has hardly grown."""
ENDS = ("", LOW, HIGH)
NOISES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SEEDS = range(3)
NOISE_SEEDS = range(2)


def figure13(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    tasks = []
    for scenario in (mix(data, seed, 0.0) for seed in SEEDS):
        for noise in NOISES:
            for seed in NOISE_SEEDS if noise else (0,):
                settings = {"noise": str(noise), "noise_seed": str(seed)} if noise else {}
                tasks.append(Task(_case(noise), scenario, SHOCKWAVE, settings=settings))
    found = medians(page.runs(run_all(run, tasks)))
    _plot(page, found)
    rows = [(_case(noise), *(ranged(one, found[_case(noise), SHOCKWAVE]) for one in PANELS)) for noise in NOISES]
    table = grid(("noise", *(one.title for one in PANELS)), rows)
    page.write(seeds=len(SEEDS), noise_seeds=len(NOISE_SEEDS), table=table, **_found(found))


def _case(noise: float) -> str:
    return f"{100 * noise:.0f} %"


def _found(found: Means) -> dict[str, str]:
    none, most = found[_case(0.0), SHOCKWAVE], found[_case(1.0), SHOCKWAVE]
    slower, jct = (100 * (most[key] / none[key] - 1) for key in ("makespan_s", "mean_jct_s"))
    worst, unfair = (most[key] - none[key] for key in ("worst_ftf", UNFAIR.key))
    return {
        "makespan": result(f"{slower:+.0f} %", slower > MARKED_PCT),
        "worst": result(number(worst) + " more", worst >= 0),
        "unfair": result(f"{unfair:+.1f} points", unfair >= 0),
        "jct": result(f"{jct:+.0f} %", jct >= 0),
    }


def _plot(page: Page, found: Means) -> None:
    at = [100 * noise for noise in NOISES]

    def panel(axes: Axes, one: Measure) -> None:
        middle, low, high = ([found[_case(p), SHOCKWAVE][one.key + end] * one.scale for p in NOISES] for end in ENDS)
        axes.plot(at, middle, color=PALETTE[0], marker="o")
        axes.fill_between(at, low, high, color=PALETTE[0], alpha=0.2)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("noise, %")

    title = "Shockwave with wrong run times (band: all draws)"
    panels(page, title, PANELS, panel, height=5.6, columns=2, legend=False)
