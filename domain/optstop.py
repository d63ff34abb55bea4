"""When training is worth no more iterations: OptStop. MLFS, section 3.5, after Domhan et al., IJCAI 2015.

Metrics are accuracies: higher is better. Whoever has a metric that falls passes its negative.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CONFIDENCE = 0.995
"""Of one forecast, of which a run has some ten: together they are wrong once in twenty at most, the chance at which
Domhan et al., section 3, give a run up."""
TOLERANCE = 0.005
"""Share of the forecast final metric that may be missing when a run is as good as done."""


@dataclass(frozen=True, slots=True)
class OptStopRule:
    """Runs stop when they are as good as they will get, or will not get good enough; arrays have one entry a run.

    Attributes
    ----------
    confidence : probability from which on a forecast is believed, between 0.5 and 1
    tolerance : share of the final metric that may be missing
    give_up : whether runs stop that will not reach their targets
    """

    confidence: float = CONFIDENCE
    tolerance: float = TOLERANCE
    give_up: bool = True

    def stops(self, achieved: Floats, mean: Floats, sd: Floats, target: Floats) -> Bools:
        """Runs that should stop; arguments as below. NaN stands for what is not known, and stops nothing."""
        stops = self.finished(achieved, mean, sd)
        if self.give_up:
            stops = stops | self.hopeless(achieved, mean, sd, target)
        return stops

    def finished(self, achieved: Floats, mean: Floats, sd: Floats) -> Bools:
        """Whether the final metric, forecast with a mean and standard deviation, will hardly exceed the achieved one.

        The forecast must stay below the achieved metric and its tolerance with confidence.
        """
        room = achieved + self.tolerance * np.abs(mean)
        return _surely_below(mean, sd, room, self.confidence)

    def hopeless(self, achieved: Floats, mean: Floats, sd: Floats, target: Floats) -> Bools:
        """Whether a target that has not been reached will not be reached, with confidence."""
        with np.errstate(invalid="ignore"):
            missed = achieved < target
        return _surely_below(mean, sd, target, self.confidence) & missed

    def reached(self, achieved: Floats, target: Floats) -> Bools:
        """Whether the achieved metric is at least the target; never where either is NaN."""
        with np.errstate(invalid="ignore"):
            reached: Bools = achieved >= target
        return reached


def _surely_below(mean: Floats, sd: Floats, bound: Floats, confidence: float) -> Bools:
    """Whether a normal variable is below a bound with so much probability; a known one when it is not above it."""
    from statistics import NormalDist

    with np.errstate(invalid="ignore"):
        below: Bools = mean + NormalDist().inv_cdf(confidence) * sd <= bound
    return below
