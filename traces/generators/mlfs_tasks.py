"""Tasks of MLFS's jobs: their graphs, what they use, what they send (section 4.1)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.traces.generators.mlfs_config import (
    ALGORITHMS,
    GPUS,
    SERVER_BANDWIDTH_MB_S,
    SERVER_COMPUTE,
    SERVER_CPU,
    SERVER_MEMORY_GB,
    VOLUME_MB,
    Algorithm,
    MlfsConfig,
)
from jobcast.traces.generators.mlfs_graphs import Graph, divisors, graph_of

SPREAD = 0.15
"""A task's share of a GPU and cores lie within this part of its job's, ours."""
MOST_GPU = 0.85
"""No task uses more of a GPU, so that each fits on an empty one below MLFS's threshold of 0.9, section 4.1."""


class JobTasks(NamedTuple):
    """Tasks of all jobs, by column.

    Attributes
    ----------
    task_of, edge_of : (n_jobs + 1,) where a job's tasks and edges begin
    demand : (n_tasks, 4) shares of a GPU, cores, GB, MB/s
    compute : (n_tasks,) time as a share of the job's iteration
    size_share, is_server : (n_tasks,) share of the model, and whether it is a parameter server
    edge_from, edge_to, volume_mb : (n_edges,) tasks counted over all jobs, MB an iteration
    model_mb : (n_jobs,) size of the model
    gpu : (n_jobs,) shares of GPUs of all its tasks
    sending_s : (n_jobs,) seconds that an iteration's sending takes if all tasks are apart
    """

    task_of: Ints
    edge_of: Ints
    demand: Floats
    compute: Floats
    size_share: Floats
    is_server: NDArray[np.bool_]
    edge_from: Ints
    edge_to: Ints
    volume_mb: Floats
    model_mb: Floats
    gpu: Floats
    sending_s: Floats


class _One(NamedTuple):
    """Tasks of one job, fields as of `JobTasks`."""

    demand: Floats
    compute: Floats
    size_share: Floats
    edge_from: Ints
    edge_to: Ints
    volume_mb: Floats
    model_mb: float
    sending_s: float


def tasks_of_jobs(algorithm: Ints, gpus: Ints, config: MlfsConfig, rng: np.random.Generator) -> JobTasks:
    """Draw the tasks of jobs.

    Parameters
    ----------
    algorithm : (n_jobs,) index into `ALGORITHMS`
    gpus : (n_jobs,) GPUs, one for each worker
    config, rng : of the draw
    """
    known = list(ALGORITHMS.values())
    jobs = [_job(known[at], width, config, rng) for at, width in zip(algorithm.tolist(), gpus.tolist(), strict=True)]
    task_of = np.concatenate([[0], np.cumsum([len(one.compute) for one in jobs])])
    edge_of = np.concatenate([[0], np.cumsum([len(one.edge_from) for one in jobs])])
    demand = np.concatenate([one.demand for one in jobs])
    before = np.repeat(task_of[:-1], np.diff(edge_of))
    return JobTasks(
        task_of=task_of,
        edge_of=edge_of,
        demand=demand,
        compute=np.concatenate([one.compute for one in jobs]),
        size_share=np.concatenate([one.size_share for one in jobs]),
        is_server=demand[:, 0] == 0.0,
        edge_from=before + np.concatenate([one.edge_from for one in jobs]),
        edge_to=before + np.concatenate([one.edge_to for one in jobs]),
        volume_mb=np.concatenate([one.volume_mb for one in jobs]),
        model_mb=np.array([one.model_mb for one in jobs]),
        gpu=np.add.reduceat(demand[:, 0], task_of[:-1]),
        sending_s=np.array([one.sending_s for one in jobs]),
    )


def _job(kind: Algorithm, gpus: int, config: MlfsConfig, rng: np.random.Generator) -> _One:
    """Tasks of one job."""
    partitions = _partitions(kind, gpus, config, rng)
    wide = [parts for parts in divisors(partitions) if parts > 1] if kind.split else []
    width = int(rng.choice(wide)) if wide else 1
    server = bool(rng.random() < config.servers)
    graph = graph_of(partitions, width, gpus // partitions, server, rng)
    own = rng.uniform(*SERVER_COMPUTE) if server else 0.0
    demand = _demand(kind, gpus, server, rng)
    between, to_server = rng.uniform(*VOLUME_MB, 2)
    compute = graph.size_share * (1.0 - own) / graph.units
    compute[gpus:] = own
    return _One(
        demand=demand,
        compute=compute,
        size_share=graph.size_share,
        edge_from=graph.edge_from,
        edge_to=graph.edge_to,
        volume_mb=np.where(graph.to_server, to_server, between),
        model_mb=float(rng.uniform(*kind.model_mb)),
        sending_s=_sending_s(graph, demand[:, 3], between, to_server, server),
    )


def _partitions(kind: Algorithm, gpus: int, config: MlfsConfig, rng: np.random.Generator) -> int:
    if not kind.parallel:
        return 1
    known = [parts for parts in divisors(gpus) if parts <= config.most_partitions]
    return known[-1] if config.partitions == GPUS else int(rng.choice(known))


def _demand(kind: Algorithm, gpus: int, server: bool, rng: np.random.Generator) -> Floats:
    """(n_tasks, 4): memory and bandwidth are the same for all workers of a job."""
    drawn = [rng.uniform(*bounds) for bounds in (kind.gpu, kind.cpu, kind.memory_gb, kind.bandwidth_mb_s)]
    workers = np.tile(drawn, (gpus, 1))
    workers[:, :2] *= rng.uniform(1 - SPREAD, 1 + SPREAD, (gpus, 2))
    workers[:, 0] = np.minimum(workers[:, 0], MOST_GPU)
    if not server:
        return workers
    own = [0.0, *(rng.uniform(*bounds) for bounds in (SERVER_CPU, SERVER_MEMORY_GB, SERVER_BANDWIDTH_MB_S))]
    return np.vstack([workers, own])


def _sending_s(graph: Graph, rate_mb_s: Floats, between: float, to_server: float, server: bool) -> float:
    """Seconds along the path of most edges, each at the sender's rate; the server's broadcast is its last edge."""
    if not server:
        return graph.hops * between / float(rate_mb_s[0])
    return (graph.hops - 2) * between / float(rate_mb_s[0]) + to_server * float(1 / rate_mb_s[0] + 1 / rate_mb_s[-1])
