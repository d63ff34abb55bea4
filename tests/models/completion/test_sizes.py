"""Sizes drawn: what is known of others, what a job has done, what has not ended."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.completion.job_completions import SizeDraws, SizeForecaster


def sample_of(sizes, ended=None, widths=None):
    sizes = np.array(sizes, dtype=np.float64)
    widths = np.ones(len(sizes), dtype=np.int64) if widths is None else np.array(widths)
    ended = np.ones(len(sizes), dtype=bool) if ended is None else np.array(ended)
    return SizeForecaster().fit(sizes[ended], widths[ended]).sample(sizes, ended, widths)


@given(
    st.lists(st.floats(1.0, 1e6), min_size=3, max_size=40),
    st.lists(st.floats(0.0, 1e7), min_size=1, max_size=20),
    st.integers(0, 99),
)
def test_every_job_is_larger_than_what_it_has_done(sizes, done, seed):
    done_s = np.array(done)
    draws = SizeDraws(sample_of(sizes), np.random.default_rng(seed))
    drawn = draws.draw(np.ones(len(done), dtype=np.int64), done_s)
    assert (drawn > done_s).all()
    assert np.isfinite(drawn).all()


def test_draws_have_the_spread_of_the_past():
    """Half of the past took 100 s, half 10,000 s, in no order: so does half of what is drawn."""
    sizes = np.random.default_rng(0).permutation(np.repeat([100.0, 10_000.0], 200))
    sample = sample_of(sizes)
    shares = [
        (SizeDraws(sample, np.random.default_rng(seed)).draw(np.ones(50, dtype=np.int64), np.zeros(50)) > 1000).mean()
        for seed in range(60)
    ]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.1)


def test_jobs_that_have_not_ended_count_as_long():
    """Ten that ended after 10 s beside ninety that have run for 1,000 s: hardly any is that short."""
    sample = sample_of([10.0] * 10 + [1000.0] * 90, [True] * 10 + [False] * 90)
    drawn = SizeDraws(sample, np.random.default_rng(1)).draw(np.ones(400, dtype=np.int64), np.zeros(400))
    assert (drawn > 500.0).mean() > 0.6


def test_alike_widths_come_first():
    sizes, widths = [10.0] * 60 + [100_000.0] * 60, [1] * 60 + [8] * 60
    order = np.random.default_rng(2).permutation(120)
    sample = sample_of(np.array(sizes)[order], widths=np.array(widths)[order])
    draws = SizeDraws(sample, np.random.default_rng(3))
    wide = draws.draw(np.full(200, 8, dtype=np.int64), np.zeros(200))
    narrow = draws.draw(np.ones(200, dtype=np.int64), np.zeros(200))
    assert np.median(wide) > 100 * np.median(narrow)


def test_a_burst_of_long_jobs_is_noticed():
    """Where the last jobs resemble each other, the recent ones weigh more."""
    sizes = np.repeat(np.random.default_rng(4).permutation([10.0, 1e5] * 10), 20)
    assert SizeForecaster().fit(sizes, np.ones(400, dtype=np.int64)).recent_share_ > 0.0


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="of which there are none"):
        SizeForecaster().fit(np.zeros(0), np.zeros(0, dtype=np.int64))
