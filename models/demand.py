"""Demand functions: execution time by number, locality and type of GPUs, from few measured points. PCS, section 4.

All are estimators in scikit-learn's manner: `fit(gpus, seconds, nodes, gpu_types, sample_weight)`, then `predict(gpus,
nodes, gpu_types)` in seconds. A point is packed where it lies on as few nodes as hold its GPUs, else spread; each
locality has a curve of its own, and where no spread point was measured both share one. Types differ by a factor.

Demand functions of applications whose step times were measured by nodes, GPUs and batch size. Pollux (OSDI 2021).

A job keeps its total batch size whatever it runs on: g GPUs take a g-th of it each, and where that is more than one
GPU was measured to hold they take it in several passes and synchronise once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TrainingError
from jobcast.models.goodput import Throughput, fit_throughput
from jobcast.traces.goodput_tables import StepTimes

GPUS_PER_NODE = 4
"""Of the cluster that Pollux's step times were measured on."""
ONE_TYPE = ""
# Wider bounds let few noisy points bend the curve where nothing was measured.
STEEPEST, FLATTEST = 1.5, -2.0
"""Exponents of a power law: beyond 1 speedups are super-linear, below 0 more GPUs are slower."""
PACKED, SPREAD = 0, 1


def is_spread(gpus: ArrayLike, nodes: ArrayLike, gpus_per_node: int = GPUS_PER_NODE) -> NDArray[np.bool_]:
    """Whether GPUs lie on more nodes than they need.

    >>> is_spread([4, 4, 6], [1, 2, 2]).tolist()
    [False, True, False]
    """
    return np.asarray(nodes) > np.ceil(np.asarray(gpus, np.float64) / gpus_per_node)


class MeasuredDemand:
    """What demand functions of measured points share.

    Parameters
    ----------
    gpus_per_node : tells packed from spread points

    Attributes
    ----------
    one_gpu_s_ : seconds on one GPU of the first type
    types_, speed_ : types in order of appearance, and the speed of each over the first
    """

    one_gpu_s_: float
    types_: tuple[str, ...]
    speed_: Floats

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
            A point is not a positive number, or there are fewer than two numbers of GPUs, or, for a table, not one GPU.
        """
        count, logs, spread, weight = checked(gpus, seconds, nodes, sample_weight, self.gpus_per_node)
        self.types_, kind = _types(gpu_types, len(count))
        self._learn(count, logs, spread, weight, kind)
        return self

    def _learn(
        self, count: Floats, logs: Floats, spread: NDArray[np.bool_], weight: Floats, kind: NDArray[np.int64]
    ) -> None:
        """Of points, each (n,): GPUs, log seconds, whether spread, weights, places of their types in `types_`."""
        raise NotImplementedError

    def speedup(self, gpus: ArrayLike, nodes: ArrayLike | None = None) -> Floats:
        """Speed over one GPU of the same type, shapes broadcast; 1 for one GPU."""
        count = np.asarray(gpus, np.float64)
        spread = np.zeros(count.shape, bool) if nodes is None else is_spread(count, nodes, self.gpus_per_node)
        return self._speedup(count, spread)

    def _speedup(self, count: Floats, spread: NDArray[np.bool_]) -> Floats:
        raise NotImplementedError

    def predict(
        self, gpus: ArrayLike, nodes: ArrayLike | None = None, gpu_types: Sequence[str] | None = None
    ) -> Floats:
        """Seconds, (n,); raises TrainingError for a type that was not measured."""
        return self.one_gpu_s_ / self.speedup(gpus, nodes) / self._speeds_of(gpu_types)

    def _speeds_of(self, gpu_types: Sequence[str] | None) -> Floats:
        """Speed of each type over the first one."""
        if gpu_types is None:
            return np.ones(())
        for name in gpu_types:
            if name not in self.types_:
                raise TrainingError(f"GPU type {name!r} was not measured; known types are {', '.join(self.types_)}")
        return self.speed_[[self.types_.index(name) for name in gpu_types]]


class FittedDemand(MeasuredDemand):
    """What demand functions of one parameter a locality share; `speedup_of(gpus, parameter)` is their form.

    The squared relative error of seconds (of their logarithm) is least, weighted, by scipy's `least_squares`.

    Attributes
    ----------
    parameter_ : (2,) of packed and of spread GPUs
    """

    bounds: ClassVar[tuple[float, float]]
    start: ClassVar[float]

    @staticmethod
    def speedup_of(gpus: Floats, parameter: Floats) -> Floats:
        """Speed over one GPU, shapes broadcast."""
        raise NotImplementedError

    def _learn(
        self, count: Floats, logs: Floats, spread: NDArray[np.bool_], weight: Floats, kind: NDArray[np.int64]
    ) -> None:
        from scipy.optimize import least_squares

        # Without a spread point there is nothing to tell both localities apart by.
        locality = spread.astype(np.int64) if spread.any() else np.zeros(len(count), dtype=np.int64)
        localities = int(locality.max()) + 1

        def residuals(free: Floats) -> Floats:
            own = free[1 : 1 + localities][locality]
            # The first type is the one that the others are compared with.
            slower = np.concatenate([[0.0], free[1 + localities :]])[kind]
            return np.asarray(np.sqrt(weight) * (free[0] - np.log(self.speedup_of(count, own)) + slower - logs))

        sizes = [1, localities, len(self.types_) - 1]
        low, high = self.bounds
        # In the order of the free parameters: log seconds, one form a locality, one factor a further type.
        bounds = np.repeat([-np.inf, low, -np.inf], sizes), np.repeat([np.inf, high, np.inf], sizes)
        first = np.repeat([float(logs.max()), self.start, 0.0], sizes)
        found: Any = least_squares(residuals, first, bounds=bounds)
        self.one_gpu_s_ = float(np.exp(found.x[0]))
        # Repeats the one parameter where both localities share it.
        self.parameter_ = np.resize(found.x[1 : 1 + localities], 2)
        self.speed_ = np.exp(-np.concatenate([[0.0], found.x[1 + localities :]]))

    def _speedup(self, count: Floats, spread: NDArray[np.bool_]) -> Floats:
        return self.speedup_of(count, self.parameter_[spread.astype(np.int64)])


class AmdahlDemand(FittedDemand):
    """Amdahl: speedup 1 / (s + (1 - s) / g), s in [0, 1] the share of the work that does not scale."""

    bounds = (0.0, 1.0)
    start = 0.1

    @staticmethod
    def speedup_of(gpus: Floats, parameter: Floats) -> Floats:
        """Speed over one GPU."""
        return 1.0 / (parameter + (1.0 - parameter) / gpus)


class PowerDemand(FittedDemand):
    """Power law: speedup g^a; with a < 0 more GPUs are slower than one."""

    bounds = (FLATTEST, STEEPEST)
    start = 0.8

    @staticmethod
    def speedup_of(gpus: Floats, parameter: Floats) -> Floats:
        """Speed over one GPU."""
        return gpus**parameter


class TableDemand(MeasuredDemand):
    """The measured points themselves: speedups linear between numbers of GPUs, flat beyond the last.

    Several points of one number and locality stand as their weighted geometric mean. What a locality does not tell is
    as in the other one.

    Attributes
    ----------
    speed_ : of a type by its points on one GPU
    known_ : by locality, (GPUs from 1 on, speedups)
    """

    def _learn(
        self, count: Floats, logs: Floats, spread: NDArray[np.bool_], weight: Floats, kind: NDArray[np.int64]
    ) -> None:
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
        # One point is GPUs = 1 alone, which says nothing of this locality.
        self.known_ = (packed if len(packed[0]) > 1 else far, far if len(far[0]) > 1 else packed)

    def _speedup(self, count: Floats, spread: NDArray[np.bool_]) -> Floats:
        return np.where(spread, np.interp(count, *self.known_[SPREAD]), np.interp(count, *self.known_[PACKED]))


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
    # 5e-324 is the smallest number above 0.
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


THROUGHPUT = "throughput"
FITS: tuple[str, ...] = (THROUGHPUT, *DEMANDS)
"""Names of demand functions of step times."""
FOLDS = 5
"""Configurations are left out in so many turns."""
NEAR = math.log(2.0)
"""Step times at half or twice the batch size still tell much of what a job will take."""
LEAST_WEIGHT = 1e-9
"""Of step times however far from the job's batch size: weights must not all be 0."""


@dataclass(frozen=True, slots=True)
class Points:
    """Seconds a step of one total batch size by configuration, each (n,), GPUs ascending, then nodes."""

    nodes: Floats
    gpus: Floats
    seconds: Floats


def most_local(times: StepTimes) -> float:
    """Largest batch size that one GPU was measured to hold."""
    return float(times.local_batch_size.max())


def default_batch_size(times: StepTimes, most_gpus: int) -> int:
    """Total batch size that fills one GPU, or that `most_gpus` can still share at the smallest size measured."""
    alone = times.local_batch_size[times.gpus == 1]
    # Each of the GPUs must get at least the smallest share that was measured.
    least = most_gpus * float(times.local_batch_size.min())
    return int(max(alone.max() if len(alone) else 0.0, least))


def points_of(times: StepTimes, batch_size: int) -> Points:
    """Measured seconds a step of a total batch size, linear between the batch sizes measured on a configuration.

    Configurations whose measurements do not reach that size are left out.
    """
    rows = []
    largest = most_local(times)
    for gpus, nodes in sorted(set(zip(times.gpus.tolist(), times.nodes.tolist(), strict=True))):
        mine = (times.gpus == gpus) & (times.nodes == nodes)
        sizes, at = np.unique(times.local_batch_size[mine], return_inverse=True)
        # Repeated measurements of a configuration count as their mean.
        step_s, sync_s = (np.bincount(at, values[mine]) / np.bincount(at) for values in (times.step_s, times.sync_s))
        # No more a GPU than was measured there, even if another configuration held more.
        passes, local = passes_of(batch_size, gpus, min(largest, float(sizes[-1])))
        if sizes[0] * (1 - tolerance.SHARES) <= local:
            step, sync = float(np.interp(local, sizes, step_s)), float(np.interp(local, sizes, sync_s))
            # All passes compute gradients, only the last one waits for the others' gradients.
            rows.append((nodes, gpus, passes * step - (passes - 1) * min(sync, step)))
    return Points(*np.array(rows, dtype=np.float64).reshape(-1, 3).T)


def passes_of(batch_size: float, gpus: float, largest: float) -> tuple[int, float]:
    """Passes over a GPU's share of a batch, and its samples in each.

    >>> passes_of(64, 1, 12), passes_of(64, 16, 12)
    ((6, 10.666666666666666), (1, 4.0))
    """
    # Less a trifle, so that a share that fits exactly needs no further pass.
    passes = max(1, int(np.ceil(batch_size / gpus / largest - tolerance.SHARES)))
    return passes, batch_size / gpus / passes


class ThroughputDemand:
    """Pollux's throughput model as a demand function: gradients, and synchronisation within and across nodes.

    Parameters
    ----------
    batch_size : total, samples
    gpus_per_node : where nodes are not told, GPUs lie on as few as hold them
    largest : batch size that one GPU holds; None takes the largest measured

    Attributes
    ----------
    model_ : the fitted model
    largest_ : batch size that one GPU holds
    """

    def __init__(self, batch_size: float, gpus_per_node: int = GPUS_PER_NODE, largest: float | None = None):
        self.batch_size = batch_size
        self.gpus_per_node = gpus_per_node
        self.largest = largest

    def fit(self, times: StepTimes) -> Self:
        """Learn from step times at any batch sizes; those near what a job of this batch size takes count for more.

        Each number of GPUs weighs alike, and within it a measurement by exp(-d^2 / 2), where d is the logarithm of its
        batch size over that of the job, in units of `NEAR`.
        """
        self.largest_ = self.largest or most_local(times)
        local = np.array([passes_of(self.batch_size, one, self.largest_)[1] for one in times.gpus])
        # The trifle keeps sizes far away from weighing nothing at all, where nothing near was measured.
        near = np.exp(-0.5 * (np.log(times.local_batch_size / local) / NEAR) ** 2) + LEAST_WEIGHT
        _, at = np.unique(times.gpus, return_inverse=True)
        # Each number of GPUs weighs 1 in all, however often it was measured.
        self.model_: Throughput = fit_throughput(times, near / np.bincount(at, near)[at])
        return self

    def predict(self, gpus: ArrayLike, nodes: ArrayLike | None = None) -> Floats:
        """Seconds a step of the total batch size, (n,)."""
        count = np.atleast_1d(np.asarray(gpus, np.float64))
        where = np.ceil(count / self.gpus_per_node) if nodes is None else np.broadcast_to(nodes, count.shape)
        shares = [passes_of(self.batch_size, one, self.largest_) for one in count]
        passes, local = (np.array(values, dtype=np.float64) for values in zip(*shares, strict=True))
        # Passes before the last compute gradients only.
        grad_s = self.model_.grad_s + self.model_.grad_sample_s * local
        return (passes - 1) * grad_s + self.model_.step_s(where, count, local)

    def speedup(self, gpus: ArrayLike, nodes: ArrayLike | None = None) -> Floats:
        """Speed over one GPU, (n,)."""
        return np.asarray(self.predict([1.0])[0] / self.predict(gpus, nodes))


def fit_steps(
    fit: str, times: StepTimes, batch_size: int, most_gpus: int, gpus_per_node: int = GPUS_PER_NODE
) -> MeasuredDemand | ThroughputDemand:
    """A demand function of a name in `FITS`, from what was measured on up to `most_gpus`.

    The throughput model learns from all batch sizes, the others from `points_of` this one, in which each number of
    GPUs weighs alike, however many configurations of it were measured. Raises TrainingError where one GPU or a second
    number of GPUs was not measured.
    """
    seen = _without(times, most_gpus)
    if fit == THROUGHPUT:
        _check_alone(seen, most_gpus)
        return ThroughputDemand(batch_size, gpus_per_node, most_local(times)).fit(seen)
    # Points first, then the check: what is missing is named by this batch size.
    points = points_of(seen, batch_size)
    _check_points(points, batch_size, most_gpus)
    _, at, counts = np.unique(points.gpus, return_inverse=True, return_counts=True)
    return DEMANDS[fit](gpus_per_node).fit(points.gpus, points.seconds, points.nodes, sample_weight=1.0 / counts[at])


def speedup_curves(
    demand: MeasuredDemand | ThroughputDemand, most_gpus: int, gpus_per_node: int = GPUS_PER_NODE
) -> Floats:
    """(2, most_gpus + 1) over one GPU: packed on the fewest nodes, and spread over one node a GPU; 0 for none."""
    gpus = np.arange(1, most_gpus + 1, dtype=np.float64)
    packed, spread = (demand.speedup(gpus, nodes) for nodes in (np.ceil(gpus / gpus_per_node), gpus))
    curves = np.concatenate([np.zeros((2, 1)), np.stack([packed, spread])], axis=1)
    # Fits of several GPUs need not pass through 1 exactly.
    curves[:, 1] = 1.0
    return curves


def left_out_errors(
    times: StepTimes, batch_size: int, most_gpus: int, gpus_per_node: int = GPUS_PER_NODE
) -> dict[str, dict[str, float]]:
    """By fit, errors in % of seconds and of speedups on `n` configurations that it did not see.

    Configurations (GPUs, nodes) up to `most_gpus` are left out in `FOLDS` turns, every fifth at a time; one GPU stays.
    Empty where nothing could be left out. Raises TrainingError where one GPU or a second number was not measured.
    """
    points = points_of(times, batch_size)
    points = _at(points, points.gpus <= most_gpus)
    _check_points(points, batch_size, most_gpus)
    # One GPU is in no fold: speedups hang on it.
    fold = np.where(points.gpus == 1, -1, np.arange(len(points.gpus)) % FOLDS)
    alone = float(np.mean(points.seconds[points.gpus == 1]))
    seconds: dict[str, list[float]] = {fit: [] for fit in FITS}
    speedups: dict[str, list[float]] = {fit: [] for fit in FITS}
    for turn in range(FOLDS):
        out = _at(points, fold == turn)
        # A turn that leaves a single number of GPUs tells no curve.
        if len(out.gpus) and len(np.unique(points.gpus[fold != turn])) > 1:
            seen = _without(times, most_gpus, out)
            for fit in FITS:
                demand = fit_steps(fit, seen, batch_size, most_gpus, gpus_per_node)
                seconds[fit] += (100 * np.abs(demand.predict(out.gpus, out.nodes) / out.seconds - 1)).tolist()
                result = demand.speedup(out.gpus, out.nodes) * out.seconds / alone
                speedups[fit] += (100 * np.abs(result - 1)).tolist()
    return {
        fit: {
            "n": len(its),
            "seconds_mean_pct": float(np.mean(its)),
            "seconds_worst_pct": float(np.max(its)),
            "speedup_mean_pct": float(np.mean(speedups[fit])),
            "speedup_worst_pct": float(np.max(speedups[fit])),
        }
        for fit, its in seconds.items()
        if its
    }


def _check_points(points: Points, batch_size: int, most_gpus: int) -> None:
    if len(np.unique(points.gpus)) < 2 or not (points.gpus == 1).any():
        raise TrainingError(
            f"batch size {batch_size} was measured on {len(points.gpus)} configurations of up to {most_gpus} GPUs; one "
            f"GPU and another number are needed, choose another batch size"
        )


def _check_alone(seen: StepTimes, most_gpus: int) -> None:
    if not (seen.gpus == 1).any() or len(np.unique(seen.gpus)) < 2:
        raise TrainingError(f"no step times on one GPU, or none on 2 to {most_gpus} GPUs; measure them")


def _at(points: Points, rows: NDArray[np.bool_]) -> Points:
    return Points(points.nodes[rows], points.gpus[rows], points.seconds[rows])


def _without(times: StepTimes, most_gpus: int, left_out: Points | None = None) -> StepTimes:
    """Measurements on up to `most_gpus`, but for some configurations."""
    out = set() if left_out is None else set(zip(left_out.gpus.tolist(), left_out.nodes.tolist(), strict=True))
    pairs = zip(times.gpus.tolist(), times.nodes.tolist(), strict=True)
    keep = np.array([pair not in out and pair[0] <= most_gpus for pair in pairs], dtype=np.bool_)
    return times.at(keep)
