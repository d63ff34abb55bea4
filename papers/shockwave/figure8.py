"""Shockwave, Figure 8 (section 8.4): who runs when, a batch of 50 jobs."""

from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from jobcast.pipelines.report.look import PALETTE
from jobcast.schedulers.rounds import ROUND_S
from papers.plotting import panels
from papers.results import Floats, Page, Replayed, result, run_all
from papers.shockwave import runs
from papers.shockwave.runs import SHOCKWAVE, UNFAIR, WORST, Task, comparison, fairness_cdfs, who_is_better
from papers.shockwave.workloads import drawn

CASE, SEED = "batch of 50", 0
JOBS, GPUS = 50, 14
PERTURBATIONS = 20
POLICIES = (SHOCKWAVE, "allox", "gavel", "ossp")
GROUPS = ("largest 10 %", "large 20 %", "middle 30 %", "smallest 40 %")
PLOTTED_S = 5 * ROUND_S
SHARES = (0.1, 0.3, 0.6)
"""Where groups end, by rank of GPU-time from the largest; the paper does not print its bounds."""


def figure8(data: Path, page: Page) -> None:
    """Write the figure's page, tables and plots into a folder."""
    scenario = drawn(data, SEED, jobs=JOBS, gpus=GPUS, arrivals="batch")
    every = run_all(runs.run, runs.trials([Task(CASE, scenario, policy) for policy in POLICIES], 1, PERTURBATIONS))
    done = every[PERTURBATIONS - 1 :]  # one of each
    groups = size_groups(done[0])
    _plot_rounds(page, {one.name: gpus_over_time(one, groups, PLOTTED_S) for one in done})
    fairness_cdfs(page.named("figure8-ftf"), "Finish-time fairness of the batch", done)
    page.runs(every)
    rows = [
        (one.name, round_, *(f"{value:.4g}" for value in gpus))
        for one in done
        for round_, gpus in enumerate(gpus_over_time(one, groups, ROUND_S).T)
    ]
    page.named("figure8-rounds").csv(("policy", "round", *GROUPS), rows)
    found = runs.medians(every)
    last = {one.name: [float(np.max(one.log.jct_s[groups == g])) / ROUND_S for g in range(len(GROUPS))] for one in done}
    (mine, ours), (_, allox), (_, gavel), (ossp, _) = ((last[name][-1], last[name][0]) for name in POLICIES)
    page.write(
        most=PERTURBATIONS,
        table=comparison(found, CASE),
        better=who_is_better(found, CASE),
        worst=result(WORST.text(found[CASE, SHOCKWAVE])),
        unfair=result(", ".join(f"{found[CASE, one][UNFAIR.key]:.0f} %" for one in ("allox", "gavel"))),
        small=result(f"{mine:.0f}, {ossp:.0f}", mine < ossp),
        large=result(f"{ours:.0f}, {allox:.0f}, {gavel:.0f}", ours < min(allox, gavel)),
    )


def size_groups(done: Replayed) -> np.ndarray:
    """(n_jobs,) index into `GROUPS` by GPU-time, ties by position."""
    work = done.log.gpus * done.log.duration_s
    rank = np.empty(len(work))
    rank[np.argsort(-work, kind="stable")] = (np.arange(len(work)) + 0.5) / len(work)
    return np.searchsorted(SHARES, rank)


def gpus_over_time(done: Replayed, groups: np.ndarray, step_s: float) -> Floats:
    """GPUs in use by group of jobs, (n_groups, n_steps), averaged over steps from the first submission on.

    Parameters
    ----------
    groups : (n_jobs,) index into `GROUPS`
    """
    log, spans = done.log, done.log.spans
    begin_s = float(log.submit_s.min())
    steps = int(np.ceil((float(np.nanmax(log.end_s)) - begin_s) / step_s))
    used = np.zeros((len(GROUPS), steps))
    for seq, start_s, end_s in zip(spans.job, spans.from_s - begin_s, spans.until_s - begin_s, strict=True):
        for step in range(int(start_s // step_s), min(steps, int(np.ceil(end_s / step_s)))):
            held_s = min(end_s, (step + 1) * step_s) - max(start_s, step * step_s)
            used[groups[seq], step] += log.gpus[seq] * held_s / step_s
    return used


def _plot_rounds(page: Page, used: dict[str, Floats]) -> None:
    def panel(axes: Axes, name: str) -> None:
        at = np.arange(used[name].shape[1]) * PLOTTED_S / ROUND_S
        axes.stackplot(at, used[name], labels=GROUPS, colors=PALETTE, step="post", linewidth=0)
        axes.set_ylabel("GPUs")

    last = partial(Axes.set_xlabel, xlabel="round of 120 s (means of five)")
    panels(page, "GPUs by size of jobs", list(used), panel, height=7.5, last=last, sharex=True, sharey=True)
