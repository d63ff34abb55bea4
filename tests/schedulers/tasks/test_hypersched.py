"""HyperSched: accuracy gained before deadlines."""

import numpy as np
import pytest

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.tasks.baselines import HyperSched, HyperSchedSettings, deadline_gain
from tests.simulator.tasks.task_cases import TaskJob, checked, cluster_of, jobs_of, view_of


def after(view, **settings):
    return checked(view, HyperSched(HyperSchedSettings(**settings)).place(view)).tolist()


def pair(deadlines, gpu_of=(QUEUED, QUEUED), **given):
    jobs = jobs_of(*[TaskJob(gpu=1.0, iteration_s=1.0, deadline_s=deadline_s) for deadline_s in deadlines])
    return view_of(jobs, cluster_of(1, 1), gpu_of=gpu_of, **given)


def test_a_job_gains_what_the_epochs_before_its_deadline_bring():
    # epochs of 10 s: none, four and all ten fit
    assert deadline_gain(pair([9.0, 45.0])).tolist() == pytest.approx([0.0, 0.8])
    assert deadline_gain(pair([np.inf, 1e9])).tolist() == pytest.approx([10 / 11, 10 / 11])


def test_after_epochs_the_last_gain_tells_what_comes():
    view = pair([70.0, 35.0], done=[25.0, 25.0], last_gain=np.array([0.1, 0.1]), now_s=20.0, ran_s=np.full(2, 25.0))
    # a = 0.1 x 2 x 3; the first can be at 75 iterations, the second at 40, of ten an epoch
    assert deadline_gain(view).tolist() == pytest.approx([0.6 * (1 / 3 - 1 / 8), 0.6 * (1 / 3 - 1 / 5)])


def test_a_stop_that_was_set_ends_the_gain():
    assert deadline_gain(pair([1e9, 1e9], limit=np.array([40.0, 100.0]))).tolist() == pytest.approx([0.8, 10 / 11])


def test_who_gains_most_before_the_deadline_comes_first():
    assert after(pair([30.0, 100.0])) == [QUEUED, 0]
    assert after(pair([100.0, 30.0])) == [0, QUEUED]


def test_who_gains_nothing_gives_way():
    plateau = {"done": [50.0, 0.0], "last_gain": np.array([1e-5, np.nan])}
    assert after(pair([1e9, 1e9], [0, QUEUED], **plateau)) == [QUEUED, 0]
    late = pair([10.0, 1e9], [0, QUEUED], now_s=20.0)
    assert after(late) == [QUEUED, 0]


def test_who_still_gains_stays():
    gaining = {"done": [50.0, 0.0], "last_gain": np.array([0.05, np.nan])}
    assert after(pair([1e9, 1e9], [0, QUEUED], **gaining)) == [0, QUEUED]
    assert after(pair([1e9, 1e9], [0, QUEUED], **gaining), least_gain=0.5) == [QUEUED, 0]


def test_who_gains_nothing_displaces_nobody_but_uses_what_is_left():
    flat = {"done": [50.0, 50.0], "last_gain": np.full(2, 1e-5)}
    assert after(pair([1e9, 1e9], [0, QUEUED], **flat)) == [0, QUEUED]
    assert after(pair([1e9, 1e9], **flat)) == [0, QUEUED]
