"""The linear relaxation over every step of the grid, by column generation: a bound, prices, and fractional starts."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from jobcast.domain import tolerance
from jobcast.schedulers.milp.columns import Steps
from jobcast.schedulers.milp.highs import Relaxed, relax
from jobcast.schedulers.milp.instance import Bools, Floats, Instance, Ints
from jobcast.schedulers.milp.programme import Programme, build

NEW_STARTS = 12
"""Starts of a job that join the programme in one round, the cheapest first."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """What the linear relaxation tells.

    Attributes
    ----------
    bound : no schedule on the grid costs less; steps
    reduced : (n_starts,) a schedule with this start costs at least `bound` and this much
    share : (n_starts,) how much of its job begins at a start, adding up to 1 a job; None where time ended first
    """

    bound: float
    reduced: Floats
    share: Floats | None


def linear_relaxation(instance: Instance, steps: Steps, first: Bools, beta: float, until: float) -> Relaxation:
    """Bound from the starts `first` (n_starts,) on, joined round by round by those that prices show to be cheaper.

    The bound of a round is the Lagrangian one, which holds for any prices, so that the best so far is right when time
    ends (`until`, of `time.perf_counter`).
    """
    chosen = first.copy()
    best = Relaxation(0.0, (steps.start - instance.submit[steps.job]).astype(np.float64), None)
    while (left_s := until - perf_counter()) > 0:
        programme = build(instance, steps.columns(instance, chosen), beta)
        relaxed = relax(programme, left_s)
        if relaxed is None:
            return best
        price, bound = _priced(instance, steps, programme, relaxed, beta)
        cheapest = np.minimum.reduceat(price, steps.first[:-1])
        share = np.zeros(len(chosen))
        share[chosen] = relaxed.values[: programme.starts]
        bound += float(cheapest.sum())
        if bound >= best.bound:
            best = Relaxation(bound, price - cheapest[steps.job], share)
        gains = relaxed.prices[: len(instance)][steps.job] - price
        gains[chosen] = 0.0
        if relaxed.cost - best.bound <= tolerance.COSTS or not (gains > tolerance.COSTS).any():
            return Relaxation(best.bound, best.reduced, share)
        chosen[_cheapest_new(steps, gains)] = True
    return best


def _priced(
    instance: Instance, steps: Steps, programme: Programme, relaxed: Relaxed, beta: float
) -> tuple[Floats, float]:
    """Cost of every start with the GPUs that it holds paid for, (n_starts,), and what the cluster's GPUs are worth."""
    jobs, capacities = len(instance), len(programme.capacity_of)
    per_step = np.zeros(len(programme.at))
    per_step[programme.capacity_of] = np.maximum(0.0, -relaxed.prices[jobs : jobs + capacities])
    worth = -instance.gpus * float(per_step.sum())
    by_pool = np.tile(per_step / programme.length, (len(instance.quotas), 1))
    if beta > 0:
        fair = np.zeros((len(programme.at), len(instance.quotas)))
        fair[programme.share_of[:, 0], programme.share_of[:, 1]] = np.maximum(0.0, -relaxed.prices[jobs + capacities :])
        asked = fair @ instance.quotas / programme.length
        fair *= np.minimum(1.0, beta / np.maximum(asked, beta))[:, None]  # alphas are free of charge at most to beta
        by_pool += (fair / programme.length[:, None]).T
    by_step = np.zeros((len(instance.quotas), instance.steps + 1))
    by_step[:, 1 : programme.length.sum() + 1] = np.repeat(by_pool, programme.length, axis=1)
    paid = np.cumsum(by_step, axis=1)
    job = steps.job
    pool, end = instance.pool[job], steps.start + instance.duration[job]
    held = instance.width[job] * (paid[pool, end] - paid[pool, steps.start])
    return steps.start - instance.submit[job] + held, worth


def _cheapest_new(steps: Steps, gains: Floats) -> Ints:
    """Positions of up to `NEW_STARTS` starts a job that gain most."""
    at = np.flatnonzero(gains > tolerance.COSTS)
    at = at[np.lexsort((-gains[at], steps.job[at]))]
    job = steps.job[at]
    rank = np.arange(len(at)) - np.searchsorted(job, job)
    chosen: Ints = at[rank < NEW_STARTS]
    return chosen
