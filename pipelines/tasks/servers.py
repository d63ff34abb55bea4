"""Servers that jobs of tasks share: a number of GPUs, or a cluster file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError, PoolsError
from jobcast.domain.tasks import GPU, TaskCluster
from jobcast.traces.cluster_yaml import read_yaml, whole
from jobcast.traces.gpu_nodes import POWER_KEYS

P3_8XLARGE: dict[str, float] = {"gpus": 4, "cpus": 32, "memory_gb": 244.0, "bandwidth_mb_s": 1250.0}
"""A server of MLFS, section 4.1, with 10 Gb/s: GPUs, cores, GB, MB/s."""
DEFAULT_GPUS = 80
"""MLFS, section 4.1: 20 servers."""
ENERGY_KEYS = ("name", *POWER_KEYS)
"""Of a group of nodes, read by schedulers of energy alone."""
KNOWN = ("count", *P3_8XLARGE, "gpu_type")


@dataclass(frozen=True, slots=True, eq=False)
class Servers:
    """The cluster as the engine takes it, and where it comes from, in words."""

    cluster: TaskCluster
    origin: str

    @property
    def gpus(self) -> int:
        """GPUs of all servers."""
        return len(self.cluster.server_of)


def servers(*, gpus: int | None = None, cluster: Path | None = None) -> Servers:
    """Servers by a number of GPUs, 4 each, or by a cluster file; by default 20 of 4.

    Where 4 does not divide the number, the last server is as much smaller, its cores, memory and bandwidth too.

    Raises ConfigError for both of them or no GPU, PoolsError for a file that cannot be read.
    """
    if gpus is not None and cluster is not None:
        raise ConfigError("--gpus and --cluster exclude each other; give one")
    if cluster is not None:
        return _read(cluster)
    total = DEFAULT_GPUS if gpus is None else gpus
    if total < 1:
        raise ConfigError(f"--gpus: must be at least 1, got {total}")
    one = np.array(list(P3_8XLARGE.values()))
    full, rest = divmod(total, int(one[GPU]))
    capacity = np.vstack([np.tile(one, (full, 1)), *([one * rest / one[GPU]] if rest else [])])
    said = f"{total} GPUs on {len(capacity)} servers of up to {one[GPU]:.0f}, {one[1]:.0f} cores, {one[2]:.0f} GB and "
    return Servers(_cluster(capacity), f"{said}{one[3]:,.0f} MB/s")


def _read(path: Path) -> Servers:
    raw = read_yaml(path)
    groups = raw.get("nodes") if isinstance(raw, dict) else None
    if not isinstance(groups, list) or not groups:
        raise PoolsError(f"{path}: nodes: [{{count: 20, gpus: 4, cpus: 32, memory_gb: 244}}] is expected")
    rows: list[list[float]] = []
    for row, group in enumerate(groups, 1):
        where = f"{path}, node group {row}"
        if not isinstance(group, dict):
            raise PoolsError(f"{where}: count and gpus are expected")
        unknown = [str(key) for key in group if key not in (*KNOWN, *ENERGY_KEYS)]
        if unknown:
            raise PoolsError(f"{where}: {', '.join(unknown)} is not known; known are {', '.join(KNOWN)}")
        one = [float(whole(group.get("gpus"), f"{where}, gpus"))]
        one += [_positive(group.get(key, P3_8XLARGE[key]), f"{where}, {key}") for key in list(P3_8XLARGE)[1:]]
        rows += [one] * whole(group.get("count"), f"{where}, count")
    capacity = np.array(rows)
    return Servers(_cluster(capacity), f"cluster file {path}: {capacity[:, GPU].sum():.0f} GPUs on {len(rows)} servers")


def _positive(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise PoolsError(f"{where}: must be a number > 0, got {value!r}; correct it")
    return float(value)


def _cluster(capacity: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> TaskCluster:
    server_of = np.repeat(np.arange(len(capacity)), capacity[:, GPU].astype(np.int64))
    return TaskCluster(np.ascontiguousarray(capacity), server_of)
