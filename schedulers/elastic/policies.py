"""Policies of elastic jobs, by their papers' names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from jobcast.domain.elastic import ElasticPolicy
from jobcast.domain.errors import ConfigError
from jobcast.schedulers.elastic.config import WfqConfig, read_config
from jobcast.schedulers.settings import Readers, at_least_zero, flag, one_of, read_settings, seconds

NO_SETTINGS: Mapping[str, object] = MappingProxyType({})
MECHANISM: Readers = MappingProxyType({"preempt_s": at_least_zero, "pending_lease": flag})
"""What every policy understands: progress that a change of a running job's GPUs costs, and whether a forecast keeps
the lease that is running when it is made (without leases it makes no difference)."""
DEFAULTS: Mapping[str, Any] = MappingProxyType({"preempt_s": 0.0, "pending_lease": True})
CAPS = ("crossing", "monotone")
"""Up to where a demand cap reaches: the first number of GPUs that is not efficient, or the last that is."""

Maker = Callable[[Mapping[str, Any], Sequence[str]], ElasticPolicy]


@dataclass(frozen=True, slots=True)
class ElasticFactory:
    """Makes a policy of elastic jobs from settings.

    Attributes
    ----------
    name : its paper's
    make : from its own settings as read, and the names of the GPU types in the order of the capacity
    own : name -> reader of its own settings
    """

    name: str
    make: Maker
    own: Readers = field(default_factory=dict)

    @property
    def settings(self) -> Readers:
        """All settings that it knows: its own, and those of the engine."""
        return {**MECHANISM, **self.own}

    def mechanism(self, settings: Mapping[str, object] = NO_SETTINGS) -> dict[str, Any]:
        """Settings of the engine, `preempt_s` and `pending_lease`, with defaults for those that are not set.

        Raises ConfigError for a setting that it does not know or cannot read.
        """
        read = read_settings(self.name, self.settings, settings)
        return {key: read.get(key, default) for key, default in DEFAULTS.items()}

    def __call__(self, settings: Mapping[str, object] = NO_SETTINGS, gpu_types: Sequence[str] = ("",)) -> ElasticPolicy:
        """Make one; its rule is compiled when the first is made.

        Raises ConfigError for a setting that it does not know or cannot read, or for a wrong configuration file.
        """
        read = read_settings(self.name, self.settings, settings)
        return self.make({key: value for key, value in read.items() if key in self.own}, gpu_types)


def find_elastic(name: str) -> ElasticFactory:
    """The factory of a policy. Raises ConfigError that lists those known."""
    try:
        return ELASTIC_POLICIES[name]
    except KeyError:
        raise ConfigError(f"unknown elastic policy {name!r}; choose from {', '.join(ELASTIC_POLICIES)}") from None


def _pcs(own: Mapping[str, Any], gpu_types: Sequence[str]) -> ElasticPolicy:
    """Without a configuration one queue without caps, FIFO, until there is history to search with. PCS, section 3.2."""
    config = read_config(own["config"]) if "config" in own else WfqConfig()
    return config.policy(gpu_types, whole=own.get("whole_gpus", False), monotone=own.get("caps") == "monotone")


def _fifo(own: Mapping[str, Any], gpu_types: Sequence[str]) -> ElasticPolicy:
    from jobcast.schedulers.elastic.orders import fifo

    return ElasticPolicy("fifo", fifo, np.zeros(1), preemptive=False)


def _srsf(own: Mapping[str, Any], gpu_types: Sequence[str]) -> ElasticPolicy:
    from jobcast.schedulers.elastic.orders import srsf

    return ElasticPolicy("srsf", srsf, np.zeros(1))


def _las(own: Mapping[str, Any], gpu_types: Sequence[str]) -> ElasticPolicy:
    from jobcast.schedulers.elastic.orders import las

    return ElasticPolicy("las", las, np.zeros(1))


def _afs(own: Mapping[str, Any], gpu_types: Sequence[str]) -> ElasticPolicy:
    from jobcast.schedulers.elastic.afs import afs

    return ElasticPolicy("afs", afs, np.zeros(1))


def _themis(own: Mapping[str, Any], gpu_types: Sequence[str]) -> ElasticPolicy:
    from jobcast.schedulers.elastic.themis import LEASE_S, themis

    return ElasticPolicy("themis", themis, np.zeros(1), lease_s=own.get("lease_s", LEASE_S))


def _fair(own: Mapping[str, Any], gpu_types: Sequence[str]) -> ElasticPolicy:
    from jobcast.schedulers.elastic.fair import fair

    whole = own.get("whole_gpus", False)
    return ElasticPolicy("fair", fair, np.array([float(whole)]), integral=whole)


def _path(value: object) -> Path:
    if not str(value):
        raise ValueError("must be the path of a configuration file, got nothing")
    return Path(str(value))


_FACTORIES = (
    ElasticFactory("pcs", _pcs, {"config": _path, "whole_gpus": flag, "caps": one_of(*CAPS)}),
    ElasticFactory("fifo", _fifo),
    ElasticFactory("srsf", _srsf),
    ElasticFactory("las", _las),
    ElasticFactory("afs", _afs),
    ElasticFactory("themis", _themis, {"lease_s": seconds}),
    ElasticFactory("fair", _fair, {"whole_gpus": flag}),
)
ELASTIC_POLICIES: Mapping[str, ElasticFactory] = MappingProxyType({one.name: one for one in _FACTORIES})
