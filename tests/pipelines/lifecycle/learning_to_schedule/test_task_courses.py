"""Runs of jobs of tasks, pick by pick."""

import numpy as np
import pytest

from jobcast.pipelines.lifecycle.learning_to_schedule.policy_gradient import as_taught, best, roll_out, sampling
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import (
    ROUND_S,
    UNSCALED,
    EpisodeSettings,
    TaskCourse,
    TaskCourses,
    scale_of,
)
from jobcast.schedulers.tasks.mlf_rl import MlfRl
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.schedulers.tasks.network import networks_of
from jobcast.simulator.metrics import figures
from tests.pipelines.lifecycle.learning_to_schedule.learning_cases import small_workload
from tests.schedulers.tasks.test_task_network import arrays
from tests.simulator.tasks.task_cases import replay_tasks

SETTINGS = HeuristicSettings()
WORKLOAD = small_workload()


def run(choose, scale=UNSCALED):
    return roll_out(lambda rng: TaskCourse(WORKLOAD, scale, SETTINGS, seed=5), 0, choose)


def test_a_course_of_best_picks_is_the_policys_replay():
    networks = networks_of(arrays(1))
    told = run(best(networks)).rewards.sum(axis=0)
    log = replay_tasks(WORKLOAD, MlfRl(networks), round_s=ROUND_S, seed=5)
    found = figures(log)
    assert -told[2] == pytest.approx(found["bandwidth_tb"] * 1e6)
    assert 1.0 + told[1] == pytest.approx(found["deadline_ratio"], abs=2 / 24)  # an end within the round of a deadline
    # Both ends of a job's time are known to a round: half of one at each, in the mean.
    assert -told[0] == pytest.approx(found["mean_jct_s"], abs=ROUND_S)


def test_mlf_h_is_its_own_scale():
    told = run(as_taught, scale_of(WORKLOAD, SETTINGS, None, 5)).rewards.sum(axis=0)
    assert told[[0, 2]].tolist() == pytest.approx([-1.0, -1.0])


def test_sampled_runs_differ_by_seed_alone():
    networks = networks_of(arrays(1))
    runs = [run(sampling(networks, np.random.default_rng(seed))) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0].rewards, runs[1].rewards)
    assert runs[0].rewards.sum() != runs[2].rewards.sum()
    for head, decision in runs[0].decision.items():
        assert len(decision) == len(runs[0].picks[head])
        assert (np.diff(decision) >= 0).all()
        assert decision.max(initial=0) < len(runs[0].rewards)


def test_mlf_h_is_run_once_a_draw(monkeypatch):
    from jobcast.pipelines.lifecycle.learning_to_schedule import task_courses

    asked = []
    monkeypatch.setattr(task_courses, "scale_of", lambda *draw: asked.append(draw[3]) or UNSCALED)
    courses = TaskCourses(WORKLOAD, SETTINGS, drawn=EpisodeSettings(jobs=8, servers=(3, 3)))
    for seed in (1, 2, 1, 2):
        courses(np.random.default_rng(seed))
    assert len(asked) == len(set(asked)) == 2
