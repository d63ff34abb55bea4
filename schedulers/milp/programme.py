"""Columns as a programme for HiGHS: every job starts once, and capacity is kept at every step. SIA, Figure 19.

Then its linear relaxation by column generation, and HiGHS: a programme in, values and bounds out. Columns are
possible starts of jobs: every step, or steps as far apart as the job is long. SIA, appendix A: variables exist only
where a job may be active, and a job of ten hours has as many as one of ten minutes. A start is exact wherever it
lies, so that capacity is too; only how many starts are offered differs.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.errors import ConfigError
from jobcast.schedulers.highs import model_of, solver_of
from jobcast.schedulers.milp.instance import Instance

# Possible starts that an instance may have: about a gigabyte while they are priced.
MOST_STARTS = 10_000_000


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by (job, start), each job's starts ascending.

    Attributes
    ----------
    job, start : (n_columns,) which job, and the step that it starts at
    begin, end : (n_columns,) steps [begin, end) in which it is sure to hold its GPUs
    tail : (n_columns,) whether the column stands for all later starts as well, which hold less than it says
    """

    job: Ints
    start: Ints
    begin: Ints
    end: Ints
    tail: Bools

    def __len__(self) -> int:
        return len(self.job)

    def of(self, start: Ints) -> Floats:
        """Values of the columns in a schedule, (n_columns,): a start beyond all columns of its job is its tail."""
        chosen = self.start == start[self.job]
        values: Floats = (chosen | (self.tail & (start[self.job] >= self.start))).astype(np.float64)
        return values


@dataclass(frozen=True, slots=True)
class Steps:
    """Every possible start of every job.

    Attributes
    ----------
    job, start : (n_starts,)
    first : (n_jobs + 1,) where each job's starts begin, and their number last
    """

    job: Ints
    start: Ints
    first: Ints

    def at(self, start: Ints, instance: Instance) -> Ints:
        """Positions of the starts of a schedule, (n_jobs,)."""
        return self.first[:-1] + start - instance.submit

    def columns(self, instance: Instance, chosen: Bools) -> Columns:
        """Columns of the chosen starts."""
        job, start = self.job[chosen], self.start[chosen]
        return Columns(job, start, start, start + instance.duration[job], np.zeros(len(job), dtype=np.bool_))


def every_step(instance: Instance) -> Steps:
    """All starts from submission to cut-off. SIA, Figure 19, constraint 10. Raises ConfigError when they are many."""
    counts = instance.cutoff - instance.submit + 1
    if counts.sum() > MOST_STARTS:
        raise ConfigError(
            f"policy milp: {len(instance)} jobs have {counts.sum():,} possible starts, more than {MOST_STARTS:,}; "
            "take fewer jobs (--until, --limit), or round the trace to a coarser grid and --set grid_s"
        )
    first: Ints = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    job: Ints = np.repeat(np.arange(len(instance), dtype=np.int64), counts)
    start: Ints = np.arange(first[-1], dtype=np.int64) - first[job] + instance.submit[job]
    return Steps(job, start, first)


def sized_by_duration(instance: Instance, steps: Steps, starts_per_duration: int) -> Bools:
    """Starts offered, duration / `starts_per_duration` of the job apart, (n_starts,); submission and cut-off too."""
    apart = np.maximum(1, instance.duration // starts_per_duration)[steps.job]
    regular = (steps.start - instance.submit[steps.job]) % apart == 0
    offered: Bools = regular | (steps.start == instance.cutoff[steps.job])
    return offered


def with_tails(instance: Instance, steps: Steps, open_: Bools, reach: Ints) -> Columns:
    """Columns of the open starts within `reach` steps of waiting, and one a job for all open ones beyond.

    A tail is priced as the first of the starts that it stands for, and holds GPUs only while all of them would: the
    programme is then a relaxation, and exact where no tail is used. `open_` is (n_starts,), `reach` (n_jobs,).
    """
    near = steps.start - instance.submit[steps.job] <= reach[steps.job]
    far = np.flatnonzero(open_ & ~near)
    firsts = far[np.unique(steps.job[far], return_index=True)[1]]
    chosen = np.flatnonzero(open_ & near)
    at = np.sort(np.concatenate([chosen, firsts]))
    job, start, tail = steps.job[at], steps.start[at], ~near[at]
    # Between cut-off and first end all starts of the tail hold their GPUs.
    begin = np.where(tail, instance.cutoff[job], start)
    return Columns(job, start, begin, np.maximum(begin, start + instance.duration[job]), tail)


@dataclass(frozen=True, slots=True)
class Programme:
    """min cost x, rows within their limits. Columns: a start each, then with fairness one alpha a segment.

    A segment is a stretch of steps in which the same columns run. Rows: one a job, then capacities, then shares.

    Attributes
    ----------
    cost : (n,)
    matrix : (rows, n) by columns, scipy's csc_array
    low, high : (rows,)
    starts : how many of the columns are starts
    at, length : (n_segments,) first step and number of steps
    capacity_of, share_of : segment of each capacity row; (segment, pool) of each share row, (n, 2)
    """

    cost: Floats
    matrix: Any
    low: Floats
    high: Floats
    starts: int
    at: Ints
    length: Ints
    capacity_of: Ints
    share_of: Ints


def build(instance: Instance, columns: Columns, beta: float = 0.0) -> Programme:
    """The programme of some columns; without `beta` only the capacities that may be exceeded and tell something new."""
    from scipy.sparse import bmat, coo_array, csc_array

    # Between two begins or ends the same columns run: one row a stretch instead of one a step.
    segments = np.unique(np.concatenate([columns.begin, columns.end]))
    at, length = segments[:-1], np.diff(segments)
    low = np.searchsorted(at, columns.begin)
    high = np.searchsorted(at, columns.end)
    counts = high - low
    column = np.repeat(np.arange(len(columns)), counts)
    segment = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    width = instance.width[columns.job].astype(np.float64)
    runs = csc_array((width[column], (segment, column)), shape=(len(at), len(columns)))
    once = csc_array(
        (np.ones(len(columns)), (columns.job, np.arange(len(columns)))), shape=(len(instance), len(columns))
    )
    capacity_of = np.flatnonzero(_binding(instance, columns, low, high, len(at)))
    wait = (columns.start - instance.submit[columns.job]).astype(np.float64)
    limits = [np.ones(len(instance)), np.full(len(capacity_of), float(instance.gpus))]
    if beta <= 0:
        matrix = bmat([[once], [runs.tocsr()[capacity_of]]], format="csc")
        shares: Ints = np.zeros((0, 2), dtype=np.int64)
        cost = wait
    else:
        pools = np.flatnonzero(instance.quotas)
        shares = np.stack([np.tile(np.arange(len(at)), len(pools)), np.repeat(pools, len(at))], axis=1)
        rank = np.searchsorted(pools, instance.pool[columns.job])
        held = coo_array((width[column], (rank[column] * len(at) + segment, column)), shape=(len(shares), len(columns)))
        quotas = instance.quotas[shares[:, 1]].astype(np.float64)
        alpha = coo_array((-quotas, (np.arange(len(shares)), shares[:, 0])), shape=(len(shares), len(at)))
        matrix = bmat([[once, None], [runs.tocsr()[capacity_of], None], [held, alpha]], format="csc")
        limits.append(np.zeros(len(shares)))
        cost = np.concatenate([wait, beta * length])
    upper = np.concatenate(limits)
    lower = np.full(len(upper), -np.inf)
    lower[: len(instance)] = 1.0
    return Programme(cost, matrix, lower, upper, len(columns), at, length, capacity_of, shares)


def _binding(instance: Instance, columns: Columns, low: Ints, high: Ints, count: int) -> Bools:
    """Segments whose capacity may be exceeded, without those whose neighbour runs all that they run, (count,)."""
    width = instance.width[columns.job]
    same = columns.job[1:] == columns.job[:-1]
    # A job's starts overlap: it counts once in a segment, however many of them run there.
    fresh = low.copy()
    fresh[1:][same] = np.clip(high[:-1], low[1:], high[1:])[same]
    change = np.bincount(fresh, width, count + 1) - np.bincount(high, width, count + 1)
    over = np.cumsum(change)[:count] > instance.gpus
    some = high > low
    ends, begins = np.zeros(count + 1, dtype=np.bool_), np.zeros(count + 1, dtype=np.bool_)
    ends[high[some]] = True
    begins[low[some]] = True
    binding: Bools = over & ends[1:]  # where nothing ends, the next segment runs the same and more
    later = np.flatnonzero(binding)
    if len(later):
        opened = np.concatenate([[0], np.cumsum(begins)])
        since = np.concatenate([[1], opened[later[1:] + 1] - opened[later[:-1] + 1]])
        binding[later[since == 0]] = False  # where nothing began since the last one, that one ran the same and more
    return binding


# Below which HiGHS calls a solution optimal.
RELATIVE_GAP = 1e-6


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The linear programme's optimum: its cost, the columns' values and the rows' prices (0 or less for capacities)."""

    cost: float
    values: Floats
    prices: Floats


@dataclass(frozen=True, slots=True)
class Solved:
    """What branch and bound came to.

    Attributes
    ----------
    accepted : whether HiGHS took the schedule that it was handed: what it holds is feasible and costs no more
    values : (n_columns,) of the best solution, None where there is none
    bound : no solution of the programme costs less
    proved : whether the best solution is optimal
    """

    accepted: bool
    values: Floats | None
    bound: float
    proved: bool


def relax(programme: Programme, time_limit_s: float) -> Relaxed | None:
    """Solve the linear programme on one core; None when time is up."""
    import highspy

    solver = _solver(programme, time_limit_s, whole=False)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    solution = solver.getSolution()
    cost = float(solver.getInfo().objective_function_value)
    return Relaxed(cost, np.asarray(solution.col_value), np.asarray(solution.row_dual))


def branch_and_bound(programme: Programme, incumbent: Floats, time_limit_s: float) -> Solved:
    """Solve the programme in whole numbers on one core from an incumbent, the values of its starts (n_starts,).

    HiGHS takes a feasible one however little time it is given.
    """
    import highspy

    solver = _solver(programme, time_limit_s, whole=True)
    start = highspy.HighsSolution()
    start.col_value = np.concatenate([incumbent, _alphas(programme, incumbent)]).tolist()
    solver.setSolution(start)
    solver.run()
    info = solver.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    # HiGHS may repair an incumbent: what it then holds must not cost more.
    most = float(programme.cost @ np.asarray(start.col_value))
    accepted = found and info.objective_function_value <= most + RELATIVE_GAP * max(1.0, most)
    proved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    values = np.asarray(solver.getSolution().col_value) if found else None
    return Solved(accepted, values, float(info.mip_dual_bound), proved)


def _alphas(programme: Programme, incumbent: Floats) -> Floats:
    """The least alphas that a schedule allows, (n_segments,); none without fairness."""
    count = len(programme.cost) - programme.starts
    alphas = np.zeros(count)
    if count:
        rows = slice(len(programme.high) - len(programme.share_of), None)
        quotas = -programme.matrix[rows, programme.starts :].sum(axis=1)
        used = programme.matrix[rows, : programme.starts] @ incumbent
        np.maximum.at(alphas, programme.share_of[:, 0], used / quotas)
    return alphas


def _solver(programme: Programme, time_limit_s: float, *, whole: bool) -> Any:
    solver = solver_of({"mip_rel_gap": RELATIVE_GAP, "time_limit": time_limit_s})
    is_start = np.arange(len(programme.cost)) < programme.starts
    most = np.where(is_start, 1.0, np.inf)
    model = model_of(programme.cost, programme.matrix, programme.low, programme.high, most, is_start if whole else None)
    solver.passModel(model)
    return solver


# Starts of a job that join the programme in one round, the cheapest first.
NEW_STARTS = 12


@dataclass(frozen=True, slots=True)
class Relaxation:
    """What the linear relaxation tells.

    Attributes
    ----------
    bound : no schedule on the grid costs less; steps
    reduced : (n_starts,) a schedule with this start costs at least `bound` and this much
    share : (n_starts,) how much of its job begins at a start, adding up to 1 a job; None where time ended first
    """

    bound: float
    reduced: Floats
    share: Floats | None


def linear_relaxation(instance: Instance, steps: Steps, first: Bools, beta: float, until: float) -> Relaxation:
    """Bound from the starts `first` (n_starts,) on, joined round by round by those that prices show to be cheaper.

    The bound of a round is the Lagrangian one, which holds for any prices, so that the best so far is right when time
    ends (`until`, of `time.perf_counter`).
    """
    chosen = first.copy()
    best = Relaxation(0.0, (steps.start - instance.submit[steps.job]).astype(np.float64), None)
    while (left_s := until - perf_counter()) > 0:
        programme = build(instance, steps.columns(instance, chosen), beta)
        relaxed = relax(programme, left_s)
        if relaxed is None:
            return best
        price, bound = _priced(instance, steps, programme, relaxed, beta)
        cheapest = np.minimum.reduceat(price, steps.first[:-1])
        share = np.zeros(len(chosen))
        share[chosen] = relaxed.values[: programme.starts]
        bound += float(cheapest.sum())
        # Any prices give a valid bound, and later ones need not be better.
        best = max(Relaxation(bound, price - cheapest[steps.job], share), best, key=lambda one: one.bound)
        gains = relaxed.prices[: len(instance)][steps.job] - price
        # Columns that are in have no gain but rounding.
        gains[chosen] = 0.0
        if not (gains > tolerance.COSTS).any():
            return Relaxation(best.bound, best.reduced, share)
        chosen[_cheapest_new(steps, gains)] = True
    return best


def _priced(
    instance: Instance, steps: Steps, programme: Programme, relaxed: Relaxed, beta: float
) -> tuple[Floats, float]:
    """Cost of every start with the GPUs that it holds paid for, (n_starts,), and what the cluster's GPUs are worth."""
    jobs, capacities = len(instance), len(programme.capacity_of)
    per_step = np.zeros(len(programme.at))
    per_step[programme.capacity_of] = np.maximum(0.0, -relaxed.prices[jobs : jobs + capacities])
    worth = -instance.gpus * float(per_step.sum())
    by_pool = np.tile(per_step / programme.length, (len(instance.quotas), 1))
    if beta > 0:
        fair = np.zeros((len(programme.at), len(instance.quotas)))
        fair[programme.share_of[:, 0], programme.share_of[:, 1]] = np.maximum(0.0, -relaxed.prices[jobs + capacities :])
        asked = fair @ instance.quotas / programme.length
        fair *= np.minimum(1.0, beta / np.maximum(asked, beta))[:, None]  # alphas are free of charge at most to beta
        by_pool += (fair / programme.length[:, None]).T
    by_step = np.zeros((len(instance.quotas), instance.steps + 1))
    by_step[:, 1 : programme.length.sum() + 1] = np.repeat(by_pool, programme.length, axis=1)
    paid = np.cumsum(by_step, axis=1)
    job = steps.job
    pool, end = instance.pool[job], steps.start + instance.duration[job]
    held = instance.width[job] * (paid[pool, end] - paid[pool, steps.start])
    return steps.start - instance.submit[job] + held, worth


def _cheapest_new(steps: Steps, gains: Floats) -> Ints:
    """Positions of up to `NEW_STARTS` starts a job that gain most."""
    at = np.flatnonzero(gains > tolerance.COSTS)
    at = at[np.lexsort((-gains[at], steps.job[at]))]
    job = steps.job[at]
    rank = np.arange(len(at)) - np.searchsorted(job, job)
    return at[rank < NEW_STARTS]
