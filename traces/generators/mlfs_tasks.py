"""Tasks of MLFS's jobs: their graphs, what they use, what they send (section 4.1).

How MLFS's jobs are split: partitions times replicas, and who sends to whom in an iteration (section 4.1).

Tasks of a job are numbered replica by replica, partition by partition, the parameter server last. Edges to later tasks
are dependencies; edges to earlier ones are what is exchanged at an iteration's end: the server's broadcast, and a ring
of all-reduce, whose last link, to a later task, is left out.
"""

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

CONCENTRATION = 5.0
"""Of the Dirichlet distribution of partition sizes; ours: sizes spread by about 40 % of their mean."""
LEAST_SHARE = 0.1
"""No partition is smaller than this part of an equal one."""


class Graph(NamedTuple):
    """Tasks of one job.

    Attributes
    ----------
    size_share : (n_tasks,) share of the model, 0 for a parameter server, which is the last task if there is one
    edge_from, edge_to : (n_edges,) numbers of tasks, by senders
    to_server : (n_edges,) whether an edge leads to or from the parameter server
    units : the longest path of an iteration in units of the time that the whole model takes on one replica
    hops : edges on the path of most edges, with the broadcast
    """

    size_share: Floats
    edge_from: Ints
    edge_to: Ints
    to_server: NDArray[np.bool_]
    units: float
    hops: int


def divisors(number: int) -> list[int]:
    """Divisors, ascending.

    >>> divisors(8)
    [1, 2, 4, 8]
    """
    return [low for low in range(1, number + 1) if number % low == 0]


def graph_of(partitions: int, width: int, replicas: int, server: bool, rng: np.random.Generator) -> Graph:
    """Tasks and edges of a job.

    Parameters
    ----------
    partitions : of the model, in layers of `width` each, which divides it; a sequence where that is 1
    replicas : of the model
    server : whether there is a parameter server
    rng : of the sizes of partitions
    """
    share = LEAST_SHARE / partitions + (1 - LEAST_SHARE) * rng.dirichlet(np.full(partitions, CONCENTRATION))
    layers = partitions // width
    first = np.arange(replicas)[:, None] * partitions
    within = np.arange(partitions - width)
    nexts = (within // width + 1) * width
    inner_from = np.repeat(first + within, width, axis=1)
    inner_to = (first[:, :, None] + nexts[:, None] + np.arange(width)).reshape(replicas, -1)
    last = first + np.arange(partitions - width, partitions)
    outer_from, outer_to = _exchange(last, partitions * replicas, server)
    edge_from = np.concatenate([inner_from.ravel(), outer_from])
    order = np.argsort(edge_from, kind="stable")
    head, tail = _longest(share, width)
    links = 2 if server else min(replicas - 1, 1)
    return Graph(
        size_share=np.concatenate([np.tile(share, replicas), np.zeros(int(server))]),
        edge_from=edge_from[order],
        edge_to=np.concatenate([inner_to.ravel(), outer_to])[order],
        to_server=(order >= inner_from.size) & server,
        units=head + tail,
        hops=layers - 1 + links,
    )


def _exchange(last: Ints, server: int, by_server: bool) -> tuple[Ints, Ints]:
    """Edges that carry results: last partitions (replicas, width) to the server and back, or from one to the next."""
    if by_server:
        workers = last.ravel()
        there = np.full(workers.size, server)
        return np.concatenate([workers, there]), np.concatenate([there, workers])
    return last[1:].ravel(), last[:-1].ravel()


def _longest(share: Floats, width: int) -> tuple[float, float]:
    """Largest partitions of all layers but the last, added up, and that of the last."""
    largest = share.reshape(-1, width).max(axis=1)
    return float(largest[:-1].sum()), float(largest[-1])


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
