"""Gandiva: first in, first out, affinity, migration."""

import numpy as np
import pytest
from hypothesis import given

from jobcast.domain.tasks import GPU, QUEUED
from jobcast.schedulers.tasks.baselines import (
    AFFINITY,
    Gandiva,
    GandivaSettings,
    Graphene,
    GrapheneSettings,
    descendants,
    groups_of,
    pack_by,
    scores,
    trouble,
)
from jobcast.schedulers.tasks.packing import room_of, wants_of
from jobcast.schedulers.tasks.preemption import GPU_AND_MEMORY
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
    workloads,
)


def after_gandiva(view, **settings):
    return checked(view, Gandiva(GandivaSettings(**settings)).place(view)).tolist()


def test_first_in_first_out_whatever_they_need():
    jobs = jobs_of(
        TaskJob(workers=2, gpu=1.0, iterations=1e6), TaskJob(submit_s=1.0, gpu=1.0, iterations=1.0, epochs=1)
    )
    assert after_gandiva(view_of(jobs, cluster_of(1, 2))) == [0, 1, QUEUED]


def test_who_does_not_fit_is_passed_by():
    jobs = jobs_of(TaskJob(workers=3, gpu=1.0), TaskJob(gpu=1.0))
    assert after_gandiva(view_of(jobs, cluster_of(1, 2))) == [QUEUED, QUEUED, QUEUED, 0]


def test_jobs_with_as_many_gpus_share_servers():
    jobs = jobs_of(TaskJob(gpu=0.2), TaskJob(workers=2, gpu=0.6), TaskJob(gpu=0.2), TaskJob(workers=2, gpu=0.1))
    view = view_of(jobs, cluster_of(3, 2), gpu_of=[0, 2, 3, QUEUED, QUEUED, QUEUED])
    assert after_gandiva(view) == [0, 2, 3, 1, 2, 3]


def test_where_there_is_no_kin_an_empty_server_comes_before_others():
    jobs = jobs_of(TaskJob(gpu=0.1), TaskJob(workers=2, gpu=0.6))
    assert after_gandiva(view_of(jobs, cluster_of(2, 2), gpu_of=[0, QUEUED, QUEUED])) == [0, 2, 3]
    assert after_gandiva(view_of(jobs, cluster_of(1, 2), gpu_of=[0, QUEUED, QUEUED])) == [0, 1, 0]


def test_among_servers_of_others_the_least_used_comes_first():
    """0.4 of 4 GPUs before 0.3 of 2, until the first task makes it 0.7 of 4."""
    jobs = jobs_of(TaskJob(gpu=0.3), TaskJob(gpu=0.4), TaskJob(workers=2, gpu=0.3))
    assert after_gandiva(view_of(jobs, cluster_of(2, [2, 4]), gpu_of=[0, 2, QUEUED, QUEUED])) == [0, 2, 3, 1]
    assert after_gandiva(view_of(jobs_of(TaskJob()), cluster_of(2, 1))) == [0]  # of equals the first


def test_who_is_counted_where_follows_what_is_placed_and_taken_back():
    jobs = jobs_of(TaskJob(gpu=0.5), TaskJob(workers=2, gpu=(0.3, 0.9)), TaskJob(workers=2, gpu=0.2))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, *[QUEUED] * 4])
    room = room_of(view)
    group, counts = groups_of(view, room)
    pack_by(AFFINITY, room, GPU_AND_MEMORY, wants_of(view), np.array([1, 2]), group, counts)
    assert counts.tolist() == [[1, 0], [0, 2]]


def test_the_task_with_the_least_use_leaves_an_overloaded_gpu_for_the_least_used():
    jobs = jobs_of(TaskJob(gpu=0.7), TaskJob(gpu=0.5), TaskJob(gpu=0.4), TaskJob(gpu=0.3))
    assert after_gandiva(view_of(jobs, cluster_of(1, 3), gpu_of=[0, 0, 1, 2])) == [0, 2, 1, 2]


def test_nothing_moves_below_the_threshold():
    jobs = jobs_of(TaskJob(gpu=0.5), TaskJob(gpu=0.5))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 0])
    assert after_gandiva(view) == [0, 0]
    assert after_gandiva(view, overload=0.9) == [1, 0]


def test_nothing_moves_where_it_would_overload_again_or_alone():
    crowded = jobs_of(TaskJob(gpu=0.7), TaskJob(gpu=0.5), TaskJob(gpu=0.8))
    assert after_gandiva(view_of(crowded, cluster_of(1, 2), gpu_of=[0, 0, 1])) == [0, 0, 1]
    alone = view_of(jobs_of(TaskJob(gpu=1.0)), cluster_of(1, 2), gpu_of=[0], factor=1.2)
    assert after_gandiva(alone) == [0]


def test_a_parameter_server_relieves_no_gpu():
    jobs = jobs_of(TaskJob(gpu=0.8, server=True), TaskJob(gpu=0.5))
    assert after_gandiva(view_of(jobs, cluster_of(1, 2), gpu_of=[0, 0, 0])) == [0, 0, 1]


def test_a_move_needs_memory():
    jobs = jobs_of(TaskJob(gpu=0.7, memory=50.0), TaskJob(gpu=0.5, memory=50.0), TaskJob(gpu=0.5, memory=100.0))
    for memory, expected in ((149.0, [0, 0, 1]), (150.0, [0, 1, 1])):
        assert after_gandiva(view_of(jobs, cluster_of(2, 1, memory=memory), gpu_of=[0, 0, 1])) == expected


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


def after_graphene(view, **weights):
    settings = GrapheneSettings(**({"srpt": 0.0, "packing": 0.0, "fairness": 0.0} | weights))
    return checked(view, Graphene(settings).place(view)).tolist()


def test_dependants_are_counted_along_a_chain_and_not_through_the_broadcast():
    jobs = jobs_of(TaskJob(workers=3, chain=True, server=True), TaskJob(workers=2, server=True))
    assert descendants(jobs).tolist() == [3, 2, 1, 0, 1, 1, 0]


def test_more_tasks_than_a_word_has_bits():
    jobs = jobs_of(TaskJob(workers=150, chain=True))
    assert descendants(jobs).tolist() == list(range(149, -1, -1))


@given(load=workloads())
def test_dependants_are_all_that_can_be_reached(load):
    jobs, _ = load
    reached = [set() for _ in jobs.job_of]
    edges = sorted(zip(jobs.edge_from.tolist(), jobs.edge_to.tolist(), strict=True), reverse=True)
    for one, other in edges:
        if one < other:
            reached[one] |= {other} | reached[other]
    assert descendants(jobs).tolist() == [len(found) for found in reached]


def test_trouble_is_the_share_of_dependants_and_the_largest_demand():
    pair = TaskJob(workers=2, chain=True, gpu=0.4, cpu=16.0)
    jobs = jobs_of(TaskJob(workers=3, chain=True, gpu=(0.4, 0.8, 0.4), cpu=16.0), pair, TaskJob(gpu=0.4, cpu=16.0))
    # cores: 16 of 32; GPU: of 1
    expected = [1.0 + 0.5, 0.5 + 0.8, 0.5, 1.0 + 0.5, 0.5, 0.5]
    assert trouble(jobs, cluster_of(2, 1)).tolist() == pytest.approx(expected)


def test_the_most_troublesome_task_takes_the_best_aligned_server():
    jobs = jobs_of(TaskJob(gpu=0.1), TaskJob(workers=2, gpu=(0.3, 0.9)))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, QUEUED, QUEUED])
    assert after_graphene(view, srpt=1.0) == [0, 0, 1]  # the larger one first: server 1 has more free
    wide = view_of(jobs_of(TaskJob(gpu=0.4)), cluster_of(2, [4, 1]))
    assert after_graphene(wide, srpt=1.0) == [4]  # of one GPU it uses more than of four


def test_little_remaining_work_comes_first():
    jobs = jobs_of(TaskJob(gpu=0.8, iterations=1000.0), TaskJob(gpu=0.8, iterations=500.0, epochs=5, iteration_s=1.5))
    view = view_of(jobs, cluster_of(1, 1))
    assert after_graphene(view, srpt=1.0) == [QUEUED, 0]
    assert after_graphene(view_of(jobs, cluster_of(1, 1), done=[600, 0]), srpt=1.0) == [0, QUEUED]


def test_packing_prefers_the_larger_demand_of_what_is_free():
    jobs = jobs_of(TaskJob(gpu=0.6, cpu=1.0), TaskJob(gpu=0.6, cpu=20.0))
    view = view_of(jobs, cluster_of(1, 1))
    assert after_graphene(view, packing=1.0) == [QUEUED, 0]


def test_fairness_prefers_who_lacks_most():
    jobs = jobs_of(TaskJob(gpu=0.8), TaskJob(submit_s=60.0, gpu=0.8))
    view = view_of(jobs, cluster_of(1, 1), now_s=1000.0, ran_s=np.array([300.0, 0.0]))
    # fair: half a GPU of 1000 s and of 940 s; the first had 300 of its 500
    assert scores(view, view.active, GrapheneSettings(srpt=0.0, packing=0.0, fairness=1.0)).tolist() == pytest.approx(
        [200 / 470, 1.0]
    )
    assert after_graphene(view, fairness=1.0) == [QUEUED, 0]


def test_a_score_adds_shares_of_the_largest():
    jobs = jobs_of(TaskJob(gpu=0.5, cpu=8.0), TaskJob(workers=2, gpu=1.0, cpu=0.0), TaskJob(gpu=1.0, cpu=24.0))
    cluster = cluster_of(1, 2, memory=1e9, bandwidth=1e9)
    view = view_of(jobs, cluster, gpu_of=[QUEUED, QUEUED, QUEUED, 0], now_s=0.0)
    # work 50 and 200 GPU seconds; half of the GPUs and a quarter of the cores are free: of them mean tasks have
    # 0.5 / 4 + 8 / 128 and 1 / 4; nobody lacks anything yet
    weights = GrapheneSettings(srpt=1.0, packing=2.0, fairness=1.0)
    assert scores(view, np.array([0, 1]), weights).tolist() == pytest.approx([-0.25 + 2 * 0.75, -1 + 2, 0.0])


@given(view=task_views())
def test_running_jobs_are_left_alone(view):
    decided = arrays_of(Graphene().place(view))
    gpu_of = checked(view, decided)
    assert decided.stop.size == 0
    on = view.gpu_of != QUEUED
    assert (gpu_of[on] == view.gpu_of[on]).all()
