"""Gains by the curve c - a / (k + 1)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.tasks.baselines import (
    HyperSched,
    HyperSchedSettings,
    Slaq,
    SlaqSettings,
    amplitude,
    deadline_gain,
    epochs_seen,
    gain_speed,
    gain_until,
)
from tests.simulator.tasks.task_cases import TaskJob, arrays_of, checked, cluster_of, jobs_of, view_of


def one(done, **given):
    return view_of(jobs_of(TaskJob(iterations=100.0, epochs=10)), cluster_of(1, 1), done=[done], **given)


@pytest.mark.parametrize(("done", "expected"), [(0.0, 0), (9.9, 0), (10.0, 1), (59.0, 5)])
def test_only_ended_epochs_are_seen(done, expected):
    assert epochs_seen(one(done)).tolist() == [expected]


def test_the_next_gain_after_one_epoch_is_a_third_of_the_first():
    view = one(10.0, last_gain=np.array([0.3]))
    assert amplitude(view).tolist() == pytest.approx([0.6])  # 0.3 x 1 x 2
    assert gain_until(view, np.array([2.0])).tolist() == pytest.approx([0.1])  # 0.6 x (1/2 - 1/3)


@given(a=st.floats(0.01, 1.0), seen=st.integers(1, 9), later=st.integers(0, 30))
def test_a_curve_of_this_shape_is_foretold_exactly(a, seen, later):
    gained = np.array([a / seen - a / (seen + 1)])
    view = one(10.0 * seen, last_gain=gained)
    expected = max(0.0, a / (seen + 1) - a / (later + 1))
    assert gain_until(view, np.array([float(later)]))[0] == pytest.approx(expected, abs=1e-12)


def test_before_the_first_epoch_all_may_be_gained():
    view = one(5.0)
    assert gain_until(view, np.array([4.0])).tolist() == pytest.approx([0.8])  # 1 - 1/5
    assert gain_until(view, np.array([0.0])).tolist() == [0.0]


def test_a_metric_that_fell_gains_nothing():
    assert gain_until(one(50.0, last_gain=np.array([-0.1])), np.array([10.0])).tolist() == [0.0]


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


def after_hypersched(view, **settings):
    return checked(view, HyperSched(HyperSchedSettings(**settings)).place(view)).tolist()


def pair(deadlines, gpu_of=(QUEUED, QUEUED), **given):
    jobs = jobs_of(*[TaskJob(gpu=1.0, iteration_s=1.0, deadline_s=deadline_s) for deadline_s in deadlines])
    return view_of(jobs, cluster_of(1, 1), gpu_of=gpu_of, **given)


def test_a_job_gains_what_the_epochs_before_its_deadline_bring():
    # epochs of 10 s: none, four and all ten fit
    assert deadline_gain(pair([9.0, 45.0])).tolist() == pytest.approx([0.0, 0.8])
    assert deadline_gain(pair([np.inf, 1e9])).tolist() == pytest.approx([10 / 11, 10 / 11])


def test_after_epochs_the_last_gain_tells_what_comes():
    view = pair([160.0, 90.0], done=[25.0, 25.0], last_gain=np.array([0.1, 0.1]), now_s=60.0, ran_s=np.full(2, 50.0))
    # a = 0.1 x 2 x 3; at 2 s each the first can be at 75 iterations, the second at 40, of ten an epoch
    assert deadline_gain(view).tolist() == pytest.approx([0.6 * (1 / 3 - 1 / 8), 0.6 * (1 / 3 - 1 / 5)])


def test_a_stop_that_was_set_ends_the_gain():
    assert deadline_gain(pair([1e9, 1e9], limit=np.array([40.0, 100.0]))).tolist() == pytest.approx([0.8, 10 / 11])


def test_who_gains_most_before_the_deadline_comes_first():
    assert after_hypersched(pair([30.0, 100.0])) == [QUEUED, 0]
    assert after_hypersched(pair([100.0, 30.0])) == [0, QUEUED]


def test_who_gains_nothing_gives_way():
    plateau = {"done": [50.0, 0.0], "last_gain": np.array([1e-5, np.nan])}
    assert after_hypersched(pair([1e9, 1e9], [0, QUEUED], **plateau)) == [QUEUED, 0]
    assert after_hypersched(pair([9.0, 45.0], [0, QUEUED]), least_gain=0.8) == [QUEUED, 0]  # just enough
    late = pair([10.0, 1e9], [0, QUEUED], now_s=20.0)
    assert after_hypersched(late) == [QUEUED, 0]


def test_who_still_gains_stays():
    gaining = {"done": [50.0, 0.0], "last_gain": np.array([0.05, np.nan])}
    assert after_hypersched(pair([1e9, 1e9], [0, QUEUED], **gaining)) == [0, QUEUED]
    assert after_hypersched(pair([1e9, 1e9], [0, QUEUED], **gaining), least_gain=0.5) == [QUEUED, 0]


def test_who_gains_nothing_displaces_nobody_but_uses_what_is_left():
    flat = {"done": [50.0, 50.0], "last_gain": np.full(2, 1e-5)}
    assert after_hypersched(pair([1e9, 1e9], [0, QUEUED], **flat)) == [0, QUEUED]
    assert after_hypersched(pair([1e9, 1e9], **flat)) == [0, QUEUED]
