"""Near-equal numbers become equal; all others stay apart and in order."""

from math import inf, isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.rounding import ERROR, LARGEST, rounded, rounded_all
from jobcast.domain.rounding_kernels import rounded as compiled

NUMBERS = st.floats(allow_nan=False)
NORMAL = st.floats(1e-300, 1e289).flatmap(lambda size: st.sampled_from([size, -size]))


@given(NUMBERS)
def test_all_three_are_one(number):
    assert rounded(number) == compiled(number) == rounded_all(np.array([number]))[0]


@given(NORMAL)
def test_it_moves_a_number_by_half_a_cell_at_most_and_once(number):
    assert abs(rounded(number) - number) <= ERROR * abs(number)
    assert rounded(rounded(number)) == rounded(number)
    assert rounded(-number) == -rounded(number)


@given(NUMBERS, NUMBERS)
def test_order_is_kept(one, other):
    assert rounded(min(one, other)) <= rounded(max(one, other))


@given(st.integers(-(2**24), 2**24), st.integers(-20, 20), st.floats(-1.0, 1.0))
def test_whole_numbers_and_halves_of_them_swallow_noise(whole, power, noise):
    number = whole * 2.0**power
    assert rounded(number) == number
    assert rounded(number * (1.0 + 1e-9 * noise)) == number


def test_sums_that_differ_in_their_last_bits_are_equal():
    rng = np.random.default_rng(0)
    numbers = rng.uniform(0.0, 1e5, (1000, 50))
    one, other = numbers.sum(axis=1), numbers[:, ::-1].cumsum(axis=1)[:, -1]
    assert (one != other).any()
    assert (rounded_all(one) == rounded_all(other)).all()


@pytest.mark.parametrize("number", [0.0, inf, -inf, LARGEST, 1.7e308, 5e-324])
def test_what_cannot_be_rounded_stays(number):
    assert rounded(number) == compiled(number) == rounded_all(np.array(number)) == number


def test_no_number_stays_none():
    assert isnan(rounded(nan))
    assert isnan(compiled(nan))
    assert np.isnan(rounded_all(np.array([nan, 1.0]))).tolist() == [True, False]
