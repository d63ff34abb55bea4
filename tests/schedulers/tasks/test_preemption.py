"""Waiting jobs in the place of running ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.tasks.host_selection import CONSOLIDATE
from jobcast.schedulers.tasks.packing import limits_of, room_of
from jobcast.schedulers.tasks.preemption import GPU_AND_MEMORY, free_gpus, place_or_swap, running_jobs, waiting_jobs
from tests.simulator.tasks.task_cases import TaskJob, arrays_of, checked, cluster_of, jobs_of, task_views, view_of


def swapped(view, claim, hold, order=None):
    order = view.active if order is None else np.array(order)
    claim, hold = np.asarray(claim, dtype=float), np.asarray(hold, dtype=float)
    found = place_or_swap(view, order, limits=GPU_AND_MEMORY, rule=CONSOLIDATE, claim=claim, hold=hold)
    return arrays_of(found)


def test_the_job_with_the_least_hold_leaves():
    jobs = jobs_of(*[TaskJob(gpu=1.0)] * 3)
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 1, QUEUED])
    decided = swapped(view, [0, 0, 3], [2, 1, 0])
    assert decided.stop.tolist() == [1]
    assert checked(view, decided).tolist() == [0, QUEUED, 1]


def test_of_equals_the_last_submitted_leaves():
    jobs = jobs_of(*[TaskJob(gpu=1.0)] * 3)
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 1, QUEUED])
    assert swapped(view, [0, 0, 3], [1, 1, 0]).stop.tolist() == [1]


def test_equal_claim_and_hold_change_nothing():
    jobs = jobs_of(*[TaskJob(gpu=1.0)] * 2)
    view = view_of(jobs, cluster_of(1, 1), gpu_of=[0, QUEUED])
    decided = swapped(view, [1, 1], [1, 1])
    assert (decided.stop.size, decided.tasks.size) == (0, 0)


def test_none_leaves_where_the_waiting_job_would_not_get_in():
    jobs = jobs_of(TaskJob(gpu=1.0), TaskJob(gpu=1.0), TaskJob(workers=2, gpu=1.0))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 1, QUEUED, QUEUED])
    decided = swapped(view, [0, 0, 2], [1, 5, 0])
    assert (decided.stop.size, decided.tasks.size) == (0, 0)


def test_none_leaves_for_memory_that_cannot_be_had():
    jobs = jobs_of(TaskJob(gpu=0.4, memory=10.0), TaskJob(gpu=0.5, memory=95.0), TaskJob(gpu=0.5, memory=95.0))
    view = view_of(jobs, cluster_of(1, 2, memory=120.0), gpu_of=[0, 1, QUEUED])
    decided = swapped(view, [0, 0, 2], [1, 5, 0])
    assert (decided.stop.size, decided.tasks.size) == (0, 0)


def test_a_server_that_is_busier_than_at_rest_is_not_filled_beyond_its_gpus():
    """Of 2 GPUs 1.4 are in use: the second is idle, 0.6 are left."""
    for gpu, expected in ((0.6, 1), (0.7, QUEUED)):
        jobs = jobs_of(TaskJob(gpu=1.0), TaskJob(gpu=gpu))
        view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, QUEUED], factor=1.4)
        assert checked(view, swapped(view, [0, 0], [0, 0])).tolist() == [0, expected]


def test_free_gpus_are_those_that_victims_may_add_to_whatever_the_limit():
    room = room_of(view_of(jobs_of(TaskJob()), cluster_of(1, 3)))
    room.gpu_load[:] = 0.0, 0.5, 1.25
    assert [free_gpus(room, limits_of(1.0, most)) for most in (0.9, 2.0)] == [1.5, 4.25]


def test_who_left_without_need_comes_back():
    jobs = jobs_of(TaskJob(gpu=0.5), TaskJob(gpu=0.5), TaskJob(gpu=0.8), TaskJob(gpu=1.0))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 0, 1, QUEUED])
    decided = swapped(view, [0, 0, 0, 3], [0, 9, 1, 0], order=[3])
    assert decided.stop.tolist() == [2]
    assert checked(view, decided).tolist() == [0, 0, QUEUED, 1]


def test_a_job_leaves_with_all_its_tasks():
    jobs = jobs_of(TaskJob(workers=2, gpu=1.0, server=True), TaskJob(gpu=1.0))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, 1, 1, QUEUED])
    decided = swapped(view, [0, 1], [0, 0], order=[1])
    assert decided.stop.tolist() == [0]
    assert (checked(view, decided)[:3] == QUEUED).all()


def test_who_had_to_leave_may_go_to_another_gpu():
    jobs = jobs_of(TaskJob(gpu=0.5), TaskJob(gpu=0.6), TaskJob(gpu=1.0))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 1, QUEUED])
    assert checked(view, swapped(view, [0, 0, 3], [0, 9, 0], order=[2, 0])).tolist() == [QUEUED, 1, 0]
    smaller = view_of(jobs_of(TaskJob(gpu=0.3), TaskJob(gpu=0.6), TaskJob(gpu=1.0)), view.cluster, gpu_of=[0, 1, -1])
    assert checked(smaller, swapped(smaller, [0, 0, 3], [0, 9, 0], order=[2, 0])).tolist() == [1, 1, 0]


@given(view=task_views(partial=True), seed=st.integers(0, 1000))
def test_only_lower_jobs_leave_and_whole_jobs_enter(view, seed):
    rng = np.random.default_rng(seed)
    claim, hold = rng.integers(0, 4, (2, len(view.jobs.submit_s))).astype(float)
    before, waiting = running_jobs(view), waiting_jobs(view)
    decided = swapped(view, claim, hold, order=rng.permutation(view.active))
    after = checked(view, decided)
    placed = np.logical_and.reduceat(after != QUEUED, view.jobs.task_of[:-1])
    entered = waiting[placed[waiting]]
    left = [job for job in before if not np.array_equal(own(view, after, job), own(view, view.gpu_of, job))]
    assert len(left) == 0 or len(entered) > 0
    assert all(hold[job] < claim[entered].max() for job in left)
    same = waiting[~placed[waiting]]
    assert all(np.array_equal(own(view, after, job), own(view, view.gpu_of, job)) for job in same)


def own(view, gpu_of, job):
    return gpu_of[view.jobs.task_of[job] : view.jobs.task_of[job + 1]]
