"""Compiled values and gradients of the families, and fits of all of them to many curves. See `families`."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.compiled import F1, F2, F3, F4, I1, njit, types
from jobcast.models.curves.points import Families, Points
from jobcast.models.curves.scaling import POINTS

POW3, POW4, LOGLOG, VAPOR, HILL3, MMF, EXP4, JANOSCHEK, WEIBULL, LOG_POWER, ILOG2 = range(11)
FAMILY_COUNT = 11
LARGEST_EXPONENT = 30.0
"""Exponents are held within this, so that no step of a fit overflows."""
SMALLEST = 1e-9
STEPS = 12
"""Of Levenberg-Marquardt at most; fits of these curves settle in six to ten."""
SETTLED = 1e-4
"""Share of its cost that a fit must gain by a step to go on."""
FIRST_DAMPING, LESS, MORE, GIVE_UP = 1e-2, 0.2, 6.0, 1e6
"""Levenberg-Marquardt's damping: the first, after a good step, after a bad one, and the end."""
HUBER = 2.0
"""Residuals beyond as many standard deviations count linearly, so that outliers cost little (Huber, 1964)."""


@njit("float64(float64)", cache=True)  # type: ignore[untyped-decorator]
def _exp(value: float) -> float:
    # Clipped, not failing: a wild step is then simply a bad one.
    return float(math.exp(min(max(value, -LARGEST_EXPONENT), LARGEST_EXPONENT)))


@njit(types.float64(types.int64, types.float64, types.float64, F1, F1), cache=True)  # type: ignore[untyped-decorator]
def value_and_gradient(family: int, x: float, log_x: float, p: Floats, slope: Floats) -> float:
    """The scaled metric at one x, log x given; writes the gradient by the parameters p into `slope`, both (4,)."""
    if family == POW3:
        alpha = _exp(p[2])
        fall = _exp(p[1] - alpha * log_x)
        slope[0], slope[1], slope[2] = 1.0, -fall, fall * alpha * log_x
        return float(p[0] - fall)
    if family == POW4:
        alpha, grown = _exp(p[3]), _exp(p[1] + log_x)
        base = grown + _exp(p[2])
        log_base = math.log(base)
        fall = _exp(-alpha * log_base)
        slope[0], slope[1] = 1.0, alpha * fall * grown / base
        slope[2], slope[3] = alpha * fall * (base - grown) / base, fall * alpha * log_base
        return float(p[0] - fall)
    if family == LOGLOG:
        grown, start = _exp(p[0]) * log_x, _exp(p[1])
        slope[0], slope[1] = grown / (grown + start), start / (grown + start)
        return float(math.log(max(grown + start, SMALLEST)))
    if family == VAPOR:
        value = _exp(p[0] + p[1] / x + p[2] * log_x)
        slope[0], slope[1], slope[2] = value, value / x, value * log_x
        return float(value)
    if family == HILL3:
        top, eta = _exp(p[0]), _exp(p[1])
        lag = log_x - p[2]
        share = 1.0 / (1.0 + _exp(-eta * lag))
        bend = top * share * (1.0 - share)
        slope[0], slope[1], slope[2] = top * share, bend * eta * lag, -bend * eta
        return float(top * share)
    if family == MMF:
        delta = _exp(p[3])
        lag = p[2] + log_x
        left = 1.0 / (1.0 + _exp(delta * lag))
        bend = (p[0] - p[1]) * left * (1.0 - left) * delta
        slope[0], slope[1], slope[2], slope[3] = 1.0 - left, left, bend, bend * lag
        return float(p[0] - (p[0] - p[1]) * left)
    if family == EXP4:
        alpha = _exp(p[2])
        grown = _exp(p[1] + alpha * log_x)
        fall = _exp(p[3] - grown)
        slope[0], slope[1], slope[2], slope[3] = 1.0, fall * grown, fall * grown * alpha * log_x, -fall
        return float(p[0] - fall)
    if family == JANOSCHEK:
        delta = _exp(p[3])
        grown = _exp(p[2] + delta * log_x)
        left = _exp(-grown)
        bend = (p[0] - p[1]) * left * grown
        slope[0], slope[1], slope[2], slope[3] = 1.0 - left, left, bend, bend * delta * log_x
        return float(p[0] - (p[0] - p[1]) * left)
    if family == WEIBULL:
        delta = _exp(p[3])
        lag = p[2] + log_x
        grown = _exp(delta * lag)
        left = _exp(-grown)
        bend = (p[0] - p[1]) * left * grown * delta
        slope[0], slope[1], slope[2], slope[3] = 1.0 - left, left, bend, bend * lag
        return float(p[0] - (p[0] - p[1]) * left)
    if family == LOG_POWER:
        top, c = _exp(p[0]), _exp(p[2])
        lag = log_x - p[1]
        share = 1.0 / (1.0 + _exp(-c * lag))
        bend = top * share * (1.0 - share)
        slope[0], slope[1], slope[2] = top * share, -bend * c, bend * c * lag
        return float(top * share)
    fall = _exp(p[1]) / math.log(x + 1.0)
    slope[0], slope[1] = 1.0, -fall
    return float(p[0] - fall)


@njit(types.boolean(F2, F1, F1, types.int64), cache=True)  # type: ignore[untyped-decorator]
def _solve(matrix: Floats, right: Floats, found: Floats, size: int) -> bool:
    """Solve by Cholesky, destroying the lower half of the matrix; its factor stays there. False if not positive."""
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                # Also true of NaN.
                if not total > 0.0:
                    return False
                matrix[i, i] = math.sqrt(total)
            else:
                matrix[i, j] = total / matrix[j, j]
    for i in range(size):
        total = right[i]
        for k in range(i):
            total -= matrix[i, k] * found[k]
        found[i] = total / matrix[i, i]
    for i in range(size - 1, -1, -1):
        total = found[i]
        for k in range(i + 1, size):
            total -= matrix[k, i] * found[k]
        found[i] = total / matrix[i, i]
    return True


class Curvature(NamedTuple):
    """Gauss-Newton matrix of a loss, and the direction downhill."""

    hessian: Floats
    downhill: Floats


FAMILIES = types.NamedTuple([I1, F2, F2], Families)
CURVATURE = types.NamedTuple([F2, F1], Curvature)
_COST = types.float64(types.int64, FAMILIES, types.int64, POINTS, F1, CURVATURE, F1)


@njit(_COST, cache=True)  # type: ignore[untyped-decorator]
def _linearise(
    family: int, prior: Families, curve: int, points: Points, p: Floats, at: Curvature, slope: Floats
) -> float:
    """Twice the negative log posterior at p, Huber's loss; its curvature there is written to `at`."""
    cost, size, (hessian, downhill) = 0.0, prior.sizes[family], at
    mean, precision = prior.mean[family], prior.precision[family]
    x, log_x, v, weight = points.x[curve], points.log_x[curve], points.v[curve], points.weight[curve]
    for i in range(size):
        # The prior is one more squared residual for each parameter.
        off = p[i] - mean[i]
        cost += precision[i] * off * off
        downhill[i] = -precision[i] * off
        for j in range(i):
            hessian[i, j] = 0.0
        hessian[i, i] = precision[i]
    for row in range(points.used[curve]):
        off = v[row] - value_and_gradient(family, x[row], log_x[row], p, slope)
        deviation, w = abs(off) * math.sqrt(weight[row]), weight[row]
        # Iteratively reweighted: beyond HUBER the weight falls as one over the deviation.
        if deviation > HUBER:
            cost += HUBER * (2.0 * deviation - HUBER)
            w *= HUBER / deviation
        else:
            cost += deviation * deviation
        for i in range(size):
            downhill[i] += w * off * slope[i]
            for j in range(i + 1):
                hessian[i, j] += w * slope[i] * slope[j]
    return cost


@njit(types.void(POINTS, FAMILIES, F3, F4, F2), cache=True)  # type: ignore[untyped-decorator]
def fit_families(points: Points, prior: Families, fitted: Floats, factor: Floats, evidence: Floats) -> None:
    """Maximum a posteriori of every family for every curve by Levenberg-Marquardt, and Laplace's approximation there.

    Parameters
    ----------
    fitted : (n, 11, 4) parameters, written
    factor : (n, 11, 4, 4) lower Cholesky factor of the Hessian at these, written
    evidence : (n, 11) log evidence by Laplace, up to a constant of the curve, written
    """
    at, trial = Curvature(np.zeros((4, 4)), np.zeros(4)), Curvature(np.zeros((4, 4)), np.zeros(4))
    damped, step, slope, p = np.zeros((4, 4)), np.zeros(4), np.zeros(4), np.zeros(4)
    for curve in range(points.used.size):
        for family in range(FAMILY_COUNT):
            size, best = prior.sizes[family], fitted[curve, family]
            for i in range(4):
                # The prior mean is the start.
                best[i] = prior.mean[family, i]
            cost = _linearise(family, prior, curve, points, best, at, slope)
            damping = FIRST_DAMPING
            for _ in range(STEPS):
                for i in range(size):
                    for j in range(i + 1):
                        damped[i, j] = at.hessian[i, j]
                    # Marquardt scales by the diagonal, so that parameters' units do not matter.
                    damped[i, i] = at.hessian[i, i] * (1.0 + damping)
                if not _solve(damped, at.downhill, step, size):
                    break
                for i in range(size):
                    p[i] = best[i] + step[i]
                found = _linearise(family, prior, curve, points, p, trial, slope)
                if found < cost:
                    gained = cost - found
                    cost = found
                    for i in range(size):
                        best[i] = p[i]
                    # Swapped, not copied; the old one is overwritten by the next trial.
                    at, trial = trial, at
                    damping *= LESS
                    if gained < SETTLED * (1.0 + cost):
                        break
                else:
                    damping *= MORE
                    if damping > GIVE_UP:
                        break
            log_prior, log_posterior = 0.0, 0.0
            # Called for the factor that it leaves; the step is not used.
            _solve(at.hessian, at.downhill, step, size)
            for i in range(size):
                log_prior += math.log(prior.precision[family, i])
                # Log determinant from the factor's diagonal.
                log_posterior += 2.0 * math.log(at.hessian[i, i])
                for j in range(i + 1):
                    factor[curve, family, i, j] = at.hessian[i, j]
            evidence[curve, family] = 0.5 * (log_prior - log_posterior - cost)


@njit(types.void(F2, I1, F3, F4, F3, F3), cache=True)  # type: ignore[untyped-decorator]
def predict_families(
    x: Floats, sizes: NDArray[np.int64], fitted: Floats, factor: Floats, value: Floats, variance: Floats
) -> None:
    """Means and variances of all families by Laplace's approximation at places x (n, e), both (n, 11, e), written."""
    slope, solved = np.zeros(4), np.zeros(4)
    for curve in range(x.shape[0]):
        for column in range(x.shape[1]):
            place = x[curve, column]
            log_place = math.log(place)
            for family in range(FAMILY_COUNT):
                size, lower = sizes[family], factor[curve, family]
                value[curve, family, column] = value_and_gradient(
                    family, place, log_place, fitted[curve, family], slope
                )
                total = 0.0
                for i in range(size):
                    # Forward substitution: the variance is the squared length of L^-1 slope.
                    left = slope[i]
                    for k in range(i):
                        left -= lower[i, k] * solved[k]
                    solved[i] = left / lower[i, i]
                    total += solved[i] * solved[i]
                variance[curve, family, column] = total


@njit(types.void(types.int64, F2, F3, F3), cache=True)  # type: ignore[untyped-decorator]
def family_values(family: int, x: Floats, own: Floats, value: Floats) -> None:
    """The scaled metric of a family at places x (n, m) by parameters (draws, n, 4); (draws, n, m), written."""
    slope = np.zeros(4)
    for draw in range(own.shape[0]):
        for curve in range(x.shape[0]):
            for column in range(x.shape[1]):
                place = x[curve, column]
                value[draw, curve, column] = value_and_gradient(family, place, math.log(place), own[draw, curve], slope)
