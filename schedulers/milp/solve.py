"""The oracle: a schedule of least total wait that starts no job after its cut-off, and a bound. SIA, appendix A."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from jobcast.domain.jobs import Job, Pool
from jobcast.schedulers.milp.branch import solve_exactly, solve_sized
from jobcast.schedulers.milp.columns import Steps, every_step
from jobcast.schedulers.milp.instance import Ints, make_instance
from jobcast.schedulers.milp.ledger import Ledger
from jobcast.schedulers.milp.relaxation import linear_relaxation
from jobcast.schedulers.milp.search import improved, inserted, plain_orders, relaxed_orders, virtual_clock_starts


@dataclass(frozen=True, slots=True)
class Settings:
    """How to plan.

    Attributes
    ----------
    grid_s : seconds of a time step
    beta : weight of fairness, the sum over steps of the largest share of its quota that any pool holds
    time_limit_s : for HiGHS, the linear relaxation included
    exact : offer every step as a start; else starts lie as far apart as the job is long / `starts_per_duration`
    starts_per_duration : starts offered in a stretch as long as the job
    search_tries : changes tried on the orders that incumbents are made from
    seed : of the search and of HiGHS
    """

    grid_s: float = 60.0
    beta: float = 0.0
    time_limit_s: float = 60.0
    exact: bool = False
    starts_per_duration: int = 4
    search_tries: int = 50_000
    seed: int = 0


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
    known = [instance.submit, ledger.start, *_offer_orders(ledger, orders)]
    first = np.zeros(len(steps.job), dtype=np.bool_)
    first[np.concatenate([steps.at(start, instance) for start in known])] = True
    relaxation = linear_relaxation(instance, steps, first, settings.beta, began + settings.time_limit_s)
    left_s = settings.time_limit_s - (perf_counter() - began)
    ledger.raise_bound(relaxation.bound)
    if relaxation.share is not None:
        orders += relaxed_orders(instance, steps, relaxation.share)
    _search(ledger, orders, settings)
    incumbent, until = ledger.cost, perf_counter() + left_s
    if not ledger.proved and settings.exact:
        solve_exactly(ledger, steps, relaxation, until, settings.seed)
    elif not ledger.proved:
        solve_sized(ledger, steps, relaxation, settings.starts_per_duration, until, settings.seed)
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
    if settings.search_tries and not ledger.proved:
        ledger.offer(improved(ledger.instance, orders[int(np.argmin(waits))], settings.search_tries, settings.seed))
