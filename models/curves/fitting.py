"""Fits of all families to the seen parts of many curves at once: one call of compiled code."""

from dataclasses import dataclass

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.models.curves.finished import usual_progress
from jobcast.models.curves.prior import FAMILIES, WIDEST, CurvePrior


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """What of each curve is seen of the stretch of training that it is in.

    Attributes
    ----------
    metric : (n, L) metric of epoch column + 1, NaN where not measured
    begin, seen, until : (n,) epochs before the stretch, the last that is seen, the last of the stretch
    direction : (n,) 1 where the metric rises, -1 where it falls
    bound : (n,) best value that the metric can have
    """

    metric: Floats
    begin: Ints
    seen: Ints
    until: Ints
    direction: Floats
    bound: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """Maximum a posteriori of all families, and Laplace's approximation there.

    Attributes
    ----------
    measured, points : (n,) values seen, and points that they were thinned to
    x, v, weight : (n, MOST_POINTS) these points, and 1 / variance of each
    scale : (n, SCALE_WIDTH) see `scaling`
    parameters : (n, 11, 4) of each family, padded
    factor : (n, 11, 4, 4) lower Cholesky factors of the Hessians
    evidence : (n, 11) log evidence of each family, up to a constant of the curve
    """

    measured: Ints
    points: Ints
    x: Floats
    v: Floats
    weight: Floats
    scale: Floats
    parameters: Floats
    factor: Floats
    evidence: Floats

    def families_at(self, share: Floats) -> tuple[Floats, Floats]:
        """Means and variances of all families in v at times p (n, e) of the stretch, both (n, 11, e)."""
        from jobcast.models.curves.kernels import predict_families

        shape = (share.shape[0], len(FAMILIES), share.shape[1])
        value, variance = np.empty(shape), np.empty(shape)
        x = np.ascontiguousarray(1 + 100 * share)
        predict_families(x, parameter_counts(), self.parameters, self.factor, value, variance)
        return value, variance


def parameter_counts() -> Ints:
    """(11,) parameters of each family."""
    return np.array([len(family.parameters) for family in FAMILIES.values()], np.int64)


def fit_stretches(stretches: Stretches, prior: CurvePrior, rate: float) -> Fits:
    """Fit all families to each curve's stretch.

    Parameters
    ----------
    stretches : each with at least one value
    prior : of the families' parameters
    rate : of usual progress, see `finished`
    """
    from jobcast.models.curves.scaling import MOST_POINTS, SCALE_WIDTH, scale_prefixes

    n = len(stretches.seen)
    measured, points = np.empty(n, np.int64), np.empty(n, np.int64)
    # Padding of 1, whose logarithm is 0: unused points stay harmless.
    x, log_x, v, weight = (np.ones((n, MOST_POINTS)) for _ in range(4))
    scale = np.empty((n, SCALE_WIDTH))
    scale_prefixes(
        np.ascontiguousarray(stretches.metric), stretches.begin, stretches.seen, stretches.until, stretches.direction,
        stretches.bound, usual_progress(rate), measured, points, x, log_x, v, weight, scale,
    )  # fmt: skip
    return Fits(measured, points, x, v, weight, scale, *fit_all(points, x, log_x, v, weight, prior))


def fit_all(
    points: Ints, x: Floats, log_x: Floats, v: Floats, weight: Floats, prior: CurvePrior
) -> tuple[Floats, Floats, Floats]:
    """Parameters, factors and evidence of all families for scaled curves; see `Fits` and `kernels.fit_families`."""
    from jobcast.models.curves.kernels import STEPS, fit_families

    mean, precision, _ = prior.arrays()
    parameters, factor = np.zeros((len(points), *mean.shape)), np.zeros((len(points), *mean.shape, WIDEST))
    evidence = np.empty(parameters.shape[:2])
    fit_families(points, x, log_x, v, weight, parameter_counts(), mean, precision, STEPS, parameters, factor, evidence)
    return parameters, factor, evidence
