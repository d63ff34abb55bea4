"""The ideal virtual task, by hand. MLFS, section 3.3.3."""

import numpy as np
import pytest
from hypothesis import given

from jobcast.domain.tasks import BANDWIDTH, CPU, GPU, QUEUED
from jobcast.schedulers.tasks.mlf_h import tasks_to_move
from jobcast.schedulers.tasks.packing import limits_of
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, task_views, view_of

LIMITS = limits_of(0.9, 0.9)


def leaving(view, rank=None, **settings):
    rank = np.zeros(len(view.gpu_of)) if rank is None else np.array(rank, dtype=float)
    return np.flatnonzero(tasks_to_move(view, rank, LIMITS, **settings)).tolist()


def test_the_task_leaves_that_uses_most_of_what_is_scarce_and_least_of_the_rest():
    """32 of 32 cores: the ideal uses half of them, 0.1 of the GPUs and 4 GB; task 0 is the ideal."""
    jobs = jobs_of(TaskJob(cpu=16.0, gpu=0.4), TaskJob(cpu=8.0, gpu=0.4), TaskJob(cpu=8.0, gpu=0.4))
    assert leaving(view_of(jobs, cluster_of(1, 4), gpu_of=[0, 1, 2])) == [0]


def test_what_is_not_scarce_speaks_against_a_task():
    """Task 0 has half the cores but all the GPU use of the two: 0.2 away in GPUs; task 1 is 0.0625 away in cores."""
    jobs = jobs_of(TaskJob(cpu=16.0, gpu=0.9), TaskJob(cpu=14.0, gpu=0.1))
    assert leaving(view_of(jobs, cluster_of(1, 4), gpu_of=[0, 1])) == [1]


def test_communication_with_those_that_stay_speaks_against_a_task():
    """Tasks 0 and 1 exchange all they send with one another: both are 1 away."""
    jobs = jobs_of(TaskJob(workers=2, cpu=12.0, chain=True, volume_mb=50.0), TaskJob(cpu=8.0))
    view = view_of(jobs, cluster_of(1, 4), gpu_of=[0, 1, 2])
    assert leaving(view) == [2]
    assert leaving(view, bandwidth=False) == [0]


def test_tasks_leave_until_the_server_is_not_overloaded():
    jobs = jobs_of(*[TaskJob(cpu=8.0, gpu=0.2)] * 5)
    assert leaving(view_of(jobs, cluster_of(1, 4), gpu_of=[0, 1, 2, 3, 0])) == [0, 1]  # 40 cores, 28.8 allowed


def test_of_an_overloaded_gpu_the_lowest_priority_leaves():
    jobs = jobs_of(*[TaskJob(gpu=0.4)] * 4)
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 0, 0, 1])
    assert leaving(view, [3.0, 1.0, 2.0, 0.0]) == [1]


def test_two_users_overload_a_gpu():
    """The lower of them leaves, though the other is nearer to the ideal, and a lower one runs beside them."""
    view = view_of(jobs_of(TaskJob(gpu=0.7), TaskJob(gpu=0.6), TaskJob(gpu=0.1)), cluster_of(1, 2), gpu_of=[0, 0, 1])
    assert leaving(view, [3.0, 1.0, 0.0]) == [1]


def test_a_larger_share_lets_the_ideal_task_choose_among_more():
    """2 of 4 tasks of lowest priority are 0 and 1; nothing but GPUs differs, none is scarce, so the smaller goes."""
    jobs = jobs_of(TaskJob(gpu=0.4), TaskJob(gpu=0.3), TaskJob(gpu=0.2), TaskJob(gpu=0.2))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 0, 0, 0])
    assert leaving(view, [1.0, 2.0, 3.0, 4.0]) == [0]
    assert leaving(view, [1.0, 2.0, 3.0, 4.0], share=0.5) == [1]


def test_a_task_that_alone_overloads_its_gpu_stays_and_so_does_its_parameter_server():
    jobs = jobs_of(TaskJob(gpu=0.8, server=True))
    assert leaving(view_of(jobs, cluster_of(1, 2), gpu_of=[0, 0], factor=1.2)) == []


def test_servers_within_limits_lose_nothing():
    jobs = jobs_of(*[TaskJob(gpu=0.4)] * 2)
    assert leaving(view_of(jobs, cluster_of(1, 1), gpu_of=[0, 0])) == []


@given(task_views())
def test_what_remains_is_within_limits_or_one_task(view):
    rank = np.arange(len(view.gpu_of), dtype=float)
    moving = tasks_to_move(view, rank, LIMITS)
    assert (view.gpu_of[moving] != QUEUED).all()
    here = np.where(view.gpu_of != QUEUED, view.cluster.server_of[view.gpu_of], QUEUED)
    for server, capacity in enumerate(view.cluster.capacity):
        stay = (here == server) & ~moving
        load = view.task_load[stay].sum(axis=0)
        assert stay.sum() <= 1 or (load <= 0.9 * capacity * (1 + 1e-6))[[GPU, CPU, BANDWIDTH]].all()
        if (view.load[server] <= 0.9 * capacity).all() and (
            view.gpu_load[view.cluster.server_of == server] <= 0.9
        ).all():
            assert not moving[here == server].any()
    for gpu in range(len(view.gpu_load)):
        users = (view.gpu_of == gpu) & ~moving & (view.task_load[:, GPU] > 0)
        assert users.sum() <= 1 or view.task_load[users, GPU].sum() <= 0.9 + 1e-6


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_memory_moves_tasks_too(factor):
    jobs = jobs_of(*[TaskJob(memory=120.0, gpu=0.2)] * 2)
    assert len(leaving(view_of(jobs, cluster_of(1, 4), gpu_of=[0, 1], factor=factor))) == 1
