"""Advantages against other runs of the same workload."""

import numpy as np
import pytest

from jobcast.models.scheduling.policy import picks_of
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import FEATURES
from jobcast.pipelines.lifecycle.learning_to_schedule.policy_gradient import advantages, earned, improve
from jobcast.pipelines.lifecycle.learning_to_schedule.rollouts import Rollout

BETAS = (1.0, 0.0, 0.0, 0.0, 0.0)


def run(rewards, chosen=0, states=None):
    """A run whose first decision had one choice of two jobs."""
    rows = np.eye(2, FEATURES["jobs"])
    return Rollout(
        {"jobs": picks_of([rows], [chosen], FEATURES["jobs"]), "hosts": picks_of([], [], FEATURES["hosts"])},
        {"jobs": np.array([0]), "hosts": np.empty(0, dtype=np.int64)},
        900.0 * np.arange(len(rewards)),
        np.column_stack([rewards, np.ones((len(rewards), 4))]).astype(float),
        np.zeros((len(rewards), 2)) if states is None else np.array(states),
    )


def test_an_advantage_is_what_a_run_earns_beyond_the_others():
    found = advantages([run([1.0, 1.0]), run([0.0, 2.0]), run([0.0])], BETAS)
    first = [1.95 - (1.9 + 0.0) / 2, 1.0 - (2.0 + 0.0) / 2]
    second = [1.9 - 1.95 / 2, 2.0 - 1.0 / 2]
    third = [-(1.95 + 1.9) / 2]
    spread = np.std(first + second + third)
    for own, expected in zip(found, (first, second, third), strict=True):
        assert own.tolist() == pytest.approx([value / spread for value in expected])


def test_what_follows_from_how_runs_stand_is_no_advantage():
    states = np.random.default_rng(0).normal(size=(40, 1, 1))
    luck = [run([3.0 * state[0, 0]], states=state) for state in states]
    assert np.abs(np.concatenate(advantages(luck, BETAS))).max() < 1e-5
    better = [run([3.0 * state[0, 0] + 2.0 * (k == 2)], states=state) for k, state in enumerate(states)]
    assert int(np.argmax(np.concatenate(advantages(better, BETAS)))) == 2


def test_what_was_earned_is_not_discounted():
    found = earned([run([1.0, 1.0]), run([0.0, 4.0])], (1.0, 0.5, 0.0, 0.0, 0.0))
    assert found.objectives == (3.0, 2.0, 2.0, 2.0, 2.0)
    assert found.reward == 4.0


def test_the_choice_of_better_runs_becomes_likelier():
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'jobcast[rl]'")
    from jobcast.models.scheduling.learner import Learner

    learner = Learner(FEATURES)
    group = [run([1.0], chosen=1), run([0.0], chosen=0)]
    before = learner.log_chances("jobs", group[0].picks["jobs"])[0]
    improve(learner, [group], BETAS, seed=0)
    assert learner.log_chances("jobs", group[0].picks["jobs"])[0] > before
