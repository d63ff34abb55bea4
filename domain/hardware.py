"""The hardware that jobs run on: groups of alike nodes, quotas of pools over time, and the price of energy.

What GPUs of a type are assumed to draw and to do where no measurement says: watts are the makers' board powers
(NVIDIA's data sheets): K80 300 for its two GPUs, P100 and V100 PCIe 250, V100 SXM2 300, T4 70, A10 150. Speeds are
ours, as shares of a V100's. G1, G2 and G3 are types whose names openb's owners keep to themselves: their watts and
speeds are ours too, between a V100 and twice its speed.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Ints
from jobcast.domain.jobs import Pool
from jobcast.domain.scheduling_rules import NO_RULES, SchedulingRules

HOST_W = 100.0
"""Of a node with any GPU in use, beside its GPUs: ours. Jobs that train leave most of a host's processors idle."""


class GpuType(NamedTuple):
    """Watts of a GPU in use, and how fast it computes, as a share of a V100."""

    power_w: float
    speed: float


GPU_TYPES: Mapping[str, GpuType] = MappingProxyType(
    {
        "k80": GpuType(150.0, 0.25),
        "p100": GpuType(250.0, 0.6),
        "v100": GpuType(250.0, 1.0),
        "v100m16": GpuType(300.0, 1.0),
        "v100m32": GpuType(300.0, 1.0),
        "t4": GpuType(70.0, 0.4),
        "a10": GpuType(150.0, 0.9),
        "g1": GpuType(250.0, 1.0),
        "g2": GpuType(300.0, 1.5),
        "g3": GpuType(400.0, 2.0),
    }
)
"""By name in small letters."""


def known_type(name: str) -> GpuType | None:
    """What is assumed of a type, whatever the case of its letters; None where nothing is.

    >>> known_type("V100M32").power_w
    300.0
    """
    return GPU_TYPES.get(name.lower())


def linear_power_w(gpus: int, node_w: float, gpu_w: float, idle_w: float = 0.0) -> tuple[float, ...]:
    """Watts of a node by GPUs in use, from 0: it idles with none, and draws `node_w` and `gpu_w` a GPU with any.

    >>> linear_power_w(2, 170.0, 250.0)
    (0.0, 420.0, 670.0)
    """
    # With none in use a node may be switched off: its idle power is told apart.
    return (idle_w, *(node_w + gpu_w * used for used in range(1, gpus + 1)))


ALWAYS_S = -math.inf
FLAT_POOL = "all"
"""The one pool of a cluster without quotas."""
PUE = 1.33
PRICE_EUR_KWH = 0.172
"""ANDREAS, section V.A."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike.

    Attributes
    ----------
    gpu_type, gpus : of each node; an empty type where none is told
    told_w : what a node draws with 0, 1, ... GPUs in use, watts; empty where nothing is told
    names : of its nodes; their number is that of the nodes
    cpus, memory_gb, bandwidth_mb_s : cores, GB and MB/s of each node, None where nothing is told
    """

    gpu_type: str
    gpus: int
    told_w: tuple[float, ...]
    names: tuple[str, ...]
    cpus: float | None = None
    memory_gb: float | None = None
    bandwidth_mb_s: float | None = None

    @property
    def count(self) -> int:
        """Nodes of the group."""
        return len(self.names)

    @property
    def power_w(self) -> tuple[float, ...]:
        """Watts with 0, 1, ... GPUs in use: as told, else as assumed of the type; empty where nothing is known.

        >>> NodeGroup("T4", 2, (), ("a",)).power_w
        (0.0, 170.0, 240.0)
        """
        known = known_type(self.gpu_type)
        # What somebody measured goes before what is assumed of the type.
        return self.told_w or (linear_power_w(self.gpus, HOST_W, known.power_w) if known else ())


def numbered(count: int, before: int = 0) -> tuple[str, ...]:
    """Names of nodes that have none, after so many others.

    >>> numbered(2, before=3)
    ('node-4', 'node-5')
    """
    return tuple(f"node-{before + at}" for at in range(1, count + 1))


@dataclass(frozen=True, slots=True)
class Quota:
    """A pool's GPUs from an instant on (seconds from the epoch; -inf = always); 0: from then on there is no such pool.

    `cells` are the GPUs of each cell that the quota is made of, the largest first; empty where that is not told.
    """

    pool: str
    gpus: int
    from_s: float = ALWAYS_S
    cells: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolsTable:
    """Quotas of pools over time, by (pool, from)."""

    quotas: tuple[Quota, ...] = ()

    @classmethod
    def of(cls, pools: Iterable[Pool]) -> "PoolsTable":
        """Quotas that never change."""
        return cls(tuple(Quota(pool.name, pool.quota) for pool in pools))

    def at(self, instant_s: float) -> list[Pool]:
        """Pools in force at an instant, names ascending; a pool is there from its first row on, until one of 0 GPUs.

        >>> table = PoolsTable((Quota("a", 4), Quota("a", 0, 100.0), Quota("b", 2, 100.0)))
        >>> table.at(99.0), table.at(100.0)
        ([Pool(name='a', quota=4)], [Pool(name='b', quota=2)])
        """
        newest = self._newest(instant_s)
        return [Pool(name, newest[name].gpus) for name in sorted(newest) if newest[name].gpus]

    def gone_between(self, from_s: float, until_s: float) -> dict[str, float]:
        """Pools in force at an instant that are gone by another, and the first instant at which they are.

        >>> PoolsTable((Quota("a", 4), Quota("a", 0, 100.0), Quota("b", 2))).gone_between(0.0, 100.0)
        {'a': 100.0}
        """
        gone: dict[str, float] = {}
        for quota in sorted(self.quotas, key=lambda quota: quota.from_s):
            if not quota.gpus and from_s < quota.from_s <= until_s:
                gone.setdefault(quota.pool, quota.from_s)
        there = {pool.name for pool in self.at(from_s)}
        return {name: gone[name] for name in sorted(there & gone.keys())}

    def cells_at(self, instant_s: float) -> dict[str, tuple[int, ...]]:
        """Cells of the pools in force at an instant that tell theirs. SIA, section 5.5.

        >>> PoolsTable((Quota("a", 12, cells=(8, 4)), Quota("b", 2))).cells_at(0.0)
        {'a': (8, 4)}
        """
        newest = self._newest(instant_s)
        return {name: newest[name].cells for name in sorted(newest) if newest[name].cells}

    def _newest(self, instant_s: float) -> dict[str, Quota]:
        newest: dict[str, Quota] = {}
        # The latest row that has begun wins, since it comes last.
        for quota in sorted(self.quotas, key=lambda quota: quota.from_s):
            if quota.from_s <= instant_s:
                newest[quota.pool] = quota
        return newest


NO_QUOTAS = PoolsTable()


@dataclass(frozen=True, slots=True)
class Cluster:
    """Whatever jobs of any kind run on. A number of GPUs, or quotas alone, are clusters too.

    Attributes
    ----------
    groups : nodes, empty where GPUs are known by number alone
    quotas : of pools, empty where all jobs share all GPUs
    at_s : seconds from the epoch; the quotas of this instant count
    number : GPUs without regard to pools where neither nodes nor the sum of the quotas tell them
    pue : power usage effectiveness, >= 1
    tariff : (hour of the day in UTC, EUR a kWh from then on), the first at hour 0
    origin : where this comes from, in words
    notes : what else the file tells that it comes from
    rules : priority, accounts, QOS and limits
    """

    groups: tuple[NodeGroup, ...] = ()
    quotas: PoolsTable = NO_QUOTAS
    at_s: float = ALWAYS_S
    number: int | None = None
    pue: float = PUE
    tariff: tuple[tuple[float, float], ...] = ((0.0, PRICE_EUR_KWH),)
    origin: str = "made by hand"
    notes: tuple[str, ...] = ()
    rules: SchedulingRules = NO_RULES

    @property
    def gpus(self) -> int:
        """GPUs without regard to pools."""
        if self.groups:
            return sum(group.count * group.gpus for group in self.groups)
        # Nodes first: quotas may promise less than there is.
        return sum(pool.quota for pool in self.pools) if self.number is None else self.number

    @property
    def flat(self) -> bool:
        """Whether all jobs share one pool, whatever the trace says."""
        return not self.quotas.quotas

    @property
    def pools(self) -> list[Pool]:
        """Quotas in force, names ascending; of a flat cluster one of all GPUs."""
        return [Pool(FLAT_POOL, self.gpus)] if self.flat else self.quotas.at(self.at_s)

    @property
    def cells(self) -> dict[str, tuple[int, ...]]:
        """GPUs of each cell of the pools that tell theirs."""
        return self.quotas.cells_at(self.at_s)

    @property
    def shared(self) -> "Cluster":
        """The same where all jobs share all GPUs, for policies that ignore quotas; the origin says so."""
        if self.flat:
            return self
        text = f"{self.gpus} GPUs in all, {self.origin}; quotas are ignored"
        return replace(self, quotas=NO_QUOTAS, number=self.gpus, origin=text)

    @property
    def nodes(self) -> tuple[tuple[int, int], ...]:
        """(nodes, GPUs of each) by group."""
        return tuple((group.count, group.gpus) for group in self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """(n_nodes,) of the nodes."""
        return tuple(name for group in self.groups for name in group.names)

    @property
    def node_gpus(self) -> Ints:
        """(n_nodes,) GPUs of each."""
        return self.by_node([group.gpus for group in self.groups])

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """In order of appearance, an empty name where none is told."""
        # A dict keeps the order of appearance, which numbers the types.
        return tuple(dict.fromkeys(group.gpu_type for group in self.groups)) or ("",)

    @property
    def node_type(self) -> Ints:
        """(n_nodes,) index of each node's type in `gpu_types`."""
        index = {name: at for at, name in enumerate(self.gpu_types)}
        return self.by_node([index[group.gpu_type] for group in self.groups])

    def by_node(self, of_group: list[int]) -> Ints:
        """(n_nodes,) what is told of each group."""
        return np.repeat(np.array(of_group, dtype=np.int64), [group.count for group in self.groups])

    @property
    def by_type(self) -> dict[str, int]:
        """GPU type -> GPUs."""
        counted = np.bincount(self.node_type, self.node_gpus, len(self.gpu_types)) if self.groups else [self.gpus]
        return {name: int(gpus) for name, gpus in zip(self.gpu_types, counted, strict=True)}

    @property
    def widest(self) -> dict[str, int]:
        """GPU type -> GPUs of the biggest node that has it, in order of appearance."""
        most: dict[str, int] = {}
        for group in self.groups:
            most[group.gpu_type] = max(most.get(group.gpu_type, 0), group.gpus)
        return most

    def priced(self, price_eur_kwh: float | None, pue: float | None) -> "Cluster":
        """The same with a flat price, another PUE, or both; None leaves what there is."""
        tariff = self.tariff if price_eur_kwh is None else ((0.0, price_eur_kwh),)
        return replace(self, tariff=tariff, pue=self.pue if pue is None else pue)


def flat_cluster(gpus: int) -> Cluster:
    """GPUs that are known by number alone."""
    return Cluster(number=gpus, origin=f"a flat cluster of {gpus} GPUs, pools ignored")


def pools_cluster(pools: Iterable[Pool], origin: str = "made by hand") -> Cluster:
    """GPUs that are known by pools whose quotas never change."""
    return Cluster(quotas=PoolsTable.of(pools), origin=origin)
