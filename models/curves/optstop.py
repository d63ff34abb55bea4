"""OptStop: when to end a training run early. MLFS, section 3.5, after Domhan et al. (IJCAI 2015), section 4.

A run is given up when its final metric will miss the target with confidence, and ends when the target is reached. Where
it wants the best it can have, it ends when that is nearly reached: the best value so far is within a tolerance of the
forecast final one, and what was measured says so too, as it hardly moved over the last epochs. What a user keeps is the
checkpoint of the best epoch so far.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.errors import ConfigError
from jobcast.models.curves.forecast import CurveForecast

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
CONFIDENCE = 0.95
"""Domhan et al., section 4: a run ends when it gets as far as wanted with a probability below 0.05."""
EVEN = 0.5
"""The median of the forecast; more would never let runs end whose forecasts admit late jumps."""
TOLERANCE, STALL_SHARE = 0.01, 0.125
"""A round share, and an eighth of a run: measured curves then lose some quarter of the tolerance in the mean, as many
would gain nothing more at all; see `evaluation.optstop`."""


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
    earlier : best metric as of `OptStop.stall_epochs` before; NaN where a run is younger
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
        from scipy.special import ndtr

        wanted = np.broadcast_to(np.asarray(target, np.float64), self.mean.shape)
        spread = np.where(wanted < self.mean, self.below, self.above)
        apart = self.direction * (wanted - self.mean) / np.maximum(spread, np.finfo(np.float64).tiny)
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

    Raises
    ------
    ConfigError
        A number is outside of its range.
    """

    confidence: float = CONFIDENCE
    tolerance: float = TOLERANCE
    even: float = EVEN
    stall_share: float = STALL_SHARE

    def __post_init__(self) -> None:
        for name, least in (("confidence", 0.5), ("tolerance", 0.0), ("even", 0.0), ("stall_share", 0.0)):
            value = getattr(self, name)
            if not least <= value < 1:
                raise ConfigError(f"OptStop: {name} must be in [{least:g}, 1), got {value}")

    def stall_epochs(self, epochs: ArrayLike) -> Ints:
        """Epochs over which the best metric must have stalled, of runs of so many epochs; at least 1."""
        return np.maximum(np.round(self.stall_share * np.asarray(epochs)), 1).astype(np.int64)

    def decide(self, standing: Standing, target: ArrayLike = np.nan, wants_best: ArrayLike = True) -> NDArray[np.int64]:
        """What becomes of n runs.

        Parameters
        ----------
        standing : of the runs
        target : metric that is required, scalar or (n,); NaN where none is
        wants_best : whether a run goes for the best metric, MLFS's option ii, or for the target alone, option iii

        Returns
        -------
        (n,) members of `Stop`
        """
        wanted = np.broadcast_to(np.asarray(target, np.float64), standing.mean.shape)
        best = np.broadcast_to(np.asarray(wants_best, np.bool_), wanted.shape)
        reached = standing.direction * (standing.achieved - wanted) >= 0
        hopeless = ~reached & (standing.miss_probability(wanted) >= self.confidence)
        level = best & self._level(standing)
        young = np.isnan(standing.earlier)
        rules = [standing.sure & rule for rule in (reached & ~best, hopeless & ~young, level)]
        return np.select(rules, [Stop.REACHED, Stop.HOPELESS, Stop.LEVEL], Stop.GO_ON).astype(np.int64)

    def _level(self, standing: Standing) -> Bools:
        room = self.tolerance * np.abs(standing.achieved)
        almost = standing.miss_probability(standing.achieved + standing.direction * room) >= self.even
        stalled: Bools = standing.direction * (standing.achieved - standing.earlier) < room
        return almost & stalled


def standing_of(metric: ArrayLike, forecast: CurveForecast, rule: OptStop) -> Standing:
    """Standing of n runs from what was measured and the forecast of it.

    Parameters
    ----------
    metric : (n, L) of epoch column + 1, NaN where it was not measured; what is past `forecast.seen` is not read
    forecast : of the same n runs
    rule : tells over how many epochs runs must stall
    """
    table = np.array(metric, np.float64, ndmin=2)
    table[np.arange(table.shape[1]) >= forecast.seen[:, None]] = np.nan
    before = forecast.seen - rule.stall_epochs(forecast.epochs)
    past = np.where(np.arange(table.shape[1]) < before[:, None], table, np.nan)
    mean, below, above = (each[:, 0] for each in forecast.at(forecast.epochs[:, None]))
    way = forecast.direction
    return Standing(_best(table, way), _best(past, way), forecast.sure, mean, below, above, way)


def _best(table: Floats, direction: Floats) -> Floats:
    """(n,) best value of each row; NaN where it has none."""
    ways = np.where(np.isfinite(table), direction[:, None] * table, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(ways), direction * ways, np.nan)
