"""Jobs packed whole or not at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.tasks import CPU, GPU, MEMORY, QUEUED
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.tasks import packing
from jobcast.schedulers.tasks.host_selection import BEST_FIT, CONSOLIDATE, FIRST_FIT, IDEAL, SPREAD
from jobcast.schedulers.tasks.packing import limits_of
from tests.simulator.tasks.task_cases import (
    TaskJob,
    arrays_of,
    checked,
    cluster_of,
    jobs_of,
    loads_of,
    task_views,
    view_of,
)


def place_jobs(view, order, *, limits=None, rule=IDEAL, moving=None, rank=None, evict=False, part=True):
    """Jobs placed in an order by the kernel that MLF-H uses; what changes, by arrays."""
    room, wants = packing.room_of(view), packing.wants_of(view, rank)
    moving = np.zeros(len(wants.job_of), dtype=np.bool_) if moving is None else moving
    how = packing.Packing(rule, True, evict, part)
    packing.pack(room, limits_of() if limits is None else limits, wants, how, order, moving)
    return arrays_of(packing.placement(view, room))


RULES = [IDEAL, CONSOLIDATE, SPREAD, BEST_FIT, FIRST_FIT]


def places(view, placed):
    gpu_of = view.gpu_of.copy()
    gpu_of[placed.tasks] = placed.gpus
    return gpu_of.tolist()


def test_a_job_that_does_not_fit_leaves_no_task_behind_and_the_next_one_is_tried():
    jobs = jobs_of(TaskJob(workers=3, gpu=1.0), TaskJob(workers=2, gpu=1.0), TaskJob(gpu=1.0))
    view = view_of(jobs, cluster_of(1, 3), gpu_of=[*[QUEUED] * 5, 2])
    assert places(view, place_jobs(view, np.array([0, 1]))) == [QUEUED] * 3 + [0, 1, 2]


def test_the_last_task_that_fits_nowhere_takes_back_those_before_it():
    jobs = jobs_of(TaskJob(workers=2, gpu=(0.4, 0.8)), TaskJob(gpu=0.5), TaskJob(gpu=0.6), TaskJob(gpu=0.1))
    view = view_of(jobs, cluster_of(1, 1), gpu_of=[*[QUEUED] * 4, 0])
    assert places(view, place_jobs(view, np.array([0, 1, 2]))) == [QUEUED, QUEUED, 0, QUEUED, 0]


def test_a_parameter_server_is_placed_first_and_uses_no_gpu():
    """CPU decides: the parameter server takes the first server's last cores, so that the worker goes elsewhere."""
    jobs = jobs_of(TaskJob(gpu=1.0, cpu=20.0, server=True))
    view = view_of(jobs, cluster_of(2, 1))
    assert places(view, place_jobs(view, np.array([0]), rule=FIRST_FIT)) == [1, 0]


def test_tasks_within_a_job_come_by_rank():
    jobs = jobs_of(TaskJob(workers=2, gpu=1.0))
    view = view_of(jobs, cluster_of(1, 2))
    assert places(view, place_jobs(view, np.array([0]), rank=np.array([1.0, 2.0]))) == [1, 0]


@pytest.mark.parametrize(("rule", "server"), [(CONSOLIDATE, 1), (SPREAD, 2), (BEST_FIT, 0), (FIRST_FIT, 0)])
def test_rules_choose_their_servers(rule, server):
    """Server 0 is the fullest, server 1 holds a task of the same job, server 2 is idle."""
    jobs = jobs_of(TaskJob(workers=2, gpu=0.5, cpu=20.0), TaskJob(workers=2, gpu=0.2))
    view = view_of(jobs, cluster_of(3, 4), gpu_of=[0, 1, 4, QUEUED])
    view = view._replace(load=view.load * np.array([[1.0, 0.5, 1.0, 1.0], [1, 1, 1, 1], [1, 1, 1, 1]]))
    assert view.cluster.server_of[place_jobs(view, np.array([1]), rule=rule).gpus].tolist() == [server]


def test_a_task_goes_to_the_least_loaded_gpu():
    jobs = jobs_of(TaskJob(workers=3, gpu=(0.5, 0.3, 0.4)))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 1, QUEUED])
    assert places(view, place_jobs(view, np.array([0]))) == [0, 1, 1]


def test_limits_hold_but_an_idle_gpu_of_an_idle_server_takes_any_task():
    jobs = jobs_of(TaskJob(gpu=0.5, cpu=30.0), TaskJob(gpu=0.2, cpu=1.0))
    view = view_of(jobs, cluster_of(1, 1))
    limits = limits_of(0.9, 0.9)
    assert places(view, place_jobs(view, np.array([0, 1]), limits=limits)) == [0, QUEUED]
    assert places(view, place_jobs(view, np.array([1, 0]), limits=limits)) == [QUEUED, 0]


def test_memory_is_never_beyond_the_capacity_whatever_the_limits():
    jobs = jobs_of(TaskJob(memory=150.0, cpu=20.0), TaskJob(memory=100.0, cpu=20.0))
    view = view_of(jobs, cluster_of(1, 4))
    assert places(view, place_jobs(view, np.array([0, 1]), limits=limits_of(3.0, 3.0))) == [0, QUEUED]
    easy = view_of(jobs, cluster_of(1, 4, memory=250.0))
    assert places(easy, place_jobs(easy, np.array([0, 1]), limits=limits_of(3.0, 3.0))) == [0, 1]


def test_a_moving_task_stays_or_takes_its_job_along_where_no_server_takes_it():
    jobs = jobs_of(TaskJob(workers=2, gpu=0.5), TaskJob(gpu=1.0))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0, 1])
    moving, order = np.array([True, False, False]), np.array([0])
    assert place_jobs(view, order, moving=moving).tasks.size == 0
    assert place_jobs(view, order, moving=moving, evict=True).stop.tolist() == [0]
    free = view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0, QUEUED])
    assert places(free, place_jobs(free, order, moving=moving)) == [1, 0, QUEUED]


def test_read_only_arrays_are_taken():
    view = view_of(jobs_of(TaskJob()), cluster_of(1, 1))
    for column in (view.gpu_of, view.load, view.jobs.task_of, view.task_load):
        column.setflags(write=False)
    assert place_jobs(view, np.array([0])).gpus.tolist() == [0]


@given(task_views(partial=True), st.sampled_from(RULES), st.sampled_from([0.7, 0.9, 1.0]), st.randoms())
def test_jobs_come_whole_within_limits(view, rule, most, random):
    order = view.active.copy()
    random.shuffle(order)
    placed = place_jobs(view, order, rule=rule, limits=limits_of(most, most))
    gpu_of = checked(view, placed)
    assert (view.gpu_of[placed.tasks] == QUEUED).all()  # nothing that runs is touched
    for job in np.unique(view.jobs.job_of[placed.tasks]):
        assert (gpu_of[view.jobs.task_of[job] : view.jobs.task_of[job + 1]] != QUEUED).all()
    started = [job for job in order if job in view.jobs.job_of[placed.tasks]]
    idle = (view.gpu_of == QUEUED).all()
    spread = started[:1] if idle else []  # the first on an idle cluster may pass all limits but that of memory
    load, gpu_load = loads_of(view.cluster, view.task_load, gpu_of)
    for gpu in np.unique(placed.gpus):
        server = view.cluster.server_of[gpu]
        here = np.isin(gpu_of, np.flatnonzero(view.cluster.server_of == server))
        if set(view.jobs.job_of[here]) == set(spread):
            continue
        assert here.sum() == 1 or (load[server] <= most * view.cluster.capacity[server] + 1e-6).all()
        users = ((gpu_of == gpu) & (view.task_load[:, GPU] > 0)).sum()
        got_a_user = (view.task_load[placed.tasks[placed.gpus == gpu], GPU] > 0).any()
        assert users == 1 or not got_a_user or gpu_load[gpu] <= most + 1e-6


@given(task_views(), st.sampled_from(RULES))
def test_nothing_more_fits_a_second_time_and_the_view_is_left_alone(view, rule):
    before = view.load.copy(), view.gpu_of.copy()
    first = place_jobs(view, view.active, rule=rule)
    again = place_jobs(view, view.active, rule=rule)
    assert (first.tasks.tolist(), first.gpus.tolist()) == (again.tasks.tolist(), again.gpus.tolist())
    assert (view.load == before[0]).all()
    assert (view.gpu_of == before[1]).all()
    gpu_of = np.array(places(view, first))
    load, gpu_load = loads_of(view.cluster, view.task_load, gpu_of)
    after = view._replace(gpu_of=gpu_of, load=load, gpu_load=gpu_load)
    if len(first.tasks) == 0:
        assert place_jobs(after, after.active, rule=rule).tasks.size == 0
    assert load[:, [CPU, MEMORY]].sum() >= view.load[:, [CPU, MEMORY]].sum() - 1e-9


@pytest.mark.parametrize("name", ["mlf_h", "slaq", "tiresias", "gandiva", "graphene", "borg_fair", "hypersched"])
def test_a_job_that_passes_all_limits_runs_alone_on_an_idle_cluster(name):
    """Five workers of 0.6 on four GPUs: two must share one, beyond any limit; else the job would wait for ever."""
    jobs = jobs_of(TaskJob(workers=5, gpu=0.6))
    decided = arrays_of(make_policy(name, None, {}).place(view_of(jobs, cluster_of(1, 4))))
    assert sorted(np.bincount(decided.gpus, minlength=4).tolist()) == [1, 1, 1, 2]


def test_a_job_that_passes_all_limits_waits_while_another_runs():
    jobs = jobs_of(TaskJob(gpu=0.3), TaskJob(workers=5, gpu=0.6))
    view = view_of(jobs, cluster_of(1, 4), gpu_of=[0, *[QUEUED] * 5])
    assert not len(make_policy("tiresias", None, {}).place(view).tasks)
