"""Shockwave, Figure 8 (section 8.4): who runs when, a batch of 50 jobs."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.pipelines.report.plots import PALETTE
from jobcast.schedulers.rounds import ROUND_S
from jobcast.simulator.metrics import finish_time_fairness, static_contention
from papers.plotting import distributions, gpus_over_time, save
from papers.runs import SHOCKWAVE, Done, Means, Task, means, run_all
from papers.sheets import (
    Claim,
    claims,
    comparison,
    number,
    picture,
    who_is_better,
    write_csv,
    write_page,
    write_runs,
)
from papers.shockwave.workloads import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CASE, SEED = "batch of 50", 0
JOBS, GPUS = 50, 14
POLICIES = (SHOCKWAVE, "allox", "gavel", "ossp")
GROUPS = ("largest 10 %", "large 20 %", "middle 30 %", "smallest 40 %")
PLOTTED_S = 5 * ROUND_S
SHARES = (0.1, 0.3, 0.6)
"""Where groups end, by rank of GPU-time from the largest; the paper does not print its bounds."""
ABOUT = (
    "50 jobs of the generator (section 8.1), all there at the beginning, on 14 GPUs: the paper does not say how many "
    "it had. Jobs are grouped by their rank of GPU-time."
)


def figure8(data: Path, out: Path) -> None:
    """Write the figure's page, tables and plots into a folder."""
    scenario = drawn(data, SEED, jobs=JOBS, gpus=GPUS, arrivals="batch")
    done = run_all([Task(CASE, scenario, policy) for policy in POLICIES])
    groups = size_groups(done[0])
    used = {one.name: gpus_over_time(one, groups.tolist(), len(GROUPS), ROUND_S) for one in done}
    _plot_rounds(out, {one.name: gpus_over_time(one, groups.tolist(), len(GROUPS), PLOTTED_S) for one in done})
    _plot_ftf(out, done)
    write_runs(out, "figure8", done)
    rows = [
        (name, round_, *(f"{value:.4g}" for value in gpus[:, round_]))
        for name, gpus in used.items()
        for round_ in range(gpus.shape[1])
    ]
    write_csv(out, "figure8-rounds", ("policy", "round", *GROUPS), rows)
    found = means(done)
    write_page(out, "figure8", _parts(found, done, groups))


def size_groups(done: Done) -> np.ndarray:
    """(n_jobs,) index into `GROUPS` by GPU-time, ties by position."""
    work = done.log.gpus * done.log.duration_s
    rank = np.empty(len(work))
    rank[np.argsort(-work, kind="stable")] = (np.arange(len(work)) + 0.5) / len(work)
    return np.searchsorted(SHARES, rank)


def _parts(found: Means, done: list[Done], groups: np.ndarray) -> list[str]:
    last = {one.name: [float(np.max(one.log.jct_s[groups == g])) / ROUND_S for g in range(len(GROUPS))] for one in done}
    mine = found[CASE, SHOCKWAVE]
    small, large = len(GROUPS) - 1, 0
    return [
        "# Figure 8: a closer look at the schedule",
        ABOUT,
        comparison(found, CASE),
        who_is_better(found, CASE),
        picture("figure8", "GPUs by size of jobs over rounds"),
        picture("figure8-ftf", "Distribution of finish-time fairness"),
        "## Against the paper",
        claims(
            [
                Claim("worst FTF of Shockwave", "1.23", number(mine["worst_ftf"]), None),
                Claim(
                    "jobs with FTF above 1 under AlloX and Gavel",
                    "more than 20 %",
                    ", ".join(f"{found[CASE, one]['unfair_pct_100']:.0f} %" for one in ("allox", "gavel")),
                    None,
                ),
                Claim(
                    "the small jobs end early under Shockwave, late under OSSP: last round of one",
                    "yes",
                    f"{last[SHOCKWAVE][small]:.0f}, {last['ossp'][small]:.0f}",
                    last[SHOCKWAVE][small] < last["ossp"][small],
                ),
                Claim(
                    "large jobs trail under AlloX and Gavel: last round of one (Shockwave, AlloX, Gavel)",
                    "yes",
                    ", ".join(f"{last[one][large]:.0f}" for one in (SHOCKWAVE, "allox", "gavel")),
                    last[SHOCKWAVE][large] < min(last["allox"][large], last["gavel"][large]),
                ),
            ]
        ),
    ]


def _plot_rounds(out: Path, used: dict[str, np.ndarray]) -> None:
    def paint(figure: "Figure") -> None:
        panels = figure.subplots(len(used), 1, sharex=True, sharey=True)
        for axes, (name, gpus) in zip(panels, used.items(), strict=True):
            axes.stackplot(
                np.arange(gpus.shape[1]) * PLOTTED_S / ROUND_S,
                gpus,
                labels=GROUPS,
                colors=PALETTE,
                step="post",
                linewidth=0,
            )
            axes.set_title(name, loc="left")
            axes.set_ylabel("GPUs")
        panels[-1].set_xlabel("round of 120 s (means of five)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")

    save(out, "figure8", "GPUs by size of jobs", paint, (10.4, 7.5))


def _plot_ftf(out: Path, done: list[Done]) -> None:
    values = {one.name: finish_time_fairness(one.log, static_contention(one.log)).tolist() for one in done}
    save(
        out,
        "figure8-ftf",
        "Finish-time fairness of the batch",
        lambda figure: distributions(figure.subplots(), values, "FTF (above 1 is unfair)"),
    )
