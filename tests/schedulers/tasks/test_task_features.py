"""What a learned scheduler reads of jobs. MLFS, section 3.4."""

import numpy as np
from hypothesis import given

from jobcast.schedulers.tasks.features import (
    JOB_FEATURES,
    ML_FEATURES,
    hold_row,
    job_rows,
    jobs_with_queued_tasks,
    plain_view,
    some_job_runs,
)
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, task_views, view_of


def rows_of(view):
    seen = plain_view(view)
    return job_rows(seen, jobs_with_queued_tasks(seen))


def column(view, name):
    return rows_of(view)[:, JOB_FEATURES.index(name)].tolist()


def test_columns_hold_what_their_names_say():
    job = TaskJob(
        workers=4, chain=True, server=True, gpu=0.5, iterations=100, epochs=10, deadline_s=7200.0, urgency=9.0,
        target=0.8, algorithm=3, volume_mb=50.0, iteration_s=36.0,
    )  # fmt: skip
    view = view_of(jobs_of(job), cluster_of(2, 4), done=[50.0], now_s=3600.0)

    def log_minutes(minutes):
        return np.log1p(minutes) / 8.0

    def of(name):
        return column(view, name)[0]

    assert of("waited") == log_minutes(60.0)
    assert of("remaining") == log_minutes(30.0)  # 50 iterations of 36 s
    assert of("gpu_time") == log_minutes(60.0)  # on 4 x 0.5 GPUs
    assert of("to_deadline") == log_minutes(60.0)
    assert np.isclose(of("slack"), np.tanh(1800.0 / 21600.0))
    assert (of("late"), of("out_of_reach"), of("urgency"), of("urgent")) == (0.0, 0.0, 0.9, 1.0)
    assert (of("progress"), of("first_epochs")) == (0.5, 1 / 6)
    assert np.isclose(of("accuracy_gap"), 0.8 - view.accuracy[0])
    assert (of("algorithm_3"), of("algorithm_2"), of("largest_part"), of("queued_share")) == (1.0, 0.0, 0.25, 1.0)
    assert np.isclose(of("depth"), np.log1p(4) / 4.0)
    assert np.isclose(of("width"), np.log1p(1) / 4.0)
    assert np.isclose(of("volume"), np.log1p(50.0 * (3 + 1 + 4)) / 10.0)  # chain, to the server, from it
    assert np.isclose(of("cpu"), 5.0 / 64.0)
    assert of("final_known") == of("hold") == 0.0


def test_a_job_that_cannot_end_by_its_deadline_is_told():
    rows = jobs_of(TaskJob(deadline_s=50.0), TaskJob(deadline_s=150.0), TaskJob(deadline_s=250.0))
    view = view_of(rows, cluster_of(1, 1), now_s=100.0)
    assert column(view, "late") == [1.0, 0.0, 0.0]
    assert column(view, "out_of_reach") == [1.0, 1.0, 0.0]


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


def test_what_device_rl_does_not_read_are_columns():
    assert set(ML_FEATURES) < set(JOB_FEATURES)
