"""Combining by past errors: golden values, bounds, and who does not speak."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.forecast_combination import (
    PRIOR,
    combined_quantiles,
    past_weights,
    pinball_losses,
)

LEVELS = (0.05, 0.5, 0.95)


def test_pinball_loss_by_hand():
    told = pinball_losses(np.array([2.0, 0.0]), np.array([[1.0, 3.0, 4.0]] * 2), LEVELS)
    assert told.tolist() == pytest.approx([(0.05 + 0.5 + 0.1) / 3, (0.95 + 1.5 + 0.2) / 3])


def test_weights_are_inverse_squares_of_shrunken_means():
    one, two = np.full(30, 1.0), np.full(10, 3.0)
    alike = PRIOR * 1.5
    means = np.array([(30 + alike) / (30 + PRIOR), (30 + alike) / (10 + PRIOR)])
    assert past_weights([one, two]).tolist() == pytest.approx((means**-2 / (means**-2).sum()).tolist())


def test_a_loss_that_is_not_known_does_not_count():
    assert past_weights([np.array([1.0, np.nan]), np.array([1.0])]).tolist() == pytest.approx([0.5, 0.5])
    assert past_weights([np.zeros(3), np.zeros(5)]).tolist() == [0.5, 0.5]


def test_nobody_speaks():
    nothing = np.full((1, 3), np.nan)
    assert np.isnan(combined_quantiles([nothing, nothing], np.array([0.5, 0.5]))).all()


@given(st.lists(st.lists(st.floats(0, 1e6), min_size=3, max_size=3), min_size=2, max_size=4), st.integers(0, 9))
def test_between_its_parts_and_ascending(parts, seed):
    told = [np.sort(np.array([part])) for part in parts]
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(told)))
    mixed, whole = combined_quantiles(told, weights), np.concatenate(told)
    slack = 1e-9 * (1.0 + whole.max())
    assert (mixed >= whole.min(axis=0) - slack).all()
    assert (mixed <= whole.max(axis=0) + slack).all()
    assert (np.diff(mixed) >= 0.0).all()


def test_the_better_one_counts_for_more():
    rng = np.random.default_rng(1)
    losses = [rng.uniform(0.0, 1.0, 200), rng.uniform(0.0, 4.0, 200)]
    first, second = past_weights(losses)
    assert first > 0.8
    assert first + second == pytest.approx(1.0)
