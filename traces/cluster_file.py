"""The cluster file: nodes, quotas and the price of energy, for schedulers of every kind (docs/cluster.md).

Priority, accounts, QOS and partitions are read and written with it.

openb's list of nodes as a cluster: 1,213 nodes with GPUs of seven types (Weng et al., USENIX ATC 2023).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import yaml

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.hardware import PRICE_EUR_KWH, PUE, Cluster, NodeGroup, PoolsTable, Quota, linear_power_w, numbered
from jobcast.domain.scheduling_rules import ROOT, Account, Limits, PriorityWeights, Qos, SchedulingRules
from jobcast.traces.files import replacing
from jobcast.traces.pools import cells_text, from_text, parse_cells, parse_from_s
from jobcast.traces.table_files import counts_in, names_in, read_plain
from jobcast.traces.yaml_values import load_yaml, number, refuse_unknown, text, whole

T = TypeVar("T")
RULES_KEYS = ("priority", "accounts", "qos", "partitions")
LIMITS = tuple(one.name for one in fields(Limits))
WEIGHTS = tuple(one.name for one in fields(PriorityWeights))
ACCOUNT_KEYS = ("shares", "users", "accounts", *LIMITS)
NEVER_S = 0.0
"""A half-life of 0 means that use never decays, as in Slurm."""


def read_rules(raw: Mapping[str, Any], where: str) -> SchedulingRules:
    """The sections of a cluster file. Raises PoolsError for keys, names and numbers that mean nothing."""
    accounts: dict[str, Account] = {}
    _read_accounts(raw.get("accounts"), ROOT, accounts, f"{where}, accounts")
    return SchedulingRules(
        _weights(raw.get("priority"), f"{where}, priority"),
        accounts,
        _named(raw.get("qos"), f"{where}, qos", _qos),
        _named(raw.get("partitions"), f"{where}, partitions", number),
    )


def _weights(raw: Any, where: str) -> PriorityWeights:
    result = {} if raw is None else raw
    refuse_unknown(result, WEIGHTS, where)
    favor_small = result.get("favor_small", False)
    if not isinstance(favor_small, bool):
        raise PoolsError(f"{where}, favor_small: must be true or false, got {favor_small!r}; correct it")
    above = {"max_age_s": 0.0, "period_s": 0.0}
    numbers = {
        name: number(result[name], f"{where}, {name}", above=above.get(name))
        for name in result
        if name != "favor_small"
    }
    if numbers.get("half_life_s") == NEVER_S:
        numbers["half_life_s"] = inf
    return PriorityWeights(**numbers, favor_small=favor_small)


def _read_accounts(raw: Any, parent: str, found: dict[str, Account], where: str) -> None:
    """Accounts below one, and those below them, into `found`."""
    for name, saved in _named(raw, where, lambda saved, _: {} if saved is None else saved).items():
        mine = f"{where}, {name}"
        refuse_unknown(saved, ACCOUNT_KEYS, mine)
        if name in found:
            raise PoolsError(f"{mine}: there are two accounts of that name; give each a name of its own")
        shares = number(saved.get("shares", 1.0), f"{mine}, shares")
        found[name] = Account(
            parent, shares, _named(saved.get("users"), f"{mine}, users", number), _limits(saved, mine)
        )
        _read_accounts(saved.get("accounts"), name, found, f"{mine}, accounts")


def _named(raw: Any, where: str, read: Callable[[Any, str], T]) -> dict[str, T]:
    """What stands under each name."""
    result = {} if raw is None else raw
    if not isinstance(result, dict) or not all(isinstance(name, str) and name for name in result):
        raise PoolsError(f"{where}: names with what each is are expected, got {raw!r}; put names of digits in quotes")
    return {name: read(value, f"{where}, {name}") for name, value in result.items()}


def _qos(value: Any, where: str) -> Qos:
    value = {} if value is None else value
    refuse_unknown(value, ("priority", *LIMITS), where)
    return Qos(number(value.get("priority", 0.0), f"{where}, priority"), _limits(value, where))


def _limits(figures: Mapping[str, Any], where: str) -> Limits:
    return Limits(**{name: number(figures[name], f"{where}, {name}") for name in LIMITS if name in figures})


def rules_values(rules: SchedulingRules) -> dict[str, Any]:
    """The sections as `read_rules` reads them back; what is as by default is left out."""
    weights = replace(rules.weights, half_life_s=NEVER_S) if rules.weights.half_life_s == inf else rules.weights
    result = {
        "priority": _told(weights, PriorityWeights()),
        "accounts": _accounts_below(rules, ROOT),
        "qos": {name: {"priority": one.priority, **_told(one.limits, Limits())} for name, one in rules.qos.items()},
        "partitions": dict(rules.partitions),
    }
    return {name: value for name, value in result.items() if value}


def _accounts_below(rules: SchedulingRules, parent: str) -> dict[str, Any]:
    found = {}
    for name, one in rules.accounts.items():
        if one.parent == parent:
            beside = {"users": dict(one.users), "accounts": _accounts_below(rules, name)}
            result = {"shares": one.shares, **_told(one.limits, Limits())}
            found[name] = result | {key: value for key, value in beside.items() if value}
    return found


def _told(one: Any, default: Any) -> dict[str, Any]:
    usual = asdict(default)
    return {name: value for name, value in asdict(one).items() if value != usual[name]}


NEEDS = ("sn", "gpu", "model")


def read_openb_nodes(path: Path) -> Cluster:
    """Nodes of `openb_node_list_gpu_node.csv`; those without GPUs are left out and counted.

    Raises PoolsError for a file that is no such list.
    """
    try:
        frame = _frame(path)
    except TraceError as error:
        raise PoolsError(str(error)) from None
    # nodes of cores alone hold no job of ours
    held = frame.filter(pl.col("gpu") > 0)
    bare = frame.height - held.height
    if held.is_empty():
        raise PoolsError(f"{path}: no node has a GPU; give openb_node_list_gpu_node.csv")
    groups = tuple(
        NodeGroup(str(model), int(gpus), (), tuple(rows["sn"].to_list()))
        for (model, gpus), rows in held.group_by("model", "gpu", maintain_order=True)
    )
    return Cluster(groups, notes=(f"{bare} without GPUs left out",) if bare else ())


def _frame(path: Path) -> pl.DataFrame:
    frame, place, _ = read_plain(path, NEEDS)
    names = names_in(frame["sn"], place, "a node")
    place.refuse(~names.is_first_distinct(), names, "is there twice", "keep one row a node")
    return frame.with_columns(names, counts_in(frame["gpu"], place, 0), pl.col("model").fill_null(""))


MOST_GPUS = 1_000_000
"""Of a cluster file: more is a slip of the pen, and would fill the memory with nodes."""
POWER_KEYS = ("power_w", "node_w", "gpu_w", "idle_w")
HOST_KEYS = ("cpus", "memory_gb", "bandwidth_mb_s")
GROUP_KEYS = ("count", "gpus", "gpu_type", "name", *HOST_KEYS, *POWER_KEYS)
POOL_KEYS = ("gpus", "cells", "from")
FILE_KEYS = ("nodes", "pools", "energy", *RULES_KEYS)
ENERGY_KEYS = ("price_eur_kwh", "pue", "tariff")
STEP_KEYS = ("from_h", "price_eur_kwh")
HOURS = 24.0


def read_cluster(path: Path) -> Cluster:
    """Read a cluster file; what ends in .csv is a list of nodes of openb's.

    Raises PoolsError for a file that cannot be read, a key that is not known, a number that means nothing, nodes that
    are named alike, and quotas that are more than the GPUs.
    """
    # YAML would read a CSV as one long string
    if path.suffix.lower() == ".csv":
        return read_openb_nodes(path)
    raw = _raw(path)
    groups: list[NodeGroup] = []
    before = 0
    for row, group in enumerate(raw["nodes"], 1):
        groups.append(_group(group, f"{path}, node group {row}", before))
        # nodes without names are numbered through, over all groups
        before += groups[-1].count
    # after all groups: names may clash between a given and a counted one
    _refuse_twins(groups, path)
    pue, tariff = _price(raw.get("energy"), f"{path}, energy")
    quotas, rules = _quotas(raw.get("pools"), path), read_rules(raw, str(path))
    cluster = Cluster(tuple(groups), quotas, pue=pue, tariff=tariff, rules=rules)
    _refuse_excess(cluster, path)
    return cluster


def _raw(path: Path) -> dict[str, Any]:
    """The file with a list of nodes in it, few enough to be a cluster's."""
    try:
        raw = load_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PoolsError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise PoolsError(f"{path}: not valid YAML ({error})") from error
    raw = {} if raw is None else raw
    refuse_unknown(raw, FILE_KEYS, str(path))
    groups = raw.get("nodes")
    if not isinstance(groups, list) or not groups:
        raise PoolsError(f"{path}: nodes: [{{count: 8, gpus: 4}}] and pools: {{name: gpus}} are expected")
    # looked at before nodes are made: 10^9 of them would fill the memory
    sizes = [(group.get("count", 1), group.get("gpus", 1)) for group in groups if isinstance(group, dict)]
    if sum(count * gpus for count, gpus in sizes if type(count) is int and type(gpus) is int) > MOST_GPUS:
        raise PoolsError(f"{path}: its nodes have more than {MOST_GPUS:,} GPUs together; correct count or gpus")
    return raw


def _group(group: Any, where: str, before: int) -> NodeGroup:
    refuse_unknown(group, GROUP_KEYS, where)
    gpus, count = whole(group.get("gpus"), f"{where}, gpus"), whole(group.get("count", 1), f"{where}, count")
    gpu_type, name = (text(group.get(key), f"{where}, {key}") for key in ("gpu_type", "name"))
    # a group of one keeps its name without a number
    names = tuple(f"{name}-{at}" for at in range(1, count + 1)) if count > 1 else (name,)
    hosts = {key: number(group[key], f"{where}, {key}", above=0.0) for key in HOST_KEYS if key in group}
    return NodeGroup(gpu_type, gpus, _told_w(group, gpus, where), names if name else numbered(count, before), **hosts)


def _told_w(group: dict[str, Any], gpus: int, where: str) -> tuple[float, ...]:
    given = [key for key in POWER_KEYS if key in group]
    if not given:
        return ()
    if "power_w" in given:
        if len(given) > 1:
            raise PoolsError(f"{where}: power_w and {given[1]} exclude each other; give one of them")
        return _listed(group["power_w"], gpus, f"{where}, power_w")
    for key in ("node_w", "gpu_w"):
        if key not in group:
            raise PoolsError(f"{where}: {key} is missing beside {given[0]}; give both node_w and gpu_w")
    # idle_w may be absent, the other two may not
    watts = {key: number(group[key], f"{where}, {key}") for key in given}
    return linear_power_w(gpus, watts["node_w"], watts["gpu_w"], watts.get("idle_w", 0.0))


def _listed(listed: Any, gpus: int, where: str) -> tuple[float, ...]:
    if not isinstance(listed, list) or len(listed) != gpus + 1:
        raise PoolsError(f"{where}: {gpus + 1} numbers are expected, with 0 to {gpus} GPUs in use, got {listed!r}")
    return tuple(number(value, where) for value in listed)


def _refuse_twins(groups: Sequence[NodeGroup], path: Path) -> None:
    seen: set[str] = set()
    for name in (name for group in groups for name in group.names):
        if name in seen:
            raise PoolsError(f"{path}: two nodes are named {name}; give each group a name of its own")
        seen.add(name)


def _quotas(raw: Any, path: Path) -> PoolsTable:
    """`name: gpus`, `name: {gpus, cells, from}`, or a list of these where a quota changes."""
    if not raw:
        return PoolsTable()
    if not isinstance(raw, dict):
        raise PoolsError(f"{path}, pools: {{name: gpus}} are expected, got {raw!r}; correct it")
    found: dict[tuple[str, float], Quota] = {}
    for name, described in raw.items():
        # three spellings: a number, a mapping, a list where the quota changes
        for one in described if isinstance(described, list) else [described]:
            quota = _quota(str(name), one if isinstance(one, dict) else {"gpus": one}, f"{path}, pool {name}")
            if (quota.pool, quota.from_s) in found:
                raise PoolsError(f"{path}: a pool is given twice; keep one quota a pool")
            found[quota.pool, quota.from_s] = quota
    return PoolsTable(tuple(found[key] for key in sorted(found)))


def _quota(name: str, figures: dict[str, Any], where: str) -> Quota:
    refuse_unknown(figures, POOL_KEYS, where)
    cells, since = (text(figures.get(key), f"{where}, {key}") for key in ("cells", "from"))
    # From a date on a pool may be gone, as in a pools file.
    gone = bool(since) and figures.get("gpus") == 0
    gpus = 0 if gone else whole(figures.get("gpus"), where)
    return Quota(name, gpus, parse_from_s(since, f"{where}, from"), parse_cells(cells, gpus, f"{where}, cells"))


def _refuse_excess(cluster: Cluster, path: Path) -> None:
    quotas = cluster.quotas
    # quotas change at these instants only
    for instant_s in sorted({quota.from_s for quota in quotas.quotas}):
        total = sum(pool.quota for pool in quotas.at(instant_s))
        if total > cluster.gpus:
            raise PoolsError(f"{path}: the pools' quotas ({total}) exceed the cluster's {cluster.gpus} GPUs")


def _price(raw: Any, where: str) -> tuple[float, tuple[tuple[float, float], ...]]:
    raw = {} if raw is None else raw
    refuse_unknown(raw, ENERGY_KEYS, where)
    pue = number(raw.get("pue", PUE), f"{where}, pue", least=1.0)
    if "tariff" not in raw:
        return pue, ((0.0, number(raw.get("price_eur_kwh", PRICE_EUR_KWH), f"{where}, price_eur_kwh")),)
    if "price_eur_kwh" in raw:
        raise PoolsError(f"{where}: price_eur_kwh and tariff exclude each other; give one of them")
    return pue, _tariff(raw["tariff"], f"{where}, tariff")


def _tariff(steps: Any, where: str) -> tuple[tuple[float, float], ...]:
    if not isinstance(steps, list) or not steps:
        raise PoolsError(f"{where}: [{{from_h: 0, price_eur_kwh: 0.1}}, {{from_h: 8, price_eur_kwh: 0.2}}] is expected")
    read: list[tuple[float, float]] = []
    for row, step in enumerate(steps, 1):
        refuse_unknown(step, STEP_KEYS, f"{where}, step {row}")
        hour, price = (number(step.get(key), f"{where}, step {row}, {key}") for key in STEP_KEYS)
        read.append((hour, price))
    hours = [hour for hour, _ in read]
    # a tariff must tell the price of every hour of the day
    if hours[0] != 0.0 or hours[-1] >= HOURS or any(later <= sooner for sooner, later in pairwise(hours)):
        raise PoolsError(f"{where}: from_h must begin at 0 and ascend below 24, got {hours}; put the steps in order")
    return tuple(read)


def write_cluster(cluster: Cluster, path: Path) -> None:
    """Write a cluster file that `read_cluster` reads back; nodes with numbers for names go without."""
    rows: list[dict[str, Any]] = []
    before = 0
    for group in cluster.groups:
        rows += _rows(group, before)
        before += group.count
    tariff = [dict(zip(STEP_KEYS, step, strict=True)) for step in cluster.tariff]
    # a tariff of one step is a plain price
    energy: dict[str, Any] = {"price_eur_kwh": cluster.tariff[0][1]} if len(tariff) == 1 else {"tariff": tariff}
    pools: dict[str, list[dict[str, Any]]] = {}
    for quota in cluster.quotas.quotas:
        result = {"cells": cells_text(quota.cells), "from": from_text(quota.from_s)}
        told = {key: value for key, value in result.items() if value}
        pools.setdefault(quota.pool, []).append({"gpus": quota.gpus, **told})
    raw: dict[str, Any] = {"nodes": rows} | ({"pools": pools} if pools else {})
    raw |= {"energy": {"pue": cluster.pue, **energy}, **rules_values(cluster.rules)}
    with replacing(path) as draft:
        draft.write_text(yaml.safe_dump(raw, sort_keys=False, default_flow_style=None, width=120), encoding="utf-8")


def _rows(group: NodeGroup, before: int) -> list[dict[str, Any]]:
    result = {"gpus": group.gpus, "gpu_type": group.gpu_type, "power_w": list(group.told_w)}
    result |= {key: getattr(group, key) for key in HOST_KEYS}
    shared = {key: value for key, value in result.items() if value}
    # numbered nodes go without names, so that a file of thousands stays short
    if group.names == numbered(group.count, before):
        return [{"count": group.count, **shared}]
    return [{"name": name, "count": 1, **shared} for name in group.names]
