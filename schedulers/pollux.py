"""Pollux: GPUs shared out such that the generalised mean of speedups is greatest."""

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from jobcast.domain.goodput import ScalableJob
from jobcast.domain.rounding import rounded, rounded_all
from jobcast.domain.rounding_kernels import rounded as rounded_in

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
types: Any = numba.types
_FLOATS, _INTS = types.Array(types.float64, 1, "C"), types.Array(types.int64, 1, "C")
_FLOATS_2D = types.Array(types.float64, 2, "C")
_STEP = types.Tuple((types.float64, types.int64))
P = -1.0  # Pollux (OSDI 2021): its default
RESTART_S = 30.0  # Pollux: what it assumes a change of GPUs to cost
LEAST_SPEEDUP = 0.01
"""Speedup that a waiting job counts with: none would make every division of too few GPUs equally bad."""


class Pollux:
    """Maximise the p-mean of speedups over an equal share. Pollux (OSDI 2021).

    A job's speedup is its goodput over that on GPUs / jobs. Where its GPUs would change, it counts (age - restarts x
    cost) / (age + cost) of that. The search is greedy: from nothing, and from the allocation of the moment, GPUs go by
    turns to the job whose step, of one GPU or more, gains most a GPU; the better of the two stands. (Pollux evolves
    allocations; on GPUs that are alike the steps find them.)

    Parameters
    ----------
    p : exponent, below 1; the smaller, the more the worst-off count
    restart_s : what a change of GPUs costs a job
    """

    name = "pollux"

    def __init__(self, p: float = P, restart_s: float = RESTART_S) -> None:
        if p >= 1 or p == 0:
            raise ValueError(f"p must be below 1 and not 0, got {p}")
        self._p = p
        self._restart_s = restart_s

    def allocate(self, jobs: Sequence[ScalableJob], total_gpus: int) -> Sequence[int]:
        """GPUs for each job, (n_jobs,)."""
        if not jobs:
            return []
        fair = max(1, total_gpus // len(jobs))
        worth = [self._worth(job, fair, total_gpus) for job in jobs]
        held = [min(job.held_gpus, len(values) - 1) for job, values in zip(jobs, worth, strict=True)]
        starts = [[0] * len(jobs)] if sum(held) > total_gpus else [held, [0] * len(jobs)]
        most = np.array([len(values) - 1 for values in worth])
        table = np.zeros((len(jobs), int(most.max()) + 1))
        for row, values in zip(table, worth, strict=True):
            row[: len(values)] = values
        plans = [_greedy(table, most, np.array(start), total_gpus - sum(start)).tolist() for start in starts]
        return max(
            plans, key=lambda plan: rounded(sum(float(values[gpus]) for values, gpus in zip(worth, plan, strict=True)))
        )

    def fitness(self, speedups: Sequence[float]) -> float:
        """Generalised mean with exponent p of speedups, (n,).

        >>> round(Pollux().fitness([1.0, 0.5]), 3)
        0.667
        """
        floored = np.maximum(np.array(speedups), LEAST_SPEEDUP)
        return float((floored**self._p).mean() ** (1.0 / self._p))

    def _worth(self, job: ScalableJob, fair: int, total_gpus: int) -> Floats:
        """By GPUs, from none on, what a job adds to the sum that grows with the fitness."""
        goodput = np.array([0.0, *job.goodput[:total_gpus]])
        speedup = goodput / goodput[min(fair, len(goodput) - 1)]
        if job.held_gpus > 0:
            kept = speedup[min(job.held_gpus, len(speedup) - 1)]
            speedup = speedup * max(0.0, job.age_s - job.restarts * self._restart_s) / (job.age_s + self._restart_s)
            speedup[min(job.held_gpus, len(speedup) - 1)] = kept
        powers = rounded_all(np.maximum(speedup, LEAST_SPEEDUP) ** self._p)
        return powers if self._p > 0 else -powers


@numba.njit(_STEP(_FLOATS, types.int64, types.int64), cache=True)
def _best_step(values: Floats, now: int, most: int) -> tuple[float, int]:
    """Greatest gain a GPU of going up from so many GPUs to `most` at most, and by how many; nothing where no way up."""
    best, step = 0.0, 0
    for up in range(1, most - now + 1):
        gain = rounded_in((values[now + up] - values[now]) / up)
        if up == 1 or gain > best:
            best, step = gain, up
    return best, step


@numba.njit(_INTS(_FLOATS_2D, _INTS, _INTS, types.int64), cache=True)
def _greedy(worth: Floats, most: Ints, start: Ints, free: int) -> Ints:
    """Allocation reached from a start by steps of the greatest gain a GPU; ties go by position.

    `worth` is (n_jobs, n) by GPUs, of which each job can use `most`; `free`: GPUs that the start leaves.
    """
    gpus, gains, steps = start.copy(), np.zeros(len(start)), np.zeros(len(start), dtype=np.int64)
    for job in range(len(start)):
        gains[job], steps[job] = _best_step(worth[job], gpus[job], min(most[job], gpus[job] + free))
    while free > 0:
        index = np.argmax(gains)
        if gains[index] <= 0.0:
            break
        gpus[index] += steps[index]
        free -= steps[index]
        for job in range(len(start)):
            if job == index or steps[job] > free:
                gains[job], steps[job] = _best_step(worth[job], gpus[job], min(most[job], gpus[job] + free))
    return gpus
