"""The shape of step times: values by hand, derivatives by differences."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from jobcast.models.epoch_time.jobs import COUNT, log_step_s

BY_HAND = np.array([np.log(2.0), 0.0, np.log(0.5), 1.0, 0.0, -40.0])
"""s = 2, a = 1/2, r = 1/2, q = 1, c = 0, gamma = 1."""


def seconds(log_size: float, gpus: float, parameters: np.ndarray = BY_HAND) -> float:
    return float(np.exp(log_step_s(parameters[None], np.array([log_size]), np.array([gpus]))[0][0]))


def test_by_hand():
    """2 (1/2 + 1/2) = 2 on one GPU; 2 (1/2 + 3/2) = 4 at three times the size; on 4 GPUs 2 x 1/2 x 2 = 2 more."""
    assert_allclose(seconds(0.0, 1.0), 2.0)
    assert_allclose(seconds(np.log(3.0), 1.0), 4.0)
    assert_allclose(seconds(np.log(3.0), 4.0), 6.0)


def test_contention_and_overlap():
    """c = 1/2 on 4 GPUs doubles gradients: 4 + 2. With gamma = 2: sqrt(2^2 + 2^2)."""
    crowded = BY_HAND.copy()
    crowded[4] = 0.5
    assert_allclose(seconds(0.0, 4.0, crowded), 6.0)
    overlapping = BY_HAND.copy()
    overlapping[5] = 0.0
    assert_allclose(seconds(0.0, 4.0, overlapping), np.sqrt(8.0))


@given(
    parameters=st.lists(st.floats(-2, 2), min_size=COUNT, max_size=COUNT),
    log_size=st.floats(-3, 3),
    gpus=st.sampled_from([1.0, 2.0, 3.0, 8.0]),
)
def test_derivatives(parameters, log_size, gpus):
    at, size, wide = np.array(parameters), np.array([log_size]), np.array([gpus])
    slope = log_step_s(at[None], size, wide)[1][0]
    step = 1e-6
    for column in range(COUNT):
        high, low = at.copy(), at.copy()
        high[column] += step
        low[column] -= step
        difference = log_step_s(high[None], size, wide)[0] - log_step_s(low[None], size, wide)[0]
        assert_allclose(slope[column], difference[0] / (2 * step), atol=1e-6)
