"""Policies of energy and due dates: settings and specs. What computes is imported when a policy is made."""

from typing import Any

from pydantic import Field

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
from jobcast.schedulers.settings import AtLeastZero, Chance, Count, Flag, Seconds, Settings, Whole

HOLD = 0.1
"""Ours: with 0 the schedule changes at most calls for gains that the next call takes back, and jobs lose what they did
since their last snapshot."""
FORCE_NODES = "constraint 4n: min(N, J) nodes are used, as far as they can be"


class AndreasSettings(Settings):
    """Of the randomised greedy; all but `max_iterations` and `rho` are ours."""

    max_iterations: Count = Field(default=1000, description="schedules that are made at a call; MaxIt_RG, section V")
    rho: AtLeastZero = Field(default=100.0, description="penalty of postponing a job; ANDREAS, section V.B")
    seed: Whole = Field(default=0, description="of random numbers; --seed where it is not set")
    draw: Chance = Field(default=1.0, description="probability that a job draws its candidate, else it takes the best")
    keep: Flag = Field(default=True, description="every second random construction leaves running jobs where they run")
    hold: Chance | None = Field(
        default=None,
        description="share of the objective that a change must gain; 0.1, with thorough 0, which is the paper's",
    )
    caps: Flag = Field(
        default=False, description="two of three random constructions cap the GPUs of jobs at a drawn number"
    )
    force_nodes: Flag = Field(default=False, description=FORCE_NODES)
    thorough: Flag = Field(default=False, description="push the objective of each call down to its optimum")

    @property
    def held(self) -> float:
        """`hold`, or what stands for it."""
        if self.hold is not None:
            return self.hold
        return 0.0 if self.thorough else HOLD


class QueueSettings(Settings):
    """Of queues."""

    strict: Flag = Field(default=False, description="nobody overtakes a job that finds no room; else it is passed over")


EXACT_JOBS = 100
"""A programme is solved at each call: with 20 active jobs on 16 nodes that takes a second, and more with each job."""


class ExactSettings(Settings):
    """Of the mixed integer model."""

    rho: AtLeastZero = Field(default=100.0, description="penalty of postponing a job; ANDREAS, section V.B")
    time_limit_s: Seconds = Field(
        default=60.0, description="of a solve; an answer cut short by it depends on the machine's speed"
    )
    as_printed: Flag = Field(
        default=False, description="a node costs its cheapest job, as printed; else the first-ending one"
    )
    force_nodes: Flag = Field(default=True, description=FORCE_NODES + "; without it what is not due waits for ever")


def _andreas(given: Any, own: AndreasSettings) -> Any:
    from jobcast.schedulers.energy.andreas import Andreas, warm

    warm()
    return Andreas(own)


def _queue(name: str, order: str) -> Make:
    def make(given: Any, own: QueueSettings) -> Any:
        from jobcast.schedulers.energy.baselines import ORDERS, QueuePolicy

        return QueuePolicy(name, ORDERS[order], own)

    return make


def _spec(
    name: str,
    make: Make,
    settings: type[Settings],
    summary: str,
    preempts: bool = False,
    most_jobs: int | None = None,
) -> PolicySpec:
    return PolicySpec(
        name=name,
        kind=ENERGY,
        make=make,
        settings=settings,
        summary=summary,
        paper="ANDREAS (FiCloud 2021)",
        needs=(EPOCH_TIMES, WATTS),
        asks=(TIMES,),
        preempts=preempts,
        most_jobs=most_jobs,
    )


def by_calls(rule: Any, name: str, mechanism: EnergyMechanism) -> Any:
    """A rule that makes whole schedules as the engine can ask it; one that answers the engine itself stays."""
    from jobcast.schedulers.energy.whole import WholeSchedule

    if not hasattr(rule, "schedule"):
        return rule
    return WholeSchedule(rule.schedule, name, mechanism.period_s, mechanism.on_events, mechanism.restart_s)


ENERGY_POLICIES = (
    _spec("andreas", _andreas, AndreasSettings, "the least cost of energy and lateness, by a randomised greedy", True),
    _spec("energy_fifo", _queue("energy_fifo", "fifo"), QueueSettings, "first in, first out, on cheap configurations"),
    _spec("edf", _queue("edf", "edf"), QueueSettings, "earliest due date first"),
    _spec("ps", _queue("ps", "ps"), QueueSettings, "the greatest weight and pressure of due dates first"),
    _spec(
        "exact",
        of_settings("energy.exact:Exact"),
        ExactSettings,
        "the least cost of energy and lateness, by integer programming",
        True,
        EXACT_JOBS,
    ),
)
