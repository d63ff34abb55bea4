"""How long a regime is that another follows: a Beta share of the epochs that were left when it began."""

import math
from dataclasses import dataclass

from jobcast.models.regimes.learning import MOST_SHARE

LEAST_SHARE = 1e-4
LEAST_SURVIVAL = 1e-12
"""Probability below which a regime that still runs is beyond all belief."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One regime's length.

    Attributes
    ----------
    kind : shares, of a Dirichlet distribution over the job's epochs; or epochs, a typical number of them
    middle : the mean share of what is left, or the typical number of epochs
    spread : precision of the share; or, of epochs, standard deviation on the logit scale
    """

    kind: str
    middle: float
    spread: float

    def beta(self, left: float) -> tuple[float, float]:
        """Both parameters of its share of the epochs left, a Beta variable.

        >>> Piece("shares", 0.3, 10.0).beta(50.0)
        (3.0, 7.0)
        """
        if self.kind == "shares":
            return self.middle * self.spread, (1 - self.middle) * self.spread
        part = min(max(self.middle / left, LEAST_SHARE), MOST_SHARE) if left > 0 else MOST_SHARE
        return 1 / (self.spread**2 * (1 - part)), 1 / (self.spread**2 * part)

    def mean(self, left: float) -> float:
        """Mean share of the epochs left."""
        if self.kind == "shares":
            return self.middle
        return min(max(self.middle / left, LEAST_SHARE), MOST_SHARE) if left > 0 else MOST_SHARE


def survival(a: float, b: float, share: float) -> tuple[float, float]:
    """Probability that a Beta variable exceeds a share, and its mean where it does.

    The mean of the truncated variable is a / (a + b) times the ratio of two regularised incomplete beta functions.

    >>> survival(1.0, 1.0, 0.5)
    (0.5, 0.75)
    """
    from scipy.special import betainc

    if share <= 0:
        return 1.0, a / (a + b)
    exceeds = 1 - float(betainc(a, b, min(share, 1.0)))
    if exceeds < LEAST_SURVIVAL:
        return 0.0, min(1.0, share + (1 - share) / (b + 1))
    mean = a / (a + b) * (1 - float(betainc(a + 1, b, share))) / exceeds
    return exceeds, min(1.0, max(share, mean))


def logit(share: float) -> float:
    """Logarithm of the odds."""
    return math.log(share / (1 - share))
