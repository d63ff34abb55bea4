"""What completion times are drawn from: arrivals in blocks, sizes, and intervals that follow outcomes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.completion.job_completions import ArrivalModel, IntervalTracker, SizeDraws, SizeForecaster


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


FUTURES = np.exp(np.linspace(0.0, 4.0, 101))
"""Quantile q of their logarithms is 4 q."""


def test_bare_intervals_are_quantiles_of_the_futures():
    half, most = IntervalTracker().intervals(FUTURES)
    assert (half.level, most.level) == (0.5, 0.9)
    assert np.log([half.low_s, half.high_s]) == pytest.approx([1.0, 3.0])
    assert np.log([most.low_s, most.high_s]) == pytest.approx([0.2, 3.8])
    assert most.holds(10.0)
    assert not most.holds(50.0)


def test_an_outcome_beyond_an_end_moves_it_outwards_and_one_within_back_but_not_inside_the_futures():
    tracker = IntervalTracker(levels=(0.9,), step=0.02)
    tracker.observe(tracker.intervals(FUTURES), 1e6)
    assert tracker.tails[0.9] == pytest.approx((0.05, 0.05 + 0.02 * (0.05 - 1)))
    for _ in range(10):
        tracker.observe(tracker.intervals(FUTURES), 10.0)
    assert tracker.tails[0.9] == pytest.approx((0.05, 0.05 - 0.02 * 0.95 + 10 * 0.02 * 0.05))
    for _ in range(20):
        tracker.observe(tracker.intervals(FUTURES), 10.0)
    assert tracker.tails[0.9] == pytest.approx((0.05, 0.05))


@pytest.mark.parametrize("shift", [-6.0, 0.0, 3.0])
def test_in_the_long_run_intervals_hold_what_they_promise(shift):
    """Actual times are off by a factor, to either side; the last 2,000 of 4,000 outcomes are held at least so often."""
    rng = np.random.default_rng(0)
    tracker = IntervalTracker(step=0.02)
    held = []
    for _ in range(4000):
        made = tracker.intervals(FUTURES)
        actual = float(np.exp(rng.uniform(0.0, 4.0) + shift))
        held.append([one.holds(actual) for one in made])
        tracker.observe(made, actual)
    half, most = np.mean(held[2000:], axis=0)
    assert half >= 0.47
    assert most >= 0.87


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
