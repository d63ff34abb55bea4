"""Pareto-optimal points found by configurations tried, over the paper's spaces and over ours. PCS, Figure 9c."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from jobcast.domain.elastic import Floats
from jobcast.pipelines.experiments.search.evaluation import Evaluator, Journal, World
from jobcast.pipelines.experiments.search.pareto_search import draw_samples, run_hash, search_front
from jobcast.pipelines.experiments.search.proposers import pareto_mask
from jobcast.pipelines.experiments.search.workload_samples import Sampling, workload_of
from papers.pcs.fronts import CLUSTERS, SEARCHES, THEMIS, Searching, uncovered
from papers.results import Claim, Page, grid

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
"""By search and space, (n_seeds, len(AT)) shares of the points."""


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
    scenario = searching.history(data)
    world, workload = World(scenario.workload.cluster, scenario.place.gpu_types), workload_of(scenario)
    made = {}
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
