"""Families, usual progress and annealing combined to one forecast; compiled.

Three things tell what is left of a run: the weighted families (Domhan et al., section 3.2, here weighted by evidence),
the share of its rise that runs usually have left by then, and its noise: a metric that jumps from epoch to epoch is
trained at a high learning rate, and gains when that is annealed.
"""

import math
from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F2, F3, I1, njit, types
from jobcast.models.curves.scaling import ANNEALED, FREE, LEVEL, NOISE_SD, REACHED, RECENT, ROOM, SEEN, SHARE

TEMPER = 0.3
"""Power of the evidence: points of a curve hang together, so that they tell less than as many independent ones."""
FAMILY_VARIANCE = 6.0
"""Times Laplace's variance, for the same reason; more where hardly more points than parameters are seen."""
PROGRESS_SD = 1.0
"""Standard deviation of what is left of a run, as a share of what usually is, over the number of values seen."""
LEAST_SD = 0.005
"""Least standard deviation of a forecast, as a share of the rise."""
MOST_ANNEALED = 0.25
"""Most that annealing gives back, as a share of what was gained so far."""
ANNEALING_SD = 0.5
"""Standard deviation of what annealing gives back, as a share of it."""
LATE_SD = 0.1
"""Standard deviation of where a run ends that has not begun to move, as a share of the way to the bound."""


@njit(F2(F2, F1), cache=True)  # type: ignore[untyped-decorator]
def family_weights(evidence: Floats, log_weight: Floats) -> Floats:
    """Posterior weights (n, 11) of families from log evidence (n, 11) and log prior weights (11,)."""
    weights = np.empty_like(evidence)
    for row in range(evidence.shape[0]):
        top = -math.inf
        for family in range(evidence.shape[1]):
            # Largest log weight taken off before the exponential, against overflow.
            weights[row, family] = TEMPER * evidence[row, family] + log_weight[family]
            top = max(top, weights[row, family])
        total = 0.0
        for family in range(evidence.shape[1]):
            weights[row, family] = math.exp(weights[row, family] - top)
            total += weights[row, family]
        for family in range(evidence.shape[1]):
            weights[row, family] /= total
    return weights


class Mixture(NamedTuple):
    """Weights (n, 11) of families, and what each forecasts and how surely, (n, 11, e)."""

    weights: Floats
    value: Floats
    variance: Floats


class Rise(NamedTuple):
    """What is gained from the level on at the usual rate, and its variance, (n, e); see `rates`."""

    median: Floats
    variance: Floats


_FAMILIES, _RISE = types.NamedTuple([F2, F3, F3], Mixture), types.NamedUniTuple(F2, 2, Rise)


@njit(types.UniTuple(F2, 3)(F2, I1, _FAMILIES, _RISE, types.float64, F2, F2), cache=True)  # type: ignore[untyped-decorator]
def combine(
    scale: Floats, points: Ints, families: Mixture, rise: Rise, annealing: float, untold: Floats, share: Floats
) -> tuple[Floats, Floats, Floats]:
    """Mean, standard deviation, and that of jumps and late starts for the better, in v, at times p of the stretch.

    Parameters
    ----------
    scale : see `scaling`
    points : (n,) that were used
    annealing : standard deviations of noise that annealing gives back, times the root of the share of epochs ahead
    untold : (n, e) what undeclared cuts add, see `forecast.untold_sd`; as shares of the rise so far, or of the way to
        the bound if that is less
    share : (n, e)
    """
    weights, value, variance = families
    mean, sd, jump_sd = np.empty_like(share), np.empty_like(share), np.empty_like(share)
    for row in range(scale.shape[0]):
        known = scale[row]
        # A jump is a share of what was gained, or of the way that is left if that is less.
        gap = min(known[ROOM], max(known[LEVEL] - 1.0, 0.0))
        # How much of the rise that was due by now has not come: 1 for a run that has not begun to move.
        unmoved = max(known[REACHED] - (known[LEVEL] - 1.0), 0.0) / max(known[REACHED], 1e-9)
        late = LATE_SD * unmoved * known[ROOM] * max(1.0 - known[SHARE], 0.0) ** 0.5
        # As many points as parameters fit anything.
        doubt = FAMILY_VARIANCE * points[row] / max(points[row] - FREE, 1)
        noise = known[NOISE_SD] ** 2 * (1.0 + 1.0 / known[RECENT])
        for column in range(share.shape[1]):
            place, ahead, squares = share[row, column], 0.0, 0.0
            for family in range(weights.shape[1]):
                ahead += weights[row, family] * value[row, family, column]
            for family in range(weights.shape[1]):
                apart = value[row, family, column] - ahead
                squares += weights[row, family] * (doubt * variance[row, family, column] + apart * apart)
            squares += LEAST_SD * LEAST_SD
            # Two forecasts of what is left, families and usual rate, weighted by precision below.
            usual = rise.median[row, column]
            usual_sd = PROGRESS_SD * abs(usual) / known[SEEN]
            usual_sd = math.sqrt((LEAST_SD + usual_sd) ** 2 + rise.variance[row, column])
            trust = squares / (squares + usual_sd * usual_sd)
            left = (1.0 - trust) * (ahead - known[LEVEL]) + trust * usual
            spread = trust * usual_sd * usual_sd + noise
            given_back = annealing * known[ANNEALED] * math.sqrt(max(place - known[SHARE], 0.0))
            # Noise alone must not promise more than a part of what was gained.
            given_back = min(given_back, MOST_ANNEALED * max(known[LEVEL] - 1.0, 0.0))
            spread += (ANNEALING_SD * max(given_back - left, 0.0)) ** 2
            # The better of both: annealing is part of any rise, not beside it.
            mean[row, column] = known[LEVEL] + max(left, given_back)
            sd[row, column] = math.sqrt(spread)
            started = late * math.sqrt(max(place - known[SHARE], 0.0))
            jump_sd[row, column] = math.hypot(gap * untold[row, column], started)
    return mean, sd, jump_sd
