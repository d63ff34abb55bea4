"""Policies of jobs of tasks, by their papers' names. Compiled code is imported when a policy is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.optstop import OptStop
from jobcast.domain.tasks import TaskPolicy
from jobcast.schedulers.settings import (
    Readers,
    at_least_one,
    at_least_zero,
    flag,
    from_0_to_1,
    one_of,
    read_settings,
    seconds,
    share,
)
from jobcast.schedulers.tasks.baseline_makers import BASELINES

NO_SETTINGS: Mapping[str, object] = MappingProxyType({})
EVICT = ("stay", "queue")
"""What becomes of a task that should leave its server when no other one takes it."""

Maker = Callable[[Mapping[str, Any], object | None], TaskPolicy]


@dataclass(frozen=True, slots=True)
class TaskFactory:
    """Makes a policy of jobs of tasks.

    Attributes
    ----------
    name : its paper's
    make : from settings as read, and what has been learned, if anything
    readers : name -> reader of its settings
    """

    name: str
    make: Maker
    readers: Readers = field(default_factory=dict)

    def __call__(self, settings: Mapping[str, object] = NO_SETTINGS, learned: object | None = None) -> TaskPolicy:
        """Make one. Raises ConfigError for a setting that it does not know or cannot read."""
        return self.make(read_settings(self.name, self.readers, settings), learned)


def find_task_policy(name: str) -> TaskFactory:
    """The factory of a policy. Raises ConfigError that lists those known."""
    try:
        return TASK_POLICIES[name]
    except KeyError:
        raise ConfigError(f"unknown policy of tasks {name!r}; choose from {', '.join(TASK_POLICIES)}") from None


def probability(value: object) -> float:
    """A setting that is a probability at which something is believed.

    >>> probability("0.95")
    0.95
    """
    number = from_0_to_1(value)
    if not 0.5 <= number < 1.0:
        raise ValueError(f"must be a probability from 0.5 to below 1, got {value}")
    return number


WEIGHTS: Readers = MappingProxyType(
    {
        "alpha": from_0_to_1,
        "gamma": from_0_to_1,
        "gamma_d": at_least_zero,
        "gamma_r": at_least_zero,
        "gamma_w": at_least_zero,
        "unit_s": seconds,
        "urgency": flag,
        "deadline": flag,
        "late": flag,
    }
)
"""Settings of priorities, by their names in `priorities.Weights`."""
HEURISTIC: Readers = MappingProxyType(
    {
        **WEIGHTS,
        "h_r": share,
        "move_at": share,
        "p_s": share,
        "bandwidth": flag,
        "migration": flag,
        "evict": one_of(*EVICT),
        "part": flag,
        "preempt": flag,
        "hold": at_least_one,
    }
)
"""Settings of MLF-H. `move_at` is `h_r` where it is not set."""
CONTROL: Readers = MappingProxyType(
    {"h_s": at_least_zero, "confidence": probability, "tolerance": at_least_zero, "give_up": flag}
)
"""Settings of load control."""


def heuristic_settings(read: Mapping[str, Any]) -> Any:
    """Settings of MLF-H, `MlfHSettings`, from those read; others are left out."""
    from jobcast.schedulers.tasks.mlf_h import OVERLOAD, MlfHSettings
    from jobcast.schedulers.tasks.priorities import Weights

    overload = read.get("h_r", OVERLOAD)
    defaults = MlfHSettings()
    return MlfHSettings(
        weights=Weights(**{key: value for key, value in read.items() if key in WEIGHTS}),
        overload=overload,
        move_at=read.get("move_at", overload),
        share=read.get("p_s", defaults.share),
        bandwidth=read.get("bandwidth", defaults.bandwidth),
        migration=read.get("migration", defaults.migration),
        evict=read["evict"] == "queue" if "evict" in read else defaults.evict,
        part=read.get("part", defaults.part),
        preempt=read.get("preempt", defaults.preempt),
        hold=read.get("hold", defaults.hold),
    )


def control_settings(read: Mapping[str, Any]) -> Any:
    """Settings of load control, `LoadControlSettings`, from those read; others are left out."""
    from jobcast.schedulers.tasks.load_control import OVERLOAD, LoadControlSettings

    names = [one.name for one in fields(OptStop)]
    rule = OptStop(**{key: value for key, value in read.items() if key in names})
    return LoadControlSettings(read.get("h_s", OVERLOAD), rule)


def _mlf_h(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.mlf_h import MlfH

    return MlfH(heuristic_settings(read))


def _mlf_rl(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.mlf_rl import MlfRl
    from jobcast.schedulers.tasks.network import Networks

    if not isinstance(learned, Networks):
        raise ConfigError("policy mlf_rl: no learned weights were given; train it first")
    return MlfRl(learned, settings=heuristic_settings(read))


def _mlf_c(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.mlfs import mlf_c

    return mlf_c(heuristic_settings(read), control_settings(read))


def _mlfs(read: Mapping[str, Any], learned: object | None) -> TaskPolicy:
    from jobcast.schedulers.tasks.mlfs import mlfs

    rl = None if learned is None else _mlf_rl(read, learned)
    return mlfs(rl, heuristic_settings(read), control_settings(read))


_FACTORIES = (
    TaskFactory("mlf_h", _mlf_h, HEURISTIC),
    TaskFactory("mlf_c", _mlf_c, {**HEURISTIC, **CONTROL}),
    TaskFactory("mlf_rl", _mlf_rl, HEURISTIC),
    TaskFactory("mlfs", _mlfs, {**HEURISTIC, **CONTROL}),
    *(TaskFactory(name, make, readers) for name, (make, readers) in BASELINES.items()),
)
TASK_POLICIES: Mapping[str, TaskFactory] = MappingProxyType({one.name: one for one in _FACTORIES})
