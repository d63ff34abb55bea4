"""Policy gradient on reward 7 with a baseline that depends on the workload. MLFS, section 3.4.

What a run earns says more of its jobs than of the policy. So several runs of one workload are made, and what each
earns after an instant is compared with the mean of the others there (Mao et al., SIGCOMM 2019, section 5.3). And runs
part: one with more jobs left will lose more whatever it decides next. So what a linear fit tells from how a run stands
is taken off as well. Neither depends on the choice that is judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jobcast.domain.tasks import Floats
from jobcast.models.scheduling.learner import Learner
from jobcast.pipelines.lifecycle.learning_to_schedule.imitation import picks_by_head
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import HEADS
from jobcast.pipelines.lifecycle.learning_to_schedule.rewards import returns
from jobcast.pipelines.lifecycle.learning_to_schedule.rollouts import Rollout

PASSES = 4
"""Times that the picks of an iteration are gone through."""
BATCHES = 4
"""Steps of a pass."""
RATE = 1e-3
"""Of Adam, falling to a tenth of it."""
LEAST_SPREAD = 1e-6


@dataclass(frozen=True, slots=True)
class Earned:
    """What the runs of an iteration earned: the reward in all, and by objective."""

    reward: float
    objectives: tuple[float, ...]


def advantages(runs: Sequence[Rollout], betas: Sequence[float]) -> list[Floats]:
    """Of runs of one workload: how much more each earned after each decision than was to be expected, (n_decisions,).

    In units of their standard deviation, so that no workload counts for more because more is at stake in it.
    """
    weights = np.asarray(betas)
    gains = [returns(run.rewards @ weights, run.times_s)[:, None] for run in runs]
    beyond = np.concatenate(_beyond_others(runs, gains))[:, 0]
    states = np.concatenate(_beyond_others(runs, [run.states for run in runs]))
    slopes = np.linalg.lstsq(states, beyond, rcond=None)[0]
    found = beyond - states @ slopes
    found /= max(float(found.std()), LEAST_SPREAD)
    return np.split(found, np.cumsum([len(run.times_s) for run in runs])[:-1])


def _beyond_others(runs: Sequence[Rollout], numbers: Sequence[Floats]) -> list[Floats]:
    """Numbers by decision, (n_decisions, k), less the mean of the other runs at the same time; 0 after a run's end."""
    found = []
    for own, mine in zip(runs, numbers, strict=True):
        others = [
            np.column_stack([np.interp(own.times_s, run.times_s, column, right=0.0) for column in theirs.T])
            for run, theirs in zip(runs, numbers, strict=True)
            if run is not own
        ]
        found.append(mine - np.mean(others, axis=0))
    return found


def earned(runs: Sequence[Rollout], betas: Sequence[float]) -> Earned:
    """Means over runs, undiscounted."""
    totals = np.mean([run.rewards.sum(axis=0) for run in runs], axis=0)
    return Earned(float(totals @ np.asarray(betas)), tuple(totals.tolist()))


def improve(
    learner: Learner, groups: Sequence[Sequence[Rollout]], betas: Sequence[float], seed: int, rate: float = RATE
) -> Earned:
    """One iteration: some passes of clipped PPO over the picks of runs, those of one workload in a group."""
    runs = [run for group in groups for run in group]
    by_run = [each for group in groups for each in advantages(group, betas)]
    picks = picks_by_head(runs)
    before = {head: learner.log_chances(head, picks[head]) for head in HEADS}
    worth = {
        head: np.concatenate([each[run.decision[head]] for run, each in zip(runs, by_run, strict=True)])
        for head in HEADS
    }
    rng = np.random.default_rng(seed)
    for _ in range(PASSES):
        parts = {head: np.array_split(rng.permutation(len(picks[head])), BATCHES) for head in HEADS}
        for number in range(BATCHES):
            which = {head: parts[head][number] for head in HEADS}
            learner.improve(
                {head: picks[head].take(which[head]) for head in HEADS},
                {head: before[head][which[head]] for head in HEADS},
                {head: worth[head][which[head]] for head in HEADS},
                rate,
            )
    return earned(runs, betas)
