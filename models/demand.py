"""Demand functions: execution time by number, locality and type of GPUs, from few measured points. PCS, section 4.

All are estimators in scikit-learn's manner: `fit(gpus, seconds, nodes, gpu_types, sample_weight)`, then `predict(gpus,
nodes, gpu_types)` in seconds. A point is packed where it lies on as few nodes as hold its GPUs, else spread; each
locality has a curve of its own, and where no spread point was measured both share one. Types differ by a factor.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TrainingError

GPUS_PER_NODE = 4
"""Of the cluster that Pollux's step times were measured on."""
ONE_TYPE = ""
STEEPEST, FLATTEST = 1.5, -2.0
"""Exponents of a power law: beyond 1 speedups are super-linear, below 0 more GPUs are slower."""
PACKED, SPREAD = 0, 1


def is_spread(gpus: ArrayLike, nodes: ArrayLike, gpus_per_node: int = GPUS_PER_NODE) -> NDArray[np.bool_]:
    """Whether GPUs lie on more nodes than they need.

    >>> is_spread([4, 4, 6], [1, 2, 2]).tolist()
    [False, True, False]
    """
    spread: NDArray[np.bool_] = np.asarray(nodes) > np.ceil(np.asarray(gpus, np.float64) / gpus_per_node)
    return spread


class Demand(Protocol):
    """A fitted demand function, as it is asked."""

    def predict(self, gpus: ArrayLike, nodes: ArrayLike | None = None) -> Floats:
        """Seconds, (n,)."""

    def speedup(self, gpus: ArrayLike, nodes: ArrayLike | None = None) -> Floats:
        """Speed over one GPU, (n,)."""


class FittedDemand:
    """What demand functions of one parameter a locality share; `speedup_of(gpus, parameter)` is their form.

    The squared relative error of seconds (of their logarithm) is least, weighted, by scipy's `least_squares`.

    Parameters
    ----------
    gpus_per_node : tells packed from spread points

    Attributes
    ----------
    one_gpu_s_ : seconds on one GPU of the first type
    parameter_ : (2,) of packed and of spread GPUs
    types_, speed_ : types in order of appearance, and the speed of each over the first
    """

    bounds: ClassVar[tuple[float, float]]
    start: ClassVar[float]

    def __init__(self, gpus_per_node: int = GPUS_PER_NODE):
        self.gpus_per_node = gpus_per_node

    @staticmethod
    def speedup_of(gpus: Floats, parameter: Floats) -> Floats:
        """Speed over one GPU, shapes broadcast."""
        raise NotImplementedError

    def fit(
        self,
        gpus: ArrayLike,
        seconds: ArrayLike,
        nodes: ArrayLike | None = None,
        gpu_types: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from measured points, each (n,).

        Parameters
        ----------
        gpus, seconds : execution times, of a step or of a whole job
        nodes : that the GPUs lay on; None takes all points for packed
        gpu_types : None takes all points for one type's
        sample_weight : None weighs all points alike

        Raises
        ------
        TrainingError
            A point is not a positive number, or there are fewer than two numbers of GPUs.
        """
        from scipy.optimize import least_squares

        count, logs, spread, weight = checked(gpus, seconds, nodes, sample_weight, self.gpus_per_node)
        self.types_, kind = _types(gpu_types, len(count))
        locality = spread.astype(np.int64) if spread.any() else np.zeros(len(count), dtype=np.int64)
        localities = int(locality.max()) + 1

        def residuals(free: Floats) -> Floats:
            own = free[1 : 1 + localities][locality]
            slower = np.concatenate([[0.0], free[1 + localities :]])[kind]
            found: Floats = np.sqrt(weight) * (free[0] - np.log(self.speedup_of(count, own)) + slower - logs)
            return found

        sizes = [1, localities, len(self.types_) - 1]
        low, high = self.bounds
        bounds = np.repeat([-np.inf, low, -np.inf], sizes), np.repeat([np.inf, high, np.inf], sizes)
        first = np.repeat([float(logs.max()), self.start, 0.0], sizes)
        found: Any = least_squares(residuals, first, bounds=bounds)
        self.one_gpu_s_ = float(np.exp(found.x[0]))
        self.parameter_ = np.resize(found.x[1 : 1 + localities], 2)
        self.speed_ = np.exp(-np.concatenate([[0.0], found.x[1 + localities :]]))
        return self

    def speedup(self, gpus: ArrayLike, nodes: ArrayLike | None = None) -> Floats:
        """Speed over one GPU of the same type, shapes broadcast; 1 for one GPU."""
        count = np.asarray(gpus, np.float64)
        spread = np.zeros(count.shape, bool) if nodes is None else is_spread(count, nodes, self.gpus_per_node)
        return self.speedup_of(count, self.parameter_[spread.astype(np.int64)])

    def predict(
        self, gpus: ArrayLike, nodes: ArrayLike | None = None, gpu_types: Sequence[str] | None = None
    ) -> Floats:
        """Seconds, (n,); raises TrainingError for a type that was not measured."""
        return self.one_gpu_s_ / self.speedup(gpus, nodes) / speeds_of(self, gpu_types)


class AmdahlDemand(FittedDemand):
    """Amdahl: speedup 1 / (s + (1 - s) / g), s in [0, 1] the share of the work that does not scale."""

    bounds = (0.0, 1.0)
    start = 0.1

    @staticmethod
    def speedup_of(gpus: Floats, parameter: Floats) -> Floats:
        """Speed over one GPU."""
        speed: Floats = 1.0 / (parameter + (1.0 - parameter) / gpus)
        return speed


class PowerDemand(FittedDemand):
    """Power law: speedup g^a; with a < 0 more GPUs are slower than one."""

    bounds = (FLATTEST, STEEPEST)
    start = 0.8

    @staticmethod
    def speedup_of(gpus: Floats, parameter: Floats) -> Floats:
        """Speed over one GPU."""
        speed: Floats = gpus**parameter
        return speed


class TableDemand:
    """The measured points themselves: speedups linear between numbers of GPUs, flat beyond the last.

    Several points of one number and locality stand as their weighted geometric mean. What a locality does not tell is
    as in the other one.

    Parameters
    ----------
    gpus_per_node : tells packed from spread points

    Attributes
    ----------
    one_gpu_s_, types_, speed_ : as of `FittedDemand`, the speed of a type by its points on one GPU
    known_ : by locality, (GPUs from 1 on, speedups)
    """

    def __init__(self, gpus_per_node: int = GPUS_PER_NODE):
        self.gpus_per_node = gpus_per_node

    def fit(
        self,
        gpus: ArrayLike,
        seconds: ArrayLike,
        nodes: ArrayLike | None = None,
        gpu_types: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from measured points; see `FittedDemand.fit`. Raises TrainingError, also without one GPU's times."""
        count, logs, spread, weight = checked(gpus, seconds, nodes, sample_weight, self.gpus_per_node)
        self.types_, kind = _types(gpu_types, len(count))
        ones = []
        for number, name in enumerate(self.types_):
            mine = (count == 1) & (kind == number)
            if not mine.any():
                of_type = f" of type {name}" if name else ""
                raise TrainingError(f"no time on one GPU{of_type}; measure it or fit a curve")
            ones.append(float(np.average(logs[mine], weights=weight[mine])))
        self.one_gpu_s_, self.speed_ = float(np.exp(ones[0])), np.exp(ones[0] - np.array(ones))
        ups = np.array(ones)[kind] - logs
        packed, far = (_means(count[own], ups[own], weight[own]) for own in (~spread, spread))
        self.known_ = (packed if len(packed[0]) > 1 else far, far if len(far[0]) > 1 else packed)
        return self

    def speedup(self, gpus: ArrayLike, nodes: ArrayLike | None = None) -> Floats:
        """Speed over one GPU of the same type, shapes broadcast."""
        count = np.asarray(gpus, np.float64)
        spread = np.zeros(count.shape, bool) if nodes is None else is_spread(count, nodes, self.gpus_per_node)
        return np.where(spread, np.interp(count, *self.known_[SPREAD]), np.interp(count, *self.known_[PACKED]))

    def predict(
        self, gpus: ArrayLike, nodes: ArrayLike | None = None, gpu_types: Sequence[str] | None = None
    ) -> Floats:
        """Seconds, (n,); raises TrainingError for a type that was not measured."""
        return self.one_gpu_s_ / self.speedup(gpus, nodes) / speeds_of(self, gpu_types)


DEMANDS: dict[str, type[FittedDemand] | type[TableDemand]] = {
    "amdahl": AmdahlDemand,
    "power": PowerDemand,
    "table": TableDemand,
}
"""Forms by the name that users give."""


def checked(
    gpus: ArrayLike, seconds: ArrayLike, nodes: ArrayLike | None, weight: ArrayLike | None, gpus_per_node: int
) -> tuple[Floats, Floats, NDArray[np.bool_], Floats]:
    """GPUs, log seconds, whether spread, weights, each (n,). Raises TrainingError."""
    count, time_s = np.asarray(gpus, np.float64), np.asarray(seconds, np.float64)
    where = np.ceil(count / gpus_per_node) if nodes is None else np.asarray(nodes, np.float64)
    weights = np.ones(len(count)) if weight is None else np.asarray(weight, np.float64)
    if not len(count) == len(time_s) == len(where) == len(weights):
        raise TrainingError("GPUs, seconds, nodes and weights must be of one length; give one of each a point")
    for name, values, least in (("GPUs", count, 1.0), ("nodes", where, 1.0), ("seconds", time_s, 5e-324)):
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= least)))
        if len(bad):
            wanted = ">= 1" if least == 1 else "> 0"
            raise TrainingError(f"point {bad[0]}: {name} must be {wanted}, got {values[bad[0]]:g}; correct or drop it")
    if (weights < 0).any() or not weights.any():
        raise TrainingError("weights must be >= 0 and not all 0; correct them")
    if len(np.unique(count)) < 2:
        raise TrainingError("a demand function needs times on at least two numbers of GPUs; measure more")
    return count, np.log(time_s), is_spread(count, where, gpus_per_node), weights


def speeds_of(demand: Any, gpu_types: Sequence[str] | None) -> Floats:
    """Speed of each type over the first one of a fitted demand; raises TrainingError for one not measured."""
    if gpu_types is None:
        return np.ones(())
    for name in gpu_types:
        if name not in demand.types_:
            raise TrainingError(f"GPU type {name!r} was not measured; known types are {', '.join(demand.types_)}")
    speeds: Floats = demand.speed_[[demand.types_.index(name) for name in gpu_types]]
    return speeds


def _types(gpu_types: Sequence[str] | None, count: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Types in order of appearance, and the position of each point's."""
    names = [ONE_TYPE] * count if gpu_types is None else list(gpu_types)
    known = tuple(dict.fromkeys(names))
    return known, np.array([known.index(name) for name in names], dtype=np.int64)


def _means(gpus: Floats, logs: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Numbers of GPUs from 1 on and the weighted geometric mean of the speedups of each; 1 for one GPU."""
    numbers = np.unique(gpus[(gpus > 1) & (weight > 0)])
    means = [np.exp(np.average(logs[gpus == one], weights=weight[gpus == one])) for one in numbers]
    return np.concatenate([[1.0], numbers]), np.array([1.0, *means])
