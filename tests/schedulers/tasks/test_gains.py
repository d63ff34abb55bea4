"""Gains by the curve c - a / (k + 1)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.schedulers.tasks.baselines import amplitude, epochs_seen, gain_until
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, view_of


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
