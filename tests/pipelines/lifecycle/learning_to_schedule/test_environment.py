"""Courses of gangs in pools, and the environment around courses."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool, Requirements
from jobcast.models.scheduling.learner import BETAS
from jobcast.pipelines.lifecycle.learning_to_schedule import environment
from jobcast.pipelines.lifecycle.learning_to_schedule.courses import QUEUE, QUEUE_FEATURES, QueueCourse
from jobcast.pipelines.lifecycle.learning_to_schedule.environment import LARGEST, Scheduling
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import FEATURES
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import AFTER_S, UNSCALED, TaskCourse
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.simulator.engine import Simulation
from jobcast.simulator.workload import Workload
from jobcast.testing import world
from tests.pipelines.lifecycle.learning_to_schedule.learning_cases import small_workload
from tests.shared import refused

COLUMNS = {QUEUE: len(QUEUE_FEATURES)}
ROWS = [(0.0, 10.0, 1), (0.0, 20.0, 1), (0.0, 30.0, 1)]


def workload(*rows, gpus=2):
    """Jobs of (submission, run time, GPUs)."""
    jobs = [Job(seq, f"job-{seq}", "a", row[0], row[2]) for seq, row in enumerate(rows)]
    return Workload(jobs, [Outcome(row[1]) for row in rows], [Pool("a", gpus)])


def env_of(rows, weights=(1.0,)):
    jobs = workload(*rows, gpus=1)
    return Scheduling(lambda rng: QueueCourse(jobs), COLUMNS, 8, weights)


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
    plain = small_workload(6)
    longer = plain.jobs._replace(compute_s=plain.jobs.compute_s * 1e4)
    slow = type(plain)(longer, plain.truth, plain.cluster, plain.job_ids)
    env = Scheduling(lambda rng: TaskCourse(slow, UNSCALED, HeuristicSettings(), seed=1), FEATURES, 64, BETAS)
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
    refused(ConfigError, "reset knows no option jobs", env_of(ROWS).reset, options={"jobs": 3})


def test_without_gymnasium_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    spec = spec_from_file_location("apart", environment.__file__)
    with pytest.raises(ConfigError, match=r"needs Gymnasium, which the extra gym brings: pip install 'jobcast\[gym\]'"):
        spec.loader.exec_module(module_from_spec(spec))


def play(course, choose):
    """What was offered, until the end."""
    seen = []
    while (choice := course.next()) is not None:
        seen.append(choice.rows)
        course.take(choose(choice))
    return seen


def test_the_pick_starts_and_holding_waits_for_the_next_event():
    course = QueueCourse(workload((0.0, 10.0, 1), (0.0, 20.0, 2), (0.0, 30.0, 1)))
    offered = play(course, lambda choice: len(choice.rows) - 1)
    # Nobody runs: one of three must start, the last of them does; then one fits, and the queue holds. At 30 s again.
    assert [len(rows) for rows in offered] == [3, 2, 2]
    assert [course._run.end_s(seq) for seq in range(3)] == [60.0, 50.0, 30.0]
    assert -course.rounds[0].earned[0] * 60.0 == 90.0  # three jobs for 30 s, in units of all run times
    assert sum(-one.earned[0] for one in course.rounds) * 60.0 == pytest.approx(60.0 + 50.0 + 30.0)


def test_a_row_tells_of_the_job_its_pool_and_the_cluster():
    pools = [Pool("a", 4), Pool("b", 4)]
    jobs = [
        Job(0, "0", "a", 0.0, 1),
        Job(1, "1", "a", 0.0, 2, requirements=Requirements(time_limit_s=60.0 * np.expm1(4.0))),
    ]
    course = QueueCourse(Workload(jobs, [Outcome(10.0)] * 2, pools))
    rows = course.next().rows
    course.take(0)
    named = dict(zip(QUEUE_FEATURES, rows[1].tolist(), strict=True))
    assert named == pytest.approx(
        {
            "waited": 0.0,
            "gpus": 0.5,
            "time_limit": 0.5,
            "free": 1.0,
            "pending": np.log(3.0),
            "free_of_all": 1.0,
            "hold": 0.0,
        }
    )
    after = course.next().rows
    assert after[0, QUEUE_FEATURES.index("free")] == 0.75
    assert after[0, QUEUE_FEATURES.index("free_of_all")] == 0.875
    assert after[-1].tolist() == [0.0] * 6 + [1.0]


def test_of_many_jobs_the_oldest_are_offered():
    course = QueueCourse(workload(*[(0.0, 1.0, 1)] * 9, gpus=9), most=4)
    assert {len(rows) for rows in play(course, lambda choice: 0)} == {3, 4, 2}


@given(st.sampled_from(["runtime", "epochs", "goodput"]), st.integers(0, 2**16), st.integers(0, 2**16))
@settings(max_examples=30)
def test_whatever_is_picked_all_jobs_end_and_rewards_are_completion_times(law, seed, picks):
    jobs, law_of = world(law, seed)
    rng, course = np.random.default_rng(picks), QueueCourse(jobs, law_of())
    play(course, lambda choice: int(rng.integers(len(choice.rows))))
    assert course.over
    log = course._run.log()
    unit_s = sum(outcome.duration_s for outcome in jobs.outcomes)
    assert sum(-one.earned[0] for one in course.rounds) == pytest.approx((log.end_s - log.submit_s).sum() / unit_s)


@given(st.integers(0, 2**16))
@settings(max_examples=20)
def test_the_first_row_each_time_is_first_fit_in_order_of_submission(seed):
    jobs, _ = world("runtime", seed)
    course = QueueCourse(jobs)
    play(course, lambda choice: choice.taught)

    class FirstFit:
        def decide(self, view):
            from jobcast.domain.policy import Decision, Grant

            free = {name: pool.quota - pool.dedicated for name, pool in view.pools.items()}
            starts = {}
            for seq, job in view.active.items():
                if seq not in view.running and job.gpus <= free[job.pool]:
                    free[job.pool] -= job.gpus
                    starts[seq] = Grant(job.gpus)
            return Decision(starts)

    np.testing.assert_array_equal(course._run.log().end_s, Simulation(jobs, FirstFit()).run().log().end_s)
