"""PCS, Figure 9 (section 5.4): what simulations and searches cost, and what the parameterisation is worth."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
from matplotlib.figure import Figure

from jobcast.pipelines.experiments.search.workload_samples import Sampling, Workload, draw, workload_of
from jobcast.pipelines.report.plots import PALETTE, WIDE, plain_ticks
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay, replay_elastic
from papers.pcs import pareto_points as points
from papers.pcs.fronts import APPS, SEARCHES, Sources, search
from papers.pcs.measured import THEIRS, published_configs
from papers.pcs.pareto_points import AT, SPACES, Found, pareto_points
from papers.pcs.plotting import TALL_PANEL
from papers.pcs.runs import GPUS, LOAD, published
from papers.plotting import save
from papers.results import WORKERS, Page, claims, lines, number, result

CLUSTER = "0e4a51"
COUNTS = (300, 1000, 3000, 10_000)
MOST_FORECAST = 3000
"""Jobs up to which runs with forecasts are timed."""
CLUSTER_GPUS = (32, 64, 128, 256)
JOURNAL = ".runs-figure9c.jsonl"
"""Simulations of Figure 9c, beside the figures' folders; not kept in version control."""
EVALUATIONS, SAMPLE_JOBS = 1000, 1000
"""Of the paper's search."""


@dataclass(frozen=True, slots=True)
class Timed:
    """CPU seconds of one simulation; NaN where it was not run."""

    jobs: int
    gpus: int
    alone_s: float
    forecast_s: float


def figure9(sources: Sources, page: Page) -> None:
    """Write the figure's page, tables and plots into a folder."""
    pair, all_four = pareto_points(sources.data, sources.fronts.parent / JOURNAL)
    timed, ticks = _timings(sources.data), _paper_sized(sources.data)
    _write_times(page, timed, ticks)
    points.write_points(page, all_four)

    save(page, "What a search costs, and finds", _paint, (WIDE[0], 2.2 * TALL_PANEL), timed, ticks, all_four)
    one = next(it for it in timed if it.jobs == SAMPLE_JOBS and it.gpus == GPUS)
    minutes = ticks[-1][1] / 60
    page.write(
        cluster=CLUSTER,
        load=100 * LOAD,
        evaluations=EVALUATIONS,
        sample_jobs=SAMPLE_JOBS,
        workers=WORKERS,
        timed=lines(map(_line, timed)),
        seeds=len(points.SEEDS),
        jobs=points.JOBS,
        fresh=points.FRESH,
        near=100 * points.NEAR,
        pair=points.points_table(pair),
        all_four=points.points_table(all_four),
        one=result(f"{one.forecast_s:.2f} s"),
        search=result(f"{minutes:.1f} minutes, {WORKERS} processes", minutes < 60),
        claims=claims(points.points_claims(pair)),
    )


def _write_times(page: Page, timed: list[Timed], ticks: list[tuple[int, float]]) -> None:
    rows = [(one.jobs, one.gpus, f"{one.alone_s:.4f}", f"{one.forecast_s:.4f}") for one in timed]
    page.named("figure9a").csv(("jobs", "gpus", "cpu_s", "cpu_s_with_forecasts"), rows)
    page.named("figure9b").csv(("simulations", "seconds"), [(done, f"{at_s:.2f}") for done, at_s in ticks])


def _timings(data: Path) -> list[Timed]:
    workload = workload_of(published(data, CLUSTER, jobs=None))
    config = published_configs(data)[THEIRS[1]]
    _time(workload, config, COUNTS[0], GPUS, forecast=True)  # compiled and loaded before the clock runs
    timed = []
    for jobs in COUNTS:
        for gpus in CLUSTER_GPUS if jobs == SAMPLE_JOBS else (GPUS,):
            alone = _time(workload, config, jobs, gpus, forecast=False)
            found = _time(workload, config, jobs, gpus, forecast=True) if jobs <= MOST_FORECAST else float("nan")
            timed.append(Timed(jobs, gpus, alone, found))
            click.echo(f"  {jobs} jobs, {gpus} GPUs", err=True)
    return timed


def _time(workload: Workload, config: WfqConfig, jobs: int, gpus: int, *, forecast: bool) -> float:
    sample = draw(replace(workload, gpus=float(gpus)), Sampling(jobs, LOAD), (0,))
    cluster = ElasticCluster(np.array([float(gpus)]))
    # CPU of this process: others on the machine do not count.
    begin_s = time.process_time()
    replay_elastic(ElasticReplay(sample.jobs, sample.size_s, cluster, config.policy()), predict=forecast)
    return time.process_time() - begin_s


def _paper_sized(data: Path) -> list[tuple[int, float]]:
    """(simulations, seconds) while a search of the paper's size goes on."""
    # Of the clock: the search runs in processes of its own.
    begin_s, ticks = time.monotonic(), []
    searching = replace(SEARCHES[APPS], jobs=SAMPLE_JOBS, evaluations=EVALUATIONS)
    search(data, searching, lambda done, _: ticks.append((done, time.monotonic() - begin_s)))
    click.echo(f"  search of {EVALUATIONS} simulations", err=True)
    return [*ticks, (ticks[-1][0], time.monotonic() - begin_s)]


def _line(one: Timed) -> tuple[str, ...]:
    seconds = number(one.alone_s, 3), number(one.forecast_s, 2)
    return (f"{one.jobs:,}", str(one.gpus), *seconds, f"{one.jobs / one.alone_s:,.0f}")


def _paint(figure: Figure, timed: list[Timed], ticks: list[tuple[int, float]], found: Found) -> None:
    panels = figure.subplots(2, 2)
    left, right = panels[0]
    here = [one for one in timed if one.gpus == GPUS]
    rows = [one for one in here if np.isfinite(one.forecast_s)]
    alone, forecast = [one.alone_s for one in here], [one.forecast_s for one in rows]
    left.plot([one.jobs for one in here], alone, marker="o", label="completions", color=PALETTE[0])
    left.plot([one.jobs for one in rows], forecast, marker="s", label="with forecasts", color=PALETTE[1])
    left.set(xscale="log", yscale="log", xlabel="jobs", ylabel="CPU seconds")
    left.set_title("(a) one simulation, 64 GPUs", loc="left")
    left.legend(fontsize=8)
    right.plot([done for done, _ in ticks], [at_s for _, at_s in ticks], color=PALETTE[0])
    right.set(xlabel="simulations of 1,000 jobs", ylabel="seconds", xlim=(0, None), ylim=(0, None))
    right.set_title(f"(b) a search, {WORKERS} processes", loc="left")
    for axes, (key, of) in zip(panels[1], found.items(), strict=True):
        for color, (space, shares) in zip(PALETTE, of.items(), strict=False):
            axes.plot(AT, 100 * np.median(shares, axis=0), marker="o", label=SPACES[space], color=color)
            axes.fill_between(AT, 100 * shares.min(axis=0), 100 * shares.max(axis=0), alpha=0.15, color=color)
        axes.set(xscale="log", xlabel="configurations tried", ylabel="Pareto points found, %", ylim=(0, 100))
        axes.set_title(f"(c) {key}", loc="left")
        axes.legend(fontsize=8, loc="lower right")
    plain_ticks(left.xaxis, left.yaxis)
