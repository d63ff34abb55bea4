"""OptStop: when to end a training run early. MLFS, section 3.5, after Domhan et al. (IJCAI 2015), section 4.

A run is given up when its final metric will miss the target with confidence, and ends when the target is reached. Where
it wants the best it can have, it ends when that is nearly reached: the best value so far is within a tolerance of the
forecast final one, and what was measured says so too, as it hardly moved over the last epochs.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.errors import ConfigError
from jobcast.domain.rounding import rounded_all

CONFIDENCE = 0.9999
"""Of one forecast, of which a run has some ten. Domhan et al., section 4, end a run at a chance of one in twenty, which
would be 0.995 of each; but forecasts err in their tails more often than a normal distribution says: at 0.995 one job in
seventy of MLFS's workload is given up that would have got there, at 0.9999 next to none, and no time is lost (a draw
that no figure is made of, seed 101)."""
EVEN = 0.5
"""The median of the forecast; more would never let runs end whose forecasts admit late jumps."""
TOLERANCE, STALL_SHARE = 0.01, 0.125
"""A round share, and an eighth of a run: measured curves then lose some quarter of the tolerance in the mean, as many
would gain nothing more at all; see tests/models/evaluation/test_optstop_playout.py."""


def stall_epochs(epochs: ArrayLike, share: float = STALL_SHARE) -> Ints:
    """Epochs over which the best metric must have stalled, of runs of so many epochs; at least 1.

    >>> stall_epochs([2, 10, 100], 0.1).tolist()
    [1, 1, 10]
    """
    return np.maximum(np.round(share * np.asarray(epochs)), 1).astype(np.int64)


class Stop(IntEnum):
    """Whether a run goes on, or why it ends."""

    GO_ON = 0
    REACHED = 1
    HOPELESS = 2
    LEVEL = 3


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What is known of n runs, every attribute (n,).

    Attributes
    ----------
    achieved : best metric so far
    earlier : best metric as of `stall_epochs` before; NaN where a run is younger
    sure : whether it is known that more, or less, is better; what is not sure is not stopped
    mean, below, above : forecast of the metric at the last epoch: the mean, and the standard deviations of lower and of
        higher values
    direction : 1 where more is better, -1 where less is
    """

    achieved: Floats
    earlier: Floats
    sure: Bools
    mean: Floats
    below: Floats
    above: Floats
    direction: Floats

    def miss_probability(self, target: ArrayLike) -> Floats:
        """(n,) probability that the metric at the last epoch is worse than a target, scalar or (n,)."""
        # Scipy takes long to import, and few commands decide anything.
        from scipy.special import ndtr

        wanted = np.broadcast_to(np.asarray(target, np.float64), self.mean.shape)
        # Forecasts differ in their last bits between machines: rounded, ties decide alike.
        short = rounded_all(wanted) - rounded_all(self.mean)
        spread = np.where(short < 0.0, self.below, self.above)
        # A spread of 0 is a forecast that is certain: the quotient becomes huge, the probability 0 or 1.
        apart = self.direction * short / np.maximum(spread, np.finfo(np.float64).tiny)
        missed: Floats = ndtr(apart)
        return missed


@dataclass(frozen=True, slots=True)
class OptStop:
    """The rule; a run goes on while it is not known whether its metric rises or falls.

    Attributes
    ----------
    confidence : a run is given up when it misses its target with at least this probability
    tolerance : share of the metric that a run which wants the best may miss
    even : such a run ends when it misses no more with at least this probability; 0.5 trusts the median
    stall_share : share of the epochs over which its best metric must have gained less than the tolerance; a run is not
        given up before it has run longer than that
    give_up : whether runs end that will miss their targets

    Raises
    ------
    ConfigError
        A number is outside of its range.
    """

    confidence: float = CONFIDENCE
    tolerance: float = TOLERANCE
    even: float = EVEN
    stall_share: float = STALL_SHARE
    give_up: bool = True

    def __post_init__(self) -> None:
        for name, least in (("confidence", 0.5), ("tolerance", 0.0), ("even", 0.0), ("stall_share", 0.0)):
            value = getattr(self, name)
            if not least <= value < 1:
                raise ConfigError(f"OptStop: {name} must be in [{least:g}, 1), got {value}")

    def decide(self, standing: Standing, target: ArrayLike = np.nan, wants_best: ArrayLike = True) -> NDArray[np.int64]:
        """What becomes of n runs.

        Parameters
        ----------
        standing : of the runs
        target : metric that is required, scalar or (n,); NaN where none is; short of it a run is not level
        wants_best : whether a run goes for the best metric, MLFS's option ii, or for the target alone, option iii

        Returns
        -------
        (n,) members of `Stop`
        """
        wanted = np.broadcast_to(np.asarray(target, np.float64), standing.mean.shape)
        best = np.broadcast_to(np.asarray(wants_best, np.bool_), wanted.shape)
        reached = standing.direction * (rounded_all(standing.achieved) - rounded_all(wanted)) >= 0
        hopeless = self.give_up & ~reached & (standing.miss_probability(wanted) >= self.confidence)
        level = best & (reached | np.isnan(wanted)) & self._level(standing)
        # Early forecasts are the worst: none is given up by them.
        young = np.isnan(standing.earlier)
        known = standing.sure & np.isfinite(standing.achieved)
        # In this order: who has reached its target is neither hopeless nor level.
        rules = [known & rule for rule in (reached & ~best, hopeless & ~young, level)]
        return np.select(rules, [Stop.REACHED, Stop.HOPELESS, Stop.LEVEL], Stop.GO_ON).astype(np.int64)

    def _level(self, standing: Standing) -> Bools:
        room = self.tolerance * np.abs(standing.achieved)
        # Forecast and measurements must agree: either alone ends runs that would still have jumped.
        almost = standing.miss_probability(standing.achieved + standing.direction * room) >= self.even
        stalled: Bools = standing.direction * (standing.achieved - standing.earlier) < room
        return almost & stalled
