"""ANDREAS' randomised greedy. Filippini et al.: ANDREAS, FiCloud 2021, section IV.B and Algorithm 1.

The paper leaves open, and here it is so: candidates are drawn from D*, "one of the (n, g) with lower cost"; where that
is empty, from all, with a probability inversely proportional to the time. Closed nodes may be opened for suboptimal
configurations as well, once no open node has room; and a job for which nothing of D* has room gets, after all other
jobs, what is left, late or not: otherwise GPUs would idle while jobs wait, against constraint 4n and its reason. The
first two constructions draw nothing: in one all running jobs go on and the greedy places the others, one is the plain
greedy. Of schedules that cost the same the earlier is taken, so that nothing is moved for nothing.

That is the default. With `thorough` the objective of equation 1 comes close to its optimum: half of the random
constructions order jobs by what postponing costs; in two of three jobs get at most a drawn number of GPUs while there
is another way, late or not (`caps`); from constructions near the best, one job at a time is moved or postponed while
the objective falls, even where there is room for it; and running jobs are not held (`hold` 0).

Equation 1 is about one call, and a lower objective at each call is not a lower cost in the end. On 200 instances of one
call (`benchmarks/bench_andreas_exact.py`) `thorough` is 0.3 % above the optimum in the mean and the default 1,049 %,
median 7 %. In replays of the first scenario with 20 nodes, seeds 0 to 4, a run costs 29 EUR in the mean with the
default (19 to 38 by seed), 198 with `thorough` (139 to 271), 28 with `caps` alone, whose gaps are 38 %, and 182 with
FIFO, 116 with EDF, 121 with PS (`python -m papers.andreas effects`).
"""

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from jobcast.domain.energy import (
    POSTPONED,
    Deployment,
    EnergyCluster,
    EnergyJobs,
    EnergyView,
    Floats,
    Tariff,
)
from jobcast.schedulers.energy.configurations import queue_of
from jobcast.schedulers.energy.settings import AndreasSettings

SWAP = 0.5
"""Probability that a job of the least weight goes back a place, and again from there; others go back with less,
inversely proportional to their weight. Ours; the paper has no number."""
STRENGTHS = (1.0, 2.0, 4.0, 8.0)
"""Bold constructions take turns in swapping so many times as often, up to `greedy_construction.MOST_SWAP`. Ours: on
small instances the best order may be far from that of pressures."""
CALM = ((2.0, 0.5), (1.0, 0.125))
"""The other random constructions swap so many times as often, and draw with this share of the probability. Ours: with
many jobs, schedules in which each one draws are seldom better than the greedy's."""
CAPS = (0, 2, 1)
"""Of `greedy_construction`: no cap, one for each job, one for all."""
PLACES = 2_000_000
"""Nodes that descents of a call may look at, one for each configuration of a job. Ours: some tens of milliseconds."""
MASK = (1 << 64) - 1
PRIMES = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Odd numbers that spread seeds and calls over 64 bits, from SplitMix64; not its step, by which a stream goes on."""


def ways(settings: AndreasSettings) -> Floats:
    """(n, 5) how constructions are made, for `greedy.construct`: running jobs go on; plain; random ones."""
    strengths = [(strength, 1.0) for strength in STRENGTHS] + list(CALM)
    keeps, caps = (0, 1) if settings.keep else (0,), CAPS if settings.caps or settings.thorough else CAPS[:1]
    orders = (0, 1) if settings.thorough else (0,)
    random = [
        (keep, swap * SWAP, draw * settings.draw, order, cap)
        for order, cap, (swap, draw), keep in product(orders, caps, strengths, keeps)
    ]
    return np.array([(1, 0, 0, 0, 0), (0, 0, 0, 0, 0), *random], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Andreas:
    """The best of many random greedy schedules, by the proxy objective."""

    settings: AndreasSettings = field(default_factory=AndreasSettings)

    @property
    def name(self) -> str:
        """As users write it."""
        return "andreas"

    def schedule(self, view: EnergyView) -> Deployment:
        """The schedule from now on."""
        return self.best(view)[0]

    def best(self, view: EnergyView) -> tuple[Deployment, float]:
        """The schedule and its proxy objective, EUR."""
        from jobcast.schedulers.energy.greedy import construct
        from jobcast.schedulers.energy.greedy_state import new_draft

        node_of, gpus_of = np.zeros((2, len(view.active)), dtype=np.int64)
        if not len(view.active):
            return Deployment(node_of, gpus_of), 0.0
        chosen = self.settings
        queue = queue_of(view, chosen.rho, force_nodes=chosen.force_nodes)
        hold = chosen.held if (queue.stay >= 0).any() else 0.0
        most = PLACES if chosen.thorough else 0
        draft = new_draft(queue, stream(chosen.seed, view.call))
        cost = construct(queue, draft, ways(chosen), chosen.max_iterations, hold, most, node_of, gpus_of)
        return Deployment(node_of, gpus_of), float(cost)


def warm() -> None:
    """Load or compile the greedy, which takes a second or, once, half a minute, so that no decision waits for it."""
    one = np.ones(1)
    jobs = EnergyJobs(submit_s=one, due_s=one, weight=one, epochs=one, epoch_s=np.ones((1, 1, 1)))
    nodes = np.zeros(1, dtype=np.int64)
    tariff = Tariff(np.zeros(1), one)
    cluster = EnergyCluster(nodes, np.ones(1, dtype=np.int64), np.ones((1, 2)), 1.0, tariff)
    waits, never = np.full(1, POSTPONED), np.zeros(1, dtype=np.bool_)
    view = EnergyView(0.0, jobs, cluster, nodes, waits, nodes, one, one, never, 0.0, 1.0)
    Andreas(AndreasSettings(max_iterations=1)).schedule(view)


def stream(seed: int, call: int) -> int:
    """Where the random numbers of a call begin: told by the seed and by how many calls came before, not by the clock.

    >>> stream(0, 7) == stream(0, 7), stream(0, 7) == stream(1, 7), stream(0, 7) == stream(0, 8)
    (True, False, False)
    """
    return (seed * PRIMES[0] + call * PRIMES[1]) & MASK
