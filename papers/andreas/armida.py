"""The eight jobs of Table V on armida-05, -06 and -07, called every five minutes; what each call expected to cost."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.energy import POSTPONED, WATT_SECONDS, Deployment, EnergyCluster, EnergyView
from jobcast.pipelines.experiments.energy.jobs import EnergyScene
from jobcast.pipelines.experiments.energy.simulation import noisy, replay_scenario
from jobcast.schedulers.energy.objective import deployed_s
from jobcast.schedulers.energy.whole_schedule import WholeSchedule
from jobcast.schedulers.registry import make_rule
from jobcast.simulator.log import RunLog, Spans
from papers.andreas.bench import ANDREAS, ARMIDA, read_workload

PERIOD_S = 300.0
"""ANDREAS, appendix B: the optimiser is called every 5 minutes, and at no other time."""


def power_over_time(spans: Spans, cluster: EnergyCluster) -> tuple[Floats, Floats]:
    """Watts of nodes from change to change, for a plot of steps. ANDREAS, Figure 5.

    Returns
    -------
    instants_s : (n,) at which any node's GPUs in use change, ascending
    watts : (n, n_nodes) from this instant to the next; in the last row all nodes are unused
    """
    instants_s = np.unique(np.concatenate([spans.from_s, spans.until_s]))
    used = np.zeros((len(instants_s), len(cluster.kind_of)), dtype=np.int64)
    gpus = np.rint(spans.gpus).astype(np.int64)
    for at_s, sign in ((spans.from_s, 1), (spans.until_s, -1)):
        np.add.at(used, (np.searchsorted(instants_s, at_s), spans.node), sign * gpus)
    watts: Floats = cluster.power_w[cluster.kind_of, np.cumsum(used, axis=0)]
    return instants_s, watts


def cost_eur(spans: Spans, cluster: EnergyCluster) -> float:
    """Energy cost of all nodes from the first begin to the last end, at a price that stays the same."""
    instants_s, watts = power_over_time(spans, cluster)
    [price_eur_kwh] = cluster.tariff.price_eur_kwh
    return float(np.diff(instants_s) @ watts[:-1].sum(axis=1) * price_eur_kwh * cluster.pue / WATT_SECONDS)


def expected_eur(view: EnergyView, decided: Deployment) -> float:
    """Energy cost until the next call, by the times that are believed: a job that ends before frees its GPUs."""
    runs = np.flatnonzero(decided.node_of != POSTPONED)
    until_s = view.now_s + np.minimum(deployed_s(view, decided)[runs], view.period_s)
    begin_s = np.full(len(runs), view.now_s)
    held = Spans(view.active[runs], begin_s, until_s, decided.gpus_of[runs].astype(np.float64), decided.node_of[runs])
    return cost_eur(held, view.cluster)


def real_eur(log: RunLog, cluster: EnergyCluster, from_s: float, until_s: float) -> float:
    """Energy cost of what happened between two instants."""
    result = log.spans
    first_s, last_s = np.maximum(result.from_s, from_s), np.minimum(result.until_s, until_s)
    kept = last_s > first_s
    part = Spans(result.job[kept], first_s[kept], last_s[kept], result.gpus[kept], result.node[kept])
    return cost_eur(part, cluster)


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
