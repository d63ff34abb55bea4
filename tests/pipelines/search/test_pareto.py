"""Fronts, distances to them, and the volume that they win."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jobcast.pipelines.search.proposing import behind, hypervolume_curve, pareto_mask, thinned, uncovered

POINTS = arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.integers(0, 5).map(float))


@given(POINTS)
def test_a_front_is_what_nothing_beats(values):
    mask = pareto_mask(values)
    for row, point in enumerate(values):
        beats = (values <= point).all(axis=1) & (values < point).any(axis=1)
        same_before = (values[:row] == point).all(axis=1).any()
        assert mask[row] == (not beats.any() and not same_before)


def test_distances_by_hand():
    """Against (100, 10) and (200, 5): (110, 10) is 10 % behind; (100, 9) is answered only with 11 % more error."""
    front = np.array([[100.0, 10.0], [200.0, 5.0]])
    assert behind(np.array([[110.0, 10.0], [100.0, 10.0], [210.0, 10.0]]), front) == pytest.approx(
        [0.1, 0.0, 0.05 * 0 + 1.0], abs=2e-3
    )
    assert uncovered(np.array([[100.0, 9.0], [300.0, 6.0]]), front) == pytest.approx([0.111, -0.166], abs=2e-3)


def test_errors_of_nothing_are_alike():
    """1e-13 % and 0 % of error do not differ by a factor."""
    assert behind(np.array([[100.0, 1e-13]]), np.array([[100.0, 0.0]])) == pytest.approx([0.0], abs=1e-9)


def test_thinning_keeps_the_ends():
    values = np.column_stack([np.arange(10.0)[::-1], np.arange(10.0)])
    assert thinned(values, np.arange(10), 3).tolist() == [9, 5, 0]
    assert thinned(values, np.array([4, 2]), 3).tolist() == [4, 2]


def test_hypervolume_by_hand():
    """In a box of 10 x 10: (5, 5) wins a quarter; (2, 8) adds 3 x 2; (6, 6) and what lies outside add nothing."""
    pytest.importorskip("pymoo", reason="pymoo is not installed: pip install 'jobcast[search]'")
    values = np.array([[12.0, 1.0], [5.0, 5.0], [6.0, 6.0], [2.0, 8.0]])
    curve = hypervolume_curve(values, np.zeros(2), np.full(2, 10.0))
    assert curve == pytest.approx([0.0, 0.25, 0.25, 0.31])
