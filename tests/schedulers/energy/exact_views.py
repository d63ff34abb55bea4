"""Small views for the objective and the exact model, made by hand or by a seed, and all their deployments."""

from itertools import product

import numpy as np

from jobcast.domain.energy import POSTPONED, Deployment, EnergyCluster, EnergyJobs, Tariff
from tests.simulator.energy.energy_cases import view_of

NOW_S = 1_000_000.0
FLAT = Tariff(np.array([0.0]), np.array([0.1]))


def cluster(kind_of, kind_gpus, power_w, tariff=FLAT, pue=1.0):
    """Nodes; at the flat tariff 1,000 W cost 0.1 EUR an hour."""
    return EnergyCluster(np.array(kind_of), np.array(kind_gpus), np.array(power_w, dtype=float), pue, tariff)


def view(nodes, jobs, restart_s=0.0):
    """A view from rows (epoch_s by kind and GPUs, epochs left, due after now, weight) and, if it runs, more.

    More is a node, GPUs and epochs left since the last snapshot; epochs left are then as it goes on.
    """
    rows = [row if len(row) == 7 else (*row, POSTPONED, 0, row[1]) for row in jobs]
    epoch_s, left, due, weight, node, gpus, saved = zip(*rows, strict=True)
    n = len(rows)
    columns = EnergyJobs(
        np.zeros(n), NOW_S + np.array(due, dtype=float), np.array(weight, dtype=float), np.array(saved, dtype=float),
        np.array(epoch_s, dtype=float),
    )  # fmt: skip
    return view_of(
        columns, nodes, now_s=NOW_S, node_of=node, gpus_of=gpus, left=left, left_saved=saved, restart_s=restart_s
    )


def random_view(seed, n_jobs, n_nodes, *, kinds=2, most=2, running=0.4):
    """Unlike nodes, due dates from overdue to none, a few configurations that cannot run, a few jobs running."""
    rng = np.random.default_rng(seed)
    gpus = np.arange(1, most + 1)
    kind_gpus, kind_of = rng.integers(1, most + 1, size=kinds), rng.integers(0, kinds, size=n_nodes)
    watts = rng.uniform(50, 300, size=(kinds, 1)) + rng.uniform(60, 300, size=(kinds, 1)) * gpus
    nodes = cluster(kind_of, kind_gpus, np.hstack([np.zeros((kinds, 1)), watts]), pue=1.33)
    epoch_s = rng.uniform(20, 300, size=(n_jobs, 1, 1)) * rng.uniform(0.5, 3, size=(1, kinds, 1))
    epoch_s = epoch_s * gpus ** -rng.uniform(0.5, 0.95, size=(n_jobs, 1, 1))
    epoch_s[(rng.random(epoch_s.shape) < 0.08) | (gpus > kind_gpus[:, None])] = np.inf
    saved = rng.integers(2, 60, size=n_jobs).astype(float)
    quick = np.nan_to_num((epoch_s * saved[:, None, None]).min(axis=(1, 2)), posinf=1000.0)
    due = quick * rng.choice([-50.0, 0.3, 1.1, 2.0, 5.0, np.inf], size=n_jobs)
    weight = rng.integers(1, 6, size=n_jobs)
    rows = [[epoch_s[job], saved[job], due[job], weight[job]] for job in range(n_jobs)]
    free = kind_gpus[kind_of].copy()
    for job in np.flatnonzero(rng.random(n_jobs) < running):
        node = rng.integers(n_nodes)
        held = int(rng.integers(1, free[node] + 1)) if free[node] else 0
        if held and np.isfinite(epoch_s[job, kind_of[node], held - 1]):
            free[node] -= held
            rows[job] = [epoch_s[job], saved[job] - rng.random(), due[job], weight[job], node, held, saved[job]]
    return view(nodes, [tuple(row) for row in rows], restart_s=60.0)


def legal_deployments(view):
    """Every deployment that the nodes have GPUs for."""
    kind_of, kind_gpus = view.cluster.kind_of, view.cluster.kind_gpus
    nodes = range(len(kind_of))
    places = [(POSTPONED, 0), *((node, g + 1) for node in nodes for g in range(kind_gpus[kind_of[node]]))]
    for chosen in product(places, repeat=len(view.active)):
        node, gpus = np.array(chosen).T
        runs = node != POSTPONED
        if (np.bincount(node[runs], gpus[runs], len(kind_of)) <= kind_gpus[kind_of]).all():
            yield Deployment(node, gpus)
