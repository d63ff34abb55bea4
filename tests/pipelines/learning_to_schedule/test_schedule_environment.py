"""Runs pick by pick, and the environment of Gymnasium around them."""

import numpy as np
import pytest

from jobcast.pipelines.learning_to_schedule.environment import ROUND_S, Course, schedule_env
from jobcast.pipelines.learning_to_schedule.rewards import Scale
from jobcast.pipelines.learning_to_schedule.rollouts import as_taught, best, roll_out, sampling, scale_of
from jobcast.schedulers.tasks.mlf_h import MlfHSettings
from jobcast.schedulers.tasks.mlf_rl import MlfRl
from jobcast.schedulers.tasks.network import networks_of
from jobcast.simulator.metrics import figures
from tests.pipelines.learning_to_schedule.learning_cases import small_workload
from tests.schedulers.tasks.test_task_network import arrays
from tests.simulator.tasks.task_cases import replay_tasks

SETTINGS = MlfHSettings()
WORKLOAD = small_workload()
ONE = Scale(1.0, 1.0)


def course(scale=ONE, seed=5):
    return Course(WORKLOAD, scale, SETTINGS, seed=seed)


def test_a_course_of_best_picks_is_the_policys_replay():
    networks = networks_of(arrays(1))
    told = roll_out(course(), best(networks)).rewards.sum(axis=0)
    log = replay_tasks(WORKLOAD, MlfRl(networks), round_s=ROUND_S, seed=5)
    found = figures(log)
    assert -told[2] == pytest.approx(found["bandwidth_tb"] * 1e6)
    assert 1.0 + told[1] == pytest.approx(found["deadline_ratio"], abs=2 / 24)  # an end within the round of a deadline
    # Both ends of a job's time are known to a round: half of one at each, in the mean.
    assert -told[0] == pytest.approx(found["mean_jct_s"], abs=ROUND_S)


def test_mlf_h_is_its_own_scale():
    scale = scale_of(WORKLOAD, SETTINGS, None, 5)
    told = roll_out(course(scale), as_taught).rewards.sum(axis=0)
    assert told[[0, 2]].tolist() == pytest.approx([-1.0, -1.0])


def test_sampled_runs_differ_by_seed_alone():
    networks = networks_of(arrays(1))
    runs = [roll_out(course(), sampling(networks, np.random.default_rng(seed))) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0].rewards, runs[1].rewards)
    assert runs[0].rewards.sum() != runs[2].rewards.sum()
    for head, decision in runs[0].decision.items():
        assert len(decision) == len(runs[0].picks[head])
        assert (np.diff(decision) >= 0).all()
        assert decision.max(initial=0) < len(runs[0].rewards)


@pytest.mark.filterwarnings("ignore::UserWarning")  # the checker would have bounds, and no wrapper
def test_gymnasium_accepts_the_environment_and_its_rewards_add_up():
    pytest.importorskip("gymnasium", reason="Gymnasium is not installed: pip install 'jobcast[rl]'")
    from gymnasium.utils.env_checker import check_env

    betas = (0.5, 0.55, 0.25, 0.15, 0.15)
    env = schedule_env(lambda seed: (small_workload(6, seed=seed), Scale(600.0, 1e4)), betas, SETTINGS)
    check_env(_first_row(env), skip_render_check=True)
    seen, _ = env.reset(seed=3)
    assert seen["mask"].sum() > 1
    over, earned = False, 0.0
    while not over:
        seen, reward, over, cut, _ = env.step(0)
        earned += reward
        assert not cut
    assert earned < 0.0
    assert not seen["mask"].any()
    with pytest.raises(ValueError, match="is none of the 0 rows"):
        env.step(0)


def _first_row(env):
    """Any action of the space stands for one of the rows that there are."""
    import gymnasium

    class Wrapped(gymnasium.ActionWrapper):
        def action(self, action):
            return int(action) % max(len(self.env._choice.rows), 1)

    return Wrapped(env)
