"""What the baselines share."""

import numpy as np
import pytest

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.tasks.preemption import (
    attained_gpu_s,
    due,
    job_use,
    measured_iteration_s,
    running_jobs,
    sorted_jobs,
    waiting_jobs,
)
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, view_of


def test_a_job_runs_where_all_its_tasks_are_on_gpus():
    jobs = jobs_of(TaskJob(workers=2), TaskJob(workers=2), TaskJob(), TaskJob(iterations=10.0))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 1, 0, QUEUED, QUEUED, QUEUED], done=[0, 0, 0, 10])
    assert running_jobs(view).tolist() == [0]
    assert waiting_jobs(view).tolist() == [1, 2]  # job 3 is over


def test_the_first_key_counts_first_and_ties_go_by_submission():
    jobs = np.array([3, 1, 0, 2])
    first, second = np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 2.0, 1.0, 1.0])
    assert sorted_jobs(jobs, first, second).tolist() == [2, 3, 1, 0]
    assert sorted_jobs(jobs).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("now_s", "expected"), [(600.0, True), (659.0, True), (660.0, False), (899.0, False)])
def test_one_decision_an_interval_is_due(now_s, expected):
    view = view_of(jobs_of(TaskJob()), cluster_of(1, 1), now_s=now_s)
    assert due(view, 300.0) is expected
    assert due(view, 0.0) is True


def test_an_iteration_takes_as_long_as_it_did_and_before_that_as_long_as_estimated():
    jobs = jobs_of(TaskJob(iteration_s=2.0), TaskJob(iteration_s=2.0))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, QUEUED], done=[20, 0], now_s=100.0)
    assert measured_iteration_s(view).tolist() == [5.0, 2.0]


def test_service_counts_gpus_and_time():
    jobs = jobs_of(TaskJob(workers=2, gpu=0.5), TaskJob(submit_s=40.0))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 1, 0], now_s=100.0)
    assert attained_gpu_s(view).tolist() == [200.0, 60.0]


def test_use_is_that_of_all_tasks_with_the_parameter_server():
    jobs = jobs_of(TaskJob(workers=2, gpu=(0.5, 0.25), cpu=2.0, memory=3.0, bandwidth=10.0, server=True))
    view = view_of(jobs, cluster_of(1, 1))
    assert job_use(view).tolist() == [[0.75, 6.0, 9.0, 30.0]]
