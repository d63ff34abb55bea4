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
    told = {} if raw is None else raw
    refuse_unknown(told, WEIGHTS, where)
    favor_small = told.get("favor_small", False)
    if not isinstance(favor_small, bool):
        raise PoolsError(f"{where}, favor_small: must be true or false, got {favor_small!r}; correct it")
    above = {"max_age_s": 0.0, "period_s": 0.0}
    numbers = {
        name: number(told[name], f"{where}, {name}", above=above.get(name)) for name in told if name != "favor_small"
    }
    if numbers.get("half_life_s") == NEVER_S:
        numbers["half_life_s"] = inf
    return PriorityWeights(**numbers, favor_small=favor_small)


def _read_accounts(raw: Any, parent: str, found: dict[str, Account], where: str) -> None:
    """Accounts below one, and those below them, into `found`."""
    for name, told in _named(raw, where, lambda told, _: {} if told is None else told).items():
        mine = f"{where}, {name}"
        refuse_unknown(told, ACCOUNT_KEYS, mine)
        if name in found:
            raise PoolsError(f"{mine}: there are two accounts of that name; give each a name of its own")
        shares = number(told.get("shares", 1.0), f"{mine}, shares")
        found[name] = Account(parent, shares, _named(told.get("users"), f"{mine}, users", number), _limits(told, mine))
        _read_accounts(told.get("accounts"), name, found, f"{mine}, accounts")


def _named(raw: Any, where: str, read: Callable[[Any, str], T]) -> dict[str, T]:
    """What stands under each name."""
    told = {} if raw is None else raw
    if not isinstance(told, dict) or not all(isinstance(name, str) and name for name in told):
        raise PoolsError(f"{where}: names with what each is are expected, got {raw!r}; put names of digits in quotes")
    return {name: read(value, f"{where}, {name}") for name, value in told.items()}


def _qos(told: Any, where: str) -> Qos:
    told = {} if told is None else told
    refuse_unknown(told, ("priority", *LIMITS), where)
    return Qos(number(told.get("priority", 0.0), f"{where}, priority"), _limits(told, where))


def _limits(told: Mapping[str, Any], where: str) -> Limits:
    return Limits(**{name: number(told[name], f"{where}, {name}") for name in LIMITS if name in told})


def rules_values(rules: SchedulingRules) -> dict[str, Any]:
    """The sections as `read_rules` reads them back; what is as by default is left out."""
    weights = replace(rules.weights, half_life_s=NEVER_S) if rules.weights.half_life_s == inf else rules.weights
    told = {
        "priority": _told(weights, PriorityWeights()),
        "accounts": _accounts_below(rules, ROOT),
        "qos": {name: {"priority": one.priority, **_told(one.limits, Limits())} for name, one in rules.qos.items()},
        "partitions": dict(rules.partitions),
    }
    return {name: value for name, value in told.items() if value}


def _accounts_below(rules: SchedulingRules, parent: str) -> dict[str, Any]:
    found = {}
    for name, one in rules.accounts.items():
        if one.parent == parent:
            beside = {"users": dict(one.users), "accounts": _accounts_below(rules, name)}
            told = {"shares": one.shares, **_told(one.limits, Limits())}
            found[name] = told | {key: value for key, value in beside.items() if value}
    return found


def _told(one: Any, default: Any) -> dict[str, Any]:
    usual = asdict(default)
    return {name: value for name, value in asdict(one).items() if value != usual[name]}
