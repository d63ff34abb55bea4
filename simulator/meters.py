"""What is counted beside progress: energy and its cost by node and job, and the time that decisions take."""

import time
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import DAY_S
from jobcast.domain.energy import WATT_SECONDS, EnergyCluster, Tariff
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, Grant, View

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation


def price_seconds_between(tariff: Tariff, from_s: float, until_s: float) -> float:
    """EUR/kWh x seconds from an instant to another, price step by price step.

    >>> price_seconds_between(Tariff(np.array([0.0, 3600.0]), np.array([0.1, 0.2])), 3500.0, 3700.0)
    30.0
    """
    # Exact in one product; most tariffs are flat.
    if len(tariff.from_s) == 1:
        return float(tariff.price_eur_kwh[0]) * (until_s - from_s)
    # A price of the day ends where the next begins, the last at midnight.
    ends = [*map(float, tariff.from_s[1:]), DAY_S]
    day_s = from_s - from_s % DAY_S
    step = bisect_right(ends, from_s % DAY_S)
    total, at_s = 0.0, from_s
    while at_s < until_s:
        next_s = min(day_s + ends[step], until_s)
        total += float(tariff.price_eur_kwh[step]) * (next_s - at_s)
        at_s, step = next_s, step + 1
        if step == len(ends):
            day_s, step = day_s + DAY_S, 0
    return total


class EnergyMeter:
    """Accounts of nodes and jobs, a node's settled when its GPUs in use change: apart from spans.

    A job's share of what its node draws is GPUs held over GPUs in use.

    Attributes
    ----------
    used : (n_nodes,) GPUs in use
    drawn : (n_nodes, 2) kWh and EUR so far, as far as settled
    """

    def __init__(self, cluster: EnergyCluster) -> None:
        nodes = len(cluster.kind_of)
        self._cluster, self._watts = cluster, cluster.power_w[cluster.kind_of]
        self.used: Ints = np.zeros(nodes, dtype=np.int64)
        self.drawn, self._a_gpu = np.zeros((nodes, 2)), np.zeros((nodes, 2))
        self._settled_s = np.full(nodes, np.nan)
        self._of_job: defaultdict[int, Floats] = defaultdict(lambda: np.zeros(2))

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """A job's nodes have other GPUs in use from now on."""
        # What is given back first: a node must not count both at once.
        for grant, sign in ((old, -1), (new, 1)):
            for node, gpus in _held(grant):
                self._settle(run, node)
                # Of what a GPU in use took since the first submission, it is charged from its start to its end.
                self._of_job[job.seq] = self._of_job[job.seq] - sign * gpus * self._a_gpu[node]
                self.used[node] += sign * gpus

    def _settle(self, run: "Simulation", node: int) -> None:
        since_s, used, cluster = self._settled_s[node], self.used[node], self._cluster
        since_s = run.origin_s if np.isnan(since_s) else since_s
        self._settled_s[node] = run.now_s
        if not run.now_s > since_s:  # in the midst of a decision, jobs that leave may be counted beside those that come
            return
        watts, eur = self._watts[node, used], price_seconds_between(cluster.tariff, since_s, run.now_s) * cluster.pue
        # KWh and EUR differ in their first factor alone.
        amount = np.array((run.now_s - since_s, eur)) * (watts / WATT_SECONDS)
        self.drawn[node] += amount
        # An idle node's draw belongs to no job.
        if used:
            self._a_gpu[node] += amount / used

    def report(self, run: "Simulation") -> dict[str, Any]:
        """Energy of jobs, and of all nodes from the first submission until now, idle ones too."""
        for node in range(len(self.used)):
            self._settle(run, node)
        of_job = np.array([self._of_job[seq] for seq in range(len(run.jobs))]).reshape(-1, 2)
        # A log may be asked for amid a run: running jobs are charged until now.
        for seq, held in run.cluster.running.items():
            of_job[seq] += sum(gpus * self._a_gpu[node] for node, gpus in _held(held.grant))
        names = ("energy_kwh", "energy_eur")
        totals = dict(zip(names, self.drawn.sum(axis=0).tolist(), strict=True))
        return {"columns": dict(zip(names, of_job.T.copy(), strict=True)), "totals": totals}

    def fork(self) -> "EnergyMeter":
        """A copy that goes its own way."""
        copy = EnergyMeter(self._cluster)
        copy.used, copy.drawn, copy._a_gpu = self.used.copy(), self.drawn.copy(), self._a_gpu.copy()
        copy._settled_s = self._settled_s.copy()
        copy._of_job.update(self._of_job)
        return copy


def _held(grant: Grant | None) -> list[tuple[int, int]]:
    """Nodes, and how many GPUs of each."""
    return [] if grant is None else [(cell.server, cell.gpus) for cell in grant.cells]


class Timed:
    """A policy whose decisions are timed; it is a meter, too, which tells that."""

    def __init__(self, policy: Any) -> None:
        self._policy, self._taken_s = policy, [0.0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # asked for while it is copied, before there is a policy
            raise AttributeError(name)
        return getattr(self._policy, name)

    def decide(self, view: View) -> Decision:
        """What the policy decides."""
        # CPU time: other processes of the machine do not count.
        began_s = time.process_time()
        decision: Decision = self._policy.decide(view)
        self._taken_s.append(time.process_time() - began_s)
        return decision

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """Nothing is counted."""

    def report(self, run: "Simulation") -> dict[str, Any]:
        """How many decisions, and seconds of CPU that they took."""
        totals = {"decisions": run.decisions, "decision_s": sum(self._taken_s), "decision_max_s": max(self._taken_s)}
        return {"totals": totals}

    def fork(self) -> "Timed":
        """As of now: a fork asks a copy of its own, which is not timed for this log."""
        copy = Timed(self._policy)
        copy._taken_s = self._taken_s[:]
        return copy
