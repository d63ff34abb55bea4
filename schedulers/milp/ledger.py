"""What is known so far: the best schedule and the best bound."""

from math import ceil

import numpy as np

from jobcast.domain import tolerance
from jobcast.schedulers.milp.highs import Solved, branch_and_bound
from jobcast.schedulers.milp.instance import Floats, Instance, Ints
from jobcast.schedulers.milp.programme import Programme


def cost_of(instance: Instance, start: Ints, beta: float) -> float:
    """Total wait in steps, and beta times the sum over steps of the least alpha. SIA, Figure 19, line 8.

    Alpha is 0 or more, as the figure says, so that a step's is the largest share of its quota that any pool holds.
    """
    wait = float(instance.wait(start))
    if beta <= 0:
        return wait
    held = np.zeros((len(instance.quotas), instance.steps + 1))
    np.add.at(held, (instance.pool, start), instance.width)
    np.add.at(held, (instance.pool, start + instance.duration), -instance.width)
    owned = instance.quotas > 0
    shares = np.cumsum(held, axis=1)[owned] / instance.quotas[owned, None]
    return wait + beta * float(shares.max(axis=0).sum())


class Ledger:
    """The best schedule and bound so far, in steps of waiting.

    Parameters
    ----------
    instance : what is planned
    beta : weight of fairness
    start : a first schedule, (n_jobs,)

    Attributes
    ----------
    start, cost : the best schedule, and what it costs
    bound : no schedule on the grid costs less
    variables, rows : of the largest programme given to branch and bound
    accepted : whether HiGHS took the incumbent every time
    """

    def __init__(self, instance: Instance, beta: float, start: Ints) -> None:
        self.instance, self.beta = instance, beta
        self.start, self.cost = start, cost_of(instance, start, beta)
        self.bound = 0.0
        self.variables = self.rows = 0
        self.accepted = True

    @property
    def proved(self) -> bool:
        """Whether nothing better can exist."""
        return self.cost - self.bound <= tolerance.COSTS

    @property
    def step(self) -> float:
        """By how much a better schedule is better at least: waits are whole steps."""
        return 1.0 if self.beta <= 0 else 0.0

    def offer(self, start: Ints) -> None:
        """Keep a schedule if it is better."""
        cost = cost_of(self.instance, start, self.beta)
        if cost < self.cost:
            self.start, self.cost = start.copy(), cost

    def raise_bound(self, bound: float) -> None:
        """Nothing costs less than this, unless it is the best schedule itself."""
        if bound <= self.bound:
            return
        whole = ceil(bound - tolerance.COSTS) if self.beta <= 0 else bound
        self.bound = min(float(whole), self.cost)

    def branch_and_bound(self, programme: Programme, incumbent: Floats, time_limit_s: float, seed: int) -> Solved:
        """Have a programme solved, and note its size."""
        if programme.starts > self.variables:
            self.variables, self.rows = programme.starts, len(programme.high)
        solved = branch_and_bound(programme, incumbent, time_limit_s, seed)
        self.accepted &= solved.accepted
        return solved
