"""Truths about (t, t + k]: open at t, closed at t + k."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.features.targets import arrivals_within, load_within


def test_window_is_open_at_the_instant_and_closed_at_its_end(pool_of):
    pool = pool_of([(100.0, 100.0, 101.0, 2), (400.0, 400.0, 401.0, 8)])
    ticks = [99.0, 100.0, 399.5, 400.0]
    assert arrivals_within(pool, ticks, [1.0, 300.0]).tolist() == [
        [True, True],
        [False, True],
        [True, True],
        [False] * 2,
    ]
    assert load_within(pool, ticks, [1.0, 300.0, 301.0]).tolist() == [[2, 2, 10], [0, 8, 8], [8, 8, 8], [0, 0, 0]]


def test_jobs_of_one_instant_add_up(pool_of):
    pool = pool_of([(100.0, 100.0, 101.0, 2)] * 3)
    assert load_within(pool, [99.0], [1.0]).tolist() == [[6.0]]


def test_a_pool_without_jobs(pool_of):
    assert not arrivals_within(pool_of([]), [0.0, 1.0], [60.0]).any()
    assert load_within(pool_of([]), [0.0, 1.0], [60.0]).tolist() == [[0.0], [0.0]]


@given(st.integers(0, 2**32 - 1), st.integers(1, 80), st.sampled_from(["minutes", "instants", "bursts"]))
def test_agrees_with_masks(random_pool, seed, n_jobs, style):
    history = random_pool(seed, n_jobs, style)
    ticks = np.concatenate((history.arrival_s[:5] - 300.0, history.arrival_s[:5], [0.0, 3600.0]))
    for tick, arrives, load in zip(
        ticks, arrivals_within(history, ticks, [300.0]), load_within(history, ticks, [300.0]), strict=True
    ):
        window = (history.arrival_s > tick) & (history.arrival_s <= tick + 300.0)
        assert arrives[0] == window.any()
        assert load[0] == history.arrival_gpus[window].sum()
