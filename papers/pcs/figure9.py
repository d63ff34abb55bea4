"""PCS, Figure 9 (section 5.4): what simulations and searches cost, and what the parameterisation is worth."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
from matplotlib.figure import Figure

from jobcast.domain.arrays import Floats
from jobcast.pipelines.experiments.search.evaluation import Evaluator, Journal
from jobcast.pipelines.experiments.search.pareto_search import draw_samples, pareto_mask, run_hash, search_front
from jobcast.pipelines.experiments.search.workload_samples import Sampling, Workload, draw, workload_of
from jobcast.pipelines.report.look import PALETTE, WIDE, plain_ticks
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay, replay_elastic
from papers.pcs.fronts import APPS, CLUSTERS, SEARCHES, THEMIS, Searching, Sources, search, uncovered
from papers.pcs.plotting import TALL_PANEL
from papers.pcs.published import THEIRS, published_configs
from papers.pcs.runs import GPUS, LOAD, published
from papers.plotting import save
from papers.results import WORKERS, Claim, Page, claims, grid, lines, number, result

SPACES = {
    "parameters-linear": "T, W, zeta_min, published scales",
    "raw-linear": "raw, published scales",
    "parameters": "T, W, zeta_min",
    "raw": "raw, logarithmic",
}
PUBLISHED = tuple(SPACES)[:2]
"""Those that the paper compares."""
OF = (THEMIS, CLUSTERS["ee9e8c"])
SEEDS = tuple(range(5))
AT = (128, 256, 512, 1024)
"""Configurations tried. PCS, Figure 9c."""
JOBS = 100
"""Of the sample that is searched on, and of each of the fresh ones that fronts are judged on ..."""
FRESH = 3
"""... so many."""
NEAR = 0.01
"""A point is found by a configuration that is worse than it by no more in either objective."""
PAPER = {PUBLISHED[0]: (30, 60, 70, 95), PUBLISHED[1]: (20, 46, 47, 90)}
"""Shares that the paper's figure shows, %."""
Fronts = Mapping[str, Sequence[Floats]]
"""By space, (n, n_objectives) on fresh samples, of the configurations that led after each number of `AT`."""
Found = Mapping[str, Mapping[str, Floats]]
"""By search and space, (n_seeds, len(AT)) shares of the points that are found."""


def pareto_points(data: Path, journal: Path) -> tuple[Found, Found]:
    """Shares of the points that the paper's two spaces have together, and of those that all four have.

    `journal` : file of what was simulated already, which is not simulated again
    """
    # Seed by seed, so that an interruption leaves whole ones on file.
    made = [{key: _fronts(data, SEARCHES[key], seed, journal) for key in OF} for seed in SEEDS]
    fronts = {key: [one[key] for one in made] for key in OF}
    pairs = {key: [{space: one[space] for space in PUBLISHED} for one in of] for key, of in fronts.items()}
    return _shares(pairs), _shares(fronts)


def _shares(fronts: Mapping[str, Sequence[Fronts]]) -> Found:
    return {
        key: {space: np.array([found_shares(one)[space] for one in of]) for space in of[0]}
        for key, of in fronts.items()
    }


def found_shares(fronts: Fronts) -> dict[str, list[float]]:
    """By space, the share of the points that no other of any space beats which are found after each number tried."""
    values = np.concatenate([one for of in fronts.values() for one in of])
    points = values[pareto_mask(values)]
    return {space: [float(np.mean(uncovered(points, one) <= NEAR)) for one in of] for space, of in fronts.items()}


def _fronts(data: Path, searching: Searching, seed: int, journal: Path) -> Fronts:
    (workload, world), made = searching.place(data), {}
    for space in SPACES:
        sampling = Sampling(JOBS, searching.load, searching.gaps)
        request = replace(searching.request(space, seed), sampling=sampling, samples=1, test_samples=FRESH)
        request = replace(request, evaluations=max(AT))
        history = search_front(workload, world, request, journal=journal).history
        values, configs = np.array([one.values for one in history]), [one.config for one in history]
        best = [np.flatnonzero(pareto_mask(values[:count])) for count in AT]
        leading = np.unique(np.concatenate(best))
        kept = Journal(journal, run_hash(workload, world, request))
        judge = Evaluator(world, request.objectives, draw_samples(workload, request), kept)
        fresh = judge.evaluate([configs[at] for at in leading], [f"test-{one}" for one in range(FRESH)]).mean(axis=1)
        made[space] = [fresh[np.searchsorted(leading, one)] for one in best]
        click.echo(f"  {searching.about}, seed {seed}, {space}", err=True)
    return made


def write_points(page: Page, found: Found) -> None:
    """Write a CSV file: a row a search, space and seed."""
    rows = [
        (key, space, seed, *(f"{value:.4f}" for value in shares))
        for key, of in found.items()
        for space, values in of.items()
        for seed, shares in zip(SEEDS, values, strict=True)
    ]
    page.named("figure9c").csv(("workload", "space", "seed", *map(str, AT)), rows)


def points_table(found: Found) -> str:
    """Shares, %: medians over seeds and their range."""
    rows = [
        (SEARCHES[key].about, SPACES[space], *(_told(values[:, at]) for at in range(len(AT))))
        for key, of in found.items()
        for space, values in of.items()
    ]
    return grid(("workload", "searched over", *(f"after {count:,}" for count in AT)), rows)


def _told(shares: Floats) -> str:
    return f"{100 * np.median(shares):.0f} ({100 * shares.min():.0f} to {100 * shares.max():.0f})"


def points_claims(found: Found) -> list[Claim]:
    """Whether the parameterised search is ahead of the raw one on the published scales."""
    made = []
    for at, count in enumerate(AT):
        paper = " against ".join(str(PAPER[space][at]) for space in PUBLISHED)
        for key, of in found.items():
            ours = [100 * float(np.median(of[space][:, at])) for space in PUBLISHED]
            said = f"{SEARCHES[key].about}: points found after {count:,}, parameterised against raw"
            made.append(Claim(said, f"{paper} %", f"{ours[0]:.0f} against {ours[1]:.0f} %", ours[0] > ours[1]))
    return made


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
    times = [(one.jobs, one.gpus, f"{one.alone_s:.4f}", f"{one.forecast_s:.4f}") for one in timed]
    page.named("figure9a").csv(("jobs", "gpus", "cpu_s", "cpu_s_with_forecasts"), times)
    page.named("figure9b").csv(("simulations", "seconds"), [(done, f"{at_s:.2f}") for done, at_s in ticks])
    write_points(page, all_four)

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
        seeds=len(SEEDS),
        jobs=JOBS,
        fresh=FRESH,
        near=100 * NEAR,
        pair=points_table(pair),
        all_four=points_table(all_four),
        one=result(f"{one.forecast_s:.2f} s"),
        search=result(f"{minutes:.1f} minutes, {WORKERS} processes", minutes < 60),
        claims=claims(points_claims(pair)),
    )


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
    (left, right), below = figure.subplots(2, 2)
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
    counts = [f"{count:,}" for count in AT]
    for axes, (key, of) in zip(below, found.items(), strict=True):
        for color, (space, shares) in zip(PALETTE, of.items(), strict=False):
            axes.plot(counts, 100 * np.median(shares, axis=0), marker="o", label=SPACES[space], color=color)
            axes.fill_between(counts, 100 * shares.min(axis=0), 100 * shares.max(axis=0), alpha=0.15, color=color)
        axes.set(xlabel="configurations tried", ylabel="Pareto points found, %", ylim=(0, 100))
        axes.set_title(f"(c) {SEARCHES[key].about}", loc="left")
    figure.legend(*below[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    plain_ticks(left.xaxis, left.yaxis)
