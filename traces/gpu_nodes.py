"""Nodes of unlike GPUs and what they draw: the cluster file of schedulers of energy, read and written.

`nodes` holds groups of alike nodes: `count` (1), `gpus`, `gpu_type`, `name`, and the watts by `power_w` (a list from
0 GPUs in use) or by `node_w` and `gpu_w` (and `idle_w`); `energy` holds `price_eur_kwh`, `pue` and `tariff`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from jobcast.domain.errors import PoolsError
from jobcast.traces.cluster_yaml import number, read_yaml, refuse_unknown, whole
from jobcast.traces.files import replacing
from jobcast.traces.gpu_types import HOST_W, known_type, linear_power_w

PRICE_EUR_KWH = 0.172
PUE = 1.33
"""ANDREAS, section V.A."""
OTHERS_KEYS = ("cpus", "memory_gb", "bandwidth_mb_s")
"""Of a group, read by other schedulers alone."""
POWER_KEYS = ("power_w", "node_w", "gpu_w", "idle_w")
GROUP_KEYS = ("count", "gpus", "gpu_type", "name", *POWER_KEYS, *OTHERS_KEYS)
FILE_KEYS = ("nodes", "pools", "energy")
ENERGY_KEYS = ("price_eur_kwh", "pue", "tariff")
HOURS = 24.0


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike.

    Attributes
    ----------
    gpu_type, gpus : of each node
    power_w : what a node draws with 0, 1, ... GPUs in use, watts
    names : of its nodes; their number is that of the nodes
    """

    gpu_type: str
    gpus: int
    power_w: tuple[float, ...]
    names: tuple[str, ...]

    @property
    def count(self) -> int:
        """Nodes of the group."""
        return len(self.names)


@dataclass(frozen=True, slots=True)
class EnergyPrice:
    """Power usage effectiveness, and (hour of the day in UTC, EUR a kWh from then on), the first at hour 0."""

    pue: float = PUE
    tariff: tuple[tuple[float, float], ...] = ((0.0, PRICE_EUR_KWH),)


@dataclass(frozen=True, slots=True)
class GpuNodes:
    """Groups of nodes, the price of their energy, and what a reader should be told about where they come from."""

    groups: tuple[NodeGroup, ...]
    price: EnergyPrice = field(default_factory=EnergyPrice)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return sum(group.count * group.gpus for group in self.groups)

    @property
    def widest(self) -> dict[str, int]:
        """GPU type -> GPUs of the biggest node that has it, in order of appearance."""
        most: dict[str, int] = {}
        for group in self.groups:
            most[group.gpu_type] = max(most.get(group.gpu_type, 0), group.gpus)
        return most


def read_gpu_nodes(path: Path) -> GpuNodes:
    """Read a cluster file.

    Raises PoolsError for a file that cannot be read, a key that is not known, and a number that means nothing.
    """
    raw = read_yaml(path)
    refuse_unknown(raw, FILE_KEYS, str(path))
    groups = raw.get("nodes")
    if not isinstance(groups, list) or not groups:
        raise PoolsError(f"{path}: nodes: [{{count: 5, gpus: 2, gpu_type: v100, node_w: 100, gpu_w: 250}}] is expected")
    read: list[NodeGroup] = []
    assumed: list[str] = []
    for row, group in enumerate(groups, 1):
        one = _group(group, f"{path}, node group {row}", sum(each.count for each in read))
        read.append(one)
        if not any(key in group for key in POWER_KEYS):
            assumed.append(one.gpu_type)
    _refuse_twins(read, path)
    notes = [f"no power_w in {path}: {name} draws what is assumed of its type" for name in dict.fromkeys(assumed)]
    if "pools" in raw:
        notes.append(f"pools of {path} are ignored: schedulers of energy know none")
    return GpuNodes(tuple(read), _price(raw.get("energy"), f"{path}, energy"), tuple(notes))


def _group(group: Any, where: str, before: int) -> NodeGroup:
    refuse_unknown(group, GROUP_KEYS, where)
    gpus, count = whole(group.get("gpus"), f"{where}, gpus"), whole(group.get("count", 1), f"{where}, count")
    gpu_type = group.get("gpu_type")
    if not isinstance(gpu_type, str) or not gpu_type:
        raise PoolsError(f"{where}, gpu_type: a name is expected, got {gpu_type!r}; name the type of its GPUs")
    return NodeGroup(gpu_type, gpus, _power_w(group, gpu_type, gpus, where), _names(group.get("name"), count, before))


def _names(name: Any, count: int, before: int) -> tuple[str, ...]:
    """Names of a group's nodes: its own, numbered where there are several; else numbers within the cluster."""
    if name is None:
        return tuple(f"node-{before + at}" for at in range(1, count + 1))
    return (str(name),) if count == 1 else tuple(f"{name}-{at}" for at in range(1, count + 1))


def _refuse_twins(groups: Sequence[NodeGroup], path: Path) -> None:
    seen: set[str] = set()
    for name in (name for group in groups for name in group.names):
        if name in seen:
            raise PoolsError(f"{path}: two nodes are named {name}; give each group a name of its own")
        seen.add(name)


def _power_w(group: dict[str, Any], gpu_type: str, gpus: int, where: str) -> tuple[float, ...]:
    given = [key for key in POWER_KEYS if key in group]
    if "power_w" in given:
        if len(given) > 1:
            raise PoolsError(f"{where}: power_w and {given[1]} exclude each other; give one of them")
        return _listed(group["power_w"], gpus, f"{where}, power_w")
    if not given:
        known = known_type(gpu_type)
        if known is None:
            raise PoolsError(f"{where}: nothing is known of the power of {gpu_type}; give power_w, or node_w and gpu_w")
        return linear_power_w(gpus, HOST_W, known.power_w)
    for key in ("node_w", "gpu_w"):
        if key not in group:
            raise PoolsError(f"{where}: {key} is missing beside {given[0]}; give both node_w and gpu_w")
    watts = {key: number(group[key], f"{where}, {key}") for key in given}
    return linear_power_w(gpus, watts["node_w"], watts["gpu_w"], watts.get("idle_w", 0.0))


def _listed(listed: Any, gpus: int, where: str) -> tuple[float, ...]:
    if not isinstance(listed, list) or len(listed) != gpus + 1:
        raise PoolsError(f"{where}: {gpus + 1} numbers are expected, with 0 to {gpus} GPUs in use, got {listed!r}")
    return tuple(number(value, where) for value in listed)


def _price(raw: Any, where: str) -> EnergyPrice:
    if raw is None:
        return EnergyPrice()
    refuse_unknown(raw, ENERGY_KEYS, where)
    pue = number(raw.get("pue", PUE), f"{where}, pue", least=1.0)
    if "tariff" not in raw:
        flat = number(raw.get("price_eur_kwh", PRICE_EUR_KWH), f"{where}, price_eur_kwh")
        return EnergyPrice(pue, ((0.0, flat),))
    if "price_eur_kwh" in raw:
        raise PoolsError(f"{where}: price_eur_kwh and tariff exclude each other; give one of them")
    return EnergyPrice(pue, _tariff(raw["tariff"], f"{where}, tariff"))


def _tariff(steps: Any, where: str) -> tuple[tuple[float, float], ...]:
    if not isinstance(steps, list) or not steps:
        raise PoolsError(f"{where}: [{{from_h: 0, price_eur_kwh: 0.1}}, {{from_h: 8, price_eur_kwh: 0.2}}] is expected")
    read: list[tuple[float, float]] = []
    for row, step in enumerate(steps, 1):
        refuse_unknown(step, ("from_h", "price_eur_kwh"), f"{where}, step {row}")
        read.append((number(step.get("from_h"), f"{where}, step {row}, from_h"),
                     number(step.get("price_eur_kwh"), f"{where}, step {row}, price_eur_kwh")))  # fmt: skip
    hours = [hour for hour, _ in read]
    if hours[0] != 0.0 or hours[-1] >= HOURS or any(later <= sooner for sooner, later in pairwise(hours)):
        raise PoolsError(f"{where}: from_h must begin at 0 and ascend below 24, got {hours}; put the steps in order")
    return tuple(read)


def write_gpu_nodes(nodes: GpuNodes, path: Path) -> None:
    """Write a cluster file that `read_gpu_nodes` reads back; nodes with numbers for names go without."""
    import yaml

    rows = [row for at, group in enumerate(nodes.groups) for row in _rows(group, _before(nodes.groups, at))]
    tariff = [{"from_h": hour, "price_eur_kwh": price} for hour, price in nodes.price.tariff]
    energy = {"price_eur_kwh": nodes.price.tariff[0][1]} if len(tariff) == 1 else {"tariff": tariff}
    raw = {"nodes": rows, "energy": {"pue": nodes.price.pue, **energy}}
    with replacing(path) as draft:
        draft.write_text(yaml.safe_dump(raw, sort_keys=False, default_flow_style=None, width=120), encoding="utf-8")


def _before(groups: Sequence[NodeGroup], at: int) -> int:
    return sum(group.count for group in groups[:at])


def _rows(group: NodeGroup, before: int) -> list[dict[str, Any]]:
    shared = {"gpus": group.gpus, "gpu_type": group.gpu_type, "power_w": list(group.power_w)}
    if group.names == _names(None, group.count, before):
        return [{"count": group.count, **shared}]
    return [{"name": name, "count": 1, **shared} for name in group.names]
