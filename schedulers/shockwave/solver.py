"""Equation 11 solved: a relaxation tells counts and a bound, timetables follow, HiGHS closes what gap remains.

Timetables are compiled: from how many rounds to which ones, in few pieces. Importing numba takes a second, so only what
computes imports this file. Repairs a timetable where its longest job, which decides the makespan, lacks a round or was
cut in pieces.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.compiled import B1, B2, F1, F2, I1, njit, types
from jobcast.domain.rounding import ERROR, rounded, rounded_all
from jobcast.schedulers.highs import model_of, solver_of
from jobcast.schedulers.shockwave.programme import Programme
from jobcast.schedulers.shockwave.relaxation import Relaxed, relax

# Starts beyond the fewest possible that are told apart; more are charged as so many, so that the bound holds.
PIECES = 3


def improve(
    programme: Programme, incumbent: Bools, gap: float, nodes: int, time_limit_s: float
) -> tuple[Bools, float] | None:
    """A timetable (n, rounds), and what none exceeds, by branch and bound from an incumbent to a relative gap.

    Columns: x, a job runs in a round (binary); s, it starts there; y, it runs so many rounds in so many pieces (one of
    them a job); H, the makespan. Utility and time left belong to a y, so that equation 7 is exact, concave or not.
    Rows: capacity of each round; s_t >= x_t - x_(t-1); sum x, at most sum s, as y says; H at least the mean load and
    each job's time left. None where HiGHS found no timetable.
    """
    import highspy

    columns = _Columns(programme)
    options = {"mip_rel_gap": gap, "mip_max_nodes": nodes, "time_limit": time_limit_s}
    solver = solver_of(options)
    if solver.passModel(_model(programme, columns)) == highspy.HighsStatus.kError:
        return None  # numbers beyond what it reckons with; running it all the same would end the process
    start = highspy.HighsSolution()
    start.col_value = columns.values_of(incumbent).tolist()
    solver.setSolution(start)
    solver.run()
    info = solver.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    cells = programme.jobs * programme.rounds
    found = np.rint(solver.getSolution().col_value[:cells]).reshape(programme.jobs, programme.rounds)
    # Coefficients were rounded: the bound holds for the exact ones with this much added.
    rounding = ERROR * float(np.abs(columns.welfare).max(axis=1).sum())
    return found.astype(np.bool_), rounding - float(info.mip_dual_bound)


class _Columns:
    """Where columns lie, and what each y stands for."""

    def __init__(self, programme: Programme) -> None:
        rounds = programme.rounds
        extra = min(PIECES, (rounds + 1) // 2)
        self._programme = programme
        self.cells = programme.jobs * rounds
        self.options = (rounds + 1) * (extra + 1)
        self.first_y = 2 * self.cells
        self.last = self.first_y + programme.jobs * self.options
        self.counts: Ints = np.repeat(np.arange(rounds + 1), extra + 1)
        more = np.tile(np.arange(extra + 1), rounds + 1)
        # Nobody has more pieces than rounds.
        self.starts: Ints = np.minimum(more[None, :] + ~programme.running[:, None], self.counts[None, :])
        self.extra = extra
        # The last option stands for any number of further pieces.
        self.allowed: Ints = np.where(more[None, :] == extra, self.counts[None, :], self.starts)
        counts = np.broadcast_to(self.counts, self.starts.shape)
        self.welfare: Floats = rounded_all(programme.welfare_of(counts, self.starts))
        self.left_s: Floats = programme.held_left_s(counts, self.starts)

    def values_of(self, runs: Bools) -> Floats:
        """All columns for a timetable."""
        programme = self._programme
        values = np.zeros(self.last + 1)
        before = np.column_stack([programme.running, runs[:, :-1]])
        values[: self.cells] = runs.ravel()
        values[self.cells : 2 * self.cells] = (runs & ~before).ravel()
        counts, starts = runs.sum(axis=1), programme.starts(runs)
        # The first start of who did not run before is not counted; who never runs has none.
        more = np.clip(starts - ~programme.running, 0, self.extra)
        option = counts * (self.extra + 1) + more
        values[self.first_y + np.arange(programme.jobs) * self.options + option] = 1.0
        values[-1] = programme.makespan_s(programme.held_left_s(counts, starts))
        return values


def _rows(programme: Programme, columns: _Columns) -> tuple[Any, Floats, Floats]:
    """The matrix by columns, and the least and the greatest value of each row."""
    from scipy.sparse import bmat, csc_array, csr_array, diags_array, eye_array, kron

    jobs, rounds, gpus = programme.jobs, programme.rounds, float(programme.gpus)
    widths = programme.widths.astype(np.float64)
    each = kron(eye_array(jobs), np.ones((1, rounds)))
    step = kron(eye_array(jobs), diags_array([1.0, -1.0], offsets=[0, -1], shape=(rounds, rounds)))
    one = kron(eye_array(jobs), np.ones((1, columns.options)))
    counted = kron(eye_array(jobs), columns.counts[None, :])
    started = _by_job(columns.allowed.astype(np.float64))
    left = _by_job(columns.left_s)
    load = csr_array(programme.loads[None, :]) @ left
    rows = bmat(
        [
            [kron(widths[None, :], eye_array(rounds)), None, None, None],
            [step, -eye_array(columns.cells), None, None],
            [None, None, one, None],
            [each, None, -counted, None],
            [None, each, -started, None],
            [None, None, -left, csr_array(np.ones((jobs, 1)))],
            [None, None, -load, csr_array(np.ones((1, 1)))],
        ],
        format="csc",
    )
    ran_before = np.zeros((jobs, rounds))
    ran_before[:, 0] = programme.running
    open_below = np.full(rounds + columns.cells, -np.inf)
    low = np.concatenate([open_below, np.ones(jobs), np.zeros(jobs), np.full(jobs, -np.inf), np.zeros(jobs + 1)])
    once = np.concatenate([np.ones(jobs), np.zeros(2 * jobs)])
    high = np.concatenate([np.full(rounds, gpus), ran_before.ravel(), once, np.full(jobs + 1, np.inf)])
    return csc_array(rows), low, high


def _model(programme: Programme, columns: _Columns) -> Any:
    rows, low, high = _rows(programme, columns)
    cost = np.zeros(columns.last + 1)
    cost[columns.first_y : -1] = -columns.welfare.ravel()
    cost[-1] = programme.makespan_price
    # Starts and the makespan follow from the rest, so that only x and y need be whole.
    whole = np.ones_like(cost, dtype=np.bool_)
    whole[columns.cells : columns.first_y] = whole[-1] = False
    return model_of(cost, rows, low, high, np.concatenate([np.ones(columns.last), [np.inf]]), whole)


def _by_job(options: Floats) -> Any:
    """(n, n x options) with each job's options in its own columns."""
    from scipy.sparse import csr_array

    jobs, count = options.shape
    starts = count * np.arange(jobs + 1)
    return csr_array((options.ravel(), np.arange(jobs * count), starts), (jobs, jobs * count))


def timetable(programme: Programme, counts: Ints, urgency: Floats, fillers: Floats, hold: float) -> Bools:
    """Which job runs in which round, (n, rounds), if each is to run so many.

    In each round, first those without which the rounds owed would not fit into the rest of the window, then those that
    run on, then the most urgent; each as far as it fits. GPUs that stay idle go to jobs beyond their counts, those that
    run on first, then the best filler.

    Parameters
    ----------
    programme : jobs, widths, capacity
    counts : (n,) rounds that each job is to run
    urgency : (n,) who starts first
    fillers : (n, rounds) what each further round is worth, a GPU
    hold : how many times as urgent as a job that runs another must be to be served before it where not all can wait
    """
    rounds = programme.rounds
    useful = np.minimum(rounds, np.ceil(programme.cautious_s / programme.round_s - 1e-9).astype(np.int64) + 1)
    owed, fillers = counts.astype(np.int64), np.ascontiguousarray(fillers)
    runs: Bools = _filled(owed, urgency, fillers, hold, programme.running, useful, programme.widths, programme.gpus)
    return runs


@njit(I1(I1, F1), cache=True)
def _sorted_by(order: Ints, keys: Floats) -> Ints:
    """The same indexes by their keys, the smallest first; equal ones keep their order."""
    return order[np.argsort(keys[order], kind="mergesort")]


@njit(I1(I1, I1, I1, types.int64, types.int64), cache=True)
def _must(order: Ints, owed: Ints, widths: Ints, gpus: int, later: int) -> Ints:
    """Which jobs, of those in order, run now lest rounds owed do not fit into those that come later, (n,).

    Later rounds hold all that is owed only if for each k the rounds owed beyond the k-th of each job fit into all but k
    of them (Gale and Ryser): what does not must run now, first the jobs that are owed the most.
    """
    must = np.zeros(len(owed), dtype=np.int64)
    bound = 0  # GPUs of those that must run
    for level in range(later, -1, -1):
        # GPU-rounds that later rounds offer at this level, and what was forced already.
        lacking = -gpus * (later - level) - bound
        for job in order:
            lacking += widths[job] * max(0, owed[job] - level)
        for job in order:
            if lacking <= 0:
                break
            if owed[job] > level and must[job] == 0:
                must[job] = level + 1
                lacking -= widths[job]
                bound += widths[job]
    return must


@njit(types.int64(I1, I1, types.int64, B1), cache=True)
def _first_fit(order: Ints, widths: Ints, free: int, chosen: Bools) -> int:
    """Choose those that fit in order, some passed over; the GPUs that stay free."""
    for job in order:
        if widths[job] <= free:
            chosen[job] = True
            free -= widths[job]
    return free


@njit(I1(F1, B1, types.float64), cache=True)
def _by_urgency(urgency: Floats, running: Bools, hold: float) -> Ints:
    """Indexes, most urgent first; those that run count `hold` times, all before the others if it is infinite."""
    everybody = np.arange(len(urgency))
    if hold == np.inf:
        order: Ints = _sorted_by(_sorted_by(everybody, -urgency), (~running).astype(np.float64))
    else:
        order = _sorted_by(everybody, -urgency * np.where(running, hold, 1.0))
    return order


@njit(types.void(F2, I1, I1, I1, types.int64, B1, B1), cache=True)
def _fill_up(
    fillers: Floats, given: Ints, useful: Ints, widths: Ints, free: int, running: Bools, chosen: Bools
) -> None:
    """Choose jobs beyond their counts for GPUs that stay idle, of those that have had `given` rounds."""
    spare = np.flatnonzero(~chosen & (given < useful))
    worth = np.zeros(len(given))
    for job in spare:
        worth[job] = fillers[job, given[job]]
    spare = _sorted_by(_sorted_by(spare, -worth), (~running).astype(np.float64))
    _first_fit(spare, widths, free, chosen)


@njit(B2(I1, F1, F2, types.float64, B1, I1, I1, types.int64), cache=True)
def _filled(
    owed: Ints, urgency: Floats, fillers: Floats, hold: float, running: Bools, useful: Ints, widths: Ints, gpus: int
) -> Bools:
    """A timetable; `owed`, rounds that each job is still to run, changes."""
    jobs, rounds = fillers.shape
    runs, given = np.zeros((jobs, rounds), dtype=np.bool_), np.zeros(jobs, dtype=np.int64)
    for column in range(rounds):
        order = _by_urgency(urgency, running, hold)
        # Who has had its rounds comes last, as a filler.
        order = order[owed[order] > 0]
        must = _must(order, owed, widths, gpus, rounds - column - 1)
        # Stable sorts, the least important key first: must, running, width, urgency.
        order = _sorted_by(order, (-widths * (must > 0)).astype(np.float64))
        order = _sorted_by(order, (~running).astype(np.float64))
        order = _sorted_by(order, -must.astype(np.float64))
        chosen = np.zeros(jobs, dtype=np.bool_)
        free = _first_fit(order, widths, gpus, chosen)
        if free:
            _fill_up(fillers, given, useful, widths, free, running, chosen)
        runs[:, column] = chosen
        given += chosen
        owed = np.maximum(0, owed - chosen)
        running = chosen
    return runs


# Repairs at most; each shortens the time left of one job.
STEPS = 40


def repair(programme: Programme, runs: Bools, urgency: Floats, enough: float) -> tuple[Bools, float]:
    """Give the longest job rounds of less urgent ones while that is worth more, and what the timetable is then worth.

    Parameters
    ----------
    programme : what timetables are worth
    runs : (n, rounds) where to begin
    urgency : (n,) who gives way last
    enough : value that needs no more repair
    """
    value = programme.value(runs)
    for _ in range(STEPS):
        if value >= enough:
            break
        left_s = programme.held_left_s(runs.sum(axis=1), programme.starts(runs))
        longest = int(np.argmax(left_s))
        changed = [
            _with(programme, runs, longest, column, urgency) for column in np.flatnonzero(~runs[longest]).tolist()
        ]
        values = [programme.value(one) for one in changed]
        if not values:
            break
        best = int(np.argmax(rounded_all(np.array(values))))
        # No repair gains more than rounding: this is a local best.
        if rounded(values[best]) <= rounded(value):
            break
        runs, value = changed[best], values[best]
    return runs, value


def _with(programme: Programme, runs: Bools, job: int, column: int, urgency: Floats) -> Bools:
    """The timetable with a job in a round, the least urgent of that round giving way."""
    changed = runs.copy()
    changed[job, column] = True
    over = int(programme.widths[changed[:, column]].sum()) - programme.gpus
    others = np.flatnonzero(runs[:, column])
    for other in others[np.argsort(urgency[others], kind="stable")].tolist():
        if over <= 0:
            break
        changed[other, column] = False
        over -= int(programme.widths[other])
    return changed


# How many times as urgent as a job that runs another must be to be served before it where not all can wait; of the
# timetables that each makes, the best is taken.
HOLDS = (1.5, np.inf)
# Counts of rounds for which timetables are made.
CANDIDATES = 2
# Values that differ by less are the same.
NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Limits:
    """When HiGHS is asked, and for how long.

    Attributes
    ----------
    time_limit_s : of one solve; a guard, nodes end it first
    gap : relative gap that is good enough
    cells : jobs x rounds beyond which HiGHS is not asked
    nodes : of its search
    """

    time_limit_s: float
    gap: float = 0.005
    cells: int = 400
    nodes: int = 20


@dataclass(frozen=True, slots=True)
class Solution:
    """A timetable and how good it is.

    Attributes
    ----------
    runs : (n, rounds) whether a job runs in a round
    value : what it is worth, equation 11
    bound : what no timetable exceeds
    slopes, price : of the relaxation
    asked : whether HiGHS was asked
    """

    runs: Bools
    value: float
    bound: float
    slopes: Floats
    price: float
    asked: bool = False

    @property
    def gap(self) -> float:
        """What the timetable may lose, relative to its value; values are losses, at most 0."""
        lost = self.bound - self.value
        return 0.0 if lost < NOTHING else lost / max(abs(self.value), NOTHING)


def share_lost(programme: Programme, solution: Solution) -> float:
    """What the timetable may lose, relative to its value or to that of idling, whichever is larger.

    Values near 0, where all jobs are about to end, tell nothing as a measure; what idling would cost still does.
    """
    idle = programme.value(np.zeros_like(solution.runs))
    lost = solution.bound - solution.value
    return 0.0 if lost < NOTHING else lost / max(abs(solution.value), abs(idle), NOTHING)


def solve(programme: Programme, limits: Limits) -> Solution:
    """The best timetable found, and the bound."""
    relaxed = relax(programme)
    runs, value = incumbent(programme, relaxed, limits.gap)
    solution = Solution(runs, value, relaxed.bound, relaxed.slopes, relaxed.price)
    if solution.gap <= limits.gap or solution.runs.size > limits.cells:
        return solution
    solution = replace(solution, asked=True)
    answer = improve(programme, runs, limits.gap, limits.nodes, limits.time_limit_s)
    if answer is None:
        return solution
    improved, bound = answer
    # HiGHS counts with its own tolerances; what it found is priced by our own. Of two alike the first is taken.
    runs, value = max((runs, value), (improved, programme.value(improved)), key=lambda one: rounded(one[1]))
    return replace(solution, runs=runs, value=value, bound=min(bound, solution.bound))


def incumbent(programme: Programme, relaxed: Relaxed, gap: float) -> tuple[Bools, float]:
    """The best of some timetables, repaired where it is not within the gap, and its value."""
    made = []
    for counts in _best_counts(programme, relaxed):
        urgency = _worth(relaxed.slopes, counts)
        made += [(timetable(programme, counts, urgency, relaxed.slopes, hold), urgency) for hold in HOLDS]
    values = [programme.value(runs) for runs, _ in made]
    best = int(np.argmax(rounded_all(np.array(values))))
    enough = relaxed.bound - gap * abs(values[best])
    # Within the gap already, and repairs cost time.
    if values[best] >= enough:
        return made[best][0], values[best]
    return max((repair(programme, *one, enough) for one in made), key=lambda one: rounded(one[1]))


def _best_counts(programme: Programme, relaxed: Relaxed) -> list[Ints]:
    """Counts that would be worth most if each job ran in one piece, without repetition."""
    rows = np.arange(programme.jobs)
    distinct = {counts.tobytes(): counts for counts in relaxed.counts}

    def value(counts: Ints) -> float:
        makespan_s = programme.makespan_s(programme.left_after_s[rows, counts])
        return rounded(float(programme.gains[rows, counts].sum()) - programme.makespan_price * makespan_s)

    return sorted(distinct.values(), key=value, reverse=True)[:CANDIDATES]


def _worth(slopes: Floats, counts: Ints) -> Floats:
    """What a round of those that each job is to run is worth on average, a GPU, (n,)."""
    last = np.maximum(0, counts - 1)
    total = np.cumsum(slopes, axis=1)[np.arange(len(counts)), last]
    return rounded_all(total / (last + 1))
