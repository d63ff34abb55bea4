"""Fair shares between jobs."""

import numpy as np
import pytest

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.tasks.baselines import BorgFair, BorgFairSettings, received_share
from tests.simulator.tasks.task_cases import TaskJob, checked, cluster_of, jobs_of, view_of


def after(view, **settings):
    return checked(view, BorgFair(BorgFairSettings(**settings)).place(view)).tolist()


def test_a_share_is_what_was_had_of_the_cluster_since_the_job_came():
    jobs = jobs_of(TaskJob(workers=2), TaskJob(submit_s=50.0))
    view = view_of(jobs, cluster_of(1, 4), now_s=100.0, ran_s=np.array([50.0, 25.0]))
    assert received_share(view).tolist() == pytest.approx([100 / 400, 25 / 200])


def test_the_least_share_comes_first_and_then_the_first_submitted():
    jobs = jobs_of(*[TaskJob(gpu=1.0)] * 3)
    view = view_of(jobs, cluster_of(1, 1), now_s=100.0, ran_s=np.array([50.0, 0.0, 0.0]))
    assert after(view) == [QUEUED, 0, QUEUED]


def test_a_task_goes_where_the_least_is_left_over():
    jobs = jobs_of(TaskJob(gpu=0.5, cpu=8.0), TaskJob(gpu=0.3))
    assert after(view_of(jobs, cluster_of(2, 1), gpu_of=[1, QUEUED])) == [1, 1]


@pytest.mark.parametrize("demand", [{"cpu": 20.0}, {"bandwidth": 700.0}, {"memory": 130.0}])
def test_no_resource_is_promised_twice(demand):
    jobs = jobs_of(TaskJob(gpu=0.1, **demand), TaskJob(gpu=0.1, **demand))
    assert after(view_of(jobs, cluster_of(1, 2))) == [0, QUEUED]


def test_running_jobs_make_room_only_where_asked_for():
    jobs = jobs_of(TaskJob(gpu=1.0), TaskJob(gpu=1.0))
    view = view_of(jobs, cluster_of(1, 1), gpu_of=[0, QUEUED], now_s=600.0)
    assert after(view) == [0, QUEUED]
    assert after(view, interval_s=300.0) == [QUEUED, 0]
    assert after(view._replace(now_s=660.0), interval_s=300.0) == [0, QUEUED]
