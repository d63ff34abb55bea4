"""Policies of energy and due dates. What computes is imported when a policy is made."""

from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.settings import Settings
from jobcast.schedulers.energy.settings import EXACT_JOBS, AndreasSettings, ExactSettings, QueueSettings
from jobcast.schedulers.policies import (
    ENERGY,
    EPOCH_TIMES,
    TIMES,
    WATTS,
    EnergyMechanism,
    Make,
    PolicySpec,
    of_settings,
)


def _andreas(given: Any, own: AndreasSettings) -> Any:
    from jobcast.schedulers.energy.andreas import Andreas, warm

    warm()
    return Andreas(own)


def _queue(name: str, order: str) -> Make:
    def make(given: Any, own: QueueSettings) -> Any:
        from jobcast.schedulers.energy.baselines import ORDERS, QueuePolicy

        return QueuePolicy(name, ORDERS[order], own)

    return make


def _spec(name: str, make: Make, settings: type[Settings], summary: str, **rest: Any) -> PolicySpec:
    about = {"paper": "ANDREAS (FiCloud 2021)", "needs": (EPOCH_TIMES, WATTS), "asks": (TIMES,), "preempts": False}
    return PolicySpec(name=name, kind=ENERGY, make=make, settings=settings, summary=summary, **{**about, **rest})


def by_calls(rule: Any, name: str, mechanism: EnergyMechanism) -> Any:
    """A rule that makes whole schedules as the engine can ask it; one that answers the engine itself stays."""
    from jobcast.schedulers.energy.whole_schedule import WholeSchedule

    if not hasattr(rule, "schedule"):
        if mechanism.profile_s:
            raise ConfigError(f"policy {name}: setting profile_s: it makes no whole schedules, which leave nodes out")
        return rule
    return WholeSchedule(
        *(rule.schedule, name, mechanism.period_s, mechanism.on_events, mechanism.restart_s, mechanism.profile_s)
    )


ENERGY_POLICIES = (
    _spec(
        *("andreas", _andreas, AndreasSettings, "the least cost of energy and lateness, by a randomised greedy"),
        preempts=True,
    ),
    _spec("energy_fifo", _queue("energy_fifo", "fifo"), QueueSettings, "first in, first out, on cheap configurations"),
    _spec("edf", _queue("edf", "edf"), QueueSettings, "earliest due date first"),
    _spec("ps", _queue("ps", "ps"), QueueSettings, "the greatest weight and pressure of due dates first"),
    _spec(
        "exact",
        of_settings("energy.exact:Exact"),
        ExactSettings,
        "the least cost of energy and lateness, by integer programming",
        preempts=True,
        most_jobs=EXACT_JOBS,
    ),
)
