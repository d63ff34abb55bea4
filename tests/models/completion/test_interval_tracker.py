"""Levels of intervals follow outcomes."""

import numpy as np
import pytest

from jobcast.models.completion.job_completions import IntervalTracker

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


def test_a_step_of_nothing_changes_nothing():
    tracker = IntervalTracker(step=0.0)
    tracker.observe(tracker.intervals(FUTURES), 1e9)
    assert tracker.intervals(FUTURES) == IntervalTracker().intervals(FUTURES)
