"""Small instances of one call, on which schedules are compared with the exact optimum."""

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.energy import POSTPONED, EnergyCluster, EnergyJobs, EnergyView, Tariff
from jobcast.domain.hardware import PRICE_EUR_KWH, PUE

KIND_GPUS = np.array([1, 2, 4, 1, 2])
IDLE_W = np.array([170.0, 170.0, 250.0, 120.0, 120.0])
GPU_W = np.array([250.0, 250.0, 250.0, 70.0, 70.0])
SLOWER = np.array([1.0, 1.0, 1.0, 2.4, 2.4])
"""Kinds: V100 three times, T4 twice."""
NOW_S = 1.6e9
PERIOD_S = 300.0
MOST_JOBS, MOST_NODES = 6, 3
RUNNING = 0.3
"""Share of the jobs that run, where there is room."""


def small(seed: int) -> EnergyView:
    """An instance of 2 to 6 jobs and 1 to 3 nodes."""
    rng = np.random.default_rng([seed, 1])
    return instance(seed, int(rng.integers(2, MOST_JOBS + 1)), int(rng.integers(1, MOST_NODES + 1)))


def instance(seed: int, jobs: int, nodes: int, running: float = RUNNING) -> EnergyView:
    """A view in the middle of a busy day.

    Half of the due dates are tight, 0.5 to 1.5 times the job's fastest run from now on, half loose, 1.5 to 6 times;
    weights are 1 to 5.

    Parameters
    ----------
    running : share of the jobs that run, where there is room
    """
    rng = np.random.default_rng(seed)
    kind_of = rng.integers(0, len(KIND_GPUS), size=nodes)
    epoch_s = _epoch_s(kind_of, jobs, rng)
    epochs = rng.integers(10, 160, size=jobs).astype(float)
    saved = epochs.copy()
    left, node_of, gpus_of = saved.copy(), np.full(jobs, POSTPONED), np.zeros(jobs, dtype=int)
    free = KIND_GPUS[kind_of].copy()
    for job in np.flatnonzero(rng.random(jobs) < running):
        node = int(rng.integers(nodes))
        if free[node]:
            node_of[job], gpus_of[job] = node, rng.integers(1, free[node] + 1)
            free[node] -= gpus_of[job]
            saved[job] = rng.integers(1, epochs[job] + 1)
            left[job] = saved[job] - rng.random()
    fastest_s = (epoch_s * saved[:, None, None]).min(axis=(1, 2))
    tight = rng.random(jobs) < 0.5
    due_s = NOW_S + fastest_s * np.where(tight, rng.uniform(0.5, 1.5, jobs), rng.uniform(1.5, 6.0, jobs))
    weight = rng.integers(1, 6, size=jobs).astype(float)
    columns, here = EnergyJobs(np.full(jobs, NOW_S), due_s, weight, epochs, epoch_s), np.arange(jobs)
    cluster = _cluster(kind_of)
    return EnergyView(NOW_S, columns, cluster, here, node_of, gpus_of, left, saved, node_of >= 0, 0.0, PERIOD_S)


def _cluster(kind_of: np.ndarray) -> EnergyCluster:
    used = np.minimum(np.arange(1, KIND_GPUS.max() + 1), KIND_GPUS[:, None])
    watts = np.hstack([np.zeros((len(KIND_GPUS), 1)), IDLE_W[:, None] + GPU_W[:, None] * used])
    return EnergyCluster(kind_of, KIND_GPUS, watts, PUE, Tariff(np.array([0.0]), np.array([PRICE_EUR_KWH])))


def _epoch_s(kind_of: np.ndarray, jobs: int, rng: np.random.Generator) -> Floats:
    """(n_jobs, n_kinds, most_gpus) seconds an epoch, infinite for kinds that no node is of."""
    gpus, kinds = np.arange(1, KIND_GPUS.max() + 1), len(KIND_GPUS)
    slower = SLOWER * rng.uniform(0.8, 1.25, size=(jobs, kinds))
    speedup = gpus ** rng.uniform(0.6, 0.95, size=(jobs, 1))
    epoch_s: Floats = rng.uniform(20, 240, size=(jobs, 1, 1)) * slower[:, :, None] / speedup[:, None, :]
    epoch_s[:, gpus > KIND_GPUS[:, None]] = np.inf
    epoch_s[:, ~np.isin(np.arange(kinds), kind_of)] = np.inf
    return epoch_s
