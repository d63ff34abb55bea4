"""The Volatile Fisher Market: jobs buy GPUs round by round from one budget for all rounds, at prices that clear.

Shockwave, section 4 and appendices C to E, solved as the Eisenberg-Gale programme. For small instances: tests and
notebooks hold the scheduler's promises against it. Every resource is one divisible unit a round, as in the paper.

What a job gains from resources in a round: the utilities of the Volatile Fisher Market.

Shockwave, appendix C; Themis and Gavel are linear, DRF is Leontief.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Bools, Floats
from jobcast.domain.errors import ConfigError, JobcastError


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of instantaneous utilities; `c` are its coefficients, (n_jobs, n_resources, n_rounds).

    Attributes
    ----------
    check : c -> None; raises ConfigError at one that means nothing
    value : c, allocation of the same shape -> utility over time, (n_jobs,)
    unit_costs : c, prices (n_resources, n_rounds) -> cost of one unit of utility, (n_jobs, n_ways)
    useful : c -> whether a job has any use for a resource in a round, of the shape of c
    programme : CVXPY, c, utilities of all resources (n_jobs,) -> utilities as shares of those, an expression, and the
        use of each resource, expressions (n_jobs, n_rounds)
    """

    check: Callable[[Floats], None]
    value: Callable[[Floats, Floats], Floats]
    unit_costs: Callable[[Floats, Floats], Floats]
    useful: Callable[[Floats], Bools]
    programme: Callable[[Any, Floats, Floats], tuple[Any, list[Any]]]


def _check_linear(u: Floats) -> None:
    for job, resource, at in np.argwhere(~(np.isfinite(u) & (u >= 0.0))):
        raise ConfigError(f"{_where(job, resource, at)} is {u[job, resource, at]:g}; give a finite one, 0 or more")


def _check_leontief(a: Floats) -> None:
    for job, resource, at in np.argwhere(~(a >= 0.0)):
        raise ConfigError(f"{_where(job, resource, at)} is {a[job, resource, at]:g}; give 0 or more, inf for no use")
    for job, at in np.argwhere((a == 0.0).all(axis=1)):
        raise ConfigError(f"market: job {job} needs no resource in round {at}; give it one above 0, inf for no use")


def _where(job: int, resource: int, at: int) -> str:
    return f"market: the coefficient of job {job}, resource {resource}, round {at}"


def _linear_costs(u: Floats, prices: Floats) -> Floats:
    costs: Floats = np.divide(prices, u, out=np.full(u.shape, np.inf), where=u > 0.0)
    return costs.reshape(len(u), -1)


def _linear_programme(cp: Any, u: Floats, alone: Floats) -> tuple[Any, list[Any]]:
    """Variables: what each job buys."""
    uses = [cp.Variable(u[:, 0].shape, nonneg=True) for _ in range(u.shape[1])]
    gains = u / alone[:, np.newaxis, np.newaxis]
    return sum(cp.sum(cp.multiply(gains[:, j], use), axis=1) for j, use in enumerate(uses)), uses


def _usable(a: Floats) -> Bools:
    """Rounds in which a job can gain, (n_jobs, n_rounds)."""
    return np.asarray(np.isfinite(a).all(axis=1))


def _leontief_value(a: Floats, allocation: Floats) -> Floats:
    gains = np.divide(allocation, a, out=np.full(a.shape, np.inf), where=a > 0.0)
    return np.asarray(gains.min(axis=1).sum(axis=1))


def _leontief_costs(a: Floats, prices: Floats) -> Floats:
    """Prices times demands, appendix D.2; inf where any demand is, at price 0 too."""
    return np.where(_usable(a), np.einsum("ijt,jt->it", a, prices), np.inf)


def _leontief_programme(cp: Any, a: Floats, alone: Floats) -> tuple[Any, list[Any]]:
    """Variables: what each job gains in each round, as a share of all it can; it buys just what that needs."""
    usable = _usable(a)
    gains = cp.Variable(usable.shape, nonneg=True)
    needs = np.where(usable[:, np.newaxis], a, 0.0) * alone[:, np.newaxis, np.newaxis]
    return cp.sum(cp.multiply(usable, gains), axis=1), [cp.multiply(needs[:, j], gains) for j in range(a.shape[1])]


KINDS = {
    "linear": Kind(
        check=_check_linear,
        value=lambda u, allocation: np.asarray((u * allocation).sum(axis=(1, 2))),
        unit_costs=_linear_costs,
        useful=lambda u: u > 0.0,
        programme=_linear_programme,
    ),
    "leontief": Kind(
        check=_check_leontief,
        value=_leontief_value,
        unit_costs=_leontief_costs,
        useful=lambda a: np.broadcast_to(_usable(a)[:, np.newaxis], a.shape),
        programme=_leontief_programme,
    ),
}


# Clarabel's tolerances. Welfare is flat at its top: utilities are as accurate as the square root of the gap, 1e-4 with
# Clarabel's own 1e-8. Where floats reach no further, those still do.
SOLVER = {
    **dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11),
    **dict.fromkeys(("reduced_tol_gap_abs", "reduced_tol_gap_rel", "reduced_tol_feas"), 1e-8),
}


@dataclass(frozen=True, slots=True)
class Market:
    """Jobs with budgets and instantaneous utilities, which add up over rounds. `make_market` makes one that is checked.

    Attributes
    ----------
    coefficients : (n_jobs, n_resources, n_rounds). Linear: u, a job gains `sum_j u_j x_j` in a round, 0 where a
        resource is of no use. Leontief: a, it gains `min_j x_j / a_j`; 0 where a resource is not needed, inf where no
        amount of it helps, so that the round is of no use
    budgets : (n_jobs,), for all rounds together; they act as priorities
    kind : linear or leontief
    """

    coefficients: Floats
    budgets: Floats
    kind: str

    def utilities(self, allocation: Floats) -> Floats:
        """Utility of each job over time, (n_jobs,), of an allocation (n_jobs, n_resources, n_rounds)."""
        return KINDS[self.kind].value(self.coefficients, allocation)

    def unit_costs(self, prices: Floats) -> Floats:
        """What one unit of utility costs each job by the ways to get it, (n_jobs, n_ways); inf where none comes of it.

        A way is a resource in a round for linear utilities (resources outermost), a round for Leontief ones.
        """
        return KINDS[self.kind].unit_costs(self.coefficients, prices)


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """Where every budget is spent as well as it can be, and whatever has a price is sold out. Appendix C.2.

    Attributes
    ----------
    market : what it is an equilibrium of
    allocation : (n_jobs, n_resources, n_rounds), what each job buys; nothing that it has no use for
    prices : (n_resources, n_rounds), of a resource's one unit, in the budgets' currency
    utilities : (n_jobs,), over time
    """

    market: Market
    allocation: Floats
    prices: Floats
    utilities: Floats

    @property
    def ftf(self) -> Floats:
        """Finish-time fairness rho of each job, (n_jobs,)."""
        return finish_time_fairness(self.market, self.utilities)

    @property
    def welfare(self) -> float:
        """Nash social welfare over time."""
        return nash_welfare(self.utilities, self.market.budgets)


def nash_welfare(utilities: Floats, budgets: Floats) -> float:
    """Geometric mean of utilities (n_jobs,), weighted by budgets (n_jobs,). Shockwave, equation 1."""
    return float(np.exp(np.average(np.log(utilities), weights=budgets)))


def finish_time_fairness(market: Market, utilities: Floats) -> Floats:
    """Utility of 1/n of every resource in every round / utility, (n_jobs,). Shockwave, appendix E."""
    equal = np.full(market.coefficients.shape, 1.0 / len(market.budgets))
    return market.utilities(equal) / utilities


def make_market(coefficients: ArrayLike, budgets: ArrayLike | None = None, kind: str = "linear") -> Market:
    """A market that has an equilibrium.

    Parameters
    ----------
    coefficients : (n_jobs, n_resources, n_rounds), or (n_jobs, n_rounds) for a single resource; see `Market`
    budgets : (n_jobs,); None: 1 each
    kind : linear or leontief

    Raises
    ------
    ConfigError
        A budget is not above 0, a coefficient is negative or not a number, a job gains nothing from all there is, or a
        Leontief job gains without any resource.
    """
    if kind not in KINDS:
        raise ConfigError(f"market: no utility is called {kind!r}; choose one of {', '.join(KINDS)}")
    given = np.asarray(coefficients, dtype=np.float64)
    given = given[:, np.newaxis, :] if given.ndim == 2 else given
    if given.ndim != 3 or not given.size:
        raise ConfigError(f"market: coefficients of shape {given.shape}; give jobs x resources x rounds, each above 0")
    market = Market(given, checked_budgets(budgets, len(given)), kind)
    KINDS[kind].check(given)
    check_wants(market.utilities(np.ones(given.shape)))
    return market


def solve(market: Market) -> Equilibrium:
    """The equilibrium: the Eisenberg-Gale programme, prices from the duals of its capacities. Theorem C.1.

    Utilities are unique. Allocations and prices need not be: then the solver's central ones are returned.

    Raises
    ------
    ConfigError
        CVXPY is not installed.
    JobcastError
        The solver gave up.
    """
    cp, kind = cvxpy(), KINDS[market.kind]
    alone = market.utilities(np.ones(market.coefficients.shape))
    utilities, uses = kind.programme(cp, market.coefficients, alone)
    limits = [cp.sum(use, axis=0) <= 1.0 for use in uses]
    maximize_welfare(utilities, market.budgets, limits)
    # The solver's dust below 0.
    bought = np.maximum(np.stack([use.value for use in uses], axis=1), 0.0)
    allocation = np.where(kind.useful(market.coefficients), bought, 0.0)
    # The objective was divided by the sum of budgets, and so were its duals.
    prices = np.maximum(np.stack([limit.dual_value for limit in limits]), 0.0) * market.budgets.sum()
    return Equilibrium(market, allocation, prices, market.utilities(allocation))


def maximize_welfare(utilities: Any, budgets: Floats, constraints: Sequence[Any]) -> None:
    """Maximize the logarithm of Nash social welfare; the values are then found in the variables.

    Parameters
    ----------
    utilities : CVXPY expression, (n_jobs,); of the order of 1, for accuracy
    budgets : (n_jobs,)

    Raises
    ------
    JobcastError
        The solver gave up.
    """
    cp = cvxpy()
    problem = cp.Problem(cp.Maximize((budgets / budgets.sum()) @ cp.log(utilities)), list(constraints))
    with catch_warnings():
        simplefilter("ignore", UserWarning)  # of having stopped at the reduced tolerances, which do
        problem.solve(solver=cp.CLARABEL, **SOLVER)
    # Inaccurate is what Clarabel calls its reduced tolerances, which do.
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise JobcastError(
            f"market: the solver ended with {problem.status!r}; let budgets and coefficients differ less"
        )


def cvxpy() -> Any:
    """The library that states the programmes, imported here alone because that takes a second.

    Raises
    ------
    ConfigError
        It is not installed.
    """
    try:
        import cvxpy as library
    except ImportError as error:
        raise ConfigError("market: CVXPY is not installed; install jobcast with its extra: jobcast[market]") from error
    return library


def checked_budgets(budgets: ArrayLike | None, jobs: int) -> Floats:
    """Budgets as an array, (n_jobs,), 1 each where None is given.

    Raises
    ------
    ConfigError
        One is not above 0 or not finite, or there is not one for each job.
    """
    given = np.ones(jobs) if budgets is None else np.asarray(budgets, dtype=np.float64)
    if given.shape != (jobs,):
        raise ConfigError(f"market: budgets of shape {given.shape} for {jobs} jobs; give one budget for each job")
    for job in np.flatnonzero(~(np.isfinite(given) & (given > 0.0))):
        raise ConfigError(f"market: the budget of job {job} is {given[job]:g}; give every job a finite one above 0")
    return given


def check_wants(alone: Floats) -> None:
    """Refuse a job that gains nothing with everything for itself, (n_jobs,): its welfare would be log 0.

    Raises
    ------
    ConfigError
        There is one.
    """
    for job in np.flatnonzero(alone <= 0.0):
        raise ConfigError(f"market: job {job} wants nothing that is sold; leave it out or give it a use in some round")
