"""WFQ(T, W, zeta_min): configurations of PCS from three parameters, and from all of their numbers. PCS, section 3.3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from math import exp, inf, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError
from jobcast.schedulers.elastic.config import WfqConfig

# Steps that are searched. They are no parameter of WFQ(T, W, zeta_min), but the published configurations, with 0.17 to
# 0.50, were searched over them too.
DELTAS = (0.01, 1.0)
# Queues of the smallest T that is searched: more do not come closer to shortest-first, but cost time.
MOST_QUEUES = 20
# W that is searched: from that of the published searches, which favour large jobs, for fairness, to twice that of their
# configurations, whose weights fall by e^-2.8 to e^-3.2.
DISPARITIES = (-3.0, 6.0)
# Values of T that are tried to find the smallest one to be searched.
VARIATIONS = 200
# Where they begin, over the C^2 of all sizes.
SMALLEST_SHARE = 1e-6
ROUNDING = 1e-9
# Bounds of the space of raw numbers; the published configurations, 3 queues and weights from 0.002 on, lie inside.
MOST_RAW_QUEUES, LEAST_RAW_WEIGHT = 10, 1e-3
# Queues of the published search over raw numbers.
MOST_LINEAR_QUEUES = 5


class SizeTable:
    """Sizes of a workload, ready to be cut into queues.

    Parameters
    ----------
    sizes : (n_jobs,) seconds on one GPU, more than 0; at least one. Raises ConfigError for others.
    """

    def __init__(self, sizes: ArrayLike) -> None:
        result = np.asarray(sizes, dtype=np.float64)
        if not len(result) or not (np.isfinite(result) & (result > 0)).all():
            raise ConfigError("sizes of jobs must be finite and more than 0, at least one of them; correct the trace")
        # Equal sizes share a queue, so that cuts lie between distinct ones.
        self.values, counts = np.unique(result, return_counts=True)
        # Squares of seconds would lose digits in their sums.
        scaled = self.values / self.values[-1]
        zero = np.zeros(1)
        self._count = np.concatenate([zero, np.cumsum(counts, dtype=np.float64)])
        self._sum = np.concatenate([zero, np.cumsum(counts * scaled)])
        self._squares = np.concatenate([zero, np.cumsum(counts * scaled**2)])

    @property
    def variation(self) -> float:
        """Squared coefficient of variation of all sizes, C^2_max."""
        return float(self._from(0)[-1])

    def thresholds(self, variation: float) -> tuple[float, ...]:
        """The largest size of each queue, the last one infinite, when no queue may vary by more than `variation`.

        Greedy from the smallest size up: each queue reaches as far as its squared coefficient of variation allows,
        so that with C^2_max there is one queue. Equal sizes share a queue.
        """
        begin, found = 0, []
        while begin < len(self.values):
            fits = np.flatnonzero(self._from(begin) <= variation * (1.0 + ROUNDING) + ROUNDING)
            begin += int(fits[-1]) + 1  # a single size varies by 0, so that one always fits
            found.append(float(self.values[begin - 1]))
        return (*found[:-1], inf)

    def least_variation(self) -> float:
        """The smallest T, of `VARIATIONS` down to a millionth of C^2_max, from which on queues are few enough."""
        tried: list[float] = (self.variation * np.geomspace(1.0, SMALLEST_SHARE, VARIATIONS)).tolist()
        # The number of queues grows as T falls, so the first one beyond ends the search.
        return min(takewhile(lambda one: len(self.thresholds(one)) <= MOST_QUEUES, tried))

    def _from(self, begin: int) -> Floats:
        """C^2 of the sizes from one on, by the last of them, (n_values - begin,)."""
        count = self._count[begin + 1 :] - self._count[begin]
        mean = (self._sum[begin + 1 :] - self._sum[begin]) / count
        square = (self._squares[begin + 1 :] - self._squares[begin]) / count
        varied: Floats = np.maximum(square / mean**2 - 1.0, 0.0)
        # A single size varies by nothing, whatever the differences of sums round to.
        varied[0] = 0.0
        return varied


@dataclass(frozen=True, slots=True)
class Parameters:
    """WFQ(T, W, zeta_min).

    Attributes
    ----------
    variation : T, the most that sizes within a queue vary, as a squared coefficient of variation, > 0
    disparity : W_1 .. W_k by GPU type: queue i weighs e^(-i W)
    least_efficiency : zeta_min, 0 to 1
    delta : step by which a cap is relaxed
    """

    variation: float
    disparity: tuple[float, ...]
    least_efficiency: float
    delta: float

    def config(self, sizes: SizeTable, gpu_types: Sequence[str] = ("",)) -> WfqConfig:
        """The configuration for a workload. Raises ConfigError when there is not one W a GPU type."""
        if len(self.disparity) != len(gpu_types):
            raise ConfigError(f"{len(self.disparity)} values of W for {len(gpu_types)} GPU types; give one a type")
        thresholds = sizes.thresholds(self.variation)
        rates = [weights(len(thresholds), one) for one in self.disparity]
        by_type = dict(zip(gpu_types, rates, strict=True)) if len(rates) > 1 else None
        return WfqConfig(thresholds, rates[0], self.least_efficiency, self.delta, by_type)


def weights(queues: int, disparity: float) -> tuple[float, ...]:
    """e^(-i W) of each queue, as shares of their sum.

    >>> [round(one, 3) for one in weights(3, 3.0)]
    [0.95, 0.047, 0.002]
    """
    raw = [exp(-queue * disparity) for queue in range(queues)]
    return tuple(one / sum(raw) for one in raw)


@dataclass(frozen=True, slots=True, eq=False)
class ParameterSpace:
    """WFQ(T, W_1 .. W_k, zeta_min) and delta.

    T, up to C^2_max, and delta lie on logarithmic scales, or on linear ones as in the published search; W goes from -3
    to 6, zeta_min from 0 to 1.
    """

    sizes: SizeTable
    gpu_types: tuple[str, ...]
    least_variation: float
    linear: bool

    @property
    def dimensions(self) -> int:
        """T, the W, zeta_min and delta."""
        return 3 + len(self.gpu_types)

    @property
    def fifo(self) -> Floats:
        """T = C^2_max, zeta_min = 0."""
        return np.array([1.0, *(0.5 for _ in self.gpu_types), 0.0, 0.5])

    def config(self, point: Floats) -> WfqConfig:
        """The configuration at a point."""
        return self.parameters(point).config(self.sizes, self.gpu_types)

    def parameters(self, point: Floats) -> Parameters:
        """The parameters at a point."""
        disparity = tuple(_between(*DISPARITIES, one, linear=True) for one in point[1:-2])
        variation = _between(self.least_variation, self.sizes.variation, point[0], linear=self.linear)
        return Parameters(variation, disparity, float(point[-2]), _between(*DELTAS, point[-1], linear=self.linear))

    def report(self, point: Floats) -> dict[str, Any]:
        """T, W (a list where there are several GPU types), zeta_min and delta."""
        own = self.parameters(point)
        disparity = list(own.disparity) if len(own.disparity) > 1 else own.disparity[0]
        return {"T": own.variation, "W": disparity, "zeta_min": own.least_efficiency, "delta": own.delta}


@dataclass(frozen=True, slots=True, eq=False)
class RawSpace:
    """Number of queues, each threshold, each weight, cap and delta on their own: the unparameterised space, Figure 9c.

    Thresholds, weights and delta lie on logarithmic scales, or on linear ones as in the published search. A
    configuration of q queues reads the first q - 1 thresholds and the first q weights.
    """

    sizes: SizeTable
    gpu_types: tuple[str, ...]
    most_queues: int
    linear: bool

    @property
    def dimensions(self) -> int:
        """One number of queues, the thresholds, the weights by GPU type, cap and delta."""
        return 1 + (self.most_queues - 1) + self.most_queues * len(self.gpu_types) + 2

    @property
    def fifo(self) -> Floats:
        """One queue, cap 0."""
        point = np.full(self.dimensions, 0.5)
        point[0] = point[-2] = 0.0
        return point

    def config(self, point: Floats) -> WfqConfig:
        """The configuration at a point."""
        most, linear = self.most_queues, self.linear
        queues = min(int(point[0] * most) + 1, most)
        low, high = float(self.sizes.values[0]), float(self.sizes.values[-1])
        # Any point of the cube is a configuration: thresholds are sorted, weights normalised.
        cuts = sorted(_between(low, high, one, linear=linear) for one in point[1:queues])
        rates = []
        for begin in range(most, most * (1 + len(self.gpu_types)), most):
            raw = [_between(LEAST_RAW_WEIGHT, 1.0, one, linear=linear) for one in point[begin : begin + queues]]
            rates.append(tuple(one / sum(raw) for one in raw))
        by_type = dict(zip(self.gpu_types, rates, strict=True)) if len(rates) > 1 else None
        return WfqConfig((*cuts, inf), rates[0], float(point[-2]), _between(*DELTAS, point[-1], linear=linear), by_type)

    def report(self, point: Floats) -> dict[str, Any]:
        """Cap and delta; the configuration tells the rest."""
        own = self.config(point)
        return {"T": None, "W": None, "zeta_min": own.clip_demand_factor, "delta": own.delta}


# Configurations by points of a unit cube, so that any search algorithm can walk there.
Space = ParameterSpace | RawSpace


def parameter_space(sizes: SizeTable, gpu_types: Sequence[str] = ("",), *, linear: bool = False) -> Space:
    """The space of WFQ(T, W, zeta_min) for a workload, on the published scales where `linear`."""
    return ParameterSpace(sizes, tuple(gpu_types), sizes.least_variation(), linear)


def raw_space(sizes: SizeTable, gpu_types: Sequence[str] = ("",), *, linear: bool = False) -> Space:
    """The space of all numbers of a configuration for a workload, on the published scales where `linear`."""
    return RawSpace(sizes, tuple(gpu_types), MOST_LINEAR_QUEUES if linear else MOST_RAW_QUEUES, linear)


# Spaces to search in, by name.
SPACES: Mapping[str, Any] = {
    "parameters": parameter_space,
    "raw": raw_space,
    "parameters-linear": partial(parameter_space, linear=True),
    "raw-linear": partial(raw_space, linear=True),
}


def _between(low: float, high: float, share: float, *, linear: bool) -> float:
    """A point on a logarithmic or a linear scale; exactly `high` at its end."""
    if share >= 1.0 or low >= high:
        return high
    if linear:
        return low + float(share) * (high - low)
    return exp(log(low) + float(share) * (log(high) - log(low)))
