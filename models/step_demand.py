"""Demand functions of applications whose step times were measured by nodes, GPUs and batch size. Pollux (OSDI 2021).

A job keeps its total batch size whatever it runs on: g GPUs take a g-th of it each, and where that is more than one
GPU was measured to hold they take it in several passes and synchronise once.
"""

import math
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TrainingError
from jobcast.models.demand import DEMANDS, GPUS_PER_NODE, Demand
from jobcast.models.goodput import Throughput, fit_throughput
from jobcast.traces.goodput_tables import StepTimes

THROUGHPUT = "throughput"
FITS: tuple[str, ...] = (THROUGHPUT, *DEMANDS)
"""Names of demand functions of step times."""
FOLDS = 5
"""Configurations are left out in so many turns."""
NEAR = math.log(2.0)
"""Step times at half or twice the batch size still tell much of what a job will take."""
SLACK = 1e-9


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
        step_s, sync_s = (np.bincount(at, values[mine]) / np.bincount(at) for values in (times.step_s, times.sync_s))
        passes, local = passes_of(batch_size, gpus, min(largest, float(sizes[-1])))
        if sizes[0] * (1 - SLACK) <= local:
            step, sync = float(np.interp(local, sizes, step_s)), float(np.interp(local, sizes, sync_s))
            rows.append((nodes, gpus, passes * step - (passes - 1) * min(sync, step)))
    return Points(*np.array(rows, dtype=np.float64).reshape(-1, 3).T)


def passes_of(batch_size: float, gpus: float, largest: float) -> tuple[int, float]:
    """Passes over a GPU's share of a batch, and its samples in each.

    >>> passes_of(64, 1, 12), passes_of(64, 16, 12)
    ((6, 10.666666666666666), (1, 4.0))
    """
    passes = max(1, int(np.ceil(batch_size / gpus / largest - SLACK)))
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
        near = np.exp(-0.5 * (np.log(times.local_batch_size / local) / NEAR) ** 2) + SLACK
        _, at = np.unique(times.gpus, return_inverse=True)
        self.model_: Throughput = fit_throughput(times, near / np.bincount(at, near)[at])
        return self

    def predict(self, gpus: ArrayLike, nodes: ArrayLike | None = None) -> Floats:
        """Seconds a step of the total batch size, (n,)."""
        count = np.atleast_1d(np.asarray(gpus, np.float64))
        where = np.ceil(count / self.gpus_per_node) if nodes is None else np.broadcast_to(nodes, count.shape)
        shares = [passes_of(self.batch_size, one, self.largest_) for one in count]
        passes, local = (np.array(values, dtype=np.float64) for values in zip(*shares, strict=True))
        grad_s = self.model_.grad_s + self.model_.grad_sample_s * local
        seconds: Floats = (passes - 1) * grad_s + self.model_.step_s(where, count, local)
        return seconds

    def speedup(self, gpus: ArrayLike, nodes: ArrayLike | None = None) -> Floats:
        """Speed over one GPU, (n,)."""
        alone: Floats = self.predict([1.0])
        speedups: Floats = alone[0] / self.predict(gpus, nodes)
        return speedups


def fit_steps(
    fit: str, times: StepTimes, batch_size: int, most_gpus: int, gpus_per_node: int = GPUS_PER_NODE
) -> Demand:
    """A demand function of a name in `FITS`, from what was measured on up to `most_gpus`.

    The throughput model learns from all batch sizes, the others from `points_of` this one, in which each number of
    GPUs weighs alike, however many configurations of it were measured. Raises TrainingError where one GPU or a second
    number of GPUs was not measured.
    """
    seen = _without(times, most_gpus)
    if fit == THROUGHPUT:
        _check_alone(seen, most_gpus)
        return ThroughputDemand(batch_size, gpus_per_node, most_local(times)).fit(seen)
    points = points_of(seen, batch_size)
    _check_points(points, batch_size, most_gpus)
    _, at, counts = np.unique(points.gpus, return_inverse=True, return_counts=True)
    return DEMANDS[fit](gpus_per_node).fit(points.gpus, points.seconds, points.nodes, sample_weight=1.0 / counts[at])


def speedup_curves(demand: Demand, most_gpus: int, gpus_per_node: int = GPUS_PER_NODE) -> Floats:
    """(2, most_gpus + 1) over one GPU: packed on the fewest nodes, and spread over one node a GPU; 0 for none."""
    gpus = np.arange(1, most_gpus + 1, dtype=np.float64)
    packed, spread = (demand.speedup(gpus, nodes) for nodes in (np.ceil(gpus / gpus_per_node), gpus))
    curves = np.concatenate([np.zeros((2, 1)), np.stack([packed, spread])], axis=1)
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
    fold = np.where(points.gpus == 1, -1, np.arange(len(points.gpus)) % FOLDS)
    alone = float(np.mean(points.seconds[points.gpus == 1]))
    seconds: dict[str, list[float]] = {fit: [] for fit in FITS}
    speedups: dict[str, list[float]] = {fit: [] for fit in FITS}
    for turn in range(FOLDS):
        out = _at(points, fold == turn)
        if len(out.gpus) and len(np.unique(points.gpus[fold != turn])) > 1:
            seen = _without(times, most_gpus, out)
            for fit in FITS:
                demand = fit_steps(fit, seen, batch_size, most_gpus, gpus_per_node)
                seconds[fit] += (100 * np.abs(demand.predict(out.gpus, out.nodes) / out.seconds - 1)).tolist()
                told = demand.speedup(out.gpus, out.nodes) * out.seconds / alone
                speedups[fit] += (100 * np.abs(told - 1)).tolist()
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
    return StepTimes(*(getattr(times, column.name)[keep] for column in fields(times)))
