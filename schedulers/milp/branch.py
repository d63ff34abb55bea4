"""Branch and bound on the programme: exact, in widening windows of starts, or on starts sized by duration."""

from time import perf_counter

import numpy as np

from jobcast.domain import tolerance
from jobcast.schedulers.milp.columns import Columns, Steps, sized_by_duration, with_tails
from jobcast.schedulers.milp.instance import Bools, Floats, Ints
from jobcast.schedulers.milp.ledger import Ledger
from jobcast.schedulers.milp.programme import build
from jobcast.schedulers.milp.relaxation import Relaxation
from jobcast.schedulers.milp.search import inserted

REACH_PER_GPU = 40
"""Steps of waiting a GPU of width that windows hold at first: wide jobs are those that wait."""
WIDER, LONGER = 2, 5
"""A window that was too small becomes so many times and so many steps larger."""


def worthwhile(ledger: Ledger, steps: Steps, relaxation: Relaxation) -> Bools:
    """Starts that a better schedule may have, by their reduced costs, and those of the best one; (n_starts,)."""
    most = ledger.cost - ledger.step - relaxation.bound + tolerance.COSTS
    open_: Bools = relaxation.reduced <= most
    open_[steps.at(ledger.start, ledger.instance)] = True
    return open_


def solve_sized(
    ledger: Ledger, steps: Steps, relaxation: Relaxation, starts_per_duration: int, until: float, seed: int
) -> None:
    """Better the best schedule among starts sized by duration, those of schedules known, and the relaxation's.

    Nothing is said about other starts: the bound stays that of the relaxation, which is over all of them.
    """
    offered = sized_by_duration(ledger.instance, steps, starts_per_duration)
    if relaxation.share is not None:
        offered |= relaxation.share > tolerance.COSTS
    offered &= worthwhile(ledger, steps, relaxation)
    offered[steps.at(ledger.start, ledger.instance)] = True
    columns = steps.columns(ledger.instance, offered)
    if len(columns) == len(ledger.instance) or (left_s := until - perf_counter()) <= 0:
        return
    programme = build(ledger.instance, columns, ledger.beta)
    solved = ledger.branch_and_bound(programme, columns.of(ledger.start), left_s, seed)
    if solved.values is not None:
        _offer(ledger, columns, solved.values[: len(columns)])


def solve_exactly(ledger: Ledger, steps: Steps, relaxation: Relaxation, until: float, seed: int) -> None:
    """Better schedule and bound over every step, until they meet or time is up.

    A window holds a job's first starts, and one column for all later ones, which makes a relaxation: its optimum is a
    bound, and the best schedule of all where no job starts beyond its window. Windows that were too small grow.
    """
    instance = ledger.instance
    reach = np.maximum(REACH_PER_GPU * instance.width, _latest(steps, relaxation, instance.submit))
    while not ledger.proved and (left_s := until - perf_counter()) > 0:
        columns = with_tails(instance, steps, worthwhile(ledger, steps, relaxation), reach)
        programme = build(instance, columns, ledger.beta)
        solved = ledger.branch_and_bound(programme, columns.of(ledger.start), left_s, seed)
        ledger.raise_bound(solved.bound)
        if solved.values is None:
            return
        late = _offer(ledger, columns, solved.values[: len(columns)])
        if solved.proved and not len(late):
            ledger.raise_bound(ledger.cost)
        reach[late] = WIDER * reach[late] + LONGER


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
