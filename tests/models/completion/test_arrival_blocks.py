"""Arrivals drawn in blocks of past ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.completion.job_completions import ArrivalModel


def test_gaps_and_jobs_stay_together():
    submit_s = np.array([0.0, 1.0, 3.0, 7.0, 15.0])
    drawn = ArrivalModel(block=2).fit(submit_s).draw(50, np.random.default_rng(0))
    assert (drawn.gap_s == np.diff(submit_s)[drawn.row - 1]).all()
    following = drawn.row[1::2] - drawn.row[::2]
    assert set(following.tolist()) <= {1, -3}  # the last is followed by the first


@given(st.integers(1, 80), st.integers(1, 80), st.integers(0, 9))
def test_more_draws_go_on_where_fewer_end(count, more, seed):
    model = ArrivalModel(block=5).fit(np.arange(30.0) ** 1.5)
    rng = np.random.default_rng(seed)
    first, second = model.draw(count, rng), model.draw(more, rng)
    assert len(first) >= count
    assert len(second) >= more
    again = np.random.default_rng(seed)
    assert (model.draw(count, again).row == first.row).all()


def test_one_submission_says_nothing_of_gaps():
    with pytest.raises(ValueError, match="at least two submissions"):
        ArrivalModel().fit(np.zeros(1))
