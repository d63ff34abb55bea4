"""Nodes of unlike GPUs as the engine takes them: from a cluster file, or openb's list of nodes."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jobcast.domain.energy import HOUR_S, EnergyCluster, Tariff
from jobcast.domain.errors import ConfigError
from jobcast.traces.cluster_files import read_nodes
from jobcast.traces.gpu_nodes import EnergyPrice, GpuNodes

Kind = tuple[str, int, tuple[float, ...]]
"""What nodes of a kind have in common: GPU type, GPUs, watts by GPUs in use."""


@dataclass(frozen=True, slots=True, eq=False)
class EnergyNodes:
    """Nodes and the price of their energy.

    Attributes
    ----------
    cluster : as the engine takes it
    gpu_types : (n_kinds,) GPU type of each kind
    names : (n_nodes,) of the nodes
    origin : where this comes from, in words
    notes : what a reader of results should know
    """

    cluster: EnergyCluster
    gpu_types: tuple[str, ...]
    names: tuple[str, ...]
    origin: str
    notes: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return int(self.cluster.kind_gpus[self.cluster.kind_of].sum())

    def priced(self, price_eur_kwh: float | None, pue: float | None) -> "EnergyNodes":
        """The same nodes with a flat price, another PUE, or both; None leaves what there is."""
        cluster = self.cluster
        if price_eur_kwh is not None:
            cluster = cluster._replace(tariff=Tariff(np.zeros(1), np.array([price_eur_kwh])))
        if pue is not None:
            cluster = cluster._replace(pue=pue)
        return replace(self, cluster=cluster)


def energy_nodes(*, gpus: int | None, cluster: Path | None, pools: Path | None) -> EnergyNodes:
    """The nodes that were named. Raises ConfigError unless by a cluster file, PoolsError for one that is wrong."""
    for option, given in (("--gpus", gpus), ("--pools", pools)):
        if given is not None:
            raise ConfigError(
                f"{option}: schedulers of energy need nodes and what they draw; give --cluster FILE instead"
            )
    if cluster is None:
        raise ConfigError(
            "--cluster FILE is missing: schedulers of energy need nodes and what they draw; `jobcast trace generate "
            "andreas` writes one with --cluster-out"
        )
    nodes = read_nodes(cluster)
    types = ", ".join(f"{count:,} {name}" for name, count in _by_type(nodes).items())
    return as_cluster(nodes, f"cluster file {cluster}: {types} GPUs on {len(nodes):,} nodes")


def as_cluster(nodes: GpuNodes, origin: str = "generated") -> EnergyNodes:
    """Nodes as the engine takes them; groups that are alike are one kind."""
    kinds: dict[Kind, int] = {}
    kind_of: list[int] = []
    for group in nodes.groups:
        kind = kinds.setdefault((group.gpu_type, group.gpus, group.power_w), len(kinds))
        kind_of += [kind] * group.count
    most = max(gpus for _, gpus, _ in kinds)
    power_w = [[*watts, *[watts[-1]] * (most - gpus)] for _, gpus, watts in kinds]
    cluster = EnergyCluster(
        kind_of=np.array(kind_of, dtype=np.int64),
        kind_gpus=np.array([gpus for _, gpus, _ in kinds], dtype=np.int64),
        power_w=np.array(power_w),
        pue=nodes.price.pue,
        tariff=_tariff(nodes.price),
    )
    names = tuple(name for group in nodes.groups for name in group.names)
    return EnergyNodes(cluster, tuple(name for name, _, _ in kinds), names, origin, nodes.notes)


def _tariff(price: EnergyPrice) -> Tariff:
    hours, eur = zip(*price.tariff, strict=True)
    return Tariff(np.array(hours) * HOUR_S, np.array(eur))


def _by_type(nodes: GpuNodes) -> dict[str, int]:
    """GPUs by type, in order of appearance."""
    totals: dict[str, int] = {}
    for group in nodes.groups:
        totals[group.gpu_type] = totals.get(group.gpu_type, 0) + group.count * group.gpus
    return totals
