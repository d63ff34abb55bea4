"""The exact schedule of ANDREAS' appendix A, for small instances and as a bound, by HiGHS.

Filippini et al.: ANDREAS, FiCloud 2021, equations 3 to 4v. A column is a configuration (j, n, g) that can run; one that
a running job holds has the time that it still needs there. What the appendix needs further variables for is exact in
the cost of columns, since a job has one configuration or none: tau and tau-hat (4i, 4j), z as the sum of x over g (4a,
4c, 4d, 4e), and y, which prices nothing (4f to 4h are the capacity of a node).

The product of alpha and pi is linearised without big numbers. Columns of a node are sorted by what decides which one
counts: time, or cost as printed. A_k, from 0 to 1, tells whether the counted one is among the first k, alpha_k = A_k -
A_k-1. Rows A_k-1 <= A_k, alpha_k <= x_k (4m) and, for each job, its x among the first k <= A_k leave A one value for
whole x, so that it need not be whole itself; the last A of a node is w_n (4b, 4l).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.energy import POSTPONED, Deployment, EnergyView, stay_s
from jobcast.domain.errors import DecisionError
from jobcast.schedulers.energy.objective import (
    deployment_eur,
    postponed_eur,
    proxy_objective,
    startable_s,
    tardiness_eur,
)
from jobcast.schedulers.energy.settings import ExactSettings

# Columns of a node up to which its capacity is told of each prefix; else of all together, to keep matrices small.
MOST_PREFIXES = 400


class Columns(NamedTuple):
    """Configurations, sorted by node, then by what decides which one counts. All are (n_columns,).

    Attributes
    ----------
    job : index among the active
    node, gpus : where and how many
    stays : whether the job runs just so
    late_eur : omega_j tau_j
    pi_eur : pi_jn
    """

    job: Ints
    node: Ints
    gpus: Ints
    stays: NDArray[np.bool_]
    late_eur: Floats
    pi_eur: Floats


class Rows(NamedTuple):
    """Sparse rows, low <= matrix @ values <= high, as triplets.

    Attributes
    ----------
    row, column : (n_entries,)
    value : (n_entries,)
    low, high : (n_rows,)
    """

    row: Ints
    column: Ints
    value: Floats
    low: Floats
    high: Floats


def columns_of(view: EnergyView, *, as_printed: bool) -> Columns:
    """Every configuration of every active job; nodes beyond those that alike ones need are left out."""
    times_s = _times_s(view)
    job, node, gpu = np.nonzero(np.isfinite(times_s) & _reach(view, times_s))
    gpus, time = gpu + 1, times_s[job, node, gpu]
    here = view.active
    stays = (view.node_of[here][job] == node) & (view.gpus_of[here][job] == gpus)
    late = tardiness_eur(view, here[job], time)
    pi = deployment_eur(view.cluster, view.now_s, node, gpus, time)
    order = np.lexsort((pi, node) if as_printed else (pi, time, node))
    return Columns(job[order], node[order], gpus[order], stays[order], late[order], pi[order])


def _times_s(view: EnergyView) -> Floats:
    """(n_active, n_nodes, most_gpus) seconds on each node, `stay_s` where a job runs."""
    times_s = startable_s(view)[:, view.cluster.kind_of]
    node = view.node_of[view.active]
    runs = np.flatnonzero(node != POSTPONED)
    times_s[runs, node[runs], view.gpus_of[view.active][runs] - 1] = stay_s(view)[runs]
    return times_s


def alike(view: EnergyView) -> list[Ints]:
    """Nodes of each kind on which nothing runs, ascending: to exchange two of them changes nothing."""
    busy = np.unique(view.node_of[view.active])
    idle = np.setdiff1d(np.arange(len(view.cluster.kind_of)), busy)
    return [idle[view.cluster.kind_of[idle] == kind] for kind in range(len(view.cluster.kind_gpus))]


def _reach(view: EnergyView, times_s: Floats) -> NDArray[np.bool_]:
    """(n_active, n_nodes, 1) whether a node is not further down its row of alike ones than a job needs.

    Alike nodes are ordered by the first of their jobs, so the i-th job that can run on them is on one of the first i.
    """
    reach = np.ones(times_s.shape[:2], dtype=np.bool_)
    for nodes in alike(view):
        if len(nodes):
            rank = np.cumsum(np.isfinite(times_s[:, nodes[0]]).any(axis=1))
            reach[:, nodes] = np.arange(len(nodes)) < rank[:, None]
    return reach[:, :, None]


def costs_of(view: EnergyView, columns: Columns, rho: float) -> tuple[Floats, float]:
    """(2 n_columns,) cost of x and of A, EUR, and that of postponing every job, to which they add."""
    waits = postponed_eur(view, rho)
    # A_k counts up to the next column: its cost is the difference to that one's.
    ahead = np.where(_last(columns), 0.0, np.roll(columns.pi_eur, -1))
    return np.concatenate([columns.late_eur - waits[columns.job], columns.pi_eur - ahead]), float(waits.sum())


def rows_of(view: EnergyView, columns: Columns, used: int | None) -> Rows:
    """All constraints; `used`: how many nodes must be in use (4n), None: as many as pay."""
    blocks = [_one_each(columns), *_capacity(view, columns), *_chain(columns), _ordered(view, columns)]
    if used is not None:
        blocks.append(_forced(columns, used))
    starts = np.cumsum([0, *(len(block.low) for block in blocks)])
    return Rows(
        np.concatenate([block.row + start for block, start in zip(blocks, starts[:-1], strict=True)]),
        np.concatenate([block.column for block in blocks]),
        np.concatenate([block.value for block in blocks]),
        np.concatenate([block.low for block in blocks]),
        np.concatenate([block.high for block in blocks]),
    )


def _first(columns: Columns) -> NDArray[np.bool_]:
    """(n_columns,) whether a column is the first of its node."""
    first: NDArray[np.bool_] = np.diff(columns.node, prepend=np.nan) != 0
    return first


def _last(columns: Columns) -> NDArray[np.bool_]:
    """(n_columns,) whether a column is the last of its node."""
    last: NDArray[np.bool_] = np.diff(columns.node, append=np.nan) != 0
    return last


def _at_most(row: Ints, column: Ints, value: Floats, high: Floats) -> Rows:
    return Rows(row, column, value, np.full(len(high), -np.inf), high)


def _not_above(column: Ints, other: Ints) -> Rows:
    """Each of some columns is at most its other one."""
    row, one = np.arange(len(column)), np.ones(len(column))
    return _at_most(np.tile(row, 2), np.concatenate([column, other]), np.concatenate([one, -one]), np.zeros(len(row)))


def _one_each(columns: Columns) -> Rows:
    """A job has one configuration at most: 4a, 4c, 4d, 4e."""
    n = len(columns.job)
    return _at_most(columns.job, np.arange(n), np.ones(n), np.ones(len(np.bincount(columns.job))))


def _capacity(view: EnergyView, columns: Columns) -> Iterator[Rows]:
    """GPUs of a node suffice, 4f to 4h: among its first k columns those of A_k, which binds fractions more tightly."""
    n = len(columns.job)
    room = view.cluster.kind_gpus[view.cluster.kind_of].astype(np.float64)
    for begin, end in pairwise(np.append(np.flatnonzero(_first(columns)), n)):
        here = np.arange(begin, end)
        behind = here if len(here) <= MOST_PREFIXES else here[-1:]
        row, place = np.nonzero(here <= behind[:, None])
        yield _at_most(
            np.concatenate([row, np.arange(len(behind))]),
            np.concatenate([begin + place, n + behind]),
            np.concatenate([columns.gpus[begin + place], np.full(len(behind), -room[columns.node[begin]])]),
            np.zeros(len(behind)),
        )


def _chain(columns: Columns) -> Iterator[Rows]:
    """A is monotone, grows where x allows it, and is at least what any job has so far: 4b, 4k, 4l, 4m."""
    n = len(columns.job)
    x, a = np.arange(n), n + np.arange(n)
    follows = np.flatnonzero(~_first(columns))
    yield _at_most(
        np.concatenate([x, follows, x]),
        np.concatenate([a, a[follows] - 1, x]),
        np.concatenate([np.ones(n), -np.ones(len(follows)), -np.ones(n)]),
        np.zeros(n),
    )
    yield _not_above(a[follows] - 1, a[follows])
    row, column = _earlier(columns)
    yield _at_most(
        np.concatenate([row, x]),
        np.concatenate([column, a]),
        np.concatenate([np.ones(len(row)), -np.ones(n)]),
        np.zeros(n),
    )


def _earlier(columns: Columns) -> tuple[Ints, Ints]:
    """Pairs of a column and one of the same job and node that is not behind it, itself among them."""
    n = len(columns.job)
    order = np.lexsort((np.arange(n), columns.job, columns.node))
    new = (np.diff(columns.job[order], prepend=np.nan) != 0) | (np.diff(columns.node[order], prepend=np.nan) != 0)
    begin = np.flatnonzero(new)[np.cumsum(new) - 1]
    count = np.arange(n) - begin + 1
    row = np.repeat(np.arange(n), count)
    column = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + begin[row]
    return order[row], order[column]


def _ordered(view: EnergyView, columns: Columns) -> Rows:
    """Of alike nodes one is in use only if the one before it is; `_reach` orders them by the first of their jobs."""
    n = len(columns.job)
    last = {int(columns.node[place]): n + int(place) for place in np.flatnonzero(_last(columns))}
    pairs = [pair for nodes in alike(view) for pair in pairwise(last[node] for node in nodes.tolist() if node in last)]
    return _not_above(*np.array(pairs, dtype=np.int64).reshape(-1, 2).T[::-1])


def _forced(columns: Columns, used: int) -> Rows:
    """So many nodes are in use, w being the last A of each: 4n."""
    last = len(columns.job) + np.flatnonzero(_last(columns))
    count = np.array([float(used)])
    return Rows(np.zeros(len(last), dtype=np.intp), last, np.ones(len(last)), count, count)


# Costs are given to HiGHS in thousandths of a EUR, since its absolute gap is 1e-6 and an epoch may cost 1e-4 EUR.
SCALE = 1000.0
# Status of `scipy.optimize.milp`.
OUT_OF_TIME = 1


@dataclass(frozen=True, slots=True)
class Solved:
    """What a solve found.

    Attributes
    ----------
    deployment : the schedule
    objective : its cost by `proxy_objective`, EUR
    bound : no schedule that the settings allow costs less, EUR
    gap : (objective - bound) / objective, 0 where they are the same, within `tolerance.EUR`; 1 where nothing is proved
    """

    deployment: Deployment
    objective: float
    bound: float
    gap: float


@dataclass(frozen=True, slots=True)
class Exact:
    """The policy that solves the model at every call; for a handful of jobs and nodes."""

    name: ClassVar[str] = "exact"
    settings: ExactSettings = field(default_factory=ExactSettings)

    def schedule(self, view: EnergyView) -> Deployment:
        """The cheapest schedule found in the time."""
        return solve(view, self.settings).deployment


def solve(view: EnergyView, settings: ExactSettings) -> Solved:
    """The cheapest schedule by the proxy objective; of those that cost the same, one in which most jobs stay.

    A job without a due date costs nothing while it waits, so that it does for good unless `force_nodes` is set. Where
    the time is over before HiGHS finds any schedule, running jobs go on and the others wait, whatever `force_nodes`
    says. Raises DecisionError where HiGHS fails.
    """
    until_s = time.monotonic() + settings.time_limit_s
    columns = columns_of(view, as_printed=settings.as_printed)
    if not len(columns.job):
        return _solved(view, settings, _as_is(view), np.inf)
    cost, constant = costs_of(view, columns, settings.rho)
    # What stays is let off a little, so that it does wherever costs are the same; in all less than `tolerance.EUR`.
    stays = np.flatnonzero(columns.stays)
    cost[stays] -= np.full(len(stays), 0.5 * tolerance.EUR) / len(stays)
    rows = rows_of(view, columns, nodes_to_use(view) if settings.force_nodes else None)
    chosen, bound = _cheapest(cost * SCALE, rows, until_s)
    deployment = _as_is(view) if chosen is None else _deployment(view, columns, chosen)
    return _solved(view, settings, deployment, bound / SCALE + constant)


def nodes_to_use(view: EnergyView) -> int:
    """How many nodes can have a job each: min(N, J) of 4n, fewer where a job or node has no configuration."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    runs: NDArray[np.bool_] = np.isfinite(startable_s(view).min(axis=2))
    spread = maximum_bipartite_matching(csr_array(runs[:, view.cluster.kind_of]), perm_type="column")
    return int((spread >= 0).sum())


def _cheapest(cost: Floats, rows: Rows, until_s: float) -> tuple[Floats | None, float]:
    """The x of least cost, rounded, if any was found in the time, and a bound of the cost."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    n = len(cost) // 2
    matrix = csr_array((rows.value, (rows.row, rows.column)), shape=(len(rows.low), len(cost)))
    answer = milp(
        cost,
        integrality=np.repeat([1, 0], n),
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, rows.low, rows.high),
        # Never negative, however late it is.
        options={"time_limit": max(0.001, until_s - time.monotonic()), "mip_rel_gap": 0.0},
    )
    if answer.status > OUT_OF_TIME:
        raise DecisionError(f"policy exact: HiGHS does not solve the model: {answer.message}")
    # HiGHS has no bound where time ended before the root was solved.
    bound = -np.inf if answer.mip_dual_bound is None else float(answer.mip_dual_bound)
    return (None if answer.x is None else np.rint(answer.x[:n])), bound


def _deployment(view: EnergyView, columns: Columns, chosen: Floats) -> Deployment:
    node = np.full(len(view.active), POSTPONED, dtype=np.int64)
    gpus = np.zeros(len(view.active), dtype=np.int64)
    taken = np.flatnonzero(chosen)
    node[columns.job[taken]], gpus[columns.job[taken]] = columns.node[taken], columns.gpus[taken]
    return Deployment(node, gpus)


def _as_is(view: EnergyView) -> Deployment:
    """Running jobs go on, the others wait."""
    return Deployment(view.node_of[view.active].copy(), view.gpus_of[view.active].copy())


def _solved(view: EnergyView, settings: ExactSettings, deployment: Deployment, bound: float) -> Solved:
    """Priced; costs are never below 0, so neither is the bound."""
    objective = proxy_objective(view, deployment, settings.rho, as_printed=settings.as_printed)
    bound = min(max(0.0, bound), objective)
    gap = (objective - bound) / objective if objective - bound > tolerance.EUR else 0.0
    return Solved(deployment, objective, bound, gap)
