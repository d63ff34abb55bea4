"""Simulations of enriched traces: the tables that lie beside them, and what they rest on."""

from collections.abc import Mapping
from pathlib import Path

from jobcast.pipelines.energy.asking import for_energy
from jobcast.schedulers.elastic.policies import ELASTIC_POLICIES
from jobcast.schedulers.goodput_policies import GoodputFactory
from jobcast.schedulers.policies import POLICIES, find_factory
from jobcast.schedulers.round_policies import RoundFactory
from jobcast.schedulers.tasks.policies import TASK_POLICIES
from jobcast.traces.facts import assumptions_beside, facts_beside, sentences


def tables_of(policy: str, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the tables that a policy's jobs come from. Raises ConfigError for an unknown policy."""
    if policy in TASK_POLICIES:
        return ("tasks", "curves")
    if for_energy(policy, settings):
        return ("profiles",)
    if policy in ELASTIC_POLICIES and policy not in POLICIES:
        return ("speedups",)
    factory = find_factory(policy)
    if isinstance(factory, GoodputFactory):
        return ("step_times", "training_curves")
    return ("throughputs", "regimes", "datasets") if isinstance(factory, RoundFactory) else ()


def settings_beside(policy: str, trace: Path, settings: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Settings with the tables beside an enriched trace that a policy needs, and what was assumed, in sentences.

    A table that the settings name themselves goes before. Raises ConfigError and TraceError as its parts do.
    """
    told = assumptions_beside(trace)
    if told is None:
        return dict(settings), ()
    wanted = [name for name in tables_of(policy, settings) if name not in settings]
    found = {name: str(path) for name, path in facts_beside(trace, wanted).items()}
    said = sentences(told, set(found)) if found else []
    return {**found, **settings}, tuple(said)
