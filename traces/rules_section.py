"""Priority, accounts, QOS and partitions of a cluster file (docs/cluster.md): read and written."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from math import inf
from typing import Any, TypeVar

from jobcast.domain.errors import PoolsError
from jobcast.domain.scheduling_rules import ROOT, Account, Limits, PriorityWeights, Qos, SchedulingRules
from jobcast.traces.yaml_values import number, refuse_unknown

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
