"""Demand, and who is put off so that it stays within bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.traces.demand import RETRY_S, peak_demand, put_off

Jobs = st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 3000), st.integers(0, 8)), min_size=1, max_size=40)


@given(Jobs, st.integers(0, 10), st.integers(0, 100))
def test_demand_stays_within_the_room_and_nobody_comes_early(jobs, room, seed):
    submit_s, duration_s, gpus = (np.array(column) for column in zip(*jobs, strict=True))
    submit_s, duration_s = submit_s.astype(float), duration_s.astype(float)
    moved_s = put_off(submit_s, duration_s, gpus, room, np.random.default_rng(seed))
    assert (moved_s >= submit_s).all()
    assert peak_demand(moved_s, duration_s, gpus) <= max(room, gpus.max())
    if peak_demand(submit_s, duration_s, gpus) <= room:
        assert moved_s.tolist() == submit_s.tolist()


def test_who_finds_no_room_comes_back_after_a_quarter_of_an_hour():
    """Each of 4,000 pairs asks for one GPU at once; its second job comes back until the first has left, after 1 s."""
    waits_s = []
    for seed in range(4000):
        twice = put_off(np.zeros(2), np.ones(2), np.ones(2, dtype=int), 1, np.random.default_rng(seed))
        waits_s.append(twice[1])
    # who comes back within the second tries once more, which one in 900 does
    assert np.mean(waits_s) == pytest.approx(RETRY_S, rel=0.05)
