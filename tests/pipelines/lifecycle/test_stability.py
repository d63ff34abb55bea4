"""The population stability index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.pipelines.lifecycle.drift_rules import EMPTY, LEAST_ROWS, shifts, stability_index

VALUES = st.lists(st.one_of(st.integers(-5, 5), st.just(np.nan)), min_size=1, max_size=40)


def test_the_index_of_two_bins_by_hand():
    """Halves become a quarter and three quarters: (1/4 - 1/2) ln(1/2) + (3/4 - 1/2) ln(3/2), the empty bin aside."""
    old, new = [0.0, 0.0, 1.0, 1.0] * 10, [0.0, 1.0, 1.0, 1.0] * 10
    empty = EMPTY / (40 + EMPTY)  # no value is missing: one empty bin
    p, q = np.array([20, 20]) * (1 - empty) / 40, np.array([10, 30]) * (1 - empty) / 40
    assert stability_index(old, new, bins=2) == pytest.approx(((q - p) * np.log(q / p)).sum(), rel=0.02)


@given(VALUES, VALUES)
def test_it_is_never_negative_and_symmetric_where_bins_are(old, new):
    assert stability_index(old, new) >= -1e-12
    assert stability_index(old, old) == pytest.approx(0.0)


def test_values_that_appear_or_vanish_count():
    assert stability_index([1.0] * 50, [np.nan] * 50) > 1.0
    assert stability_index([], [1.0]) is None
    assert stability_index([1.0], []) is None


def test_an_input_of_several_horizons_counts_by_the_one_that_moved_most():
    steady, moved = np.arange(100.0), np.arange(100.0) + 60
    before = {("gap", "5min"): steady, ("gap", "60min"): steady, ("hour", ""): steady}
    then = {("gap", "5min"): steady, ("gap", "60min"): moved, ("hour", ""): steady}
    assert shifts(before, then) == {"gap": stability_index(steady, moved), "hour": 0.0}


def test_a_handful_of_rows_tells_nothing():
    before = {("gap", ""): np.arange(1000.0)}
    few = {("gap", ""): np.full(LEAST_ROWS - 1, 5000.0)}
    assert shifts(before, few) == {}
    assert shifts(few, before) == {}
    assert shifts(before, {("gap", ""): np.full(LEAST_ROWS, 5000.0)})["gap"] > 1.0
