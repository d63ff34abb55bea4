"""Open-shop scheduling: the least makespan over all active jobs.

A window of rounds is planned that leaves the shortest makespan behind it.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools, Floats
from jobcast.domain.jobs import Job
from jobcast.domain.rounding import rounded_all
from jobcast.domain.rounds import RoundState
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.run_times import RunTimes

# Nodes that HiGHS may open: a limit that, unlike one of time, gives the same answer on every machine.
NODES = 50


def makespan_bound_s(left_s: Floats, widths: NDArray[np.int64], gpus: int) -> float:
    """Seconds that no schedule of remaining times (n,) can beat: mean load or longest. Shockwave, equation 10."""
    return max(float(widths @ left_s) / gpus, float(left_s.max(initial=0.0)))


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
    restart_s: float

    def bound_s(self, left_s: Floats) -> float:
        """What no schedule of remaining times (n,) can beat, seconds.

        >>> left_s = np.array([9.0, 4.0])
        >>> Window(left_s, np.array([1, 3]), 4, 1.0, 1, np.zeros(2, bool), 0.0).bound_s(left_s)
        9.0
        """
        return makespan_bound_s(left_s, self.widths, self.gpus)

    def bound_after_s(self, runs: Bools) -> float:
        """The bound at the end of the window if the jobs run so, (n, rounds), restarts included, seconds."""
        starts = (runs & ~np.column_stack([self.running, runs[:, :-1]])).sum(axis=1)
        run_s = self.round_s * runs.sum(axis=1) - self.restart_s * starts
        return self.bound_s(np.maximum(0.0, self.left_s - run_s))

    def chained(self, runs: Bools) -> Bools:
        """The rounds of a plan in an order that stops few jobs, (n, rounds): next what has most GPUs in common."""
        # The bound at the end does not depend on the order of rounds, restarts do.
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
    # At the limit of nodes the bound may be below what can be: time left is never negative.
    proved_s = 0.0 if answer.mip_dual_bound is None else max(0.0, float(answer.mip_dual_bound)) * window.round_s
    if answer.x is None:
        return None, proved_s
    return window.chained(answer.x[:runs].reshape(jobs, rounds) > 0.5), proved_s


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


WINDOW_ROUNDS = 10
# Jobs x rounds that a programme holds at most; a larger one looks less far ahead, so that no solve takes long.
MOST_CHOICES = 4_000
# By how many rounds a waiting job must be longer to take a running one's place: so the time lost to restarts stays
# within some 3 % (20 s in 5 rounds of 120 s), the overhead that Shockwave, section 7, reports.
HOLD_ROUNDS = 5
ENOUGH_GAP = 0.01


class OpenShop:
    """Minimise the makespan of the active jobs. Shockwave, section 8.2, after Gonzalez and Sahni (1976).

    An open shop with preemption is as long as its longest job or as its busiest machine. For gangs that is the bound
    max(GPU time / GPUs, longest remaining time) of Shockwave's equation 10. A window of rounds is planned such that the
    bound at its end is least. The incumbent runs the longest remaining jobs first (LPT); where the bound of the whole,
    which no schedule can beat, shows that more than `gap` may be lost, HiGHS looks for a better window.

    Parameters
    ----------
    estimates : tells remaining run times
    window : rounds to plan ahead with HiGHS
    gap : share of the makespan that the incumbent may lose before HiGHS is asked

    Attributes
    ----------
    gap_max : the largest gap, relative to the makespan, that any round's plan was left with; each is an upper limit for
        what is left behind the window. Jobs that all end within it leave nothing, however late in it: the last `window`
        rounds are those of the longest first
    """

    name = "ossp"

    def __init__(self, estimates: RunTimes, window: int = WINDOW_ROUNDS, gap: float = ENOUGH_GAP) -> None:
        self._estimates = estimates
        self._window = window
        self._enough = gap
        self._planned: deque[frozenset[int]] = deque()
        self.gap_max = 0.0

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Jobs of the plan's round first, then the longest remaining ones that fit."""
        if not state.active:
            return []
        left_s = rounded_all(np.array([self._estimates.remaining_s(active) for active in state.active]))
        # A plan holds for known jobs only, and no longer than its rounds.
        if state.changed or not self._planned:
            self._planned = deque(self._plan(state, left_s))
        now = self._planned.popleft()
        running = np.array([active.running for active in state.active])
        order = longest_first(left_s, running, HOLD_ROUNDS * state.round_s)
        jobs = [state.active[index].job for index in order]
        return first_fit(sorted(jobs, key=lambda job: job.seq not in now), state.total_gpus)

    def figures(self) -> dict[str, float]:
        """The largest gap that a plan was left with."""
        return {"solver_gap_max": self.gap_max}

    def _plan(self, state: RoundState, left_s: NDArray[np.float64]) -> list[frozenset[int]]:
        """Jobs of the next rounds as HiGHS has them; nobody in particular where the incumbent stands."""
        rounds = max(1, min(self._window, MOST_CHOICES // len(state.active)))
        widths = np.array([active.job.gpus for active in state.active])
        running = np.array([active.running for active in state.active])
        window = Window(left_s, widths, state.total_gpus, state.round_s, rounds, running, state.restart_s)
        incumbent_s = window.bound_after_s(_incumbent(window, [active.job for active in state.active]))
        # No schedule takes more off the bound than the rounds themselves last.
        span_s = rounds * state.round_s
        whole_s = max(span_s, window.bound_s(left_s))
        at_best_s = whole_s - span_s
        if incumbent_s - at_best_s <= self._enough * whole_s:
            self._note((incumbent_s - at_best_s) / whole_s)
            return [frozenset()] * rounds
        better, proved_s = best_rounds(window)
        found_s = incumbent_s if better is None else min(incumbent_s, window.bound_after_s(better))
        self._note((found_s - max(proved_s, at_best_s)) / whole_s)
        # Nobody in particular: then the longest jobs go first, which is the incumbent.
        if better is None or found_s >= incumbent_s:
            return [frozenset()] * rounds
        seqs = np.array([active.job.seq for active in state.active])
        return [frozenset(seqs[column].tolist()) for column in better.T]

    def _note(self, gap: float) -> None:
        self.gap_max = max(self.gap_max, gap)


def longest_first(left_s: NDArray[np.float64], running: NDArray[np.bool_], hold_s: float) -> list[int]:
    """Indexes by remaining time, longest first; running jobs count as longer by `hold_s`, ties go by index."""
    order: list[int] = np.argsort(-(left_s + hold_s * running), kind="stable").tolist()
    return order


def _incumbent(window: Window, jobs: Sequence[Job]) -> NDArray[np.bool_]:
    """Which job runs in which round if the longest go first, (n, rounds)."""
    runs = np.zeros((len(jobs), window.rounds), dtype=np.bool_)
    left_s, running = window.left_s.copy(), window.running
    place = {job.seq: index for index, job in enumerate(jobs)}
    for column in range(window.rounds):
        order = longest_first(left_s, running, HOLD_ROUNDS * window.round_s)
        # Who is done takes no more GPUs in later rounds of the window.
        chosen = first_fit((jobs[index] for index in order if left_s[index] > 0), window.gpus)
        runs[[place[job.seq] for job in chosen], column] = True
        lost_s = window.restart_s * (runs[:, column] & ~running)
        running = runs[:, column]
        left_s = np.maximum(0.0, left_s - window.round_s * running + lost_s)
    return runs
