"""Policies by name: ours, and those that installed packages bring through the entry point group `jobcast.policies`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from jobcast.domain.cluster import Policy
from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import Forecasts
from jobcast.schedulers.fcfs import Fcfs
from jobcast.schedulers.goodput_policies import GOODPUT_POLICIES
from jobcast.schedulers.mmfs import MaxMinFair
from jobcast.schedulers.round_policies import ROUND_POLICIES
from jobcast.schedulers.settings import flag, read_settings, seconds, switches
from jobcast.schedulers.sia import Sia
from jobcast.schedulers.ssf import GlobalShortestServiceFirst, ShortestServiceFirst

ENTRY_POINTS = "jobcast.policies"
NO_SETTINGS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PolicyFactory:
    """Makes a policy from forecasts and settings.

    Attributes
    ----------
    policy : its class; takes the settings as keywords, and the forecasts first if it uses any
    settings : name -> reader of its value, which raises ValueError
    uses_forecasts : whether it asks them anything
    """

    policy: Callable[..., Policy]
    settings: Mapping[str, Callable[[object], Any]] = field(default_factory=dict)
    uses_forecasts: bool = True

    def __call__(self, forecasts: Forecasts | None, settings: Mapping[str, object] = NO_SETTINGS) -> Policy:
        """Make one. Raises ConfigError for a setting that it does not know or cannot read."""
        name = getattr(self.policy, "name", self.policy.__name__)
        read = read_settings(name, self.settings, settings)
        if not self.uses_forecasts:
            return self.policy(**read)
        if forecasts is None:
            raise ConfigError(f"policy {name} needs forecasts; pass --forecasts, such as oracle")
        return self.policy(forecasts, **read)


Factory = Callable[[Forecasts | None, Mapping[str, object]], Policy]

BUILT_IN: Mapping[str, Factory] = {
    "fcfs": PolicyFactory(Fcfs, uses_forecasts=False),
    "ssf": PolicyFactory(ShortestServiceFirst, {"backfill": flag}),
    "gssf": PolicyFactory(GlobalShortestServiceFirst, {"backfill": flag}),
    "mmfs": PolicyFactory(MaxMinFair, {"strict": flag}, uses_forecasts=False),
    "sia": PolicyFactory(Sia, {"tick_s": seconds, "switches": switches}),
    **ROUND_POLICIES,
    **GOODPUT_POLICIES,
}


class _Policies(Mapping[str, Factory]):
    """Our policies, then installed ones; those are looked for when first needed and loaded when first used.

    An entry point names a `PolicyFactory`, or any callable of (forecasts, settings). Ours cannot be replaced.
    """

    def __getitem__(self, name: str) -> Factory:
        if name in BUILT_IN:
            return BUILT_IN[name]
        factory: Factory = _installed()[name].load()
        return factory

    def __contains__(self, name: object) -> bool:
        return name in BUILT_IN or name in _installed()

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN
        yield from (name for name in sorted(_installed()) if name not in BUILT_IN)

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


POLICIES: Mapping[str, Factory] = _Policies()


def find_factory(name: str) -> Factory:
    """The factory of a policy. Raises ConfigError that lists the known ones."""
    if name not in POLICIES:
        raise ConfigError(f"unknown policy {name}; known policies: {', '.join(POLICIES)}")
    return POLICIES[name]


def make_policy(name: str, forecasts: Forecasts | None, settings: Mapping[str, object]) -> Policy:
    """A policy by name. Raises ConfigError for an unknown name or setting."""
    return find_factory(name)(forecasts, settings)


def uses_forecasts(name: str) -> bool:
    """Whether a policy asks forecasts anything; an installed one does unless its factory says otherwise."""
    return bool(getattr(find_factory(name), "uses_forecasts", True))
