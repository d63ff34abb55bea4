import json
import math
from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.hardware import PoolsTable, Quota
from jobcast.domain.jobs import Pool
from jobcast.traces.describe import Share, describe
from jobcast.traces.readers import read_trace
from jobcast.traces.trace_stats import (
    CLOCKWORK,
    Clockwork,
    busy_gpus,
    clockwork,
    hour_of_week,
    largest_burst,
)

HOUR_S = 3600.0


@pytest.fixture
def trace(make_trace):
    return make_trace(
        ("a", 0, 3600, 2), ("a", 100, 7200, 1), ("b", 200, 60, 4), ("a", 3800, 400, 4), ("a", 7200, 800, 1)
    )


def test_figures_of_a_pool_by_hand(trace):
    a = describe(trace).pools["a"]
    assert (a.jobs, a.first_submit_s, a.last_submit_s, a.span_s) == (4, 0.0, 7200.0, 7200.0)
    assert a.gpu_hours == pytest.approx((7200 + 7200 + 1600 + 800) / 3600)
    assert a.load_gpus == pytest.approx(16800 / 7200)
    assert a.widths == {1: 2, 2: 1, 4: 1}
    assert a.gpus_mean == 2.0
    assert a.duration_p50_s == 2200.0
    assert a.duration_p90_s == pytest.approx(3600 + 0.7 * 3600)
    assert a.duration_p99_s == pytest.approx(3600 + 0.97 * 3600)
    assert a.duration_spread == pytest.approx((3600 + 0.97 * 3600) / 2200)
    gaps = [100, 3700, 3400]
    assert a.interarrival_cv == pytest.approx(np.std(gaps) / np.mean(gaps))
    assert a.interarrival_p50_s == 3400.0
    assert a.burst_gpus == 4.0
    # Completions at 3600 (an arrival at 3800), 4200 and, after the last arrival, 7300 and 8000.
    assert a.followed_after_completion == 0.5
    assert a.followed_at_random == pytest.approx((100 + 300 + 300) / 7200)
    assert a.quota is None
    assert math.isnan(a.burst_share)


def test_figures_against_quotas(trace):
    description = describe(trace, [Pool("a", 2), Pool("b", 4), Pool("unused", 64)])
    a, b, total = description.pools["a"], description.pools["b"], description.total
    assert (a.quota, b.quota, total.quota) == (2, 4, 6)
    assert (a.burst_share, b.burst_share) == (2.0, 1.0)
    # GPU-seconds of a in the hours [0, 3600) and [3600, 7200): 7200 + 3500 and 3600 + 1600.
    assert a.utilization_mean == pytest.approx((10700 + 5200) / 7200 / 2)
    assert description.utilization_hourly == pytest.approx(((10700 + 240) / 3600 / 6, 5200 / 3600 / 6))
    assert description.curves["utilization_hourly"].y == (0.5, 1.0)
    assert description.curves["burst_share"].x == (1.0, 2.0)
    assert total.burst_gpus == 7.0
    assert total.burst_share == pytest.approx(7 / 6)


def test_quotas_of_some_pools_alone(trace):
    description = describe(trace, [Pool("b", 4)])
    assert description.total.quota == 4
    assert math.isnan(description.total.burst_share)
    assert description.utilization_hourly == pytest.approx((240 / 3600 / 4, 0.0))
    assert description.pools["a"].quota is None


def test_json_holds_no_nan(trace):
    plain = describe(trace).to_dict()
    text = json.dumps(plain, allow_nan=False)
    assert json.loads(text) == plain
    assert plain["pools"]["b"]["interarrival_cv"] is None
    assert plain["pools"]["a"]["widths"] == {"1": 2, "2": 1, "4": 1}
    assert plain["source"]["sha256"] == trace.source.sha256
    assert plain["curves"]["interarrival_cv"]["y"] == [1.0]


def test_jobs_that_run_wait_or_ask_for_no_gpus_are_counted(make_trace):
    rows = [("a", 0, 10, 2), ("a", 5, None, 4), ("a", 9, None, 1), ("b", 9, None, 0)]
    trace = make_trace(*rows, start_time=[1.0, 6.0, None, None])
    told = describe(trace, [Pool("a", 8)])
    total = told.total
    assert (total.jobs, total.running, total.waiting, total.without_gpus) == (4, 1, 2, 1)
    assert (total.duration_p50_s, total.duration_mean_s, total.gpu_hours) == (10.0, 10.0, 20.0 / 3600.0)
    assert (told.pools["b"].waiting, told.pools["b"].without_gpus) == (1, 1)
    plain = json.dumps(told.to_dict(), allow_nan=False)
    assert json.loads(plain)["pools"]["b"]["duration_p50_s"] is None


def test_weeks_begin_on_monday(make_trace):
    # 1970-01-05 is a Monday: the first job comes on the Sunday before, the last eight days after the second.
    monday_s = 4 * 86400.0
    weeks = describe(
        make_trace(("a", monday_s - 1, 3600, 2), ("b", monday_s, 7200, 1), ("a", monday_s + 8 * 86400, 1800, 4))
    ).weeks
    assert weeks.from_s == (monday_s - 7 * 86400, monday_s, monday_s + 7 * 86400)
    assert weeks.jobs == {"a": (1, 0, 1), "b": (0, 1, 0)}
    assert weeks.gpu_hours == {"a": (2.0, 0.0, 2.0), "b": (0.0, 2.0, 0.0)}


def test_hours_of_the_week_are_means_over_the_times_that_they_came():
    monday_s, hour_s, week_s = 4 * 86400.0, 3600.0, 7 * 86400.0
    submit_s = np.array([0.0, 60.0, week_s, week_s + 25 * hour_s]) + monday_s
    mean = hour_of_week(submit_s)
    # Monday 00:00 came twice and saw three jobs; Tuesday 01:00 came twice and saw one; Wednesday came once.
    assert (mean[0, 0], mean[1, 1], mean[2, 0]) == (1.5, 0.5, 0.0)
    assert np.isnan(hour_of_week(submit_s[:2])[1, 1])


def test_weeks_begin_at_midnights_of_the_zone_told_as_instants(make_trace):
    """New York put its clock back on Sunday 2025-11-02: midnight was at 04:00 UTC before, at 05:00 after it."""
    before_s, after_s = (datetime.fromisoformat(day).timestamp() for day in ("2025-10-27T04:00Z", "2025-11-03T05:00Z"))
    rows = [("a", before_s, 60, 1), ("a", after_s - 1, 60, 1), ("a", after_s, 60, 1)]
    weeks = describe(make_trace(*rows), zone=ZoneInfo("America/New_York")).weeks
    assert weeks.from_s == (before_s, after_s)
    assert weeks.jobs == {"a": (2, 1)}


def test_hours_come_as_often_as_the_clock_shows_them():
    """In New York 01:00 came twice on 2025-11-02, 02:00 not at all on 2025-03-09: two jobs in each hour that came."""
    zone = ZoneInfo("America/New_York")
    for begin, hours, mean in (("2025-11-02T04:00Z", 5, [2.0] * 4), ("2025-03-09T05:00Z", 3, [2.0, 2.0, np.nan, 2.0])):
        submit_s = datetime.fromisoformat(begin).timestamp() + np.arange(2 * hours) * HOUR_S / 2
        assert hour_of_week(submit_s, zone)[6, :4].tolist() == pytest.approx(mean, nan_ok=True)


def test_only_arrivals_of_a_program_fill_a_narrow_band():
    rng = np.random.default_rng(3)
    bot = clockwork(np.diff(600.0 * np.arange(300) + rng.uniform(0, 10, 300)))
    assert bot.share == 1.0
    assert bot.gap_s == pytest.approx(600.0, abs=5.0)
    assert clockwork(rng.exponential(600.0, 3000)).share < CLOCKWORK / 4
    assert clockwork(np.concatenate((np.full(300, 2.0), np.geomspace(60, 90_000, 100)))).share < CLOCKWORK / 4


def test_few_gaps_tell_nothing_of_a_clock():
    assert math.isnan(clockwork(np.full(49, 600.0)).share)
    assert clockwork(np.full(50, 600.0)).share == 1.0


def test_densest_band_of_gaps_by_hand():
    """600, 605 and 611 lie within 2 % of 600; 613 does not; 5 and 5 are too short to count as a band."""
    gaps_s = np.array([600.0, 605.0, 611.0, 613.0, 5.0, 5.0, 5.0, 5.0, 90.0, 2000.0] * 5)
    assert clockwork(gaps_s, 1.02) == Clockwork(605.0, 0.3)


def test_waits_are_those_of_the_jobs_whose_start_is_told(make_trace):
    trace = make_trace(
        ("a", 0, 10, 1), ("a", 5, 10, 1), ("b", 9, 10, 1), start_time=[4.0, None, 9.0], end_time=[14.0, None, 19.0]
    )
    description = describe(trace)
    assert (description.total.waits_known, description.total.wait_mean_s) == (2, 2.0)
    assert (description.pools["a"].wait_p50_s, description.pools["b"].wait_p50_s) == (4.0, 0.0)
    assert math.isnan(describe(make_trace(("a", 0, 10, 1))).total.wait_p50_s)


def test_shares_name_the_busiest_and_sum_up_the_others(make_trace):
    rows = [("a", float(i), 3600.0, 1) for i in range(12)]
    shares = describe(make_trace(*rows, user=["u0", "u0", None, *(f"u{i}" for i in range(3, 12))])).shares
    assert set(shares) == {"user"}
    assert shares["user"].count == 11
    assert shares["user"].top[0] == Share("u0", 2, 2.0)
    assert shares["user"].others == Share("others", 1, 1.0)


def test_what_ran_before_a_pools_first_quota_counts_for_no_utilisation(make_trace):
    """a: 2 GPUs at work in all of four hours, 4 there in the last two; b: 1 of 2 in all four."""
    rows = [(pool, 3600.0 * hour, 3600.0, gpus) for hour in range(4) for pool, gpus in (("a", 2), ("b", 1))]
    quotas = PoolsTable((Quota("a", 4, 7200.0), Quota("b", 2)))
    description = describe(make_trace(*rows, ("b", 4 * 3600.0, 1.0, 1)), quotas)
    assert {name: one.utilization_mean for name, one in description.pools.items()} == {"a": 0.5, "b": 0.5}
    assert description.total.utilization_mean == 0.5
    assert description.utilization_hourly == (0.5, 0.5, 0.5, 0.5)


def test_a_pool_that_is_gone_has_the_utilisation_of_while_it_was_there(make_trace):
    """Two of four GPUs at work for four hours, the last two of them without a quota."""
    rows = [("a", 3600.0 * hour, 3600.0, 2) for hour in range(4)]
    quotas = PoolsTable((Quota("a", 4), Quota("a", 0, 7200.0)))
    a = describe(make_trace(*rows, ("a", 4 * 3600.0, 1.0, 1)), quotas).pools["a"]
    assert (a.quota, a.utilization_mean) == (0, 0.5)
    assert math.isnan(a.burst_share)


def test_quotas_that_change_count_hour_by_hour(make_trace):
    trace = make_trace(("a", 0, 7200, 4), ("a", 7200, 1, 1))
    pools = PoolsTable((Quota("a", 8), Quota("a", 4, HOUR_S), Quota("unused", 9)))
    description = describe(trace, pools)
    assert description.utilization_hourly == (0.5, 1.0)
    assert description.pools["a"].utilization_mean == pytest.approx(8 / 12)
    assert (description.pools["a"].quota, description.quota_changes) == (4, 1)


INTERVALS = st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 5000), st.integers(1, 16)), min_size=1, max_size=30)


@given(INTERVALS)
def test_busy_gpus_are_those_counted_second_by_second(jobs):
    start, length, gpus = (np.array(column, dtype=np.float64) for column in zip(*jobs, strict=True))
    edges = np.array([0.0, 1000.0, 1500.0, 6000.0])
    overlap = [
        sum(g * max(0.0, min(s + d, until) - max(s, since)) for s, d, g in zip(start, length, gpus, strict=True))
        / (until - since)
        for since, until in pairwise(edges)
    ]
    assert busy_gpus(start, start + length, gpus, edges) == pytest.approx(overlap, abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 8)), min_size=1, max_size=30), st.integers(1, 500))
def test_the_largest_burst_is_the_best_of_all_windows(arrivals, window_s):
    arrivals = sorted(arrivals)
    at, gpus = (np.array(column, dtype=np.float64) for column in zip(*arrivals, strict=True))
    best = max(sum(g for t, g in arrivals if since <= t <= since + window_s) for since, _ in arrivals)
    assert largest_burst(at, gpus, float(window_s)) == best


def test_philly_is_bursty_and_skewed(philly):
    trace = read_trace(philly / "philly_jobs.csv")
    description = describe(trace, [Pool(name, 64) for name in trace.pools])
    assert description.total.jobs == 71_570
    bots = {name for name, figures in description.pools.items() if figures.clockwork_share >= CLOCKWORK}
    assert bots == {"11cb48"}
    # SIA, section 2: arrivals burstier than Poisson, closed loop, p99 over 10 times the median in most pools.
    assert description.total.interarrival_cv > 1
    assert description.total.followed_after_completion > description.total.followed_at_random
    spreads = [figures.duration_spread for figures in description.pools.values() if figures.jobs >= 100]
    assert np.median(spreads) > 10
