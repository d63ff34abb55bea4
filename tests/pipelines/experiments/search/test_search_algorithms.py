"""Search algorithms that are asked for points and told their values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jobcast.pipelines.experiments.search.pareto_search import ALGORITHMS, EVOLUTIONS, pareto_mask, proposer, thinned

START = np.array([1.0, 0.5, 0.0])


def walked(name, objectives=2, generations=8, seed=0):
    """Points of a search for small x0 and small 1 - x0, both worse the further x1 and x2 are from 0.25."""
    if name in EVOLUTIONS:
        pytest.importorskip("pymoo", reason="pymoo is not installed: pip install 'jobcast[search]'")
    walk = proposer(name, 3, objectives, seed, START, 12)
    found = []
    for _ in range(generations):
        points = walk.ask()
        off = np.abs(points[:, 1:] - 0.25).sum(axis=1)
        values = np.column_stack([points[:, 0] + off, 1000.0 * (1.0 - points[:, 0] + off)])[:, :objectives]
        walk.tell(values)
        found.append(np.column_stack([points, values]))
    return found


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_search_comes_closer(name):
    found = walked(name)
    assert found[0][0, :3].tolist() == START.tolist()
    points = np.vstack(found)
    assert ((points[:, :3] >= 0) & (points[:, :3] <= 1)).all()
    off = [np.median(np.abs(one[:, 1:3] - 0.25).sum(axis=1)) for one in (found[0], np.vstack(found[-2:]))]
    assert off[1] < off[0]
    front = points[pareto_mask(points[:, 3:])]
    assert np.ptp(front[:, 0]) > 0.5


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_seed_is_a_search(name):
    one, same, other = (np.vstack(walked(name, generations=3, seed=seed)) for seed in (4, 4, 5))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


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
