"""Intervals from futures: calibrated by where outcomes fell, by what was known when, points left alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.completion.intervals import (
    Interval,
    IntervalTracker,
    Position,
    interval_figures,
    lessons,
    survival,
)

FUTURES = np.exp(np.arange(1, 100) / 25.0)
"""Quantile q of their logarithms is 4 q: the k-th of 99 lies at k / 100."""


def test_bare_intervals_are_quantiles_of_the_futures():
    half, most = IntervalTracker().intervals(FUTURES)
    assert (half.level, most.level) == (0.5, 0.9)
    assert np.log([half.low_s, half.high_s]) == pytest.approx([1.0, 3.0], abs=1e-6)
    assert np.log([most.low_s, most.high_s]) == pytest.approx([0.2, 3.8], abs=1e-6)


def test_a_time_that_is_an_end_but_for_rounding_is_held():
    point = Interval(0.9, 1e6, 1e6)
    assert point.holds(1e6 + 1e-7)
    assert not point.holds(1e6 + 1.0)
    assert not point.wide
    assert Interval(0.9, 1e6, 1e6 + 1.0).wide


def test_futures_that_all_agree_are_a_point_whatever_happened_to_others():
    tracker = IntervalTracker(known=[Position(3.0, True)] * 100)
    assert [(one.low_s, one.high_s) for one in tracker.intervals(np.full(20, 500.0))] == [
        pytest.approx((500.0,) * 2)
    ] * 2


def test_where_futures_agree_on_the_low_end_the_level_is_spent_above():
    """Nine in ten futures are 100 s: no job can end before, so that a 90 % interval needs no more than those."""
    half, most = IntervalTracker().intervals(np.array([100.0] * 90 + list(np.linspace(200.0, 300.0, 9))))
    assert half.high_s == pytest.approx(100.0)
    assert most.high_s < 250.0  # the 95 % quantile of the futures


@pytest.mark.parametrize(("factor", "shift"), [(0.4, -6.0), (0.4, 3.0), (1.0, 0.0), (2.0, -6.0), (2.0, 3.0)])
def test_in_the_long_run_intervals_hold_what_they_promise(shift, factor):
    """Outcomes are off by a factor, and spread less or more than the futures; each is known before the next job."""
    rng = np.random.default_rng(0)
    actual_s = np.exp(2.0 + factor * rng.uniform(-2.0, 2.0, 1500) + shift)
    made = IntervalTracker().track(1e9 * np.arange(1500.0), actual_s, [FUTURES] * 1500)
    held = np.array([[one.holds(at) for one in row] for row, at in zip(made, actual_s.tolist(), strict=True)])[500:]
    assert held.mean(axis=0) == pytest.approx([0.5, 0.9], abs=0.09)


def test_positions_wear_off_by_the_outcomes_that_are_not_known():
    """After as many as the memory lasts each weighs 1 / e: as if the futures were trusted e times as much."""
    known = [Position(1.2, True)] * 2
    late = IntervalTracker(known=known, trust=8.0, memory=50.0).intervals(FUTURES, unseen=50.0)
    doubted = IntervalTracker(known=known, trust=8.0 * np.e, memory=50.0).intervals(FUTURES)
    for one, other in zip(late, doubted, strict=True):
        assert (one.low_s, one.high_s) == pytest.approx((other.low_s, other.high_s))
    bare = IntervalTracker().intervals(FUTURES)[-1].high_s
    now, later, last = (IntervalTracker(known=known).intervals(FUTURES, unseen=n)[-1].high_s for n in (0, 100, 10_000))
    assert bare < later < now
    assert last == pytest.approx(bare)


def test_a_miss_counts_from_when_a_job_outlives_its_futures_on_not_from_its_end():
    """Thirty jobs of which none has ended: asked at once they say nothing, after e^6 s that futures are too short."""
    tracker, never = IntervalTracker(), np.full(30, np.inf)
    soon = tracker.positions(np.zeros(30), never, [FUTURES] * 30, now_s=0.5)
    late = tracker.positions(np.zeros(30), never, [FUTURES] * 30, now_s=np.exp(6.0))
    bare, early, wide = (tracker.intervals(FUTURES, told)[1].high_s for told in ((), soon, late))
    assert early == pytest.approx(bare, rel=0.1)
    assert wide > 2.0 * bare


@given(st.lists(st.floats(0.1, 1e4), min_size=5, max_size=20), st.integers(1, 4), st.integers(0, 99))
def test_nothing_is_learnt_before_it_is_known(jct_s, changed, seed):
    """Outcomes that come after the last submission change no interval."""
    rng, count = np.random.default_rng(seed), len(jct_s)
    submit_s, jct = np.sort(rng.uniform(0.0, 100.0, count)), np.array(jct_s)
    futures = [rng.lognormal(3.0, 1.0, 19) for _ in range(count)]
    other = np.where(submit_s + jct > submit_s[-1], jct + 1e3 * changed, jct)
    one, two = (IntervalTracker().track(submit_s, actual, futures) for actual in (jct, other))
    assert one == two


def test_positions_know_atoms_and_leave_points_out():
    tracker = IntervalTracker()
    ends, futures = np.array([100.0, 100.0]), [np.full(9, 100.0), np.array([100.0] * 8 + [1e4])]
    found = tracker.positions(np.zeros(2), ends, futures, now_s=1e6)
    assert len(found) == 1  # of the second alone: the first says nothing of others
    assert found[0].ended
    assert found[0].place <= 0.8 + 1e-6  # somewhere among the eight that agree with it


def test_figures_by_hand():
    """Three jobs; the 90 % interval misses the last one by a factor of e above; the first is a point."""
    made = [[Interval(0.9, 10.0, 10.0)], [Interval(0.9, 1.0, 10.0)], [Interval(0.9, 1.0, 10.0)]]
    told = interval_figures(made, np.array([10.0, 5.0, 10.0 * np.e]), np.full((3, 2), 5.0))
    assert (told["n"], told["coverage_90"], told["above_90_pct"]) == (3, pytest.approx(2 / 3), pytest.approx(100 / 3))
    assert (told["first_half"], told["second_half"]) == (1.0, 0.5)
    assert (told["wide_share"], told["coverage_90_wide"], told["ratio_median"]) == (pytest.approx(2 / 3), 0.5, 10.0)
    low = (0.05 * np.log(5.0) + 0.05 * np.log(10.0 * np.e)) / 3
    high = (0.05 * np.log(2.0) + 0.95 * 1.0) / 3
    assert told["pinball"] == pytest.approx((low + high) / 2)


def test_lessons_by_hand():
    """Of two that share all of their time each counts for two thirds, of half of it for four fifths; open ones too."""
    both, other = Position(0.5, True, from_s=0.0, until_s=10.0), Position(0.5, True, from_s=20.0, until_s=30.0)
    assert lessons((both, both, other)) == pytest.approx([2 / 3, 2 / 3, 1.0])
    assert lessons((both, both._replace(from_s=5.0))) == pytest.approx([0.8] * 2)
    never = Position(0.9, False, from_s=3.0, until_s=np.inf)
    assert lessons((both, never, never)) == pytest.approx([1.0, 2 / 3, 2 / 3])
    # Of which no time is known they are taken to stand apart.
    assert lessons((Position(0.5, True),) * 3) == pytest.approx([1.0] * 3)
    assert len(lessons(())) == 0


def test_a_burst_teaches_no_more_than_two_jobs_and_jobs_one_after_the_other_are_many():
    """Sixty jobs end beyond their futures: behind one queue, all together, they say no more than two of them alone."""
    found = []
    for count, apart_s in ((60, 0.0), (2, 1e3), (60, 1e3)):
        known = IntervalTracker().positions(
            apart_s * np.arange(count), np.full(count, np.exp(5.0)), [FUTURES] * count, now_s=1e9
        )
        found.append(IntervalTracker(known=known).intervals(FUTURES)[0].high_s)
    burst, two, sixty = found
    assert IntervalTracker().intervals(FUTURES)[0].high_s < burst <= two
    assert sixty > 3.0 * two


def test_survival_by_hand():
    """Of three jobs of equal weight the middle one is lost: the last stands for two thirds."""
    found = survival(np.ones(3), np.array([True, False, True]))
    assert found == pytest.approx([1.0, 2 / 3, 2 / 3, 0.0])


def test_the_largest_jobs_may_weigh_nothing():
    """What has been forgotten has no share: nobody is larger than the one that counts, and nothing is divided by 0."""
    with np.errstate(all="raise"):
        assert survival(np.array([1.0, 0.0]), np.array([True, True])).tolist() == [1.0, 0.0, 0.0]


def test_jobs_count_by_how_many_of_their_futures_agree():
    """Thirty jobs that were overtaken and came late say nothing of one that hardly anybody can overtake."""
    late = [Position(1.2, True, 0.05)] * 30
    apart, agreed = np.linspace(100.0, 200.0, 20), np.repeat([100.0, 200.0], [19, 1])
    for futures_s, moves in ((apart, True), (agreed, False)):
        bare, learnt = (IntervalTracker(known=known).intervals(futures_s)[1].high_s for known in ([], late))
        assert (learnt > 1.2 * bare) is moves
    # Of jobs like it the same is learnt.
    same = IntervalTracker(known=[Position(1.2, True, 0.95)] * 100).intervals(agreed)[1]
    assert same.high_s > 200.0


def test_as_many_jobs_end_with_the_first_futures_as_agree_on_it():
    """At most one in ten is overtaken: the 90 % interval is a point; of four in ten it ends behind."""
    for overtaken, wide in ((1, False), (8, True)):
        futures_s = np.repeat([100.0, 150.0], [20 - overtaken, overtaken])
        half, most = IntervalTracker().intervals(futures_s)
        assert (half.low_s, half.high_s, most.low_s) == pytest.approx((100.0, 100.0, 100.0))
        assert most.wide is wide


def test_ends_beyond_futures_that_hardly_differ_stay_near_them():
    """Who came after all futures of others came by a distance of theirs, not by hours of one told to the minute."""
    late = [Position(1.2, True, 0.8)] * 100
    near, far = (np.repeat([100.0, last_s], [16, 4]) for last_s in (100.5, 150.0))
    ends = [IntervalTracker(known=late).intervals(futures_s)[1].high_s for futures_s in (near, far)]
    assert 100.5 < ends[0] < 104.0 < 150.0 < ends[1]


def test_jobs_whose_futures_agree_are_no_lesson_whether_or_not_they_held():
    agree, apart = np.full(20, 100.0), np.linspace(100.0, 200.0, 20)
    submit_s, actual_s = np.zeros(4), np.array([100.0, 300.0, 150.0, np.inf])
    found = IntervalTracker().positions(submit_s, actual_s, [agree, agree, apart, agree], 1e6)
    assert [(one.ended, round(one.place, 1)) for one in found] == [(True, 0.5)]
