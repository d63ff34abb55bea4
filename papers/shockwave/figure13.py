"""Shockwave, Figure 13 (section 8.10): run times that are wrong."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.pipelines.report.plots import PALETTE
from papers.plotting import PANELS, save
from papers.runs import SHOCKWAVE, Done, Task, means, run_all
from papers.sheets import Claim, claims, grid, number, picture, write_page, write_runs
from papers.shockwave.figure10 import mix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKED_PCT = 5.0
"""A makespan that grows by less has hardly grown."""
NOISES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SEEDS = range(3)
NOISE_SEEDS = range(2)
ABOUT = (
    f"120 jobs on 32 GPUs that all adapt, as in Figure 10: {len(SEEDS)} draws, {len(NOISE_SEEDS)} draws of noise for "
    "each. The run time that the restatement rule leaves to a job is multiplied by a factor of its own, uniform in "
    "1 - p to 1 + p. Figures are means over draws, in brackets the least and the largest."
)


def figure13(data: Path, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    tasks = []
    for scenario in (mix(data, seed, 0.0) for seed in SEEDS):
        for noise in NOISES:
            for seed in NOISE_SEEDS if noise else (0,):
                settings = {"noise": str(noise), "noise_seed": str(seed)} if noise else {}
                tasks.append(Task(_case(noise), scenario, SHOCKWAVE, settings=settings))
    done = run_all(tasks)
    write_runs(out, "figure13", done)
    _plot(out, done)
    head = ("noise", *(said for said, _, _ in PANELS))
    rows = [(_case(noise), *(_spread(done, noise, key, scale) for _, key, scale in PANELS)) for noise in NOISES]
    parts = ["# Figure 13: run times that are wrong", ABOUT, grid(head, rows), picture("figure13", "Figures by noise")]
    write_page(out, "figure13", [*parts, "## Against the paper", claims(_claims(done))])


def _case(noise: float) -> str:
    return f"{100 * noise:.0f} %"


def _values(done: list[Done], noise: float, key: str) -> np.ndarray:
    return np.array([one.figures[key] for one in done if one.case == _case(noise)])


def _spread(done: list[Done], noise: float, key: str, scale: float) -> str:
    values = _values(done, noise, key) * scale
    return f"{values.mean():.2f} ({values.min():.2f}-{values.max():.2f})"


def _claims(done: list[Done]) -> list[Claim]:
    found = means(done)
    none, most = found[_case(0.0), SHOCKWAVE], found[_case(1.0), SHOCKWAVE]
    slower = 100 * (most["makespan_s"] / none["makespan_s"] - 1)
    jct = 100 * (most["mean_jct_s"] / none["mean_jct_s"] - 1)
    worst = most["worst_ftf"] - none["worst_ftf"]
    unfair = most["unfair_pct_100"] - none["unfair_pct_100"]
    return [
        Claim("makespan grows with noise: at 100 %", "more than 30 %", f"{slower:+.0f} %", slower > MARKED_PCT),
        Claim("worst FTF grows slowly: at 100 %", "slowly", number(worst) + " more", worst >= 0),
        Claim("unfair jobs grow slowly: at 100 %", "slowly", f"{unfair:+.1f} points", unfair >= 0),
        Claim("mean JCT grows slowly: at 100 %", "slowly", f"{jct:+.0f} %", jct >= 0),
    ]


def _plot(out: Path, done: list[Done]) -> None:
    def paint(figure: "Figure") -> None:
        for axes, (said, key, scale) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
            values = [_values(done, noise, key) * scale for noise in NOISES]
            at = [100 * noise for noise in NOISES]
            axes.plot(at, [one.mean() for one in values], color=PALETTE[0], marker="o")
            axes.fill_between(at, [v.min() for v in values], [v.max() for v in values], color=PALETTE[0], alpha=0.2)
            axes.set_title(said, loc="left")
            axes.set_ylim(bottom=0)
            axes.set_xlabel("noise, %")

    save(out, "figure13", "Shockwave with wrong run times (band: all draws)", paint, (10.4, 5.6))
