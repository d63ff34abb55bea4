"""Simulations of enriched traces: the tables that lie beside them, and what they rest on."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from jobcast.schedulers.policies import ELASTIC, ENERGY, GOODPUT, ROUNDS, TASKS
from jobcast.traces.facts import assumptions_beside, facts_beside, sentences

TABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        ROUNDS: ("throughputs", "regimes", "datasets"),
        GOODPUT: ("step_times", "training_curves"),
        ELASTIC: ("speedups",),
        TASKS: ("tasks", "curves"),
        ENERGY: ("profiles",),
    }
)
"""Tables that jobs come from, by the kind of policy that schedules them."""


def settings_beside(kind: str, trace: Path, settings: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Settings with the tables beside an enriched trace that a kind of policy needs, and sentences of what was assumed.

    A table that the settings name themselves goes before. Raises TraceError as `facts_beside`.
    """
    told = assumptions_beside(trace)
    if told is None:
        return dict(settings), ()
    wanted = [name for name in TABLES.get(kind, ()) if name not in settings]
    found = {name: str(path) for name, path in facts_beside(trace, wanted).items()}
    said = sentences(told, set(found)) if found else []
    return {**found, **settings}, tuple(said)
