"""The exact schedule of ANDREAS' appendix A, for small instances and as a bound, by HiGHS.

Filippini et al.: ANDREAS, FiCloud 2021, equations 3 to 4v; `exact_model` holds the linearisation.
"""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.energy import POSTPONED, Deployment, EnergyView, Floats
from jobcast.domain.errors import DecisionError
from jobcast.schedulers.energy.exact_model import Columns, Rows, columns_of, costs_of, rows_of
from jobcast.schedulers.energy.objective import proxy_objective, startable_s
from jobcast.schedulers.energy.settings import ExactSettings

SAME_EUR = 1e-6
"""Costs closer than this are the same, and the one in which more jobs stay is taken."""
SCALE = 1000.0
"""Costs are given to HiGHS in thousandths of a EUR, since its absolute gap is 1e-6 and an epoch may cost 1e-4 EUR."""
UNFORCED = ExactSettings(force_nodes=False)
"""A single call by equation 1 alone."""
OUT_OF_TIME = 1
"""Status of `scipy.optimize.milp`."""


@dataclass(frozen=True, slots=True)
class Solved:
    """What a solve found.

    Attributes
    ----------
    deployment : the schedule
    objective : its cost by `proxy_objective`, EUR
    bound : no schedule that the settings allow costs less, EUR
    gap : (objective - bound) / objective, 0 where they are the same, within `SAME_EUR`; 1 where nothing is proved
    """

    deployment: Deployment
    objective: float
    bound: float
    gap: float


@dataclass(frozen=True, slots=True)
class Exact:
    """The policy that solves the model at every call; for a handful of jobs and nodes."""

    settings: ExactSettings = UNFORCED

    @property
    def name(self) -> str:
        """As users write it."""
        return "exact"

    def schedule(self, view: EnergyView) -> Deployment:
        """The cheapest schedule found in the time."""
        return solve(view, self.settings).deployment


def solve(view: EnergyView, settings: ExactSettings | None = None) -> Solved:
    """The cheapest schedule by the proxy objective; of those that cost the same, one in which most jobs stay.

    A job without a due date costs nothing while it waits, so that it does for good unless `force_nodes` is set. Where
    the time is over before HiGHS finds any schedule, running jobs go on and the others wait, whatever `force_nodes`
    says. Raises DecisionError where HiGHS fails.
    """
    settings = settings or UNFORCED
    until_s = time.monotonic() + settings.time_limit_s
    columns = columns_of(view, as_printed=settings.as_printed)
    if not len(columns.job):
        return _solved(view, settings, _as_is(view), np.inf)
    cost, constant = costs_of(view, columns, settings.rho)
    cost[: len(columns.job)] -= _staying_eur(view) * columns.stays
    rows = rows_of(view, columns, nodes_to_use(view) if settings.force_nodes else None)
    chosen, bound = _cheapest(cost * SCALE, rows, until_s)
    deployment = _as_is(view) if chosen is None else _deployment(view, columns, chosen)
    return _solved(view, settings, deployment, bound / SCALE + constant)


def _staying_eur(view: EnergyView) -> float:
    """What a job that stays is let off, so that it does wherever costs are the same; below `SAME_EUR` altogether."""
    return 0.5 * SAME_EUR / max(1, int((view.node_of[view.active] != POSTPONED).sum()))


def nodes_to_use(view: EnergyView) -> int:
    """How many nodes can have a job each: min(N, J) of 4n, fewer where a job or node has no configuration."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not len(view.active):
        return 0
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
        options={"time_limit": max(0.001, until_s - time.monotonic()), "mip_rel_gap": 0.0},
    )
    if answer.status > OUT_OF_TIME:
        raise DecisionError(f"policy exact: HiGHS does not solve the model: {answer.message}")
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
    gap = (objective - bound) / objective if objective - bound > SAME_EUR else 0.0
    return Solved(deployment, objective, bound, gap)
