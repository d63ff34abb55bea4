"""Policies of energy and due dates, by their papers' names. What computes is imported when a policy is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from jobcast.domain.energy import EnergyPolicy
from jobcast.domain.errors import ConfigError
from jobcast.schedulers.settings import Readers, at_least_zero, count, flag, from_0_to_1, read_settings, seconds, whole

NO_SETTINGS: Mapping[str, object] = MappingProxyType({})

Maker = Callable[[Mapping[str, Any]], EnergyPolicy]


@dataclass(frozen=True, slots=True)
class EnergyFactory:
    """Makes a policy of energy and due dates.

    Attributes
    ----------
    name : its paper's
    make : from settings as read
    readers : name -> reader of its settings
    """

    name: str
    make: Maker
    readers: Readers = field(default_factory=dict)

    def __call__(self, settings: Mapping[str, object] = NO_SETTINGS) -> EnergyPolicy:
        """Make one. Raises ConfigError for a setting that it does not know or cannot read."""
        return self.make(read_settings(self.name, self.readers, settings))


def find_energy_policy(name: str) -> EnergyFactory:
    """The factory of a policy. Raises ConfigError that lists those known."""
    try:
        return ENERGY_POLICIES[name]
    except KeyError:
        raise ConfigError(
            f"unknown policy of energy and due dates {name!r}; choose from {', '.join(ENERGY_POLICIES)}"
        ) from None


chance = partial(from_0_to_1, what="probability")
ANDREAS: Readers = MappingProxyType(
    {
        "max_iterations": count,
        "rho": at_least_zero,
        "seed": whole,
        "draw": chance,
        "keep": flag,
        "hold": chance,
        "caps": flag,
        "force_nodes": flag,
        "thorough": flag,
    }
)
"""Settings of `andreas.AndreasSettings`, by its names."""
QUEUE: Readers = MappingProxyType({"strict": flag})
"""Settings of `baselines.QueueSettings`, by its names."""
EXACT: Readers = MappingProxyType(
    {"time_limit_s": seconds, "rho": at_least_zero, "as_printed": flag, "force_nodes": flag}
)
"""Settings of `exact.ExactSettings`, by its names."""


def _andreas(read: Mapping[str, Any]) -> EnergyPolicy:
    from jobcast.schedulers.energy.andreas import Andreas, AndreasSettings, warm

    warm()
    return Andreas(AndreasSettings(**read))


def _exact(read: Mapping[str, Any]) -> EnergyPolicy:
    """With constraint 4n unless it is told off, as in appendix A: without, what is not due waits for ever."""
    from jobcast.schedulers.energy.exact import Exact, ExactSettings

    return Exact(ExactSettings(**{"force_nodes": True, **read}))


def _queue(name: str, read: Mapping[str, Any]) -> EnergyPolicy:
    from jobcast.schedulers.energy.baselines import ORDERS, QueuePolicy, QueueSettings

    return QueuePolicy(name, ORDERS[name], QueueSettings(**read))


_FACTORIES = (
    EnergyFactory("andreas", _andreas, ANDREAS),
    *(EnergyFactory(name, partial(_queue, name), QUEUE) for name in ("fifo", "edf", "ps")),
    EnergyFactory("exact", _exact, EXACT),
)
ENERGY_POLICIES: Mapping[str, EnergyFactory] = MappingProxyType({one.name: one for one in _FACTORIES})
