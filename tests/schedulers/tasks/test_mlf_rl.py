"""Decisions by learned networks. MLFS, section 3.4."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.tasks.features import HOST_FEATURES, JOB_FEATURES
from jobcast.schedulers.tasks.mlf_h import MlfHSettings
from jobcast.schedulers.tasks.mlf_rl import MlfRl, tasks_leaving
from jobcast.schedulers.tasks.network import networks_of
from tests.schedulers.tasks.test_task_network import arrays
from tests.simulator.tasks.task_cases import TaskJob, checked, cluster_of, jobs_of, task_views, view_of


def by_columns(jobs=None, hosts=None):
    """A policy whose scores rise with the weighted columns."""
    found = {name: np.zeros_like(values) for name, values in arrays().items()}
    for head, names, weights in (("jobs", JOB_FEATURES, jobs or {}), ("hosts", HOST_FEATURES, hosts or {})):
        for name, weight in weights.items():
            found[f"{head}.first"][names.index(name), 0] = weight
        found[f"{head}.second"][0, 0] = 1.0
        found[f"{head}.last"][0] = 1.0
    return MlfRl(networks_of(found))


def after(view, policy):
    return checked(view, policy.place(view)).tolist()


def test_the_job_of_the_highest_score_comes_first():
    view = view_of(jobs_of(TaskJob(gpu=0.8, iterations=500), TaskJob(gpu=0.8, iterations=50)), cluster_of(1, 1))
    assert after(view, by_columns({"remaining": -1.0})) == [QUEUED, 0]
    assert after(view, by_columns({"remaining": 1.0})) == [0, QUEUED]


def test_the_task_goes_to_the_server_of_the_highest_score():
    jobs = jobs_of(TaskJob(workers=2, gpu=0.2, chain=True, volume_mb=10.0))
    view = view_of(jobs, cluster_of(2, 1))
    assert after(view, by_columns(hosts={"near": 1.0})) == [0, 0]
    assert after(view, by_columns(hosts={"near": -1.0})) == [0, 1]


def test_a_score_below_that_of_holding_leaves_a_job_in_the_queue_while_another_runs():
    jobs = jobs_of(TaskJob(gpu=0.3), TaskJob(gpu=0.3))
    hold = by_columns({"hold": 1.0})
    assert after(view_of(jobs, cluster_of(1, 1), gpu_of=[0, QUEUED]), hold) == [0, QUEUED]
    assert after(view_of(jobs, cluster_of(1, 1)), hold) == [0, 0]  # nothing runs: else all would wait for ever


def test_tasks_leave_overloaded_servers_or_stay_or_stop_their_job():
    jobs = jobs_of(TaskJob(workers=2, gpu=0.6), TaskJob(gpu=0.5))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0, QUEUED])
    assert len(tasks_leaving(view, MlfHSettings())) == 1
    assert sorted(after(view, by_columns(hosts={"stays": -1.0, "queue": -1.0}))[:2]) == [0, 1]
    assert after(view, by_columns(hosts={"stays": 1.0}))[:2] == [0, 0]
    assert sorted(after(view, by_columns(hosts={"queue": 1.0}))[:2]) == [0, 1]  # stopped, and placed anew at once
    assert after(view, by_columns({"gpus": -1.0}, {"queue": 1.0})) == [QUEUED, QUEUED, 0]  # another job came first
    assert not len(tasks_leaving(view, MlfHSettings(migration=False)))


@given(task_views(), st.integers(0, 99))
def test_decisions_are_sound_and_repeat(view, seed):
    policy = MlfRl(networks_of(arrays(seed)))
    first = checked(view, policy.place(view))
    np.testing.assert_array_equal(first, checked(view, policy.place(view)))
