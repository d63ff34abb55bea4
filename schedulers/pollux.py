"""Pollux: GPUs shared out such that the generalised mean of speedups is greatest."""

from collections.abc import Sequence

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F2, I1, njit, types
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, Grant, Trigger, View
from jobcast.domain.rounding import rounded, rounded_all
from jobcast.domain.rounding_kernels import rounded as rounded_in
from jobcast.domain.training import Goodputs

_STEP = types.Tuple((types.float64, types.int64))
P = -1.0  # Pollux (OSDI 2021): its default
ROUND_S = 60.0  # Pollux: the interval of its scheduler
RESTART_S = 30.0  # Pollux: what it assumes a change of GPUs to cost
# Speedup that a waiting job counts with: none would make every division of too few GPUs equally bad.
LEAST_SPEEDUP = 0.01


class Pollux:
    """Maximise the p-mean of speedups over an equal share. Pollux (OSDI 2021).

    A job's speedup is its goodput over that on GPUs / jobs. Where its GPUs would change, it counts (age - restarts x
    cost) / (age + cost) of that. The search is greedy: from nothing, and from the allocation of the moment, GPUs go by
    turns to the job whose step, of one GPU or more, gains most a GPU; the better of the two stands. (Pollux evolves
    allocations. On tables drawn at random 5 to 10 % of plans were not the best, by 6 % of the mean at most.)

    Parameters
    ----------
    p : exponent, below 1; the smaller, the more the worst-off count
    restart_s : what a change of GPUs costs a job, seconds
    round_s : seconds between two decisions
    """

    name = "pollux"

    def __init__(self, p: float = P, restart_s: float = RESTART_S, round_s: float = ROUND_S) -> None:
        self._p = p
        self._restart_s = restart_s
        self.trigger = Trigger(on_events=False, period_s=round_s)

    def decide(self, view: View) -> Decision:
        """Who holds another number of GPUs from now on."""
        jobs, total_gpus = list(view.active.values()), view.total_gpus
        goodputs, fair = view.facts(Goodputs), max(1, total_gpus // len(jobs))
        had = [int(view.running[job.seq].grant.gpus) if job.seq in view.running else 0 for job in jobs]
        worth = [
            self._worth(np.array([0.0, *goodputs[job.seq][:total_gpus]]), held, fair, self._kept(view, job))
            for job, held in zip(jobs, had, strict=True)
        ]
        plan = self._plan(worth, had, total_gpus)
        changed = [(job.seq, gpus) for job, held, gpus in zip(jobs, had, plan, strict=True) if gpus != held]
        return Decision({seq: Grant(gpus) if gpus else None for seq, gpus in changed})

    def _kept(self, view: View, job: Job) -> float:
        """Share of the speedup that a job counts with after a change."""
        age_s = view.now_s - job.submit_s
        spent_s = age_s + self._restart_s
        return max(0.0, age_s - view.service(job).changes * self._restart_s) / spent_s if spent_s else 1.0

    def _plan(self, worth: Sequence[Floats], had: Sequence[int], total_gpus: int) -> Sequence[int]:
        """GPUs for each job, (n_jobs,)."""
        # A job may hold more than its table has: it grew where it cannot any more.
        held = [min(gpus, len(values) - 1) for gpus, values in zip(had, worth, strict=True)]
        none = [0] * len(worth)
        # Where GPUs have gone, what is held is no plan to start from.
        starts = [none] if sum(held) > total_gpus else [held, none]
        most = np.array([len(values) - 1 for values in worth])
        table = np.zeros((len(worth), int(most.max()) + 1))
        for row, values in zip(table, worth, strict=True):
            row[: len(values)] = values
        plans = [_greedy(table, most, np.array(start), total_gpus - sum(start)).tolist() for start in starts]
        return max(
            plans, key=lambda plan: rounded(sum(float(values[gpus]) for values, gpus in zip(worth, plan, strict=True)))
        )

    def _worth(self, goodput: Floats, held: int, fair: int, kept: float) -> Floats:
        """By GPUs, from none on, what a job adds to the sum that grows with the fitness."""
        speedup = goodput / goodput[min(fair, len(goodput) - 1)]
        if held > 0:
            here = min(held, len(speedup) - 1)
            # Staying as it is costs nothing; any other number is a restart.
            unchanged = speedup[here]
            speedup = speedup * kept
            speedup[here] = unchanged
        # For p < 0 the mean grows as the sum of powers falls, hence the sign.
        powers = rounded_all(np.maximum(speedup, LEAST_SPEEDUP) ** self._p)
        return powers if self._p > 0 else -powers


@njit(_STEP(F1, types.int64, types.int64), cache=True)
def _best_step(values: Floats, now: int, most: int) -> tuple[float, int]:
    """Greatest gain a GPU of going up from so many GPUs to `most` at most, and by how many; nothing where no way up."""
    best, step = 0.0, 0
    for up in range(1, most - now + 1):
        gain = rounded_in((values[now + up] - values[now]) / up)
        # The first step counts even as a loss; of equal gains the smaller step.
        if up == 1 or gain > best:
            best, step = gain, up
    return best, step


@njit(I1(F2, I1, I1, types.int64), cache=True)
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
            # Gains of others stay: only the winner moved, and steps wider than what is left shrink.
            if job == index or steps[job] > free:
                gains[job], steps[job] = _best_step(worth[job], gpus[job], min(most[job], gpus[job] + free))
    return gpus
