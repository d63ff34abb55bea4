"""The eight jobs of Table V on armida-05, -06 and -07, called every five minutes; what each call expected to cost."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.energy import POSTPONED, Deployment, EnergyCluster, EnergyView
from jobcast.pipelines.experiments.energy.jobs import EnergyScene
from jobcast.pipelines.experiments.energy.simulation import noisy, replay_scenario
from jobcast.schedulers.energy.objective import deployed_s
from jobcast.schedulers.energy.whole_schedule import WholeSchedule
from jobcast.schedulers.registry import make_rule
from jobcast.simulator.log import RunLog, Spans
from papers.andreas.accounting import cost_of_spans
from papers.andreas.bench import ANDREAS, ARMIDA, read_workload

PERIOD_S = 300.0
"""ANDREAS, appendix B: the optimiser is called every 5 minutes, and at no other time."""


def expected_eur(view: EnergyView, decided: Deployment) -> float:
    """Energy cost until the next call, by the times that are believed: a job that ends before frees its GPUs."""
    runs = np.flatnonzero(decided.node_of != POSTPONED)
    until_s = view.now_s + np.minimum(deployed_s(view, decided)[runs], view.period_s)
    begin_s = np.full(len(runs), view.now_s)
    held = Spans(view.active[runs], begin_s, until_s, decided.gpus_of[runs].astype(np.float64), decided.node_of[runs])
    return float(cost_of_spans(held, view.cluster).eur.sum())


def real_eur(log: RunLog, cluster: EnergyCluster, from_s: float, until_s: float) -> float:
    """Energy cost of what happened between two instants."""
    result = log.spans
    first_s, last_s = np.maximum(result.from_s, from_s), np.minimum(result.until_s, until_s)
    kept = last_s > first_s
    part = Spans(result.job[kept], first_s[kept], last_s[kept], result.gpus[kept], result.node[kept])
    return float(cost_of_spans(part, cluster).eur.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """A run of the eight jobs, and what its calls expected: when, and EUR of energy until the next one."""

    log: RunLog
    calls: tuple[tuple[float, float], ...]


def armida_scenario() -> EnergyScene:
    """The eight jobs on the three nodes; nothing of it is drawn."""
    return read_workload(ARMIDA, 0, Path())


def session(
    scenario: EnergyScene, policy: str = ANDREAS, *, noise: float = 0.0, restart_s: float = 0.0, seed: int = 0
) -> Session:
    """Run the jobs; the policy believes the scenario's times.

    Parameters
    ----------
    noise : standard deviation of the logarithm by which true times of epochs differ from those, by job, type and GPUs
    restart_s : seconds in which a job that was stopped holds its GPUs without getting on
    seed : of the noise; the policy's own draws stay the same
    """
    # One seed of its own draws, so that runs differ by the noise alone.
    rule: Any = make_rule(policy, None, {"seed": 0} if policy == ANDREAS else {})
    calls: list[tuple[float, float]] = []

    def schedule(view: EnergyView) -> Deployment:
        decided: Deployment = rule.schedule(view)
        calls.append((view.now_s, expected_eur(view, decided)))
        return decided

    called = WholeSchedule(schedule, policy, PERIOD_S, on_events=False, restart_s=restart_s)
    true_s = noisy(scenario.facts.times.epoch_s, scenario.job_ids, noise, seed) if noise else None
    return Session(replay_scenario(scenario, called, true_s=true_s, restart_s=restart_s), tuple(calls))


def energy_eur(log: RunLog) -> float:
    """Energy cost of a whole run."""
    return log.totals["energy_eur"]
