import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Job
from jobcast.schedulers.sia_preempt import ObservedErrors


def arrive(errors, at_s, gpus, pool="p"):
    errors.arrived(Job(0, "a", pool, at_s, gpus))


def test_nothing_is_known_before_a_window_is_over():
    errors = ObservedErrors()
    assert errors.share("p", 300.0) == 0.0
    errors.forecast("p", 300.0, 0.0, 0.0, 8)
    arrive(errors, 10.0, 4)
    errors.forecast("p", 300.0, 299.0, 0.0, 8)
    assert errors.share("p", 300.0) == 0.0


def test_what_came_beyond_a_forecast_counts_as_a_share_of_what_it_left_free():
    errors = ObservedErrors()
    errors.forecast("p", 300.0, 0.0, 2.0, 10)  # leaves 8 free
    arrive(errors, 100.0, 3)
    arrive(errors, 300.0, 1)  # the end belongs to the window
    arrive(errors, 301.0, 5)  # this does not
    arrive(errors, 200.0, 5, pool="q")
    errors.forecast("p", 300.0, 400.0, 10.0, 10)
    assert errors.share("p", 300.0) == pytest.approx(2 / 8)
    errors.forecast("p", 300.0, 700.0, 0.0, 10)  # nothing was left free, nothing can have been taken of it
    assert errors.share("p", 300.0) == pytest.approx(2 / 8)
    assert errors.share("p", 3600.0) == 0.0


def test_load_beyond_the_quota_counts_no_more_than_the_quota():
    errors = ObservedErrors()
    errors.forecast("p", 60.0, 0.0, 0.0, 4)
    arrive(errors, 1.0, 100)
    errors.forecast("p", 60.0, 60.0, 0.0, 4)
    assert errors.share("p", 60.0) == 1.0


@given(st.lists(st.tuples(st.floats(0.1, 50.0), st.integers(1, 12), st.integers(0, 12)), max_size=40))
def test_a_share_stays_a_share(steps):
    errors, now_s = ObservedErrors(), 0.0
    for gap_s, gpus, told in steps:
        now_s += gap_s
        arrive(errors, now_s, gpus)
        errors.forecast("p", 60.0, now_s, float(told), 8)
        assert 0.0 <= errors.share("p", 60.0) <= 1.0


@given(st.lists(st.tuples(st.floats(0.1, 50.0), st.integers(1, 12)), max_size=40))
def test_forecasts_that_hold_err_never(steps):
    errors, arrivals, now_s = ObservedErrors(), [], 0.0
    for gap_s, gpus in steps:
        now_s += gap_s
        arrivals.append((now_s, gpus))
    for at_s, gpus in arrivals:
        arrive(errors, at_s, gpus)
        exact = sum(width for when_s, width in arrivals if at_s < when_s <= at_s + 60.0)
        errors.forecast("p", 60.0, at_s, float(exact), 8)
        assert errors.share("p", 60.0) == 0.0
