"""The baselines of MLFS as the registry makes them. Compiled code is imported when a policy is made."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.tasks import TaskPolicy
from jobcast.schedulers.settings import Readers, at_least_zero, one_of, positive, seconds, share

Maker = Callable[[Mapping[str, Any], object | None], TaskPolicy]


def _slaq(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.slaq import Slaq, SlaqSettings

    return Slaq(SlaqSettings(**read))


def _tiresias(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.tiresias import Tiresias, TiresiasSettings

    return Tiresias(TiresiasSettings(**read))


def _gandiva(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.gandiva import Gandiva, GandivaSettings

    return Gandiva(GandivaSettings(**read))


def _graphene(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.graphene import Graphene, GrapheneSettings

    return Graphene(GrapheneSettings(**read))


def _borg_fair(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.borg_fair import BorgFair, BorgFairSettings

    return BorgFair(BorgFairSettings(**read))


def _hypersched(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.hypersched import HyperSched, HyperSchedSettings

    return HyperSched(HyperSchedSettings(**read))


def _device_rl(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.device_rl import NAME, device_rl
    from jobcast.schedulers.tasks.network import Networks

    if not isinstance(learned, Networks):
        raise ConfigError(f"policy {NAME}: no learned weights were given; train it first")
    return device_rl(learned, **read)


BASELINES: Mapping[str, tuple[Maker, Readers]] = MappingProxyType(
    {
        "slaq": (_slaq, {"interval_s": seconds}),
        "tiresias": (
            _tiresias,
            {"index": one_of("las", "gittins"), "queue_gpu_s": positive, "promote": at_least_zero},
        ),
        "gandiva": (_gandiva, {"overload": at_least_zero}),
        "graphene": (_graphene, {"srpt": at_least_zero, "packing": at_least_zero, "fairness": at_least_zero}),
        "borg_fair": (_borg_fair, {"interval_s": at_least_zero}),
        "hypersched": (_hypersched, {"least_gain": at_least_zero}),
        "device_rl": (_device_rl, {"filled": share}),
    }
)
"""Name -> what makes it, and readers of its settings by the names of its own settings."""
