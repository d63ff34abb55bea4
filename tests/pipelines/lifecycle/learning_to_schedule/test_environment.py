"""The environment around courses."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.pipelines.lifecycle.learning_to_schedule import environment
from jobcast.pipelines.lifecycle.learning_to_schedule.environment import LARGEST, Scheduling
from jobcast.pipelines.lifecycle.learning_to_schedule.queue_courses import QUEUE, QUEUE_FEATURES, QueueCourse
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import AFTER_S, UNSCALED, TaskCourse
from jobcast.schedulers.tasks.mlf_h import MlfHSettings
from jobcast.simulator.workload import Workload
from tests.pipelines.lifecycle.learning_to_schedule.learning_cases import given, small_workload

COLUMNS = {QUEUE: len(QUEUE_FEATURES)}
ROWS = [(0.0, 10.0), (0.0, 20.0), (0.0, 30.0)]


def env_of(rows, gpus=1, weights=(1.0,)):
    """Jobs of (submission, run time) on one GPU each."""
    jobs = [Job(seq, f"job-{seq}", "a", row[0], 1) for seq, row in enumerate(rows)]
    workload = Workload(jobs, [Outcome(row[1]) for row in rows], [Pool("a", gpus)])
    return Scheduling(lambda rng: QueueCourse(workload), COLUMNS, 8, weights)


def test_steps_pick_and_earn_until_the_last_job_ends():
    env = env_of(ROWS, weights=(60.0,))
    seen, info = env.reset(seed=1)
    assert seen in env.observation_space
    assert seen["mask"].tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
    assert (info["rounds"], info["taught"], info["not_offered"]) == ((), 0, 0)
    seen, reward, over, cut, _ = env.step(2)
    assert (reward, over, cut) == (-90.0, False, False)  # three jobs for 30 s
    assert seen["mask"].sum() == 2
    seen, reward, over, cut, info = env.step(1)  # the other one has no choice
    assert (reward, over, cut) == (-40.0 - 10.0, True, False)
    assert [one.time_s for one in info["rounds"]] == [30.0, 50.0]
    assert not seen["mask"].any()
    assert not seen["rows"].any()


def test_an_action_that_is_not_offered_picks_the_first_row_and_is_counted():
    env, other = env_of(ROWS), env_of(ROWS)
    env.reset(seed=1)
    other.reset(seed=1)
    first, second = env.step(7), other.step(0)
    assert (first[1], first[4]["not_offered"], second[4]["not_offered"]) == (second[1], 1, 0)
    np.testing.assert_array_equal(first[0]["rows"], second[0]["rows"])


def test_a_course_that_lasts_too_long_is_truncated():
    workload = small_workload(6)
    longer = workload.jobs._replace(compute_s=workload.jobs.compute_s * 1e4)
    slow = type(workload)(longer, workload.truth, workload.cluster, workload.job_ids)
    env = given(lambda: TaskCourse(slow, UNSCALED, MlfHSettings(), seed=1))
    _, info = env.reset(seed=0)
    over = cut = False
    while not (over or cut):
        _, _, over, cut, info = env.step(info["taught"])
    assert (over, cut) == (False, True)
    assert slow.jobs.submit_s[-1] + AFTER_S - info["rounds"][-1].time_s == pytest.approx(0.0, abs=600.0)


def test_what_is_seen_tells_the_choice():
    env = env_of(ROWS)
    seen, info = env.reset(seed=1)
    np.testing.assert_array_equal(seen["rows"][:3, : len(QUEUE_FEATURES)], env._choice.rows)
    assert (env._choice.head, seen["head"], info["taught"]) == (QUEUE, 0, 0)
    env._choice.rows[0, 0] = 1e9
    assert env._seen()["rows"][0, 0] == LARGEST


def test_options_are_refused():
    with pytest.raises(ConfigError, match="reset knows no option jobs"):
        env_of(ROWS).reset(options={"jobs": 3})


def test_without_gymnasium_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    spec = spec_from_file_location("apart", environment.__file__)
    with pytest.raises(ConfigError, match=r"needs Gymnasium, which the extra gym brings: pip install 'jobcast\[gym\]'"):
        spec.loader.exec_module(module_from_spec(spec))
