"""SLAQ: speed of gain."""

import numpy as np
import pytest

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.tasks.baselines import Slaq, SlaqSettings, gain_speed
from tests.simulator.tasks.task_cases import TaskJob, arrays_of, checked, cluster_of, jobs_of, view_of


def two(gpu_of, *, now_s=600.0, **given):
    """Two jobs of one GPU with ten epochs of ten iterations, of which they ended four; the first gained less last."""
    jobs = jobs_of(TaskJob(gpu=1.0, iteration_s=1.0), TaskJob(gpu=1.0, iteration_s=1.0))
    fields = {
        "done": [40.0, 40.0],
        "last_gain": np.array([0.01, 0.1]),
        "all_gain": np.array([0.5, 0.5]),
        "ran_s": np.array([40.0, 40.0]),
        "now_s": now_s,
    }
    return view_of(jobs, cluster_of(1, 1), gpu_of=gpu_of, **(fields | given))


def test_speed_is_the_next_gain_as_a_share_of_all_per_second():
    # a = 0.01 x 4 x 5; next: a (1/5 - 1/6) = 0.2 / 30; of 0.5 in 10 s
    assert gain_speed(two([0, QUEUED])).tolist() == pytest.approx([0.2 / 30 / 0.5 / 10, 2.0 / 30 / 0.5 / 10])


def test_an_unseen_job_gains_all_that_it_will_have_in_its_first_epoch():
    nan = np.full(2, np.nan)
    view = two([0, QUEUED], done=[5.0, 0.0], last_gain=nan, all_gain=nan, ran_s=np.array([10.0, 0.0]))
    assert gain_speed(view).tolist() == pytest.approx([1 / 20, 1 / 10])


def test_a_job_that_never_gained_has_no_speed():
    assert gain_speed(two([0, QUEUED], last_gain=np.zeros(2), all_gain=np.zeros(2))).tolist() == [0.0, 0.0]


def test_the_faster_gain_comes_first():
    view = two([QUEUED, QUEUED])
    assert checked(view, Slaq().place(view)).tolist() == [QUEUED, 0]


def test_it_takes_a_slower_jobs_place_only_at_the_end_of_an_interval():
    assert arrays_of(Slaq().place(two([0, QUEUED]))).stop.tolist() == [0]
    between = two([0, QUEUED], now_s=660.0)
    assert arrays_of(Slaq().place(between)).stop.size == 0
    assert arrays_of(Slaq(SlaqSettings(interval_s=60.0)).place(between)).stop.tolist() == [0]
    assert arrays_of(Slaq().place(two([QUEUED, 0]))).stop.size == 0


def test_a_quick_job_beats_a_slow_one_of_the_same_gain():
    view = two([QUEUED, QUEUED], last_gain=np.array([0.05, 0.05]), ran_s=np.array([40.0, 400.0]))
    assert checked(view, Slaq().place(view)).tolist() == [0, QUEUED]


def test_measured_times_replace_estimates():
    view = two([0, QUEUED])
    slower = view._replace(jobs=view.jobs._replace(iteration_s=view.jobs.iteration_s * 99.0))
    assert gain_speed(slower).tolist() == gain_speed(view).tolist()
