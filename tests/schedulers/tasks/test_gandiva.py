"""Gandiva: first in, first out, affinity, migration."""

import numpy as np
from hypothesis import given

from jobcast.domain.tasks import GPU, QUEUED
from jobcast.schedulers.tasks.baselines import Gandiva, GandivaSettings
from tests.simulator.tasks.task_cases import (
    TaskJob,
    arrays_of,
    checked,
    cluster_of,
    jobs_of,
    loads_of,
    one_job_alone,
    task_views,
    view_of,
)


def after(view, **settings):
    return checked(view, Gandiva(GandivaSettings(**settings)).place(view)).tolist()


def test_first_in_first_out_whatever_they_need():
    jobs = jobs_of(
        TaskJob(workers=2, gpu=1.0, iterations=1e6), TaskJob(submit_s=1.0, gpu=1.0, iterations=1.0, epochs=1)
    )
    assert after(view_of(jobs, cluster_of(1, 2))) == [0, 1, QUEUED]


def test_who_does_not_fit_is_passed_by():
    jobs = jobs_of(TaskJob(workers=3, gpu=1.0), TaskJob(gpu=1.0))
    assert after(view_of(jobs, cluster_of(1, 2))) == [QUEUED, QUEUED, QUEUED, 0]


def test_jobs_with_as_many_gpus_share_servers():
    jobs = jobs_of(TaskJob(gpu=0.2), TaskJob(workers=2, gpu=0.6), TaskJob(gpu=0.2), TaskJob(workers=2, gpu=0.1))
    view = view_of(jobs, cluster_of(3, 2), gpu_of=[0, 2, 3, QUEUED, QUEUED, QUEUED])
    assert after(view) == [0, 2, 3, 1, 2, 3]


def test_where_there_is_no_kin_an_empty_server_comes_before_others():
    jobs = jobs_of(TaskJob(gpu=0.1), TaskJob(workers=2, gpu=0.6))
    assert after(view_of(jobs, cluster_of(2, 2), gpu_of=[0, QUEUED, QUEUED])) == [0, 2, 3]
    assert after(view_of(jobs, cluster_of(1, 2), gpu_of=[0, QUEUED, QUEUED])) == [0, 1, 0]


def test_the_task_with_the_least_use_leaves_an_overloaded_gpu_for_the_least_used():
    jobs = jobs_of(TaskJob(gpu=0.7), TaskJob(gpu=0.5), TaskJob(gpu=0.4), TaskJob(gpu=0.3))
    assert after(view_of(jobs, cluster_of(1, 3), gpu_of=[0, 0, 1, 2])) == [0, 2, 1, 2]


def test_nothing_moves_below_the_threshold():
    jobs = jobs_of(TaskJob(gpu=0.5), TaskJob(gpu=0.5))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 0])
    assert after(view) == [0, 0]
    assert after(view, overload=0.9) == [1, 0]


def test_nothing_moves_where_it_would_overload_again_or_alone():
    crowded = jobs_of(TaskJob(gpu=0.7), TaskJob(gpu=0.5), TaskJob(gpu=0.8))
    assert after(view_of(crowded, cluster_of(1, 2), gpu_of=[0, 0, 1])) == [0, 0, 1]
    alone = view_of(jobs_of(TaskJob(gpu=1.0)), cluster_of(1, 2), gpu_of=[0], factor=1.2)
    assert after(alone) == [0]


def test_a_parameter_server_relieves_no_gpu():
    jobs = jobs_of(TaskJob(gpu=0.8, server=True), TaskJob(gpu=0.5))
    assert after(view_of(jobs, cluster_of(1, 2), gpu_of=[0, 0, 0])) == [0, 0, 1]


def test_a_move_needs_memory():
    jobs = jobs_of(TaskJob(gpu=0.7, memory=50.0), TaskJob(gpu=0.5, memory=50.0), TaskJob(gpu=0.1, memory=100.0))
    view = view_of(jobs, cluster_of(2, 1, memory=120.0), gpu_of=[0, 0, 1])
    assert after(view) == [0, 0, 1]


@given(view=task_views())
def test_migration_overloads_no_gpu_and_stops_no_job(view):
    decided = arrays_of(Gandiva().place(view))
    gpu_of = checked(view, decided)
    assert decided.stop.size == 0
    if one_job_alone(view, gpu_of):  # which may pass all limits but that of memory
        return
    _, gpu_load = loads_of(view.cluster, view.task_load, gpu_of)
    assert (gpu_load <= np.maximum(1.0, view.gpu_load) + 1e-6).all()
    moved = (view.gpu_of != QUEUED) & (gpu_of != view.gpu_of)
    assert (view.gpu_load[view.gpu_of[moved]] > 1.0).all()
    assert (view.task_load[moved, GPU] > 0.0).all()
