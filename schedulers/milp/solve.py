"""The oracle: a schedule of least total wait that starts no job after its cut-off, and a bound. SIA, appendix A.

Branch and bound is exact, in widening windows of starts, or on starts sized by duration; a ledger keeps what is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from time import perf_counter

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.jobs import Job, Pool
from jobcast.schedulers.milp.instance import Instance, make_instance
from jobcast.schedulers.milp.programme import (
    Columns,
    Programme,
    Relaxation,
    Solved,
    Steps,
    branch_and_bound,
    build,
    every_step,
    linear_relaxation,
    sized_by_duration,
    with_tails,
)
from jobcast.schedulers.milp.search import improved, inserted, plain_orders, relaxed_orders, virtual_clock_starts
from jobcast.schedulers.pool_policies import MilpSettings


def cost_of(instance: Instance, start: Ints, beta: float) -> float:
    """Total wait in steps, and beta times the sum over steps of the least alpha. SIA, Figure 19, line 8.

    Alpha is 0 or more, as the figure says, so that a step's is the largest share of its quota that any pool holds.
    """
    held = np.zeros((len(instance.quotas), instance.steps + 1))
    np.add.at(held, (instance.pool, start), instance.width)
    np.add.at(held, (instance.pool, start + instance.duration), -instance.width)
    # Pools without GPUs hold no share of anything.
    owned = instance.quotas > 0
    shares = np.cumsum(held, axis=1)[owned] / instance.quotas[owned, None]
    return float(instance.wait(start)) + beta * float(shares.max(axis=0).sum())


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
        # Waits are whole steps, so that a bound may be rounded up.
        whole = ceil(bound - tolerance.COSTS) if self.beta <= 0 else bound
        self.bound = max(self.bound, min(float(whole), self.cost))

    def branch_and_bound(self, programme: Programme, incumbent: Floats, time_limit_s: float) -> Solved:
        """Have a programme solved, and note its size."""
        self.variables, self.rows = max((self.variables, self.rows), (programme.starts, len(programme.high)))
        solved = branch_and_bound(programme, incumbent, time_limit_s)
        self.accepted &= solved.accepted
        return solved


# Steps of waiting a GPU of width that windows hold at first: wide jobs are those that wait.
REACH_PER_GPU = 40


def worthwhile(ledger: Ledger, steps: Steps, relaxation: Relaxation) -> Bools:
    """Starts that a better schedule may have, by their reduced costs, and those of the best one; (n_starts,)."""
    open_: Bools = relaxation.reduced <= ledger.cost - ledger.step - relaxation.bound + tolerance.COSTS
    open_[steps.at(ledger.start, ledger.instance)] = True
    return open_


def solve_sized(ledger: Ledger, steps: Steps, relaxation: Relaxation, starts_per_duration: int, until: float) -> None:
    """Better the best schedule among starts sized by duration, those of schedules known, and the relaxation's.

    Nothing is said about other starts: the bound stays that of the relaxation, which is over all of them.
    """
    offered = sized_by_duration(ledger.instance, steps, starts_per_duration)
    if relaxation.share is not None:
        offered |= relaxation.share > tolerance.COSTS
    offered &= worthwhile(ledger, steps, relaxation)
    offered[steps.at(ledger.start, ledger.instance)] = True
    columns = steps.columns(ledger.instance, offered)
    # One start a job: nothing is left to decide.
    if len(columns) == len(ledger.instance) or (left_s := until - perf_counter()) <= 0:
        return
    programme = build(ledger.instance, columns, ledger.beta)
    solved = ledger.branch_and_bound(programme, columns.of(ledger.start), left_s)
    if solved.values is not None:
        _offer(ledger, columns, solved.values[: len(columns)])


def solve_exactly(ledger: Ledger, steps: Steps, relaxation: Relaxation, until: float) -> None:
    """Better schedule and bound over every step, until they meet or time is up.

    A window holds a job's first starts, and one column for all later ones, which makes a relaxation: its optimum is a
    bound, and the best schedule of all where no job starts beyond its window. Windows that were too small grow.
    """
    instance = ledger.instance
    reach = np.maximum(REACH_PER_GPU * instance.width, _latest(steps, relaxation, instance.submit))
    while not ledger.proved and (left_s := until - perf_counter()) > 0:
        columns = with_tails(instance, steps, worthwhile(ledger, steps, relaxation), reach)
        programme = build(instance, columns, ledger.beta)
        solved = ledger.branch_and_bound(programme, columns.of(ledger.start), left_s)
        ledger.raise_bound(solved.bound)
        if solved.values is None:
            return
        late = _offer(ledger, columns, solved.values[: len(columns)])
        # No tail was used: the relaxation is the programme itself.
        if solved.proved and not len(late):
            ledger.raise_bound(ledger.cost)
        # A window that was too small becomes twice as large.
        reach[late] *= 2


def _latest(steps: Steps, relaxation: Relaxation, submit: Ints) -> Ints:
    """The longest wait of each job that the relaxation makes use of, (n_jobs,) steps."""
    latest = np.zeros(len(submit), dtype=np.int64)
    if relaxation.share is not None:
        used = np.flatnonzero(relaxation.share > tolerance.COSTS)
        np.maximum.at(latest, steps.job[used], steps.start[used] - submit[steps.job[used]])
    return latest


def _offer(ledger: Ledger, columns: Columns, values: Floats) -> Ints:
    """Offer a solution, and what its order gives with jobs moved forward; the jobs that start beyond their windows."""
    taken = values > 0.5
    start = np.zeros(len(ledger.instance), dtype=np.int64)
    start[columns.job[taken]] = columns.start[taken]
    late: Ints = columns.job[taken & columns.tail]
    if not len(late):
        ledger.offer(start)
    ledger.offer(inserted(ledger.instance, np.argsort(start, kind="stable")))
    return late


Settings = MilpSettings


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule and what is known of the best one.

    Attributes
    ----------
    start_s : (n_jobs,) seconds from the epoch, by seq
    total_wait_s : its total wait
    objective_s, bound_s : total wait + beta x (integral of alpha over time), and what no schedule on the grid is below
    gap : (objective_s - bound_s) / objective_s; 0 where proved best
    incumbent_s : objective of the best schedule before branch and bound
    fcfs_wait_s, virtual_clock_wait_s : total wait of FCFS, and of SIA_VC, on the grid
    solve_s : seconds that all of this took
    variables, rows : of the largest programme given to branch and bound
    accepted : whether HiGHS took the incumbent every time it was handed one
    """

    start_s: tuple[float, ...]
    total_wait_s: float
    objective_s: float
    bound_s: float
    gap: float
    incumbent_s: float
    fcfs_wait_s: float
    virtual_clock_wait_s: float
    solve_s: float
    variables: int
    rows: int
    accepted: bool


def plan(jobs: Sequence[Job], durations_s: Sequence[float], pools: Sequence[Pool], settings: Settings) -> Plan:
    """Plan all jobs of a run, given in order of `seq`, knowing all their futures.

    Schedules come from FCFS, SIA_VC, orders by rules of thumb and by the linear relaxation, and a search; the best is
    HiGHS's incumbent, and the result is never worse.

    Raises
    ------
    ConfigError
        A job's times do not lie on the grid, or it does not fit its pool.
    """
    began = perf_counter()
    instance = make_instance(jobs, durations_s, pools, settings.grid_s)
    if not jobs:
        return Plan((), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, True)
    steps = every_step(instance)
    ledger = Ledger(instance, settings.beta, instance.cutoff)
    virtual = virtual_clock_starts(instance)
    ledger.offer(virtual)
    incumbent = _solve(ledger, steps, settings)
    step_s, cost = settings.grid_s, ledger.cost
    return Plan(
        start_s=tuple((instance.origin_s + step_s * ledger.start).tolist()),
        total_wait_s=step_s * instance.wait(ledger.start),
        objective_s=step_s * cost,
        bound_s=step_s * ledger.bound,
        gap=(cost - ledger.bound) / cost if cost > ledger.bound else 0.0,
        incumbent_s=step_s * incumbent,
        fcfs_wait_s=step_s * instance.wait(instance.cutoff),
        virtual_clock_wait_s=step_s * instance.wait(virtual),
        solve_s=perf_counter() - began,
        variables=ledger.variables,
        rows=ledger.rows,
        accepted=ledger.accepted,
    )


def _solve(ledger: Ledger, steps: Steps, settings: Settings) -> float:
    """Better the best schedule and bound; the cost that branch and bound began with. The search has time of its own."""
    instance, began = ledger.instance, perf_counter()
    orders = list(plain_orders(instance))
    # Column generation begins with starts of schedules, so that it is feasible at once.
    known = [instance.submit, ledger.start, *_offer_orders(ledger, orders)]
    first = np.zeros(len(steps.job), dtype=np.bool_)
    first[np.concatenate([steps.at(start, instance) for start in known])] = True
    relaxation = linear_relaxation(instance, steps, first, settings.beta, began + settings.time_limit_s)
    # The search for incumbents is not charged to HiGHS.
    left_s = settings.time_limit_s - (perf_counter() - began)
    ledger.raise_bound(relaxation.bound)
    if relaxation.share is not None:
        orders += relaxed_orders(instance, steps, relaxation.share)
    _search(ledger, orders, settings)
    incumbent, until = ledger.cost, perf_counter() + left_s
    if not ledger.proved and settings.exact:
        solve_exactly(ledger, steps, relaxation, until)
    elif not ledger.proved:
        solve_sized(ledger, steps, relaxation, settings.starts_per_duration, until)
    return incumbent


def _offer_orders(ledger: Ledger, orders: Sequence[Ints]) -> list[Ints]:
    """Offer the schedules that orders give, and return them."""
    schedules = [inserted(ledger.instance, order) for order in orders]
    for schedule in schedules:
        ledger.offer(schedule)
    return schedules


def _search(ledger: Ledger, orders: Sequence[Ints], settings: Settings) -> None:
    """Offer what all orders give, and what comes of changing the one that waits least."""
    waits = [ledger.instance.wait(schedule) for schedule in _offer_orders(ledger, orders)]
    if not ledger.proved:
        ledger.offer(improved(ledger.instance, orders[int(np.argmin(waits))], settings.search_tries, settings.seed))
