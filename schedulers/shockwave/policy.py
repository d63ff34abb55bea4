"""Shockwave: plans a window of rounds by equation 11, follows the plan, and plans anew when something happens.

Zheng et al., "Shockwave: Fair and Efficient Cluster Scheduling for Dynamic Adaptation in Machine Learning", NSDI 2023.

Budgets of jobs: their finish-time fairness, forecast over each job's own life. Shockwave, equation 9.

What is left of jobs if forecasts of their regimes are wrong: slower or faster, so that the makespan is hedged.

Equation 10 takes the larger of mean load and longest job. A load forecast too high would hide a long job that cannot
wait, one too low costs nothing. So the longest job is measured at its slowest, the load at its fastest.
"""

from collections import deque
from collections.abc import Sequence
from math import inf
from time import perf_counter

import numpy as np

from jobcast.domain.jobs import Job
from jobcast.domain.rounding import rounded, rounded_all
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.run_times import RunTimes
from jobcast.schedulers.shockwave.programme import Programme
from jobcast.schedulers.shockwave.solver import Limits, Solution, share_lost, solve
from jobcast.schedulers.shockwave.work import Floats, work_of


class Budgets:
    """Keeps how contended each job's life was, and with which fairness it was started.

    A job that runs keeps at least the fairness that it was started with: it falls while it runs, and without that each
    new plan would stop whom the last one started, and scatter everybody's rounds.
    """

    def __init__(self) -> None:
        self._contended: dict[int, tuple[float, int]] = {}  # sum of jobs / GPUs, rounds; by seq
        self._kept: dict[int, float] = {}

    def observe(self, state: RoundState) -> None:
        """Take in a round: jobs that ask for GPUs / GPUs, for the jobs that live in it."""
        now = len(state.active) / state.total_gpus
        before = self._contended
        self._contended = {}
        for active in state.active:
            total, rounds = before.get(active.job.seq, (0.0, 0))
            self._contended[active.job.seq] = total + now, rounds + 1

    def contention(self, state: RoundState) -> Floats:
        """N_avg: mean jobs / GPUs over each job's life so far, at least 1, (n,)."""
        sums = np.array([self._contended[active.job.seq] for active in state.active])
        mean: Floats = np.maximum(1.0, sums[:, 0] / sums[:, 1])
        return mean

    def fairness(self, state: RoundState, left_s: Floats) -> Floats:
        """Rho of each job, (n,), from the seconds that it still runs, (n,).

        Attained service and waiting time together are the time since submission.
        """
        age_s = np.array([state.now_s - active.job.submit_s for active in state.active])
        total_s = left_s + np.array([active.run_s for active in state.active])
        rho = forecast_fairness(age_s, left_s, total_s, self.contention(state))
        kept = [self._kept.get(active.job.seq, 0.0) if active.running else 0.0 for active in state.active]
        # Rounded before it is compared: what is kept was rounded too.
        rho = np.maximum(rounded_all(rho), kept)
        self._kept = {active.job.seq: float(one) for active, one in zip(state.active, rho, strict=True)}
        return rho


def forecast_fairness(age_s: Floats, left_s: Floats, total_s: Floats, contention: Floats) -> Floats:
    """(L + W + R N) / (P N), equation 9.

    >>> forecast_fairness(np.array([600.0]), np.array([300.0]), np.array([400.0]), np.array([2.0])).tolist()
    [1.5]
    """
    rho: Floats = (age_s + left_s * contention) / (total_s * contention)
    return rho


def present_left_s(active: ActiveJob) -> float:
    """Seconds that a job still runs if it keeps its batch size; 0 for one that reports no epochs."""
    training, progress = active.job.training, active.progress
    if training is None or progress is None:
        return 0.0
    return (training.epochs - progress.epochs) * training.epoch_s[progress.batch_size]


def best_left_s(active: ActiveJob) -> float:
    """Seconds that a job still runs if it goes at its fastest from now on; infinite for one that reports no epochs."""
    training, progress = active.job.training, active.progress
    if training is None or progress is None:
        return inf
    return (training.epochs - progress.epochs) * min(training.epoch_s.values())


# Shockwave, section 6.1.
EXPONENT = 5.0
# Shockwave, appendix G. Section 6.1 says 20, which stops jobs a quarter more often on generated traces.
WINDOW_ROUNDS = 30
# Lambda, inside appendix G.2's range of 0.1 to 10. A round of D seconds of the job that decides the makespan is worth
# lambda D / Z0; one of an average job, of run time Z0 / N, at most rho^k D / (Z0 M FLOOR). So while rho^k stays below
# lambda M FLOOR, some hundreds, the deciding job goes first, and fairness arbitrates among the others; section 6.1's
# 1e-3 would hardly be felt. On four generated workloads 3 kept makespans as short as 10 and treated fewer jobs
# unfairly.
MAKESPAN = 3.0
# Utility before the first epoch, where all epochs are 1: log((FLOOR + UTIL) / (FLOOR + 1)). Finite at no progress, and
# never steep: a new job has no claim to a round at once, which costs a restart, and one near its end is not forsaken.
# On the same workloads smaller floors (a round's progress, 0.1, 0.3, 1) shared time more and treated more jobs
# unfairly.
FLOOR = 3.0
TIME_LIMIT_S = 60.0
# Urgencies and prices beyond it are taken to be as large: they would leave the range of numbers.
MOST_WEIGHT = 1e100
REACTIVE = "reactive"


class Shockwave:
    """Maximise Nash social welfare over a window, weighted by fairness^k, less the makespan. Shockwave, equation 11.

    Planned anew when jobs arrive or finish, when the plan has elapsed, and when a job changes its batch size (only
    `reactive`; a `lazy` one waits for the next of the others). GPUs that the plan leaves idle go to whom a round is
    worth most.

    Parameters
    ----------
    run_times : tells regimes that are left
    k : exponent of the fairness in the weights
    lam : weight of the makespan, lambda
    window : rounds to plan, T
    mode : reactive or lazy
    time_limit_s : of HiGHS in one solve; a guard, it is limited by nodes, which give the same answer everywhere
    """

    name = "shockwave"

    def __init__(
        self,
        run_times: RunTimes,
        *,
        k: float = EXPONENT,
        lam: float = MAKESPAN,
        window: int = WINDOW_ROUNDS,
        mode: str = REACTIVE,
        time_limit_s: float = TIME_LIMIT_S,
    ) -> None:
        self._run_times = run_times
        self._k, self._lam, self._window, self._mode = k, lam, window, mode
        self._limits = Limits(time_limit_s=time_limit_s)
        self._budgets = Budgets()
        self._planned: deque[frozenset[int]] = deque()
        self._worth: dict[int, float] = {}  # of a first round, a GPU, by seq
        self._known: frozenset[int] = frozenset()
        self._gaps: list[float] = []
        self._solve_s = 0.0

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Jobs of the plan's next round, and beside them whoever fits, the most valuable first."""
        if not state.active:
            return []
        self._budgets.observe(state)
        seqs = frozenset(active.job.seq for active in state.active)
        adapted = state.adapted and self._mode == REACTIVE
        # A plan is of these very jobs; a lazy one lives with other batch sizes.
        if adapted or not self._planned or seqs != self._known:
            self._plan(state)
        self._known = seqs
        now = self._planned.popleft()
        ranked = sorted(state.active, key=lambda active: self._rank(active, now))
        return first_fit((active.job for active in ranked), state.total_gpus)

    def figures(self) -> dict[str, float]:
        """Gaps of the solves (`solver.share_lost`), how many there were, and the seconds that they took together."""
        gaps = self._gaps or [0.0]
        return {
            "solver_gap_max": float(max(gaps)),
            "solver_gap_mean": float(np.mean(gaps)),
            "solves": float(len(self._gaps)),
            "solve_s_total": self._solve_s,
        }

    def _rank(self, active: ActiveJob, now: frozenset[int]) -> tuple[bool, float, int]:
        seq = active.job.seq
        return seq not in now, -self._worth[seq], seq

    def _plan(self, state: RoundState) -> None:
        begun_s = perf_counter()
        programme = self._programme(state)
        solution = solve(programme, self._limits)
        self._follow(state, solution)
        self._gaps.append(share_lost(programme, solution))
        self._solve_s += perf_counter() - begun_s

    def _follow(self, state: RoundState, solution: Solution) -> None:
        seqs = np.array([active.job.seq for active in state.active])
        self._planned = deque(frozenset(seqs[column].tolist()) for column in solution.runs.T)
        self._worth = dict(zip(seqs.tolist(), solution.slopes[:, 0].tolist(), strict=True))

    def _programme(self, state: RoundState) -> Programme:
        active = state.active
        epochs = [one.progress.epochs if one.progress is not None else self._fraction(one) for one in active]
        work = work_of([self._run_times.left(one) for one in active], epochs)
        rho = self._budgets.fairness(state, work.left_s)
        total_s = work.left_s + np.array([one.run_s for one in active])
        # The makespan sees the slowest that a job may go, its load the fastest: see above.
        cautious_s = np.maximum(work.left_s, [present_left_s(one) for one in active])
        eager_s = np.minimum(work.left_s, [best_left_s(one) for one in active])
        widths = np.array([one.job.gpus for one in active], dtype=np.int64)
        # Powers of unfairness may pass all numbers; they are cut right after.
        with np.errstate(over="ignore"):
            urgency = np.minimum(rho**self._k, MOST_WEIGHT)
        return Programme(
            work=work,
            cautious_s=cautious_s,
            loads=rounded_all(widths / state.total_gpus * eager_s / cautious_s),
            weights=rounded_all(urgency * np.array([one.job.weight for one in active])),
            floor=FLOOR,
            widths=widths,
            running=np.array([one.running for one in active], dtype=np.bool_),
            gpus=state.total_gpus,
            rounds=self._window,
            round_s=state.round_s,
            restart_s=state.restart_s,
            # Of nearly nothing left the price would be infinite.
            makespan_price=rounded(min(self._lam / max(float(total_s.sum()), 1.0 / MOST_WEIGHT), MOST_WEIGHT)),
        )

    def _fraction(self, active: ActiveJob) -> float:
        """Epochs done by a job that reports none: it runs a single one, of which its run time so far is a part."""
        left_s = sum(epochs * epoch_s for epochs, epoch_s, _ in self._run_times.left(active))
        return active.run_s / left_s
