"""Weights of reward 7 by short trainings. MLFS, section 3.4."""

from collections.abc import Callable, Mapping

import numpy as np

from jobcast.domain.tasks import Floats
from jobcast.models.scheduling.learner import BETAS, Learner, Tried, search_betas
from jobcast.pipelines.lifecycle.learning_to_schedule.policy_gradient import improve
from jobcast.pipelines.lifecycle.learning_to_schedule.rollouts import Rollout
from jobcast.schedulers.tasks.network import Networks, networks_of

SHORT = 4
"""Iterations of a short training."""


def worth(objectives: tuple[float, ...]) -> float:
    """Reward 7 with the weights of section 4.1, whatever weights were trained with: one yardstick for all."""
    return float(np.asarray(objectives) @ np.asarray(BETAS))


def tuned_betas(
    learner: Learner,
    start: Mapping[str, Floats],
    groups_of: Callable[[Networks, int], list[list[Rollout]]],
    value_of: Callable[[Networks], tuple[float, ...]],
    rounds: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Tried, ...]:
    """What was tried, each from the same weights: `rounds` by Bayesian optimisation, then small changes of the best.

    Parameters
    ----------
    learner : its weights are those of the last short training afterwards
    start : weights after imitation
    groups_of : (networks, number) -> runs of an iteration by workload
    value_of : networks -> objectives on workloads kept apart
    """
    total, done = rounds + len(BETAS), 0

    def train(betas: tuple[float, ...]) -> float:
        nonlocal done
        learner.assign(start)
        for number in range(SHORT):
            improve(learner, groups_of(networks_of(learner.arrays()), number), betas, seed + number)
        done += 1
        if progress is not None:
            progress(done, total)
        return worth(value_of(networks_of(learner.arrays())))

    return search_betas(train, rounds, seed)
