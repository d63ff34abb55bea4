"""Fronts: what nothing beats, and fewer of it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jobcast.pipelines.experiments.search.proposers import pareto_mask, thinned

POINTS = arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.integers(0, 5).map(float))


@given(POINTS)
def test_a_front_is_what_nothing_beats(values):
    mask = pareto_mask(values)
    for row, point in enumerate(values):
        beats = (values <= point).all(axis=1) & (values < point).any(axis=1)
        same_before = (values[:row] == point).all(axis=1).any()
        assert mask[row] == (not beats.any() and not same_before)


def test_thinning_keeps_the_ends():
    values = np.column_stack([np.arange(10.0)[::-1], np.arange(10.0)])
    assert thinned(values, np.arange(10), 3).tolist() == [9, 5, 0]
    assert thinned(values, np.array([4, 2]), 3).tolist() == [4, 2]
