"""Rows of servers for a task, and jobs placed whole by a network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.tasks.features import HOST_FEATURES, plain_view, told_of
from jobcast.schedulers.tasks.learned_hosts import fits, fitting, host_rows, place_in_order, sheet_of
from jobcast.schedulers.tasks.mlf_h import MlfHSettings
from jobcast.schedulers.tasks.network import networks_of
from jobcast.schedulers.tasks.packing import room_of, wants_of
from tests.schedulers.tasks.test_task_network import arrays
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, task_views, view_of

LIMITS = MlfHSettings().limits


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
