"""The cluster of a simulation, however it was named, and the same as each engine takes it."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from jobcast.domain.clock import HOUR_S
from jobcast.domain.energy import EnergyCluster, Tariff
from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import Cluster, NodeGroup, PoolsTable, flat_cluster, numbered
from jobcast.domain.tasks import GPU, TaskCluster
from jobcast.simulator.elastic.run import ElasticCluster
from jobcast.traces.cluster_file import read_cluster
from jobcast.traces.pools import DEFAULT_LOAD, derive_pools, held_beyond, read_pools
from jobcast.traces.table import Trace

SERVER_GPUS, SERVER_HOST = 4, (32.0, 244.0, 1250.0)
"""p3.8xlarge, a server of MLFS, section 4.1, with 10 Gb/s: GPUs; cores, GB, MB/s."""
TASK_GPUS = 80
"""MLFS, section 4.1: 20 servers."""


def cluster_of(
    trace: Trace,
    *,
    pools: Path | None = None,
    cluster: Path | None = None,
    gpus: int | None = None,
    from_s: float | None = None,
    otherwise: int | None = None,
) -> Cluster:
    """The cluster by exactly one of a pools file, a cluster file and a number of GPUs; else as the trace needs it.

    Parameters
    ----------
    trace : its first submission is the instant whose quotas count where `from_s` is None
    pools, cluster, gpus : what was named
    from_s : the window's beginning, seconds from the epoch
    otherwise : GPUs where nothing was named, instead of what keeps the trace's jobs busy

    Raises ConfigError for two of them or no GPU, PoolsError for a file that cannot be used.
    """
    # Two clusters for one run cannot both hold, and none is more right.
    named = (("--pools", pools), ("--cluster", cluster), ("--gpus", gpus))
    given = [name for name, value in named if value is not None]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} exclude each other; give one")
    # `otherwise` counts only where nothing at all was named.
    gpus = gpus if given else otherwise
    if gpus is not None:
        if gpus < 1:
            raise ConfigError(f"--gpus: must be at least 1, got {gpus}")
        return flat_cluster(gpus)
    if not given:
        return _derived(trace)
    # Quotas change over time: those of the window's beginning hold throughout.
    at_s = float(trace.submit_s[0]) if from_s is None else from_s
    if pools is not None:
        return Cluster(quotas=read_pools(pools), at_s=at_s, origin=f"pools file {pools}")
    read = read_cluster(Path(str(cluster)))
    types = ", ".join(f"{count:,} {name}".strip() for name, count in read.by_type.items())
    result = (f"cluster file {cluster}: {types} GPUs on {len(read.names):,} nodes", *read.notes)
    return replace(read, at_s=at_s, origin=", ".join(result))


def named_cluster(
    trace: Trace, *, pools: Path | None, cluster: Path | None, gpus: int | None, from_s: float | None
) -> Cluster | None:
    """As `cluster_of`, None where nothing was named."""
    if pools is None and cluster is None and gpus is None:
        return None
    return cluster_of(trace, pools=pools, cluster=cluster, gpus=gpus, from_s=from_s)


def _derived(trace: Trace) -> Cluster:
    # A trace of one instant has no span to share its work over.
    span_s = float(trace.submit_s[-1] - trace.submit_s[0]) or 1.0
    derived = derive_pools(trace)
    rule = f"derived from the trace: max(widest job, ceil(GPU-time / span / {DEFAULT_LOAD:g})) GPUs a pool"
    return Cluster(
        quotas=PoolsTable.of(derived),
        number=max(1, math.ceil(float(trace.gpu_time_s.sum()) / span_s / DEFAULT_LOAD)),
        origin=rule + held_beyond(trace, derived),
    )


def elastic_cluster(cluster: Cluster) -> ElasticCluster:
    """GPUs by type, and the nodes that they sit in where these are told."""
    return ElasticCluster(
        capacity=np.array(list(cluster.by_type.values()), dtype=np.float64),
        node_type=cluster.node_type,
        node_gpus=cluster.node_gpus.astype(np.float64),
    )


def preempting(cluster: ElasticCluster, preempt_s: float, *, placed: bool) -> ElasticCluster:
    """The cluster with a cost of changes; without its nodes where jobs are not placed."""
    if placed:
        return replace(cluster, preempt_s=preempt_s)
    return ElasticCluster(cluster.capacity, preempt_s=preempt_s)


def task_cluster(cluster: Cluster) -> TaskCluster:
    """Servers; what a node does not tell is as of p3.8xlarge, and GPUs that are known by number are on such servers.

    Where 4 does not divide the number, the last server is as much smaller, its cores, memory and bandwidth too.
    """
    # GPUs that are known by number alone are put on servers as MLFS has them.
    full, rest = divmod(cluster.gpus, SERVER_GPUS)
    groups = cluster.groups or (servers(full, SERVER_GPUS), servers(min(rest, 1), rest))
    hosts = [(group.cpus, group.memory_gb, group.bandwidth_mb_s) for group in groups]
    lines = [[mine or usual for mine, usual in zip(host, SERVER_HOST, strict=True)] for host in hosts]
    rows = [[float(group.gpus), *host] for group, host in zip(groups, lines, strict=True)]
    capacity = np.repeat(np.array(rows), [group.count for group in groups], axis=0)
    # A row a GPU: kernels look up the server of a GPU.
    server_of = np.repeat(np.arange(len(capacity)), capacity[:, GPU].astype(np.int64))
    return TaskCluster(np.ascontiguousarray(capacity), server_of)


def servers(count: int, gpus: int) -> NodeGroup:
    """So many servers that are p3.8xlarge but for their GPUs, and all else in proportion."""
    return NodeGroup("", gpus, (), numbered(count), *(share * gpus / SERVER_GPUS for share in SERVER_HOST))


def energy_cluster(cluster: Cluster) -> tuple[EnergyCluster, tuple[str, ...]]:
    """Nodes by kind, those of one GPU type, as many GPUs and the same watts, and the GPU type of each kind.

    Raises ConfigError where nodes, their GPU types or what they draw are not known.
    """
    if not cluster.groups:
        raise ConfigError(
            "--cluster FILE is missing: schedulers of energy need nodes and what they draw, and there is "
            f"{cluster.origin}; `jobcast trace generate andreas` writes such a file with --cluster-out"
        )
    kinds: dict[tuple[str, int, tuple[float, ...]], int] = {}
    kind_of_group: list[int] = []
    for row, group in enumerate(cluster.groups, 1):
        _check_power(group, f"{cluster.origin}, node group {row}")
        # Groups alike in type, GPUs and watts are one kind, whatever they are named.
        kind_of_group.append(kinds.setdefault((group.gpu_type, group.gpus, group.power_w), len(kinds)))
    most = max(gpus for _, gpus, _ in kinds)
    hours, eur = zip(*cluster.tariff, strict=True)
    names = [name for name, _, _ in kinds]
    made = EnergyCluster(
        kind_of=cluster.by_node(kind_of_group),
        kind_gpus=np.array([gpus for _, gpus, _ in kinds], dtype=np.int64),
        # Kernels take a rectangle: beyond its own GPUs a node draws what it draws with all of them.
        power_w=np.array([[*watts, *[watts[-1]] * (most - gpus)] for _, gpus, watts in kinds]),
        pue=cluster.pue,
        tariff=Tariff(np.array(hours) * HOUR_S, np.array(eur)),
        # Kinds of one GPU type may differ in size: times are of the type, watts of the kind.
        types=np.array([list(dict.fromkeys(names)).index(name) for name in names]),
    )
    return made, tuple(names)


def _check_power(group: NodeGroup, where: str) -> None:
    if not group.gpu_type:
        raise ConfigError(f"{where}: no gpu_type, which schedulers of energy need; name the type of its GPUs")
    if not group.power_w:
        raise ConfigError(
            f"{where}: nothing is known of the power of {group.gpu_type}; give power_w, or node_w and gpu_w"
        )


def assumed_power(cluster: Cluster) -> tuple[str, ...]:
    """A line for each GPU type whose watts are assumed, in order of appearance."""
    untold = dict.fromkeys(group.gpu_type for group in cluster.groups if not group.told_w)
    return tuple(f"no power_w of nodes with {name}: they draw what is assumed of its type" for name in untold)
