"""Policies of elastic jobs: settings and specs. Compiled code is imported when a policy is made."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pkgutil import resolve_name
from typing import Any, Literal

from jobcast.domain.settings import File, Flag, Seconds, Settings, setting
from jobcast.schedulers.policies import ELASTIC, SIZES, Make, PolicySpec


class PcsSettings(Settings):
    """Of PCS."""

    config: File | None = setting(None, "a configuration; without one queue without caps. PCS, section 3.2")
    configs: File | None = setting(
        None, "a CSV of from,config: configurations that follow, each from an instant on. PCS, section 3.2"
    )
    promises: Literal["keep", "renew"] = setting(
        "keep", "at a change, jobs that are there keep their configuration and go first, or are promised anew"
    )
    whole_gpus: Flag = setting(False, "deal out whole GPUs only")
    caps: Literal["crossing", "monotone"] = setting(
        "crossing", "a demand cap reaches to the first number of GPUs that is not efficient, or the last is"
    )


class ThemisSettings(Settings):
    """Of Themis."""

    lease_s: Seconds = setting(600.0, "length of a lease; PCS, section 5.1")
    rho: Literal["linear", "speedup"] = setting(
        "linear", "delays take g GPUs for g times as fast as one, or for as fast as they are"
    )


class FairSettings(Settings):
    """Of equal shares."""

    whole_gpus: Flag = setting(False, "deal out whole GPUs only")


def _pcs(gpu_types: Sequence[str] | None, own: PcsSettings) -> Any:
    from jobcast.domain.elastic import Preference
    from jobcast.schedulers.elastic.config import WfqConfig, read_changes, read_config

    config = read_config(own.config) if own.config is not None else WfqConfig()
    types, how = gpu_types or ("",), {"whole": own.whole_gpus, "monotone": own.caps == "monotone"}
    changes = read_changes(own.configs) if own.configs is not None else ()
    later = tuple(Preference(from_s, one.numbers(types, **how)) for from_s, one in changes)
    return replace(config.policy(types, **how), later=later, keep=own.promises == "keep")


def _of_rule(name: str, place: str, *, preemptive: bool) -> Make:
    """What makes a policy of a compiled rule; the order of GPU types does not matter to it."""

    def make(gpu_types: Sequence[str] | None, own: Any) -> Any:
        import numpy as np

        from jobcast.domain.elastic import ElasticPolicy

        # Of these rules only equal shares can deal out parts of GPUs.
        whole = getattr(own, "whole_gpus", True)
        flag = whole if isinstance(own, FairSettings) else getattr(own, "rho", "") == "speedup"
        numbers = np.array([float(flag)])
        rule, lease_s = resolve_name(f"jobcast.schedulers.elastic.{place}"), getattr(own, "lease_s", 0.0)
        return ElasticPolicy(name, rule, numbers, lease_s, integral=whole, preemptive=preemptive)

    return make


def _spec(name: str, place: str, summary: str, paper: str, **rest: Any) -> PolicySpec:
    make = _of_rule(name, place, preemptive=rest.get("preempts", True))
    return PolicySpec(name=name, kind=ELASTIC, summary=summary, paper=paper, **{"make": make, **rest})


_sized = partial(_spec, asks=(SIZES,))
ELASTIC_POLICIES = (
    _sized(
        *("pcs", "", "weighted fair queues by size, with caps on demand: completion times can be promised"),
        paper="PCS (OSDI 2024)",
        make=_pcs,
        settings=PcsSettings,
    ),
    _spec(
        *("elastic_fifo", "orders:fifo"),
        "in order of submission, each all that it can use; one whose least fits late stops later ones",
        paper="",
        preempts=False,
    ),
    _sized("srsf", "orders:srsf", "the least GPUs x time left first", "Tiresias (NSDI 2019); PCS"),
    _spec(*("elastic_las", "orders:las", "the least GPU time held so far first"), paper="Tiresias (NSDI 2019)"),
    _sized("afs", "afs:afs", "GPU by GPU to whoever shortens completion times most", "AFS (NSDI 2021)"),
    _sized(
        *("elastic_themis", "orders:themis", "those whom sharing has delayed most, for a lease", "Themis (NSDI 2020)"),
        settings=ThemisSettings,
    ),
    _spec(*("elastic_fair", "orders:fair", "equal shares of GPUs"), paper="PCS", settings=FairSettings),
)
