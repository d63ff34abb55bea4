"""Policies of energy and due dates, and their settings. What computes is imported when a policy is made."""

from typing import Any, Literal

from jobcast.domain.errors import ConfigError
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
from jobcast.schedulers.settings import AtLeastZero, Chance, Count, Flag, Seconds, Settings, Whole, setting

# Ours: with 0 the schedule changes at most calls for gains that the next call takes back, and jobs lose what they did
# since their last snapshot.
HOLD = 0.1
FORCE_NODES = "constraint 4n: min(N, J) nodes are used, as far as they can be"
TO_GO, EQUATION_1 = "to_go", "equation_1"
# MaxIt_RG of section V; ours where schedules are changed after they are made.
MAX_ITERATIONS, TO_GO_ITERATIONS = 1000, 30


class AndreasSettings(Settings):
    """Of the randomised greedy; all but `max_iterations` and `rho` are ours."""

    objective: Literal["to_go", "equation_1"] = setting(
        TO_GO, "what is made small: the cost of all jobs to their ends, or equation 1 (docs/energy.md)"
    )
    occupancy: AtLeastZero = setting(
        0.3, "to_go: price of an hour of a GPU of the fastest kind, in mean weights of active jobs"
    )
    impatience: AtLeastZero = setting(0.1, "to_go: price of an hour until a job is over, in the same")
    max_iterations: Count | None = setting(
        None, "schedules that are made at a call; 30, with equation_1 1000, MaxIt_RG of section V"
    )
    rho: AtLeastZero = setting(100.0, "equation_1: penalty of postponing a job; ANDREAS, section V.B")
    seed: Whole = setting(0, "of random numbers; --seed where it is not set")
    draw: Chance = setting(1.0, "probability that a job draws its candidate, else it takes the best")
    keep: Flag = setting(True, "every second random construction leaves running jobs where they run")
    hold: Chance | None = setting(
        None, "share of the objective that a change must gain; equation_1 0.1, else and with thorough the paper's 0"
    )
    caps: Flag = setting(False, "two of three random constructions cap the GPUs of jobs at a drawn number")
    force_nodes: Flag = setting(False, FORCE_NODES + "; by equation_1")
    thorough: Flag = setting(False, "push equation_1 down to its optimum at each call")

    @property
    def to_go(self) -> bool:
        """Whether the cost-to-go is made small: not where something is asked for that only equation 1 has."""
        return self.objective == TO_GO and not (self.thorough or self.force_nodes)

    @property
    def held(self) -> float:
        """`hold`, or what stands for it."""
        if self.hold is not None:
            return self.hold
        return 0.0 if self.thorough or self.to_go else HOLD

    @property
    def made(self) -> int:
        """`max_iterations`, or what stands for it."""
        return self.max_iterations or (TO_GO_ITERATIONS if self.to_go else MAX_ITERATIONS)


class QueueSettings(Settings):
    """Of queues."""

    strict: Flag = setting(False, "nobody overtakes a job that finds no room; else it is passed over")


# A programme is solved at each call: with 20 active jobs on 16 nodes that takes a second, and more with each job.
EXACT_JOBS = 100


class ExactSettings(Settings):
    """Of the mixed integer model."""

    rho: AtLeastZero = setting(100.0, "penalty of postponing a job; ANDREAS, section V.B")
    time_limit_s: Seconds = setting(60.0, "of a solve; an answer cut short by it depends on the machine's speed")
    as_printed: Flag = setting(False, "a node costs its cheapest job, as printed; else the first-ending one")
    force_nodes: Flag = setting(True, FORCE_NODES + "; without it what is not due waits for ever")


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
        "andreas",
        _andreas,
        AndreasSettings,
        "the least cost of energy and lateness, by a randomised greedy",
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
