"""Tasks of MLFS's jobs: their graphs, what they use, what they send (section 4.1).

How MLFS's jobs are split: partitions times replicas, and who sends to whom in an iteration (section 4.1).

Tasks of a job are numbered replica by replica, partition by partition, the parameter server last. Edges to later tasks
are dependencies; edges to earlier ones are what is exchanged at an iteration's end: the server's broadcast, and a ring
of all-reduce, whose last link, to a later task, is left out.

What may be set of MLFS's workload, and what it assumes of its five algorithms.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.traces.generators.settings import FIRST_INSTANT, check_pairs, check_ranges, setting
from jobcast.traces.tasks import TaskTable

PAPER_JOBS = 620
"""Jobs at x = 1. MLFS, section 4.1."""
DIVISOR, GPUS = "divisor", "gpus"
PAPER, MIXED = "paper", "mixed"
DRAWN = -1
"""In place of a week: the seed draws it."""
Range = tuple[float, float]


class Algorithm(NamedTuple):
    """What a worker of a learning algorithm is like; ranges are uniform, one value a job.

    Attributes
    ----------
    batch_mb : training data an iteration
    split : whether each layer is split, so that its parts run side by side; else the model is cut one after another
    parallel : whether the model can be partitioned at all
    gpu, cpu, memory_gb, bandwidth_mb_s : demand of a worker: share of a GPU, cores, GB, MB/s
    model_mb : size of the whole model
    """

    batch_mb: float
    split: bool
    parallel: bool
    gpu: Range
    cpu: Range
    memory_gb: Range
    bandwidth_mb_s: Range
    model_mb: Range


ALGORITHMS: Mapping[str, Algorithm] = {
    "alexnet": Algorithm(1.0, False, True, (0.3, 0.7), (2.0, 5.0), (6.0, 20.0), (80.0, 160.0), (220.0, 245.0)),
    "resnet": Algorithm(1.0, True, True, (0.5, 0.85), (2.0, 5.0), (6.0, 20.0), (60.0, 140.0), (45.0, 240.0)),
    "mlp": Algorithm(0.0015, False, True, (0.3, 0.6), (1.0, 3.0), (3.0, 10.0), (50.0, 120.0), (10.0, 100.0)),
    "lstm": Algorithm(0.0015, True, True, (0.3, 0.7), (1.0, 4.0), (4.0, 16.0), (60.0, 140.0), (50.0, 250.0)),
    "svm": Algorithm(0.0015, False, False, (0.2, 0.6), (1.0, 3.0), (3.0, 10.0), (40.0, 100.0), (1.0, 10.0)),
}
"""Batches and how models are partitioned: MLFS, section 4.1. Shares of a GPU are ours, 0.5 in the mean, as Philly's
GPUs were 52 % busy (Jeon et al., USENIX ATC 2019). Cores, memory and bandwidth are ours, so that GPUs run out first on
servers of 4 GPUs, 32 cores, 244 GB and 1,250 MB/s. Models are 4 bytes a parameter: AlexNet 61 million, ResNet-18 to
-152 11 to 60 million; the others are ours."""
SERVER_CPU: Range = (2.0, 6.0)
SERVER_MEMORY_GB: Range = (4.0, 16.0)
SERVER_BANDWIDTH_MB_S: Range = (100.0, 300.0)
SERVER_COMPUTE: Range = (0.01, 0.05)
"""Of a parameter server, ours: cores, GB, MB/s, and its seconds an iteration as a share of the whole."""
VOLUME_MB: Range = (50.0, 100.0)
DATA_MB: Range = (100.0, 1000.0)
DEADLINE_H: Range = (0.5, 24.0)
DEADLINE_SLACK = 1.1
"""MLFS, section 4.1: MB on each edge, MB of training data, and deadlines at max(1.1 t_e, t_r)."""
URGENCIES = (1, 10)
"""Levels of urgency, equally likely; ours, the paper calls jobs above 8 urgent."""


@dataclass(frozen=True, slots=True)
class MlfsConfig:
    """Parameters of the workload. Number of jobs, widths and span are those of MLFS, section 4.1."""

    jobs: int = setting(PAPER_JOBS, "number of jobs: 155, 310, 620, 1240 and 1860 in the paper", 2, 1_000_000)
    arrivals: str = setting("", "a trace, whose jobs' arrivals and run times are used; default: a Poisson process")
    week: int = setting(DRAWN, "first week of that trace, from 0 at its first job; default: the seed draws it", DRAWN)
    weeks: int = setting(1, "weeks in which the jobs arrive", 1, 1000)
    gpus: int = setting(80, "GPUs of the cluster", 1, 100_000)
    load: float = setting(0.25, f"offered load of 80 GPUs by {PAPER_JOBS} jobs a week, in shares of GPUs", 0.001, 100)
    longest_h: float = setting(24.0, "no job runs longer where nothing holds it up; hours", 0.5, 10_000)
    shortest_min: float = setting(1.0, "no job runs shorter; minutes", 0.01, 1000)
    widths: tuple[int, ...] = setting((1, 2, 4, 8, 16, 32), "GPUs of a job, each equally likely", 1, 4096)
    partitions: str = setting(DIVISOR, f"of a model: a {DIVISOR} of its GPUs, at random, or as many as {GPUS}")
    most_partitions: int = setting(4096, "most partitions of a model; more GPUs hold replicas", 1, 4096)
    servers: float = setting(0.5, "share of jobs with a parameter server; the others reduce in a ring", 0, 1)
    communication: float = setting(0.5, "most that communications add to an iteration, if all tasks are apart", 0, 100)
    epochs: tuple[int, ...] = setting((20, 100), "fewest and most epochs of a job", 1, 100_000)
    options: str = setting(PAPER, f"what users ask for: {PAPER} (OptStop, may become target) or {MIXED}")
    error: float = setting(0.11, "mean relative error of estimated seconds an iteration", 0, 1)
    unseen: float = setting(0.0, "share of jobs that never ran before; section 3.1", 0, 1)
    unseen_error: float = setting(0.3, "mean relative error of their estimates", 0, 1)
    sample_min: float = setting(0.0, "minutes that they run apart before they queue, known as the others then", 0, 1440)
    target: tuple[float, ...] = setting((0.85, 0.995), "required accuracy as a share of the final one", 0, 1)
    start: datetime = setting(FIRST_INSTANT, "instant at which the week begins, without a trace")  # noqa: RUF009

    def __post_init__(self) -> None:
        check_ranges(self)
        for name, known in (("partitions", (DIVISOR, GPUS)), ("options", (PAPER, MIXED))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be {' or '.join(known)}, got {getattr(self, name)}")
        check_pairs(self, "epochs", "target")
        if self.shortest_min * 60 > self.longest_h * 3600:
            raise ValueError(f"shortest_min must not be longer than longest_h, got {self.shortest_min}")
        if not self.widths:
            raise ValueError("widths must name at least one number of GPUs")
        if self.communication == 0.0:
            raise ValueError("communication must be above 0")


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
    # a floor below the Dirichlet: no partition is nearly empty
    share = LEAST_SHARE / partitions + (1 - LEAST_SHARE) * rng.dirichlet(np.full(partitions, CONCENTRATION))
    layers = partitions // width
    first = np.arange(replicas)[:, None] * partitions
    within = np.arange(partitions - width)
    # first partition of the next layer
    nexts = (within // width + 1) * width
    inner_from = np.repeat(first + within, width, axis=1)
    inner_to = (first[:, :, None] + nexts[:, None] + np.arange(width)).reshape(replicas, -1)
    last = first + np.arange(partitions - width, partitions)
    outer_from, outer_to = _exchange(last, partitions * replicas, server)
    edge_from = np.concatenate([inner_from.ravel(), outer_from])
    # tables are by sender; stable keeps inner edges before outer ones
    order = np.argsort(edge_from, kind="stable")
    head, tail = _longest(share, width)
    # there and back through the server, one hop of the ring
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
        # only the last layer has results to exchange
        workers = last.ravel()
        there = np.full(workers.size, server)
        return np.concatenate([workers, there]), np.concatenate([there, workers])
    # the ring's closing link would lead to a later task and make a cycle
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
    """Tasks of jobs, by column.

    Attributes
    ----------
    tasks, edges : (n_jobs,) how many each job has
    demand : (n_tasks, 4) shares of a GPU, cores, GB, MB/s
    compute : (n_tasks,) time as a share of the job's iteration
    size_share, is_server : (n_tasks,) share of the model, and whether it is a parameter server
    edge_from, edge_to, volume_mb : (n_edges,) tasks counted within their job, MB an iteration
    model_mb : (n_jobs,) size of the model
    gpu : (n_jobs,) shares of GPUs of all its tasks
    sending_s : (n_jobs,) seconds that an iteration's sending takes if all tasks are apart
    """

    tasks: Ints
    edges: Ints
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


def joined_tasks(parts: Iterable[JobTasks]) -> JobTasks:
    """Tasks of all jobs, one part after another."""
    return JobTasks(*map(np.concatenate, zip(*parts, strict=True)))


def task_table(
    path: str,
    job_ids: tuple[str, ...],
    tasks: JobTasks,
    iteration_s: Floats,
    estimate_s: Floats,
    epoch_iterations: Ints,
    options: tuple[Ints, Ints],
) -> TaskTable:
    """Tasks with their seconds: units of time become those of the jobs' iterations, of which policies see estimates.

    `options`: what users ask for, and the furthest that it may be changed to.
    """
    task_of, edge_of = (np.concatenate([[0], np.cumsum(counts)]) for counts in (tasks.tasks, tasks.edges))
    # all jobs in one array each: replays index tasks by number
    before = np.repeat(task_of[:-1], tasks.edges)
    return TaskTable(
        path=path,
        sha256="",
        job_ids=job_ids,
        task_of=task_of,
        edge_of=edge_of,
        demand=tasks.demand,
        compute_s=tasks.compute * np.repeat(iteration_s, tasks.tasks),
        size_share=tasks.size_share,
        is_server=tasks.is_server,
        edge_from=before + tasks.edge_from,
        edge_to=before + tasks.edge_to,
        volume_mb=tasks.volume_mb,
        model_mb=tasks.model_mb,
        epoch_iterations=epoch_iterations,
        iteration_s=estimate_s,
        option=options[0],
        may_become=options[1],
    )


def tasks_of_jobs(algorithm: Ints, gpus: Ints, config: MlfsConfig, rng: np.random.Generator) -> JobTasks:
    """Draw the tasks of jobs.

    Parameters
    ----------
    algorithm : (n_jobs,) index into `ALGORITHMS`
    gpus : (n_jobs,) GPUs, one for each worker
    config, rng : of the draw
    """
    known = list(ALGORITHMS.values())
    kinds = zip(algorithm.tolist(), gpus.tolist(), strict=True)
    return joined_tasks(_job(known[at], width, config, rng) for at, width in kinds)


def _job(kind: Algorithm, gpus: int, config: MlfsConfig, rng: np.random.Generator) -> JobTasks:
    """Tasks of one job."""
    partitions = _partitions(kind, gpus, config, rng)
    # layers must divide the partitions evenly
    wide = [parts for parts in divisors(partitions) if parts > 1] if kind.split else []
    width = int(rng.choice(wide)) if wide else 1
    server = bool(rng.random() < config.servers)
    graph = graph_of(partitions, width, gpus // partitions, server, rng)
    # no draw without a server: the stream's order is part of the workload
    own = rng.uniform(*SERVER_COMPUTE) if server else 0.0
    demand = _demand(kind, gpus, server, rng)
    between, to_server = rng.uniform(*VOLUME_MB, 2)
    compute = graph.size_share * (1.0 - own) / graph.units
    # the server, if there is one, is the task after the workers
    compute[gpus:] = own
    return JobTasks(
        tasks=np.array([compute.size]),
        edges=np.array([graph.edge_from.size]),
        demand=demand,
        compute=compute,
        size_share=graph.size_share,
        # only parameter servers use no GPU
        is_server=demand[:, 0] == 0.0,
        edge_from=graph.edge_from,
        edge_to=graph.edge_to,
        volume_mb=np.where(graph.to_server, to_server, between),
        model_mb=rng.uniform(*kind.model_mb, 1),
        gpu=np.add.reduceat(demand[:, 0], [0]),
        sending_s=np.array([_sending_s(graph, demand[:, 3], between, to_server, server)]),
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
    # after the spread, which may lift it over the limit
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
