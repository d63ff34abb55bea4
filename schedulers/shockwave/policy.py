"""Shockwave: plans a window of rounds by equation 11, carries the plan out, and plans anew when something happens.

Zheng et al., "Shockwave: Fair and Efficient Cluster Scheduling for Dynamic Adaptation in Machine Learning", NSDI 2023.

Budgets of jobs: their finish-time fairness, forecast over each job's own life. Shockwave, equation 9.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.jobs import Job
from jobcast.domain.rounding import rounded, rounded_all
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.round_policies import ShockwaveSettings
from jobcast.schedulers.run_times import RunTimes
from jobcast.schedulers.shockwave.programme import Programme, work_of
from jobcast.schedulers.shockwave.scaling import Numbers, best_columns, numbers_of, scaled
from jobcast.schedulers.shockwave.solver import Limits, share_lost, solve


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
    return (age_s + left_s * contention) / (total_s * contention)


@dataclass(frozen=True, slots=True)
class Claims:
    """What active jobs have left and are worth, (n,) each.

    Attributes
    ----------
    left_s : seconds that each still runs, as forecast
    most_s : what the makespan counts of it, where forecasts may be wrong
    least_s : what would be left by the shortest run time that was ever forecast of it
    budgets : rho^k times the job's own priority
    widths : GPUs
    running : whether it held its GPUs in the round before
    """

    left_s: Floats
    most_s: Floats
    least_s: Floats
    budgets: Floats
    widths: Ints
    running: Bools

    def at(self, gpus: Ints, speed: Floats, held: Bools) -> "Claims":
        """The same with other GPUs, on which jobs are so much faster, (n,) each; `held`: whether it holds these."""
        left_s, most_s, least_s = self.left_s / speed, self.most_s / speed, self.least_s / speed
        running = self.running & held
        return replace(self, left_s=left_s, most_s=most_s, least_s=least_s, widths=gpus, running=running)

    def binding(self, gpus: int, share: float, goes_on: Bools) -> Bools:
        """Jobs that may have at least a share of the makespan's bound left, equation 10: they cannot wait.

        The bound's longest job is the longest by `least_s`: where the forecast of a single one jumps for a while, those
        that in truth end last shall not have to wait. One that runs since it bound the makespan in the round before
        (`goes_on`, (n,)) may have a share of that share left, lest those at the line take turns.
        """
        bound_s = max(float(self.widths @ self.left_s) / gpus, float(self.least_s.max()))
        counted_s = self.most_s / np.where(goes_on & self.running, share, 1.0)
        return rounded_all(counted_s) >= rounded(share * bound_s)

    def order(self, binding: Bools, owed: Bools) -> Ints:
        """Indexes in the order in which jobs are served.

        First those that bind the makespan, the longest before the others; then those that are owed rounds, then the
        rest, by what a GPU-second of theirs is worth when they end: budget / GPU-time left. A job that runs counts
        `HOLD` times, and goes before its equals.
        """
        worth = self.budgets * np.where(self.running, HOLD, 1.0) / (self.left_s * self.widths)
        keys = -rounded_all(np.where(binding, self.most_s, worth))
        return np.lexsort((~self.running, keys, ~(owed | binding), ~binding))


# How many times as urgent as a job that runs another must be to take its place: a start costs a sixth of a round.
HOLD = 1.3
# Urgencies and prices beyond it are taken to be as large: they would leave the range of numbers.
MOST_WEIGHT = 1e100
MARKET = ("market_budget", "market_price", "market_rounds", "market_worth_last", "market_worth_next")
"""What a job's first plan says of it as a buyer of GPU-rounds: what it may spend, what one costs, rounds bought, and
what a GPU-round of the last and of the next one is worth to it. Shockwave, section 4: of goods that can be divided
last >= price >= next; a timetable deals whole rounds to whole gangs."""


class Shockwave:
    """Maximise Nash social welfare over a window, weighted by fairness^k, less the makespan. Shockwave, equation 11.

    Planned anew when jobs arrive or finish, when the plan has elapsed, and when a job changes its batch size (only
    `reactive`; a `lazy` one waits for the next of the others). A plan tells how many rounds of the window each job is
    owed. Which ones is open in equation 11: when a round begins, jobs that bind the makespan are served first, then
    who is owed rounds, by its worth at that instant; GPUs that stay free go to the others by theirs. See `Claims`.

    Parameters
    ----------
    run_times : tells regimes that are left, and how far they may be wrong
    settings : those of `ShockwaveSettings`. Solves are limited by nodes, which give the same answer everywhere:
        `time_limit_s` is a guard. Where `workers` is elastic, jobs that may scale have as many GPUs as a plan says, see
        `scaling`
    """

    name = "shockwave"

    def __init__(self, run_times: RunTimes, **settings: Any) -> None:
        self._run_times, own = run_times, ShockwaveSettings(**settings)
        self._k, self._lam, self._window, self._share, self._floor = own.k, own.lam, own.window, own.share, own.floor
        self._quantile, self._hedge, self._limits = own.quantile, own.hedge, Limits(own.time_limit_s)
        self._reactive, self._scales = own.mode == "reactive", own.workers == "elastic"
        self._gpus: dict[int, int] = {}  # that the last plan gives each job, by seq
        self._budgets = Budgets()
        self._owed: dict[int, int] = {}  # rounds, by seq
        self._bound: frozenset[int] = frozenset()  # seqs of the jobs that bound the makespan in the round before
        self._rounds_left = 0
        self._told: dict[int, tuple[float, float, float, float]] = {}  # run_s, and what is left of a job, by seq
        self._market: dict[int, tuple[float, ...]] = {}  # `MARKET`, by seq
        self._gaps: list[float] = []
        self._asked = 0
        self._solve_s = 0.0

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Jobs of the next round."""
        if not state.active:
            return []
        self._budgets.observe(state)
        claims, numbers = self._claims(state), numbers_of(state.active, self._scales)
        adapted = state.adapted and self._reactive
        # A plan is of these very jobs; a lazy one lives with other batch sizes.
        if adapted or not self._rounds_left or self._owed.keys() != {active.job.seq for active in state.active}:
            self._plan(state, claims, numbers)
        claims = claims.at(*numbers.at(self._columns(state, numbers)))
        owed = np.array([self._owed[active.job.seq] > 0 for active in state.active])
        goes_on = np.array([active.job.seq in self._bound for active in state.active])
        binding = claims.binding(state.total_gpus, self._share, goes_on)
        self._bound = frozenset(one.job.seq for one, binds in zip(state.active, binding.tolist(), strict=True) if binds)
        order = claims.order(binding, owed)
        jobs = (state.active[place].job for place in order.tolist())
        chosen = first_fit((job.on(self._gpus[job.seq]) for job in jobs), state.total_gpus)
        self._rounds_left -= 1
        for job in chosen:
            self._owed[job.seq] -= 1
        return chosen

    def figures(self) -> dict[str, float]:
        """Gaps of the solves (`solver.share_lost`), how many there were and how many HiGHS was asked, their seconds."""
        gaps = np.array(self._gaps or [0.0])
        return {
            "solver_gap_max": float(gaps.max()),
            "solver_gap_mean": float(gaps.mean()),
            "solver_gap_p95": float(np.quantile(gaps, 0.95)),
            "solves": float(len(self._gaps)),
            "solver_calls": float(self._asked),
            "solve_s_total": self._solve_s,
        }

    def job_columns(self) -> dict[str, dict[int, float]]:
        """`MARKET`, by seq."""
        return {name: {seq: of[at] for seq, of in self._market.items()} for at, name in enumerate(MARKET)}

    def _columns(self, state: RoundState, numbers: Numbers) -> Ints:
        """Where the GPUs that the last plan gives jobs stand, those asked for of who is new, (n,)."""
        given = (self._gpus.get(one.job.seq, one.job.gpus) for one in state.active)
        return np.array([numbers.column(row, gpus) for row, gpus in enumerate(given)], dtype=np.int64)

    def _plan(self, state: RoundState, claims: Claims, numbers: Numbers) -> None:
        begun_s = perf_counter()
        programme = self._programme(state, claims)
        columns = best_columns(programme, numbers, self._columns(state, numbers))
        self._gpus = dict(zip((one.job.seq for one in state.active), numbers.at(columns)[0].tolist(), strict=True))
        programme = scaled(programme, numbers, columns)
        solution = solve(programme, self._limits)
        counts = solution.runs.sum(axis=1).tolist()
        self._owed = {active.job.seq: count for active, count in zip(state.active, counts, strict=True)}
        self._rounds_left = self._window
        for row, (active, count) in enumerate(zip(state.active, counts, strict=True)):
            if active.job.seq not in self._market:
                worth = [np.nan, *solution.slopes[row].tolist(), 0.0]  # none before the first, nothing after the last
                bought = solution.price, float(count), worth[count], worth[count + 1]
                self._market[active.job.seq] = (float(claims.budgets[row]), *bought)
        self._gaps.append(share_lost(programme, solution))
        self._asked += solution.asked
        self._solve_s += perf_counter() - begun_s

    def _claims(self, state: RoundState) -> Claims:
        left_s, most_s, least_s = np.array([self._left(active) for active in state.active]).T
        # Powers of unfairness may pass all numbers; they are cut right after.
        with np.errstate(over="ignore"):
            urgency = np.minimum(self._budgets.fairness(state, left_s) ** self._k, MOST_WEIGHT)
        return Claims(
            left_s=left_s,
            most_s=most_s,
            least_s=least_s,
            budgets=rounded_all(urgency * np.array([one.job.weight for one in state.active])),
            widths=np.array([one.job.gpus for one in state.active], dtype=np.int64),
            running=np.array([one.running for one in state.active], dtype=np.bool_),
        )

    def _left(self, active: ActiveJob) -> tuple[float, float, float]:
        told = self._told.get(active.job.seq)
        # Who waits has as much left as before.
        if told is None or told[0] != active.run_s:
            left_s = self._run_times.remaining_s(active)
            most_s = self._run_times.at_most_s(active, self._quantile, self._hedge)
            least_s = left_s if told is None else min(left_s, told[3] - (active.run_s - told[0]))
            told = self._told[active.job.seq] = (active.run_s, left_s, most_s, least_s)
        return told[1:]

    def _programme(self, state: RoundState, claims: Claims) -> Programme:
        active = state.active
        epochs = [one.progress.epochs if one.progress is not None else self._fraction(one) for one in active]
        work = work_of([self._run_times.left(one) for one in active], epochs)
        total_s = claims.left_s + np.array([one.run_s for one in active])
        return Programme(
            work=work,
            cautious_s=claims.most_s,
            loads=rounded_all(claims.widths / state.total_gpus * claims.left_s / claims.most_s),
            # A budget buys the share that a job lacks: what is nearly over is not forsaken.
            weights=rounded_all(np.minimum(claims.budgets * total_s / claims.left_s, MOST_WEIGHT)),
            floor=self._floor,
            widths=claims.widths,
            running=claims.running,
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
