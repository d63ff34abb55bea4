"""How MLFS's jobs are split: partitions times replicas, and who sends to whom in an iteration (section 4.1).

Tasks of a job are numbered replica by replica, partition by partition, the parameter server last. Edges to later tasks
are dependencies; edges to earlier ones are what is exchanged at an iteration's end: the server's broadcast, and a ring
of all-reduce, whose last link, to a later task, is left out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints

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
