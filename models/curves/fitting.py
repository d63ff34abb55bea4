"""Fits of all families to the seen parts of many curves at once: one call of compiled code."""

from dataclasses import dataclass

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.models.curves.finished import usual_progress
from jobcast.models.curves.points import Families, Points, Stretches
from jobcast.models.curves.prior import FAMILIES, WIDEST, CurvePrior


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """Maximum a posteriori of all families, and Laplace's approximation there.

    Attributes
    ----------
    points : that what is seen was thinned to
    scale : (n, SCALE_WIDTH) see `scaling`
    parameters : (n, 11, 4) of each family, padded
    factor : (n, 11, 4, 4) lower Cholesky factors of the Hessians
    evidence : (n, 11) log evidence of each family, up to a constant of the curve
    """

    points: Points
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
    scale = np.empty((n, SCALE_WIDTH))
    # Padding of 1, whose logarithm is 0: unused points stay harmless.
    x, log_x, v, weight = (np.ones((n, MOST_POINTS)) for _ in range(4))
    points = Points(np.empty(n, np.int64), x, log_x, v, weight)
    plain = stretches._replace(metric=np.ascontiguousarray(stretches.metric))
    scale_prefixes(plain, usual_progress(rate), points, scale)
    return Fits(points, scale, *fit_all(points, prior))


def fit_all(points: Points, prior: CurvePrior) -> tuple[Floats, Floats, Floats]:
    """Parameters, factors and evidence of all families for scaled curves; see `Fits` and `kernels.fit_families`."""
    from jobcast.models.curves.kernels import fit_families

    mean, precision, _ = prior.arrays()
    n = len(points.used)
    parameters, factor = np.zeros((n, *mean.shape)), np.zeros((n, *mean.shape, WIDEST))
    evidence = np.empty(parameters.shape[:2])
    fit_families(points, Families(parameter_counts(), mean, precision), parameters, factor, evidence)
    return parameters, factor, evidence
