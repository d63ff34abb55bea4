"""The ideal virtual task, by hand. MLFS, section 3.3.3."""

from math import ceil

import numpy as np
import pytest

from jobcast.domain.tasks import GPU, QUEUED
from jobcast.schedulers.tasks.host_selection import IDEAL
from jobcast.schedulers.tasks.mlf_h import tasks_to_move
from jobcast.schedulers.tasks.packing import limits_of
from tests.schedulers.tasks.test_packing import DUST, Plainly, crowded_view
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, view_of

LIMITS = limits_of(0.9, 0.9)


def leaving(view, rank=None, share=0.1, **settings):
    rank = np.zeros(len(view.gpu_of)) if rank is None else np.array(rank, dtype=float)
    return np.flatnonzero(tasks_to_move(view, rank, LIMITS, share=share, **settings)).tolist()


def test_the_task_leaves_that_uses_most_of_what_is_scarce_and_least_of_the_rest():
    """32 of 32 cores: the ideal uses half of them, 0.1 of the GPUs and 4 GB; task 0 is the ideal."""
    jobs = jobs_of(TaskJob(cpu=16.0, gpu=0.4), TaskJob(cpu=8.0, gpu=0.4), TaskJob(cpu=8.0, gpu=0.4))
    assert leaving(view_of(jobs, cluster_of(1, 4), gpu_of=[0, 1, 2])) == [0]


def test_what_is_not_scarce_speaks_against_a_task():
    """Task 0 has half the cores but all the GPU use of the two: 0.2 away in GPUs; task 1 is 0.0625 away in cores."""
    jobs = jobs_of(TaskJob(cpu=16.0, gpu=0.9), TaskJob(cpu=14.0, gpu=0.1))
    assert leaving(view_of(jobs, cluster_of(1, 4), gpu_of=[0, 1])) == [1]
    # Memory that is used just up to the limit is not scarce, either.
    full = jobs_of(TaskJob(cpu=15.0, memory=116.0), TaskJob(cpu=15.0, memory=100.0))
    assert leaving(view_of(full, cluster_of(1, 4, memory=240.0), gpu_of=[0, 1])) == [1]


def test_communication_with_those_that_stay_speaks_against_a_task():
    """Tasks 0 and 1 exchange all they send with one another: both are 1 away."""
    jobs = jobs_of(TaskJob(workers=2, cpu=12.0, chain=True, volume_mb=50.0), TaskJob(cpu=8.0))
    view = view_of(jobs, cluster_of(1, 4), gpu_of=[0, 1, 2])
    assert leaving(view) == [2]
    assert leaving(view, bandwidth=False) == [0]
    # A quarter speaks against the second for half of its exchange, a fifth against the last, which leaves first.
    parted = jobs_of(TaskJob(workers=3, cpu=16.0, chain=True, volume_mb=50.0), TaskJob(cpu=1.7))
    assert leaving(view_of(parted, cluster_of(2, 4), gpu_of=[0, 1, 4, 2])) == [1, 3]


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


def plainly(view, rank, share):
    """Tasks to move by plain steps: whatever is asked of the loads, they are added up anew."""
    near, use, moving = Plainly(view, IDEAL, LIMITS, None, rank).near, view.task_load, []
    for server, capacity in enumerate(view.cluster.capacity):
        shares = use / capacity
        ranked = [task for task in np.argsort(rank, kind="stable") if view.gpu_of[task] != QUEUED]
        here = [task for task in ranked if view.cluster.server_of[view.gpu_of[task]] == server]
        while True:
            users = [task for task in here if use[task, GPU] > 0]
            beside = {task: [one for one in users if view.gpu_of[one] == view.gpu_of[task]] for task in users}
            crowded = [task for task, own in beside.items() if len(own) > 1 and use[own, GPU].sum() > 0.9 + DUST]
            over = use[here].sum(axis=0) > 0.9 * capacity + DUST
            if not crowded and (len(here) < 2 or not over.any()):
                break
            ideal = np.where(over, shares[here].max(axis=0), shares[here].min(axis=0))
            among = crowded[: max(1, ceil(share * len(crowded) - DUST))] or here
            apart = [near(task)[server] ** 2 + np.square(shares[task] - ideal).sum() for task in among]
            moving.append(int(among[np.argmin(np.round(apart, 9))]))
            here.remove(moving[-1])
    return sorted(moving)


@pytest.mark.parametrize("seed", range(30))
def test_tasks_leave_as_by_plain_steps(seed):
    rng, share = np.random.default_rng(seed), (0.1, 0.5, 1.0)[seed % 3]
    view = crowded_view(rng)
    rank = rng.integers(0, 4, len(view.gpu_of)) / 2.0
    assert leaving(view, rank, share=share) == plainly(view, rank, share)


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_memory_moves_tasks_too(factor):
    jobs = jobs_of(*[TaskJob(memory=120.0, gpu=0.2)] * 2)
    assert len(leaving(view_of(jobs, cluster_of(1, 4), gpu_of=[0, 1], factor=factor))) == 1
