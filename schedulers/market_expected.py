"""The market under uncertainty: the policy that maximizes Nash social welfare in expectation, on toy state spaces.

Shockwave, section 4.3 and appendix F.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import comb, prod

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError
from jobcast.schedulers.market import check_wants, checked_budgets, cvxpy, maximize_welfare

# Rounds x joint states x allocations: beyond, toys end and minutes begin.
LARGEST_PROGRAMME = 50_000
# Probabilities below are the solver's dust; given ones may miss a sum of 1 by this.
SURE = 1e-6

Joint = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """A job's own states, such as (batch size, epochs done), and how it moves between them. Appendix F.

    Attributes
    ----------
    initial : (n_states,), probability of each state in the first round
    transitions : (n_states, units + 1, n_states), probability of the next state by state and units received
    gains : the same shape, utility of the move; what depends on the round needs the round in the state
    """

    initial: Floats
    transitions: Floats
    gains: Floats

    @property
    def rewards(self) -> Floats:
        """Expected gain in a state by units received, (n_states, units + 1)."""
        return np.asarray((self.transitions * self.gains).sum(axis=2))


@dataclass(frozen=True, slots=True)
class Expected:
    """A policy, by what it visits.

    Attributes
    ----------
    states, allocations : joint ones, a number for each job
    visits : (n_rounds, n_states, n_allocations), probability to be in a state and allocate so: pi of equation 6
    utilities : (n_jobs,), expected over all rounds
    """

    states: tuple[Joint, ...]
    allocations: tuple[Joint, ...]
    visits: Floats
    utilities: Floats

    def policy(self, at: int, state: Joint) -> dict[Joint, float]:
        """Probability of each allocation in a round and state, zeros left out; empty where the state is not reached."""
        visited = self.visits[at, self.states.index(state)]
        kept = {x: float(p) for x, p in zip(self.allocations, visited, strict=True) if p > SURE}
        return {x: p / sum(kept.values()) for x, p in kept.items()}


def solve_expected(chains: Sequence[Chain], units: int, rounds: int, budgets: ArrayLike | None = None) -> Expected:
    """Maximize `sum_i B_i log E[U_i]` over all policies. Shockwave, appendix F, equation 6.

    The programme is convex in what a policy visits, so that the best may draw lots. The paper limits itself to
    deterministic policies; the best of those is at most as good.

    Parameters
    ----------
    chains : of each job, independent of one another but for what they receive
    units : equal parts that the resource comes in, in each round
    rounds : decisions; T - 1 of the paper, whose last state decides nothing
    budgets : (n_jobs,); None: 1 each

    Raises
    ------
    ConfigError
        A budget is not above 0, probabilities are none, a job can gain nothing, the state space is too large, or CVXPY
        is not installed.
    JobcastError
        The solver gave up.
    """
    if not chains or units < 1 or rounds < 1:
        raise ConfigError(f"market: {len(chains)} jobs, {units} units and {rounds} rounds; give one or more of each")
    paid = checked_budgets(budgets, len(chains))
    for job, chain in enumerate(chains):
        _check(job, chain, units)
    alone = np.array([_most(chain, rounds) for chain in chains])
    check_wants(alone)
    # So many ways to give at most `units` to n jobs: comb(units + n, n).
    size = rounds * prod(len(chain.initial) for chain in chains) * comb(units + len(chains), units)
    if size > LARGEST_PROGRAMME:
        raise ConfigError(f"market: {size} rounds x states x allocations; take fewer, at most {LARGEST_PROGRAMME}")
    states = tuple(product(*(range(len(chain.initial)) for chain in chains)))
    allocations = tuple(x for x in product(range(units + 1), repeat=len(chains)) if sum(x) <= units)
    rewards = _joint_rewards(chains, states, allocations)
    visits = _optimal_visits(chains, allocations, rewards / alone[:, np.newaxis, np.newaxis], rounds, paid)
    return Expected(states, allocations, visits, np.einsum("isx,tsx->i", rewards, visits))


def _optimal_visits(
    chains: Sequence[Chain], allocations: Sequence[Joint], rewards: Floats, rounds: int, budgets: Floats
) -> Floats:
    """Equation 6: what is visited flows from round to round, (n_rounds, n_states, n_allocations)."""
    cp = cvxpy()
    moves = [
        _joint([chain.transitions[:, units, :] for chain, units in zip(chains, given, strict=True)])
        for given in allocations
    ]
    visits = [cp.Variable(rewards.shape[1:], nonneg=True) for _ in range(rounds)]
    reached = [_joint([chain.initial for chain in chains])]
    reached += [sum(move.T @ before[:, x] for x, move in enumerate(moves)) for before in visits[:-1]]
    flow = [cp.sum(now, axis=1) == arriving for now, arriving in zip(visits, reached, strict=True)]
    everywhere = sum(visits)
    maximize_welfare(cp.hstack([cp.sum(cp.multiply(gain, everywhere)) for gain in rewards]), budgets, flow)
    found: Floats = np.maximum(np.stack([now.value for now in visits]), 0.0)
    return found


def _joint(chances: Sequence[Floats]) -> Floats:
    """Probabilities of independent jobs together."""
    together = chances[0]
    for own in chances[1:]:
        together = np.asarray(np.kron(together, own), dtype=np.float64)
    return together


def _joint_rewards(chains: Sequence[Chain], states: Sequence[Joint], allocations: Sequence[Joint]) -> Floats:
    """Expected gain of each job, (n_jobs, n_states, n_allocations)."""
    at, given = np.array(states), np.array(allocations)
    return np.stack([chain.rewards[np.ix_(at[:, job], given[:, job])] for job, chain in enumerate(chains)])


def _most(chain: Chain, rounds: int) -> float:
    """Expected utility of a job that may take whatever it likes: backward induction."""
    ahead = np.zeros(len(chain.initial))
    # Backwards from the last round: the best of each state, whatever the others do.
    for _ in range(rounds):
        ahead = (chain.rewards + chain.transitions @ ahead).max(axis=1)
    return float(chain.initial @ ahead)


def _check(job: int, chain: Chain, units: int) -> None:
    states = len(chain.initial)
    shape = (states, units + 1, states)
    if not states or chain.transitions.shape != shape or chain.gains.shape != shape:
        shapes = f"{chain.transitions.shape} and gains of shape {chain.gains.shape}"
        raise ConfigError(f"market: job {job} has transitions of shape {shapes}; give {shape} for both")
    for name, chances in (("initial", chain.initial), ("transitions", chain.transitions)):
        if not ((chances >= 0.0).all() and (np.abs(chances.sum(axis=-1) - 1.0) <= SURE).all()):
            raise ConfigError(f"market: {name} of job {job} are no probabilities; give 0 or more, 1 in sum over states")
    if not (np.isfinite(chain.gains) & (chain.gains >= 0.0)).all():
        raise ConfigError(f"market: a gain of job {job} is negative or not finite; give 0 or more")
