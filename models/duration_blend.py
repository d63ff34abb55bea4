"""A booster's probabilities, tempered and blended with the shares of finished jobs."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from jobcast.models.scores import mean

WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Weights of the shares that are tried."""
TEMPERATURES = (0.9, 1.0, 1.1)
"""Temperatures that are tried: close to 1, since days of one fold say little of the next weeks' sureness."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Blend:
    """(1 - weight) x tempered booster + weight x shares.

    Attributes
    ----------
    weight : of the shares of finished jobs, in [0, 1]
    temperature : the booster's probabilities are raised to 1 / temperature and scaled to sum to 1: above 1 is less
        sure of itself. One number for all bins, which a changing mix of bins does not upset as one a bin would be [1].

    References
    ----------
    .. [1] Guo et al., On Calibration of Modern Neural Networks, ICML 2017, section 4.2.
    """

    weight: float = 0.0
    temperature: float = 1.0

    def __call__(self, booster: Floats, shares: Floats) -> Floats:
        """Probabilities, (n_jobs, B), from the booster's and the shares, each (n_jobs, B).

        >>> Blend(0.5, 0.5)(np.array([[0.6, 0.2, 0.2]]), np.array([[0.0, 1.0, 0.0]])).round(3).tolist()
        [[0.409, 0.545, 0.045]]
        """
        tempered = booster if self.temperature == 1.0 else booster ** (1.0 / self.temperature)
        tempered = tempered / tempered.sum(axis=1, keepdims=True)
        blended: Floats = (1.0 - self.weight) * tempered + self.weight * shares
        return blended


FIRST = Blend(0.2, 1.0)
"""What is taken where no later jobs are known to choose by; did best on Philly in October 2017, weeks ahead."""


def log_loss(proba: Floats, bins: Ints) -> float:
    """Mean of -log of the true bin's probability.

    >>> round(log_loss(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1])), 4)
    0.4904
    """
    true = proba[np.arange(len(bins)), bins]
    return float(mean(-np.log(np.maximum(true, np.finfo(np.float64).tiny))) or 0.0)


def best_blend(booster: Floats, shares: Floats, bins: Ints) -> Blend:
    """The blend with the least log loss on jobs that the booster has not seen; `FIRST` where there are none."""
    if not len(bins):
        return FIRST
    tried = [Blend(weight, temperature) for weight, temperature in product(WEIGHTS, TEMPERATURES)]
    return min(tried, key=lambda blend: log_loss(blend(booster, shares), bins))
