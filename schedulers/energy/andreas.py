"""ANDREAS' randomised greedy. Filippini et al.: ANDREAS, FiCloud 2021, section IV.B and Algorithm 1.

The paper leaves open, and here it is so: candidates are drawn from D* (see `late`); where that is empty, from all, with
a probability inversely proportional to the time. Closed nodes may be opened for suboptimal
configurations as well, once no open node has room; and a job for which nothing of D* has room gets, after all other
jobs, what is left, late or not: otherwise GPUs would idle while jobs wait, against constraint 4n and its reason. The
first two constructions draw nothing: in one all running jobs go on and the greedy places the others, one is the plain
greedy. Of schedules that cost the same the earlier is taken, so that nothing is moved for nothing.
"""

import struct
from dataclasses import dataclass, field

import numpy as np

from jobcast.domain.energy import Deployment, EnergyView, Floats
from jobcast.domain.errors import ConfigError
from jobcast.schedulers.energy.configurations import queue_of
from jobcast.schedulers.energy.objective import RHO

MAX_ITERATIONS = 1000
"""MaxIt_RG, section V."""
SWAP = 0.5
"""Probability that a job of the least weight goes back a place, and again from there. Ours; the paper has no number."""
STRENGTHS = (1.0, 2.0, 4.0, 8.0)
"""Thorough constructions take turns in swapping so many times as often, up to `greedy.MOST_SWAP`. Ours: on small
instances the best order may be far from that of pressures."""
CALM = ((2.0, 0.5), (1.0, 0.125))
"""The other random constructions swap so many times as often, and draw with this share of the probability. Ours: with
many jobs, schedules in which each one draws are seldom better than the greedy's."""
LATE = 0.0
"""Ours. With 1 schedules cost less by the proxy, close to the exact optimum; but more jobs run late and take turns, and
in replays the total cost was higher."""
HOLD = 0.1
"""Ours: with 0 the schedule changes at most calls for gains that the next call takes back, and jobs lose what they did
since their last snapshot."""
MASK = (1 << 64) - 1
PRIMES = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)
"""Odd numbers that spread seeds and instants over 64 bits, from SplitMix64."""


@dataclass(frozen=True, slots=True)
class AndreasSettings:
    """Settings; `swap`, `draw`, `keep` and `hold` are ours.

    Attributes
    ----------
    max_iterations : MaxIt_RG, how many schedules are made at a call
    rho : penalty of postponing a job, section V.B
    seed : of random numbers, which are told by it and the instant of the call
    swap : probability that a job of the least weight goes back a place; others go back with less, inversely
        proportional to their weight
    draw : probability that a job draws its candidate; otherwise that is the best configuration
    late : probability that a candidate is drawn from all configurations; otherwise from D*. The paper's "one of the
        (n, g) with lower cost" may be read both ways; with D* alone, a job that only two GPUs bring home in time makes
        do with one only where no two are free
    keep : whether every second random construction leaves running jobs where they run
    hold : share of the objective that must be gained for another schedule than that in which running jobs go on
        and the greedy places the others; 0 in the paper
    force_nodes : whether min(N, J) nodes are used, as far as they can be, constraint 4n
    """

    max_iterations: int = MAX_ITERATIONS
    rho: float = RHO
    seed: int = 0
    swap: float = SWAP
    draw: float = 1.0
    late: float = LATE
    keep: bool = True
    hold: float = HOLD
    force_nodes: bool = False

    def __post_init__(self) -> None:
        if self.max_iterations < 1:
            raise ConfigError(f"policy andreas: max_iterations must be at least 1, got {self.max_iterations}")
        if not self.rho >= 0.0:
            raise ConfigError(f"policy andreas: rho must be a number >= 0, got {self.rho}")
        for name in ("swap", "draw", "late", "hold"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"policy andreas: {name} must be from 0 to 1, got {getattr(self, name)}")

    @property
    def ways(self) -> Floats:
        """(n, 4) how constructions are made, for `greedy.construct`: running jobs go on; plain; random ones."""
        keeps = (0.0, 1.0) if self.keep else (0.0,)
        strengths = [(strength, 1.0) for strength in STRENGTHS] + list(CALM)
        random = [(keep, swap * self.swap, draw * self.draw, self.late) for swap, draw in strengths for keep in keeps]
        return np.array([(1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), *random])


@dataclass(frozen=True, slots=True)
class Andreas:
    """The best of many random greedy schedules, by the proxy objective."""

    settings: AndreasSettings = field(default_factory=AndreasSettings)

    @property
    def name(self) -> str:
        """As users write it."""
        return "andreas"

    def decide(self, view: EnergyView) -> Deployment:
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
        hold = chosen.hold if (queue.stay >= 0).any() else 0.0
        draft = new_draft(queue, stream(chosen.seed, view.now_s))
        cost = construct(queue, draft, chosen.ways, chosen.max_iterations, hold, node_of, gpus_of)
        return Deployment(node_of, gpus_of), float(cost)


def stream(seed: int, now_s: float) -> int:
    """Where the random numbers of a call begin: told by the seed and the instant alone.

    >>> stream(0, 300.0) == stream(0, 300.0), stream(0, 300.0) == stream(1, 300.0)
    (True, False)
    """
    instant: int = struct.unpack("<Q", struct.pack("<d", now_s + 0.0))[0]
    return (seed * PRIMES[0] + instant * PRIMES[1]) & MASK
