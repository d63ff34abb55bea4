"""Decisions by learned networks. MLFS, section 3.4."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.registry import find_policy
from jobcast.schedulers.tasks.features import HOST_FEATURES, JOB_FEATURES, plain_view, told_of
from jobcast.schedulers.tasks.learned_hosts import fits, fitting, host_rows, place_in_order, sheet_of
from jobcast.schedulers.tasks.mlf_rl import MlfRl, device_rl, tasks_leaving
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.schedulers.tasks.network import networks_of
from jobcast.schedulers.tasks.packing import limits_of, room_of, wants_of
from tests.schedulers.tasks.test_task_network import arrays
from tests.simulator.tasks.task_cases import TaskJob, after, cluster_of, jobs_of, task_views, view_of


def scores_by(jobs=None, hosts=None):
    """Networks whose scores rise with the weighted columns."""
    found = {name: np.zeros_like(values) for name, values in arrays().items()}
    for head, names, weights in (("jobs", JOB_FEATURES, jobs or {}), ("hosts", HOST_FEATURES, hosts or {})):
        for name, weight in weights.items():
            found[f"{head}.first"][names.index(name), 0] = weight
        found[f"{head}.second"][0, 0] = 1.0
        found[f"{head}.last"][0] = 1.0
    return networks_of(found)


def by_columns(jobs=None, hosts=None):
    return MlfRl(scores_by(jobs, hosts))


def quietest(**jobs):
    """Placement for completion times alone, on the servers whose GPUs are used least."""
    return scores_by(jobs, {"gpu": -1.0})


@pytest.mark.parametrize("policy", [MlfRl, device_rl])
def test_the_job_of_the_highest_score_comes_first(policy):
    view = view_of(jobs_of(TaskJob(gpu=0.8, iterations=500), TaskJob(gpu=0.8, iterations=50)), cluster_of(1, 1))
    assert after(view, policy(quietest(remaining=-1.0))) == [QUEUED, 0]
    assert after(view, policy(quietest(remaining=1.0))) == [0, QUEUED]


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
    assert len(tasks_leaving(view, HeuristicSettings())) == 1
    assert sorted(after(view, by_columns(hosts={"stays": -1.0, "queue": -1.0}))[:2]) == [0, 1]
    assert after(view, by_columns(hosts={"stays": 1.0}))[:2] == [0, 0]
    assert sorted(after(view, by_columns(hosts={"queue": 1.0}))[:2]) == [0, 1]  # stopped, and placed anew at once
    assert after(view, by_columns({"gpus": -1.0}, {"queue": 1.0})) == [QUEUED, QUEUED, 0]  # another job came first
    assert not len(tasks_leaving(view, HeuristicSettings(migration=False)))


@given(task_views(), st.integers(0, 99))
def test_decisions_are_sound_and_repeat(view, seed):
    policy = MlfRl(networks_of(arrays(seed)))
    assert after(view, policy) == after(view, policy)


# Placement by learned weights, for completion times alone.


def test_nothing_leaves_overloaded_servers():
    jobs = jobs_of(TaskJob(gpu=0.7), TaskJob(gpu=0.7))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0])
    assert after(view, device_rl(quietest())) == [0, 0]


def test_nobody_gives_way_to_a_far_more_urgent_job():
    jobs = jobs_of(TaskJob(gpu=0.8, urgency=1.0, iterations=5000.0), TaskJob(gpu=0.8, urgency=10.0, iterations=10.0))
    view = view_of(jobs, cluster_of(1, 1), gpu_of=[0, QUEUED])
    assert after(view, MlfRl(quietest())) == [QUEUED, 0]
    assert after(view, device_rl(quietest())) == [0, QUEUED]
    assert not find_policy("device_rl").preempts


def test_servers_are_filled_as_far_as_is_set():
    jobs = jobs_of(TaskJob(gpu=0.5), TaskJob(gpu=0.5))
    view = view_of(jobs, cluster_of(1, 1))
    assert after(view, device_rl(quietest())) == [0, 0]
    assert after(view, device_rl(quietest(), 0.9)) == [0, QUEUED]


# Rows of servers for a task, and jobs placed whole by a network.

LIMITS = limits_of(0.9, 0.9)


def hosts_of(view, task):
    room, wants = room_of(view), wants_of(view)
    rows, _, servers = sheet_of(len(room.least))
    told = told_of(plain_view(view), int(view.jobs.job_of[task]), 2)
    count = host_rows(room, LIMITS, wants, task, told, rows, servers)
    return {name: rows[:count, k].tolist() for k, name in enumerate(HOST_FEATURES)}, servers[:count].tolist()


def test_columns_of_servers_hold_what_their_names_say():
    jobs = jobs_of(TaskJob(gpu=0.1), TaskJob(workers=3, gpu=0.4, volume_mb=30.0, chain=True), TaskJob(gpu=0.8))
    rows, servers = hosts_of(view_of(jobs, cluster_of(3, 1), gpu_of=[0, 1, QUEUED, QUEUED, 2]), 2)
    assert servers == [0, 1]  # the third would be filled beyond 0.9
    assert rows["gpu"] == [0.1, 0.4]
    assert rows["above_least_gpu"] == pytest.approx([0.0, 0.3])
    assert rows["freest_gpu_after"] == [0.5, 0.8]
    assert rows["near"] == [0.0, 0.5]
    assert rows["below_nearest"] == [0.5, 0.0]
    assert rows["job_here"] == pytest.approx([0.0, 1.0 / 3.0])
    assert rows["tasks_left"] == pytest.approx([2.0 / 3.0] * 2)
    assert rows["stays"] == rows["queue"] == [0.0, 0.0]
    np.testing.assert_allclose(rows["job_remaining"], np.log1p(300.0 / 60.0) / 8.0)  # 100 iterations of 3 s
    np.testing.assert_allclose(rows["job_gpus"], np.log1p(1.2) / 3.0)
    np.testing.assert_allclose(rows["waiting"], np.log1p(2.0) / 7.0)


def test_a_task_on_a_gpu_may_stay_or_go_back_to_the_queue():
    jobs = jobs_of(TaskJob(workers=2, gpu=0.6, memory=61.0))
    rows, servers = hosts_of(view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0]), 0)
    assert servers == [0, 1, QUEUED]
    assert rows["stays"] == [1.0, 0.0, 0.0]
    assert rows["queue"] == [0.0, 0.0, 1.0]
    assert rows["moves"][0] == 0.0 < rows["moves"][1]
    np.testing.assert_allclose(rows["gpu"], [0.6, 0.0, 0.0])  # without itself
    np.testing.assert_allclose(rows["freest_gpu_after"], [1.2, 0.6, 0.0])


def test_whole_rows_of_servers_by_hand():
    """A worker of two joins the other on the second server, or has the first for itself."""
    jobs = jobs_of(TaskJob(workers=2, gpu=0.4, cpu=14.0, memory=61.0, server=True), TaskJob(gpu=0.8))
    rows, servers = hosts_of(view_of(jobs, cluster_of(3, [1, 1, 1]), gpu_of=[1, QUEUED, QUEUED, 2]), 1)
    assert servers == [0, 1]
    cpu, memory, bandwidth = 14.0 / 32.0, 0.25, 0.08
    expected = {
        "gpu": [0.0, 0.4], "cpu": [0.0, cpu], "memory": [0.0, memory], "bandwidth": [0.0, bandwidth],
        "task_gpu": [0.4] * 2, "task_cpu": [cpu] * 2, "task_memory": [memory] * 2, "task_bandwidth": [bandwidth] * 2,
        "above_least_gpu": [0.0, 0.4], "above_least_cpu": [0.0, cpu], "above_least_memory": [0.0, memory],
        "above_least_bandwidth": [0.0, bandwidth], "freest_gpu": [0.0, 0.4], "freest_gpu_after": [0.4, 0.8],
        "fullest_after": [cpu, 2.0 * cpu], "job_here": [0.0, 1.0 / 3.0],
        "room_for_rest": [1.0, 0.5 / 0.4 / 2.0],  # of GPUs up to 0.9, over twice what is queued
        "tasks_left": [2.0 / 3.0] * 2, "moves": [0.0] * 2, "stays": [0.0] * 2, "is_server": [0.0] * 2,
        "queue": [0.0] * 2,
    }  # fmt: skip
    for name, values in expected.items():
        assert rows[name] == pytest.approx(values), name
    rows, servers = hosts_of(view_of(jobs, cluster_of(3, 1), gpu_of=[1, QUEUED, QUEUED, 2]), 2)
    assert (servers, rows["is_server"], rows["task_gpu"]) == ([0, 1, 2], [1.0] * 3, [0.0] * 3)


def test_what_a_move_costs_and_a_task_that_may_stay():
    """Its 61 GB go at the 1,050 MB/s that are free where it comes from: 58 of the 60 s between two decisions."""
    jobs = jobs_of(TaskJob(workers=2, gpu=0.6, memory=61.0))
    rows, _ = hosts_of(view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0]), 0)
    expected = {
        "cpu": [1.0 / 32.0, 0.0, 0.0], "above_least_memory": [0.25, 0.0, 0.0], "freest_gpu": [0.6, 0.0, 0.0],
        "fullest_after": [1.2, 0.6, 0.0], "job_here": [0.5, 0.0, 0.0], "room_for_rest": [0.0, 1.0, 0.0],
        "tasks_left": [0.0] * 3, "moves": [0.0, 61_000.0 / 1050.0 / 60.0, 0.0],
    }  # fmt: skip
    for name, values in expected.items():
        assert rows[name] == pytest.approx(values), name


@given(task_views())
def test_trying_changes_nothing(view):
    room, wants = room_of(view), wants_of(view)
    tried = fitting(room, LIMITS, wants, view.active).tolist()
    assert set(tried) <= set(view.active.tolist())
    np.testing.assert_array_equal(room.place, view.gpu_of)
    np.testing.assert_allclose(room.load, view.load, atol=1e-9)
    np.testing.assert_allclose(room.gpu_load, view.gpu_load, atol=1e-9)


@given(task_views(), st.integers(0, 99))
def test_jobs_are_placed_whole_on_servers_that_can_take_them(view, seed):
    room, wants = room_of(view), wants_of(view)
    order = np.random.default_rng(seed).permutation(view.active)
    able = {int(job) for job in order if fits(room, LIMITS, wants, int(job))}
    count = place_in_order(plain_view(view), room, LIMITS, wants, networks_of(arrays(seed)).hosts, order, len(order))
    came = np.flatnonzero((room.place != QUEUED) & (view.gpu_of == QUEUED))
    placed = set(view.jobs.job_of[came].tolist())
    assert len(placed) == count
    assert placed <= able
    for job in placed:
        assert (room.place[view.jobs.task_of[job] : view.jobs.task_of[job + 1]] != QUEUED).all()
    stays = view.gpu_of != QUEUED
    np.testing.assert_array_equal(room.place[stays], view.gpu_of[stays])
