"""What a learned scheduler reads of jobs. MLFS, section 3.4."""

import numpy as np
import pytest
from hypothesis import given

from jobcast.schedulers.tasks.features import (
    JOB_FEATURES,
    ML_FEATURES,
    hold_row,
    job_rows,
    jobs_with_queued_tasks,
    plain_view,
    some_job_runs,
    told_of,
)
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, task_views, view_of


def rows_of(view):
    seen = plain_view(view)
    return job_rows(seen, jobs_with_queued_tasks(seen))


def column(view, name):
    return rows_of(view)[:, JOB_FEATURES.index(name)].tolist()


def test_a_job_that_cannot_end_by_its_deadline_is_told():
    """Each has 100 s to go: the second is due just now, the fourth just as it can end."""
    rows = jobs_of(*(TaskJob(deadline_s=due_s) for due_s in (50.0, 100.0, 150.0, 200.0, 250.0)))
    view = view_of(rows, cluster_of(1, 1), now_s=100.0)
    assert column(view, "late") == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert column(view, "out_of_reach") == [1.0, 1.0, 1.0, 0.0, 0.0]


@given(task_views(partial=True))
def test_rows_are_numbers_of_moderate_size(view):
    rows = rows_of(view)
    assert rows.shape[1] == len(JOB_FEATURES)
    assert np.isfinite(rows).all()
    assert np.abs(rows).max(initial=0.0) < 10.0


@given(task_views(partial=True))
def test_queued_jobs_are_those_with_a_task_on_no_gpu(view):
    queued = [
        job
        for job in view.active.tolist()
        if (view.gpu_of[view.jobs.task_of[job] : view.jobs.task_of[job + 1]] < 0).any()
    ]
    assert jobs_with_queued_tasks(plain_view(view)).tolist() == queued
    assert some_job_runs(plain_view(view)) == (len(queued) < len(view.active))


@given(task_views())
def test_leaving_all_in_the_queue_is_told_by_the_cluster_alone(view):
    row, shared = hold_row(plain_view(view), 3)[0], slice(JOB_FEATURES.index("cluster_gpu"), -2)
    assert row[-1] == 1.0
    assert not row[: shared.start].any()
    for other in rows_of(view):
        np.testing.assert_array_equal(other[shared], row[shared])


def test_what_there_is_nothing_of_is_a_share_of_nothing():
    """A server without a network, of one core and half a GPU in use, and a job that has learned nothing."""
    jobs = jobs_of(TaskJob(bandwidth=0.0), TaskJob(bandwidth=0.0, cpu=0.0))
    view = view_of(jobs, cluster_of(1, 1, cpu=1.0, bandwidth=0.0), gpu_of=[-1, 0], done=[10.0, 10.0])
    view = view._replace(last_gain=np.zeros(2), all_gain=np.zeros(2))
    told = dict(zip(JOB_FEATURES, rows_of(view)[0].tolist(), strict=True))
    assert (told["bandwidth"], told["cluster_bandwidth"], told["gain"]) == (0.0, 0.0, 1.0)
    assert (told["cpu"], told["cluster_gpu"]) == (1.0, 0.5)


def test_what_device_rl_does_not_read_are_columns():
    assert set(ML_FEATURES) < set(JOB_FEATURES)


def test_a_whole_row_by_hand():
    """Networks are trained on these very numbers: a job half of whose tasks run, beside one that is new."""
    job = TaskJob(
        submit_s=600.0, workers=4, chain=True, server=True, gpu=0.5, cpu=2.0, memory=8.0, bandwidth=100.0,
        iterations=100, epochs=10, deadline_s=7200.0, urgency=9.0, target=0.8, algorithm=3, volume_mb=50.0,
        iteration_s=0.5,
    )  # fmt: skip
    new = TaskJob(submit_s=3600.0, urgency=8.0, algorithm=7, iterations=5.0, epochs=5, gpu=1.0, compute_s=2.0)
    known = {"waited_s": [120.0, 0.0], "ran_s": [1800.0, 0.0], "final_mean": [0.85, np.nan], "final_sd": [0.02, np.nan]}
    view = view_of(
        jobs_of(job, new), cluster_of(2, 4), gpu_of=[0, 1, -1, -1, -1, -1], done=[55.0, 0.0], now_s=3600.0,
        limit=np.array([90.0, 5.0]), accuracy=np.array([0.6, np.nan]), last_gain=np.array([0.1, np.nan]),
        all_gain=np.array([0.4, np.nan]), **{name: np.array(values) for name, values in known.items()},
    )  # fmt: skip
    left_s = (90.0 - 55.0) * 0.5
    volume = 50.0 * (3 + 1 + 4)  # chain, to the server, from it
    expected = {
        "waited": minutes(120.0), "ran": minutes(1800.0), "age": minutes(3000.0), "remaining": minutes(left_s),
        "gpus": 2.0 / 5.0, "gpu_shares": np.log(1.0 + 2.0) / 3.0, "gpu_time": minutes(2.0 * left_s),
        "to_deadline": minutes(3600.0), "slack": np.tanh((3600.0 - left_s) / 21_600.0), "late": 0.0,
        "out_of_reach": 0.0, "urgency": 0.9, "urgent": 1.0, "progress": 0.55, "iteration": np.log(56.0) / 12.0,
        "first_epochs": 1.0 / 6.0, "gain": 0.25, "accuracy_gap": 0.2, "final_gap": 0.05, "final_known": 1.0,
        "final_sd": 0.02, "epoch": minutes(5.0), "iterations": np.log(91.0) / 12.0, "algorithm_3": 1.0,
        "largest_part": 0.25, "tasks": np.log(6.0) / 4.0, "depth": np.log(5.0) / 4.0, "width": np.log(2.0) / 4.0,
        "volume": np.log1p(volume) / 10.0, "traffic": np.log1p(volume / 0.5) / 10.0,
        "cpu": 6.0 / 64.0, "memory": 24.0 / 488.0, "bandwidth": 300.0 / 2500.0, "queued_share": 0.6,
    }  # fmt: skip
    of_cluster = {
        "cluster_gpu": 1.0 / 8.0, "cluster_cpu": 4.0 / 64.0, "cluster_memory": 16.0 / 488.0,
        "cluster_bandwidth": 200.0 / 2500.0, "queue": np.log(3.0) / 7.0,
    }  # fmt: skip
    of_new = {
        "remaining": minutes(10.0), "gpu_shares": np.log(2.0) / 3.0, "gpu_time": minutes(10.0), "to_deadline": 1.5,
        "slack": 1.0, "urgency": 0.8, "first_epochs": 1.0, "gain": 1.0, "epoch": minutes(2.0),
        "iterations": np.log(6.0) / 12.0, "algorithm_4": 1.0, "largest_part": 1.0, "tasks": np.log(2.0) / 4.0,
        "depth": np.log(2.0) / 4.0, "width": np.log(2.0) / 4.0, "cpu": 1.0 / 64.0, "memory": 4.0 / 488.0,
        "bandwidth": 100.0 / 2500.0, "queued_share": 1.0,
    }  # fmt: skip
    for row, told in zip(rows_of(view), (expected, of_new), strict=True):
        found = dict(zip(JOB_FEATURES, row.tolist(), strict=True))
        assert found == pytest.approx(dict.fromkeys(JOB_FEATURES, 0.0) | told | of_cluster)
    assert told_of(plain_view(view), 0, 2).tolist() == pytest.approx(
        [minutes(left_s), np.log(3.0) / 3.0, np.log(3.0) / 7.0]
    )
    (hold,) = hold_row(plain_view(view), 2)
    held = dict(zip(JOB_FEATURES, hold.tolist(), strict=True))
    assert held == pytest.approx(dict.fromkeys(JOB_FEATURES, 0.0) | of_cluster | {"hold": 1.0})


def minutes(seconds):
    return np.log(1.0 + seconds / 60.0) / 8.0
