"""Sizes that jobs declare, wrongly: as others erred, and towards what neighbours declared where these are alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.completion.job_size import DeclaredSizes

COUNT, SPREAD = 300, 0.4


def declared(true_s, seed=0, bias=1.0):
    """Of which the first half has ended."""
    told_s = bias * true_s * np.exp(SPREAD * np.random.default_rng(seed).standard_normal(len(true_s)))
    ended_s = np.where(np.arange(len(true_s)) < len(true_s) // 2, true_s, np.nan)
    return DeclaredSizes.of(told_s, ended_s, np.ones(len(true_s)))


def drawn(sizes, futures=100):
    rows, done_s = np.arange(len(sizes.told_s)), np.zeros(len(sizes.told_s))
    return np.array([sizes.draw(rows, done_s, np.random.default_rng(number)) for number in range(futures)])


def test_declarations_that_were_right_are_believed():
    sizes = DeclaredSizes.of(np.array([5.0, 50.0, 500.0]), np.array([5.0, np.nan, np.nan]), np.ones(3))
    assert sizes.exact
    assert sizes.draw(np.arange(3), np.zeros(3), np.random.default_rng(0)).tolist() == [5.0, 50.0, 500.0]
    assert sizes.draw(np.array([1]), np.array([60.0]), np.random.default_rng(0))[0] == pytest.approx(60.0, abs=0.01)


@pytest.mark.parametrize("bias", [1.0, 3.0])
def test_a_burst_of_equals_takes_as_long_as_it_takes(bias):
    """Errors have mean 1.08 and go both ways: adding up what each declared would overstate the whole by a fifth."""
    true_s = np.full(COUNT, 1e4)
    assert drawn(declared(true_s, bias=bias)).sum(axis=1).mean() == pytest.approx(true_s.sum(), rel=0.06)


def test_sizes_that_scatter_widely_are_as_declared_and_held_as_often_as_drawn():
    true_s = np.exp(np.random.default_rng(1).normal(9.0, 3.5, COUNT))
    sizes = declared(true_s)
    assert sizes.scale.mean() > 0.9
    low_s, high_s = np.quantile(drawn(sizes), [0.05, 0.95], axis=0)
    assert ((low_s <= true_s) & (true_s <= high_s)).mean() == pytest.approx(0.9, abs=0.06)


@given(st.lists(st.floats(0.0, 1e8), min_size=1, max_size=20), st.integers(0, 99))
def test_every_job_is_larger_than_what_it_has_done(done, seed):
    sizes = declared(np.exp(np.random.default_rng(seed).normal(9.0, 2.0, 40)), seed)
    done_s = np.array(done)
    found = sizes.draw(np.arange(len(done)), done_s, np.random.default_rng(seed))
    assert (found > done_s).all()
    assert np.isfinite(found).all()
