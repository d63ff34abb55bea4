"""Hypervolume by configurations tried, over the paper's parameters and over raw ones. PCS, Figure 9c."""

from pathlib import Path

import click
import numpy as np

from jobcast.domain.elastic import Floats
from jobcast.pipelines.experiments.search.proposers import pareto_mask
from papers.page import Claim, grid, write_csv
from papers.pcs.fronts import APPS, CLUSTERS, SEARCHES, hypervolume_curve, search

SPACES = {"parameters": "WFQ(T, W, zeta_min)", "raw": "thresholds, weights, cap"}
OF = (APPS, CLUSTERS["ee9e8c"])
SEEDS = (0, 1, 2)
MARGIN = 1.05
"""The box of a hypervolume ends so far beyond the worst of the front of both searches."""
SHOWN = (0.1, 0.25, 0.5, 1.0)
"""Shares of the configurations after which the table tells what was won."""
Curves = dict[str, dict[str, Floats]]
"""By search and space, (n_seeds, n_configurations)."""


def volumes(data: Path) -> Curves:
    """Search both spaces from equal seeds, on equal samples."""
    return {key: _of(data, key) for key in OF}


def _of(data: Path, key: str) -> dict[str, Floats]:
    curves: dict[str, list[Floats]] = {space: [] for space in SPACES}
    for seed in SEEDS:
        found = {space: search(data, SEARCHES[key], space=space, seed=seed) for space in SPACES}
        values = np.concatenate([one.values for one in found.values()])
        front = values[pareto_mask(values)]
        reference = MARGIN * front.max(axis=0)
        for space, one in found.items():
            curves[space].append(hypervolume_curve(one.values, front.min(axis=0), reference))
        click.echo(f"  hypervolume, {key}, seed {seed}", err=True)
    shortest = min(len(curve) for of in curves.values() for curve in of)
    return {space: np.array([curve[:shortest] for curve in of]) for space, of in curves.items()}


def write_volumes(out: Path, curves: Curves) -> None:
    """Write a CSV file a search and space: a row a configuration tried, a column a seed."""
    head = ("configurations", *(f"seed {seed}" for seed in SEEDS))
    for key, of in curves.items():
        for space, values in of.items():
            rows = [(at, *(f"{value:.5f}" for value in one)) for at, one in enumerate(values.T, 1)]
            write_csv(out, f"figure9c-{key}-{space}", head, rows)


def volume_table(curves: Curves) -> str:
    """Hypervolume after some configurations, by search and space."""
    at = _shown(curves)
    rows = [
        (key, SPACES[space], *(f"{values[:, one].mean():.3f}" for one in at))
        for key, of in curves.items()
        for space, values in of.items()
    ]
    return grid(("workload", "search over", *(f"after {one + 1}" for one in at)), rows)


def _shown(curves: Curves) -> list[int]:
    count = min(values.shape[1] for of in curves.values() for values in of.values())
    return [max(round(count * share) - 1, 0) for share in SHOWN]


def volume_claims(curves: Curves) -> list[Claim]:
    """Whether the parameterised search is ahead, early and late."""
    made = []
    for key, of in curves.items():
        means = {space: of[space].mean(axis=0) for space in SPACES}
        early, late = _shown(curves)[0], _shown(curves)[-1]
        for at in (early, late):
            pair = [float(means[space][at]) for space in SPACES]
            said = f"{key}: hypervolume after {at + 1} configurations, parameterised and raw"
            made.append(Claim(said, "parameterised ahead", f"{pair[0]:.3f}, {pair[1]:.3f}", pair[0] > pair[1]))
    return made
