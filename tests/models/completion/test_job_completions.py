"""What completion times are drawn from: arrivals in blocks, sizes, and intervals that follow outcomes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.completion.job_completions import ArrivalDraws, SizeDraws, SizeForecaster
from tests.shared import refused


def drawer_of(submit_s, seed=0):
    return ArrivalDraws(np.diff(submit_s), np.random.default_rng(seed))


def test_gaps_and_jobs_stay_together_but_for_the_pace_of_the_future():
    submit_s = np.array([0.0, 1.0, 3.0, 7.0, 15.0])
    drawn = drawer_of(submit_s).draw(50)
    pace = drawn.gap_s / np.diff(submit_s)[drawn.row - 1]
    assert pace == pytest.approx(np.full(50, pace[0]))
    assert set(drawn.row[:-1][np.diff(drawn.row) != 1].tolist()) == {4}  # a stretch ends with the last job
    assert pace[0] != pytest.approx(drawer_of(submit_s, seed=1).draw(1).gap_s[0] / 8.0)


@given(st.integers(1, 80), st.integers(1, 80), st.integers(0, 9))
def test_more_draws_go_on_where_fewer_end(count, more, seed):
    times = np.arange(30.0) ** 1.5
    one, whole = drawer_of(times, seed), drawer_of(times, seed).draw(count + more)
    parts = [one.draw(count), one.draw(more)]
    assert [len(part) for part in parts] == [count, more]
    assert (np.concatenate([part.row for part in parts]) == whole.row).all()


def test_a_burst_goes_on_about_as_long_as_it_has_lasted():
    """100 jobs an hour apart, then 30 within a minute: half of the futures begin with a stretch of the burst alone."""
    submit_s = np.concatenate([3600.0 * np.arange(100), 3600.0 * 99 + 2.0 * np.arange(1, 31)])
    first = [drawer_of(submit_s, seed).draw(1).row[0] for seed in range(400)]
    share = np.mean([row >= 100 for row in first])
    assert share == pytest.approx(np.log(31) / np.log(130), abs=0.07)  # log-uniform between 1 and all


def test_counts_of_arrivals_are_over_dispersed():
    """Steady arrivals of the past: those of an hour differ between futures by more than a Poisson process's would."""
    counts = [(np.cumsum(drawer_of(60.0 * np.arange(500), seed).draw(400).gap_s) <= 3600).sum() for seed in range(200)]
    assert np.var(counts) > 5 * np.mean(counts)


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


def test_half_of_the_weight_falls_by_recency_and_sizes_behind_a_job_are_not_drawn():
    """The first of eleven has 1 / e of the last one's; who has outlived all but the largest is about as large.

    Who has outlived all goes on by as much again in the median, by three times as much at most.
    """
    forecaster = SizeForecaster.read({"recency": 10.0, "recent_share": 0.5, "shift": 0.0})
    sample = forecaster.sample(10.0 ** np.arange(11), np.ones(11, dtype=bool), np.ones(11, dtype=np.int64))
    recent = sample.weight - 0.5 / 11
    assert (recent.sum(), recent[-1] / recent[0]) == pytest.approx((0.5, np.e))
    draws, one_gpu = SizeDraws(sample, np.random.default_rng(0)), np.ones(4000, dtype=np.int64)
    assert np.median(draws.draw(one_gpu, np.full(4000, 5e9))) == pytest.approx(1e10, rel=0.1)
    beyond = draws.draw(one_gpu, np.full(4000, 1e12)) / 1e12
    assert (np.median(beyond), beyond.max()) == pytest.approx((2.0, 4.0), rel=0.1)


def test_a_burst_of_long_jobs_is_noticed():
    """Where the last jobs resemble each other, the recent ones weigh more."""
    sizes = np.repeat(np.random.default_rng(4).permutation([10.0, 1e5] * 10), 20)
    assert 0.0 < SizeForecaster().fit(sizes, np.ones(400, dtype=np.int64)).recent_share_ < 1.0


def test_nothing_to_learn_from_is_refused():
    refused(ValueError, "of which there are none", SizeForecaster().fit, np.zeros(0), np.zeros(0, dtype=np.int64))


def test_bins_that_are_known_to_be_likely_are_drawn_so_often():
    """Half of the past ran 100 s, half 10,000 s; of two jobs it is said that one is short and one long, nine in ten."""
    sample = sample_of([100.0, 10_000.0] * 100)
    odds = np.array([[0.9, 0.1], [0.1, 0.9]])
    width, done_s = np.ones(2, dtype=np.int64), np.zeros(2)
    drawn = [
        SizeDraws(sample, np.random.default_rng(seed)).draw_in_bins(width, done_s, np.array([1000.0]), odds)
        for seed in range(400)
    ]
    assert (np.array(drawn) < 1000.0).mean(axis=0) == pytest.approx([0.9, 0.1], abs=0.06)


def test_a_bin_that_a_job_has_left_behind_is_not_drawn():
    draws = SizeDraws(sample_of([100.0, 10_000.0] * 100), np.random.default_rng(0))
    odds = np.tile([0.9, 0.1], (50, 1))
    drawn = draws.draw_in_bins(np.ones(50, dtype=np.int64), np.full(50, 2000.0), np.array([1000.0]), odds)
    assert (drawn > 2000.0).all()
