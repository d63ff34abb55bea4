"""What a job gains from resources in a round: the utilities of the Volatile Fisher Market.

Shockwave, appendix C; Themis and Gavel are linear, DRF is Leontief.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import ConfigError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


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
    usable = _usable(a)
    costs: Floats = np.where(usable, np.einsum("ijt,jt->it", np.where(np.isfinite(a), a, 0.0), prices), np.inf)
    return costs


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
