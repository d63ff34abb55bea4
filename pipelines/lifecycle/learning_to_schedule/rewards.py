"""Reward 7 of MLFS, section 3.4, as it comes in from decision to decision.

The five objectives of equation 1 are told in one unit: each adds up over a run to its value there as a share of what
MLF-H reached on the same workload, or is a share already. What equation 1 inverts (mean completion time, bandwidth)
counts as a loss instead, which near MLF-H's value is the same to the first order: 1/x grows by what x falls.

1. completion: an active job costs the seconds that pass, over jobs x MLF-H's mean completion time (-1 in all)
2. deadlines: a job that is not over by its deadline costs 1 / jobs at that time
3. bandwidth: MB sent between servers, over those of MLF-H (-1 in all)
4. accuracy requirements: a job without its accuracy by its deadline (or end) costs 1 / jobs at that time
5. accuracy: what jobs gain by their deadlines, over jobs
"""

from dataclasses import dataclass

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.tasks import Bools, Floats

ETA = 0.95
"""Discount of a step. MLFS, section 4.1."""
STEP_S = 900.0
"""A step of the discount; the paper does not tell it. By the minute, 0.95 would look twenty minutes ahead, by a quarter
of an hour it looks five hours ahead: jobs run for hours."""
HORIZON_S = 6 * 3600.0
"""t_m: rewards later than this after a decision do not count towards it."""
OBJECTIVES = 5


@dataclass(frozen=True, slots=True)
class Scale:
    """What MLF-H reached on a workload: mean completion time in seconds, MB between servers."""

    mean_jct_s: float
    moved_mb: float


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """How jobs stand at an instant; arrays (n_jobs,).

    Attributes
    ----------
    now_s : seconds from the epoch
    over, come : whether they have ended, been submitted
    accuracy : the latest finished epoch's, before the first that before training
    sent_mb : between servers, so far
    """

    now_s: float
    over: Bools
    come: Bools
    accuracy: Floats
    sent_mb: float


def objectives(before: Standing, after: Standing, deadline_s: Floats, target: Floats, scale: Scale) -> Floats:
    """What a round added to each objective, (5,).

    Parameters
    ----------
    deadline_s, target : (n_jobs,) infinite and NaN where there is none
    """
    jobs = len(deadline_s)
    passed_s = after.now_s - before.now_s
    # The mean of both ends of the round, for jobs arrive and end within it.
    active = float((after.come & ~after.over).sum() + (before.come & ~before.over).sum()) / 2.0
    # Half open, so that a deadline counts in exactly one round.
    due = (deadline_s > before.now_s) & (deadline_s <= after.now_s)
    late = due & ~after.over
    judged = late | (after.over & ~before.over & (deadline_s > before.now_s))
    poor = judged & (after.accuracy < target - tolerance.SHARES)
    # What is learnt after the deadline is worth nothing to this objective.
    in_time = deadline_s > before.now_s + tolerance.LATER_S
    gained = float((after.accuracy - before.accuracy)[in_time].sum())
    return np.array(
        [
            -active * passed_s / (jobs * scale.mean_jct_s),
            -float(late.sum()) / jobs,
            -(after.sent_mb - before.sent_mb) / scale.moved_mb if scale.moved_mb > 0.0 else 0.0,
            -float(poor.sum()) / jobs,
            gained / jobs,
        ]
    )


def returns(rewards: Floats, now_s: Floats, eta: float = ETA) -> Floats:
    """Discounted rewards from each decision to `HORIZON_S` after it, (n,).

    Parameters
    ----------
    rewards : (n,) of the rounds after each decision
    now_s : (n,) when decisions were made, ascending
    eta : discount of `STEP_S`

    >>> returns(np.array([1.0, 1.0]), np.array([0.0, 900.0])).tolist()
    [1.95, 1.0]
    """
    found, total = np.empty(len(rewards)), 0.0
    for place in range(len(rewards) - 1, -1, -1):
        # By time, not by decision: rounds are of different lengths.
        apart_s = now_s[place + 1] - now_s[place] if place + 1 < len(rewards) else 0.0
        total = rewards[place] + eta ** (apart_s / STEP_S) * total
        found[place] = total
    # The discounted tail from beyond the horizon is taken off again: one pass in place of a sum a decision.
    beyond = np.searchsorted(now_s, now_s + HORIZON_S)
    there = beyond < len(rewards)
    far = beyond[there]
    apart_s = now_s[far] - now_s[there]
    cut = found.copy()
    cut[there] -= eta ** (apart_s / STEP_S) * found[far]
    return cut
