"""A window of rounds that leaves the shortest makespan behind it: the bound, and the programme that minimises it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
NODES = 50
"""Nodes that HiGHS may open: a limit that, unlike one of time, gives the same answer on every machine."""


@dataclass(frozen=True, slots=True)
class Window:
    """Jobs and the rounds to plan.

    Attributes
    ----------
    left_s : (n,) remaining run times
    widths : (n,) GPUs
    gpus : of the cluster
    round_s : length of a round
    rounds : how many to plan
    running : (n,) whether a job runs in the round before
    restart_s : what a job loses that starts after a round without GPUs
    """

    left_s: Floats
    widths: NDArray[np.int64]
    gpus: int
    round_s: float
    rounds: int
    running: Bools
    restart_s: float = 0.0

    def bound_s(self, left_s: Floats) -> float:
        """What no schedule of remaining times (n,) can beat, seconds. Shockwave, equation 10.

        >>> Window(np.array([9.0, 4.0]), np.array([1, 3]), 4, 1.0, 1, np.zeros(2, bool)).bound_s(np.array([9.0, 4.0]))
        9.0
        """
        return max(float(self.widths @ left_s) / self.gpus, float(left_s.max(initial=0.0)))

    def bound_after_s(self, runs: Bools) -> float:
        """The bound at the end of the window if the jobs run so, (n, rounds), restarts included, seconds."""
        starts = (runs & ~np.column_stack([self.running, runs[:, :-1]])).sum(axis=1)
        run_s = self.round_s * runs.sum(axis=1) - self.restart_s * starts
        return self.bound_s(np.maximum(0.0, self.left_s - run_s))

    def chained(self, runs: Bools) -> Bools:
        """The rounds of a plan in an order that stops few jobs, (n, rounds): next what has most GPUs in common."""
        before, rest, order = self.running, list(range(runs.shape[1])), []
        while rest:
            order.append(max(rest, key=lambda column: float(self.widths @ (before & runs[:, column]))))
            rest.remove(order[-1])
            before = runs[:, order[-1]]
        return runs[:, order]


def best_rounds(window: Window) -> tuple[Bools | None, float]:
    """Which job runs in which round such that the bound after the window is least, (n, rounds), by HiGHS.

    Variables: a job runs in a round or not; progress of each job within what it has left; the bound z. Restarts are
    not part of it; the rounds are put in an order that has few.

    Returns
    -------
    The rounds, None where the limit was reached without any, and the least z that HiGHS could not rule out, seconds.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    jobs, rounds = len(window.left_s), window.rounds
    runs = jobs * rounds
    cost = np.zeros(runs + jobs + 1)
    cost[-1] = 1.0
    ceiling = np.concatenate([np.ones(runs), np.minimum(window.left_s / window.round_s, rounds), [np.inf]])
    answer = milp(
        cost,
        integrality=np.concatenate([np.ones(runs), np.zeros(jobs + 1)]),
        bounds=Bounds(np.zeros(runs + jobs + 1), ceiling),
        constraints=LinearConstraint(*_rows(window)),
        options={"node_limit": NODES},
    )
    proved = 0.0 if answer.mip_dual_bound is None else max(0.0, float(answer.mip_dual_bound))
    if answer.x is None:
        return None, proved * window.round_s
    return window.chained(answer.x[:runs].reshape(jobs, rounds) > 0.5), proved * window.round_s


def _rows(window: Window) -> tuple[object, Floats, Floats]:
    """Constraints in rounds: capacity, progress <= rounds run, z >= mean load left, z >= each job left."""
    from scipy.sparse import bmat, csr_array, eye_array, kron

    jobs, rounds = len(window.left_s), window.rounds
    left = window.left_s / window.round_s
    widths = window.widths.astype(np.float64)
    capacity = kron(widths.reshape(1, jobs), eye_array(rounds))
    ran = kron(eye_array(jobs), np.ones((1, rounds)))
    one = csr_array(np.ones((jobs, 1)))
    rows = bmat(
        [
            [capacity, None, None],
            [-ran, eye_array(jobs), None],
            [None, csr_array(widths.reshape(1, jobs) / window.gpus), csr_array([[1.0]])],
            [None, eye_array(jobs), one],
        ],
        format="csr",
    )
    load = float(widths @ left) / window.gpus
    low = np.concatenate([np.full(rounds + jobs, -np.inf), [load], left])
    high = np.concatenate([np.full(rounds, float(window.gpus)), np.zeros(jobs), np.full(1 + jobs, np.inf)])
    return rows, low, high
