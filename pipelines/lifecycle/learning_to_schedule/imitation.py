"""Imitation of MLF-H: its picks on replays that it drives itself, learnt by cross-entropy. MLFS, section 3.4."""

from collections.abc import Callable, Sequence

import numpy as np

from jobcast.models.scheduling.learner import Fit, Learner
from jobcast.models.scheduling.policy import Picks, joined
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import FEATURES, HEADS
from jobcast.pipelines.lifecycle.learning_to_schedule.rollouts import Rollout

BATCH = 512
"""Choices of each head in a step."""
RATE = 3e-3
"""Adam's learning rate, falling to a tenth of it."""


def picks_by_head(rollouts: Sequence[Rollout]) -> dict[str, Picks]:
    """Choices of some runs."""
    return {head: joined((one.picks[head] for one in rollouts), FEATURES[head]) for head in HEADS}


def imitate(
    learner: Learner,
    shown: Sequence[Rollout],
    steps: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Fit]:
    """Learn picks that were written down; how well those of the last fifth of the runs, kept back, are told.

    Parameters
    ----------
    shown : runs of MLF-H, two at least
    steps : of Adam
    seed : of the batches
    """
    kept = max(len(shown) // 5, 1)
    learnt, held = picks_by_head(shown[:-kept]), picks_by_head(shown[-kept:])
    rng = np.random.default_rng(seed)
    for step in range(steps):
        batch = {
            head: picks.take(rng.integers(0, len(picks), BATCH)) if len(picks) else picks
            for head, picks in learnt.items()
        }
        learner.imitate(batch, RATE * 0.1 ** (step / steps))
        if progress is not None:
            progress(step + 1, steps)
    return {head: learner.fit_of(head, picks) for head, picks in held.items() if len(picks)}
