"""Pollux: GPUs shared out such that the generalised mean of speedups is greatest."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.goodput import ScalableJob

Floats = NDArray[np.float64]
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
        plans = [_greedy(worth, start, total_gpus) for start in starts]
        return max(plans, key=lambda plan: sum(values[gpus] for values, gpus in zip(worth, plan, strict=True)))

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
        powers: Floats = np.maximum(speedup, LEAST_SPEEDUP) ** self._p
        return powers if self._p > 0 else -powers


def _greedy(worth: Sequence[Floats], start: Sequence[int], total_gpus: int) -> list[int]:
    """Allocation reached from a start by steps of the greatest gain a GPU; ties go by position."""
    gpus, free = list(start), total_gpus - sum(start)
    steps = [_best_step(values, now, free) for values, now in zip(worth, gpus, strict=True)]
    while free > 0:
        gains = [gain for gain, _ in steps]
        index = int(np.argmax(gains))
        gain, step = steps[index]
        if gain <= 0.0:
            break
        gpus[index] += step
        free -= step
        for other, (_, planned) in enumerate(steps):
            if other == index or planned > free:
                steps[other] = _best_step(worth[other], gpus[other], free)
    return gpus


def _best_step(values: Floats, now: int, free: int) -> tuple[float, int]:
    """Greatest gain a GPU of going up from so many GPUs, and by how many; nothing where there is no way up."""
    ahead = values[now + 1 : now + free + 1]
    if not len(ahead):
        return 0.0, 0
    gains = (ahead - values[now]) / np.arange(1, len(ahead) + 1)
    step = int(np.argmax(gains))
    return float(gains[step]), step + 1
