"""GPUs that elastic jobs share: a number of them, or a cluster file of nodes and types."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jobcast.domain.errors import ConfigError, PoolsError
from jobcast.simulator.elastic.run import ElasticCluster
from jobcast.traces.cluster_yaml import read_yaml, whole
from jobcast.traces.pools import read_pools
from jobcast.traces.speedups import ANY_TYPE
from jobcast.traces.table import Trace

LOAD = 0.8
"""Offered load of a cluster whose size nobody gave."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """GPUs by type, and the nodes that they sit in.

    Attributes
    ----------
    gpu_types : names, in order of appearance
    nodes : (type, GPUs) of each node; empty where GPUs are known by number alone
    gpus_by_type : in the order of `gpu_types`
    origin : where this comes from, in words
    """

    gpu_types: tuple[str, ...]
    nodes: tuple[tuple[str, int], ...]
    gpus_by_type: tuple[int, ...]
    origin: str

    @property
    def gpus(self) -> int:
        """GPUs of all types."""
        return sum(self.gpus_by_type)

    def cluster(self) -> ElasticCluster:
        """As the engine takes it."""
        return ElasticCluster(
            capacity=np.array(self.gpus_by_type, dtype=np.float64),
            node_type=np.array([self.gpu_types.index(name) for name, _ in self.nodes], dtype=np.int64),
            node_gpus=np.array([gpus for _, gpus in self.nodes], dtype=np.float64),
        )


def hardware(trace: Trace, *, gpus: int | None, cluster: Path | None, pools: Path | None) -> Hardware:
    """GPUs from exactly one of a number, a cluster file, a pools file (their sum), or the trace itself.

    Raises ConfigError for two of them, PoolsError for a file that cannot be read.
    """
    given = [name for name, value in (("--pools", pools), ("--cluster", cluster), ("--gpus", gpus)) if value]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} exclude each other; give one")
    if gpus:
        return flat(gpus, f"a flat cluster of {gpus}")
    if cluster:
        return _read_cluster(cluster)
    if pools:
        total = sum(pool.quota for pool in read_pools(pools).at(float(trace.submit_s[0])))
        return flat(total, f"{total}, the sum of the quotas of {pools}: elastic policies share one cluster")
    span_s = float(trace.submit_s[-1] - trace.submit_s[0]) or 1.0
    total = max(1, math.ceil(float(trace.gpu_time_s.sum()) / span_s / LOAD))
    return flat(total, f"{total}, ceil(GPU-time / span / {LOAD:g}) of the trace")


def flat(gpus: int, origin: str) -> Hardware:
    """GPUs of one type that are known by number alone."""
    return Hardware((ANY_TYPE,), (), (gpus,), origin)


def _read_cluster(path: Path) -> Hardware:
    raw = read_yaml(path)
    groups = raw.get("nodes") if isinstance(raw, dict) else None
    if not isinstance(groups, list) or not groups:
        raise PoolsError(f"{path}: nodes: [{{count: 8, gpus: 4, gpu_type: v100}}] is expected")
    nodes: list[tuple[str, int]] = []
    for row, group in enumerate(groups, 1):
        where = f"{path}, node group {row}"
        if not isinstance(group, dict):
            raise PoolsError(f"{where}: count, gpus and, where types differ, gpu_type are expected")
        count, gpus = (whole(group.get(key), f"{where}, {key}") for key in ("count", "gpus"))
        nodes += [(str(group.get("gpu_type", ANY_TYPE)), gpus)] * count
    types = tuple(dict.fromkeys(name for name, _ in nodes))
    by_type = tuple(sum(gpus for name, gpus in nodes if name == kind) for kind in types)
    told = ", ".join(f"{gpus} {kind}".strip() for kind, gpus in zip(types, by_type, strict=True))
    return Hardware(types, tuple(nodes), by_type, f"cluster file {path}: {told} on {len(nodes)} nodes")


def preempting(cluster: ElasticCluster, preempt_s: float, *, placed: bool) -> ElasticCluster:
    """The cluster with a cost of changes; without its nodes where jobs are not placed."""
    if placed:
        return replace(cluster, preempt_s=preempt_s)
    return ElasticCluster(cluster.capacity, preempt_s=preempt_s)
