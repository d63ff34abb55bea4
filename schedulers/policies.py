"""Policies by name: ours, and those that installed packages bring through the entry point group `jobcast.policies`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from jobcast.domain.cluster import Policy
from jobcast.domain.errors import ConfigError, DecisionError, JobcastError
from jobcast.domain.forecasts import Forecasts
from jobcast.schedulers.fcfs import Fcfs
from jobcast.schedulers.goodput_policies import GOODPUT_POLICIES
from jobcast.schedulers.hived import HiveD
from jobcast.schedulers.milp.policy import Milp
from jobcast.schedulers.mmfs import MaxMinFair
from jobcast.schedulers.round_policies import ROUND_POLICIES
from jobcast.schedulers.settings import (
    at_least_one,
    at_least_zero,
    count,
    flag,
    from_0_to_1,
    minutes,
    one_of,
    read_settings,
    seconds,
    share,
    switches,
    whole,
)
from jobcast.schedulers.sia import Sia
from jobcast.schedulers.sia_preempt import SiaPreempt
from jobcast.schedulers.sia_risk import SiaRisk
from jobcast.schedulers.sia_vc import SiaVc
from jobcast.schedulers.spare_orders import SPARE_ORDERS
from jobcast.schedulers.ssf import GlobalShortestServiceFirst, ShortestJobFirst, ShortestServiceFirst
from jobcast.schedulers.themis_np import ThemisNp

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
    every_job : whether it must know each single job's future, which the oracle alone tells
    scenario : settings that tell what is replayed, and not how the policy decides: read here, used by whoever replays
    """

    policy: Callable[..., Policy]
    settings: Mapping[str, Callable[[object], Any]] = field(default_factory=dict)
    uses_forecasts: bool = True
    scenario: Mapping[str, Callable[[object], Any]] = field(default_factory=dict)
    every_job: bool = False

    @property
    def known(self) -> Mapping[str, Callable[[object], Any]]:
        """All settings by name."""
        return {**self.settings, **self.scenario}

    def __call__(self, forecasts: Forecasts | None, settings: Mapping[str, object] = NO_SETTINGS) -> Policy:
        """Make one. Raises ConfigError for a setting that it does not know or cannot read."""
        name = getattr(self.policy, "name", self.policy.__name__)
        every = read_settings(name, self.known, settings)
        read = {setting: value for setting, value in every.items() if setting in self.settings}
        if not self.uses_forecasts:
            return self.policy(**read)
        if forecasts is None:
            raise ConfigError(f"policy {name} needs forecasts; pass --forecasts, such as oracle")
        return self.policy(forecasts, **read)


Factory = Callable[[Forecasts | None, Mapping[str, object]], Policy]

BUILT_IN: Mapping[str, Factory] = {
    "fcfs": PolicyFactory(Fcfs, uses_forecasts=False),
    "ssf": PolicyFactory(ShortestServiceFirst, {"backfill": flag}),
    "sjf": PolicyFactory(ShortestJobFirst, {"backfill": flag}),
    "gssf": PolicyFactory(GlobalShortestServiceFirst, {"backfill": flag}),
    "mmfs": PolicyFactory(MaxMinFair, {"strict": flag}, uses_forecasts=False),
    "themis_np": PolicyFactory(ThemisNp, {"filter": share}),
    "hived": PolicyFactory(HiveD, uses_forecasts=False),
    "sia": PolicyFactory(
        Sia,
        {
            "tick_s": seconds,
            "switches": switches,
            "windows_min": minutes,
            "slack": from_0_to_1,
            "order": one_of(*SPARE_ORDERS),
        },
    ),
    "sia_vc": PolicyFactory(SiaVc, every_job=True),
    "sia_risk": PolicyFactory(
        SiaRisk,
        {"budget_min": at_least_zero, "relief_min": at_least_one, "tick_s": seconds, "switches": switches},
    ),
    "sia_preempt": PolicyFactory(SiaPreempt, {"resume_s": at_least_zero}, scenario={"preemptible_share": from_0_to_1}),
    "milp": PolicyFactory(
        Milp,
        {
            "grid_s": seconds,
            "beta": at_least_zero,
            "time_limit_s": seconds,
            "exact": flag,
            "starts_per_duration": count,
            "search_tries": whole,
            "seed": whole,
        },
        every_job=True,
    ),
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
        return _loaded(_installed()[name])

    def __contains__(self, name: object) -> bool:
        return name in BUILT_IN or name in _installed()

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN
        yield from (name for name in sorted(_installed()) if name not in BUILT_IN)

    def __len__(self) -> int:
        return len(list(iter(self)))


def _loaded(point: EntryPoint) -> Factory:
    try:
        factory: Factory = point.load()
    except MemoryError:
        raise
    except Exception as error:  # another package's code may fail in any way
        raise _broken(point, f"does not load ({type(error).__name__}: {error})") from error
    if not callable(factory):
        raise _broken(point, f"is {factory!r} and makes no policy")
    return factory


def _broken(point: EntryPoint, why: str) -> ConfigError:
    return ConfigError(f"policy {point.name}: the plug-in {point.value} {why}; mend it or take another policy")


@contextmanager
def plugin_named(name: str) -> Iterator[None]:
    """While a policy is made or asked: what an installed one raises names it. Ours raise as they are.

    Raises
    ------
    DecisionError
        Where an installed policy raised anything that is no error of jobcast's own.
    """
    try:
        yield
    except (JobcastError, MemoryError):
        raise
    except Exception as error:
        if name in BUILT_IN or name not in _installed():
            raise
        what = f"{type(error).__name__}: {error}"
        raise DecisionError(f"policy {name}: the plug-in {_installed()[name].value} raised {what}; mend it") from error


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
    """A policy by name. Raises ConfigError for an unknown name or setting, and for an installed one that makes none."""
    factory = find_factory(name)
    if name in BUILT_IN:
        return factory(forecasts, settings)
    try:
        policy = factory(forecasts, settings)
    except (JobcastError, MemoryError):
        raise
    except Exception as error:  # another package's code may fail in any way
        raise _broken(_installed()[name], f"cannot be made ({type(error).__name__}: {error})") from error
    lacking = [part for part in ("lane", "key", "decide") if not callable(getattr(policy, part, None))]
    if lacking:
        raise _broken(_installed()[name], f"makes {type(policy).__name__}, which has no {', '.join(lacking)}")
    return policy


def needs_every_job(name: str) -> bool:
    """Whether a policy must know each single job's future; an installed one says so in its factory, or when made."""
    return bool(getattr(find_factory(name), "every_job", False))


def uses_forecasts(name: str) -> bool:
    """Whether a policy asks forecasts anything; an installed one does unless its factory says otherwise."""
    return bool(getattr(find_factory(name), "uses_forecasts", True))
