"""Features of arrivals, by hand: every window with events on both of its edges."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.features.arrivals import arrival_features, feature_names
from jobcast.features.kernels import N_COLUMNS

MONDAY = 345600.0 + 40 * 604800.0
"""1970-01-05 was a Monday; so is the day 40 weeks later."""
T = MONDAY + 6 * 3600.0
MINUTES_5, HOUR, HALF_DAY, DAY = 300.0, 3600.0, 43200.0, 86400.0
QUIET = 60 * DAY


def at(history, t=T, k=MINUTES_5):
    """The row at t by name."""
    row = arrival_features(history, [t], [k])[0, 0]
    return dict(zip(feature_names(), row.tolist(), strict=True))


def arrivals(pool_of, *times):
    """Pool of jobs of one GPU that all run for a second, much later than any instant asked about."""
    return pool_of([(time, T + 90 * DAY, T + 90 * DAY + 1, 1) for time in times])


def test_one_name_a_column():
    assert len(feature_names()) == N_COLUMNS == len(set(feature_names()))


@pytest.mark.parametrize(("unit", "period"), [("h", HOUR), ("d", DAY)])
@pytest.mark.parametrize("x", [1, 2, 3])
def test_periodic_window_is_open_at_its_left_and_closed_at_its_right(pool_of, unit, period, x):
    left = T - x * period
    pool = arrivals(pool_of, left, left + 0.5, left + 300, left + 300.5)
    assert at(pool)[f"arrivals_{x}{unit}_ago"] == 2


def test_periodic_window_is_clipped_at_the_instant(pool_of):
    """SIA, Table 9, as printed reaches 11 hours into the future here."""
    pool = arrivals(pool_of, T - HOUR, T - HOUR + 1, T - 10, T, T + 0.5, T + HOUR)
    row = at(pool, k=HALF_DAY)
    assert row["arrivals_1h_ago"] == 3
    assert row["arrivals_2h_ago"] == row["arrivals_3h_ago"] == 4
    assert at(pool, k=HOUR)["arrivals_1h_ago"] == 3


@pytest.mark.parametrize("x", [1, 10, 100])
def test_recent_windows_are_closed_on_both_sides(pool_of, x):
    left = T - x * MINUTES_5
    pool = arrivals(pool_of, left - 0.5, left, T, T, T + 0.5)
    assert at(pool)[f"arrivals_last_{x}k"] == 3
    ended = pool_of([(0, 1, end, 1) for end in (left - 0.5, left, T, T, T + 0.5)])
    assert at(ended)[f"completions_last_{x}k"] == 3


def test_running_jobs_by_what_is_left_of_their_expectation(pool_of):
    past = [(T - 9000, T - 8000, T - 7900, 1), (T - 9000, T - 8000, T - 7600, 1)]  # 100 s and 400 s: mean 200 s
    running = [
        (T - 50, T - 50, T + 9e6, 1),  # 150 s left
        (T - 250, T - 250, T + 1, 1),  # has outlived 200 s: as long again, 250 s
        (T - 300, T - 300, T + 1, 1),  # as long again, 300 s: just within 5 minutes
        (T - 301, T - 301, T + 1, 1),  # as long again, 301 s: later
    ]
    row = at(pool_of(past + running))
    assert (row["expected_completions_within_k"], row["expected_completions_later"]) == (3, 1)


def test_a_job_runs_from_its_start_and_no_longer_at_its_end(pool_of):
    pool = pool_of([(T - 9, T, T + 1, 1), (T - 9, T - 8, T, 1), (T - 9, T + 1, T + 2, 1)])
    row = at(pool, k=HOUR)
    assert row["expected_completions_within_k"] + row["expected_completions_later"] == 1


def test_a_running_job_is_expected_from_what_had_finished_when_it_started(pool_of):
    done_at_its_start = (0, T - 1000, T - 900, 1)  # 100 s
    done_later = (0, T - 900 - 7e5, T - 899, 1)  # a long one, known now but not then
    started = (T - 900, T - 900, T + 9e9, 1)
    assert at(pool_of([done_at_its_start, started]), T - 890)["expected_completions_within_k"] == 1
    row = at(pool_of([done_at_its_start, done_later, started]), T - 890)
    assert row["expected_completions_within_k"] == 1
    assert at(pool_of([done_later, started]), T - 890, HOUR)["expected_completions_within_k"] == 1, "fallback: 1 hour"
    assert at(pool_of([done_later, started]), T - 890, 3589.0)["expected_completions_within_k"] == 0


def test_only_the_last_fifty_run_times_count(pool_of):
    old = [(i, 100.0 + i, 1e6 + i, 1) for i in range(30)]
    new = [(i, 2e6 + i, 2e6 + i + 100, 1) for i in range(50)]
    running = [(T - 10, T - 10, T + 10, 1)]
    assert at(pool_of(old + new + running), k=91.0)["expected_completions_within_k"] == 1
    assert at(pool_of(old + new[1:] + running), k=91.0)["expected_completions_within_k"] == 0


def test_calendar(pool_of):
    row = at(pool_of([]))
    assert (row["hour_sin"], row["hour_cos"]) == pytest.approx((1.0, 0.0))
    angle = 2 * math.pi * 6 / 168
    assert (row["week_sin"], row["week_cos"]) == pytest.approx((math.sin(angle), math.cos(angle)))
    days = [MONDAY, MONDAY + 5 * DAY - 1, MONDAY + 5 * DAY, MONDAY + 7 * DAY - 1, MONDAY + 7 * DAY]
    assert [at(pool_of([]), t)["weekend"] for t in days] == [0, 0, 1, 1, 0]


def test_time_since_the_last_events(pool_of):
    pool = pool_of([(T - 100, T - 90, T - 30, 1), (T + 1, T + 2, T + 3, 1)])
    row = at(pool)
    assert row["log_since_arrival_s"] == pytest.approx(math.log(101))
    assert row["log_since_completion_s"] == pytest.approx(math.log(31))
    long_ago = pool_of([(0, 1, 2, 1)])
    assert at(long_ago)["log_since_arrival_s"] == pytest.approx(math.log1p(QUIET))


def test_gap_statistics(pool_of):
    row = at(arrivals(pool_of, T - 90, T - 80, T - 60, T, T + 5))  # gaps 10, 20, 60
    assert row["log_mean_gap_s"] == pytest.approx(math.log(31))
    assert row["log_median_gap_s"] == pytest.approx(math.log(21))
    assert row["log_last_gap_s"] == pytest.approx(math.log(61))
    assert row["cv_gap"] == pytest.approx(math.sqrt((20**2 + 10**2 + 30**2) / 3) / 30)


def test_gap_statistics_describe_the_last_twenty(pool_of):
    times = [T - 7 * i for i in range(21)] + [T - 140 - 1000 * i for i in range(1, 9)]
    row = at(arrivals(pool_of, *times))
    assert row["log_mean_gap_s"] == pytest.approx(math.log(8))
    assert row["cv_gap"] == pytest.approx(0.0, abs=1e-12)
    assert at(arrivals(pool_of, *times[1:]))["cv_gap"] > 1


def test_renewal_probability(pool_of):
    """Waited 20 s of gaps 10, 20, 60, 61: two are longer, 60 of them ends within (20, 60] and 61 does not."""
    pool = arrivals(pool_of, T - 171, T - 161, T - 141, T - 81, T - 20)
    guess = 1 - math.exp(-40 / (151 / 4))
    assert at(pool, k=40.0)["renewal_probability"] == pytest.approx((1 + guess) / 3)
    assert at(pool, k=39.5)["renewal_probability"] == pytest.approx((1 - math.exp(-39.5 / (151 / 4))) / 3)


def test_renewal_of_jobs_that_all_came_at_once(pool_of):
    assert at(arrivals(pool_of, T - 5, T - 5))["renewal_probability"] == 1.0


def test_rate_and_gpus(pool_of):
    week = 7 * DAY
    assert at(arrivals(pool_of, T - week, T - week + 1, T))["log_arrivals_per_hour_7d"] == pytest.approx(
        math.log(3 / 168)
    )
    pool = pool_of([(time, T, T + 1, gpus) for time, gpus in ((T - 300.5, 1), (T - 300, 2), (T, 4), (T + 1, 8))])
    assert at(pool)["log_gpus_last_1k"] == pytest.approx(math.log(7))


def test_a_pool_without_events(pool_of):
    row = at(pool_of([]), k=HOUR)
    counts = [name for name in row if name.startswith(("arrivals_", "completions_", "expected_"))]
    assert all(row[name] == 0 for name in counts)
    assert row["log_mean_gap_s"] == row["log_since_arrival_s"] == pytest.approx(math.log1p(QUIET))
    assert row["cv_gap"] == row["log_gpus_last_1k"] == 0
    assert row["renewal_probability"] == pytest.approx(1 - math.exp(-HOUR / QUIET))


def test_shape_and_column_order_over_instants_and_horizons(pool_of):
    pool = arrivals(pool_of, T, T + 400)
    rows = arrival_features(pool, [T, T + 300, T + 600], [MINUTES_5, HOUR])
    assert rows.shape == (3, 2, len(feature_names()))
    assert rows[:, :, feature_names().index("arrivals_last_1k")].tolist() == [[1, 1], [1, 1], [1, 2]]


def test_no_instants_and_repeated_instants(pool_of):
    pool = arrivals(pool_of, T)
    assert arrival_features(pool, np.empty(0), [MINUTES_5]).shape == (0, 1, len(feature_names()))
    twice = arrival_features(pool, [T, T], [MINUTES_5])
    assert np.array_equal(twice[0], twice[1])


def test_refuses_descending_instants_and_empty_horizons(pool_of):
    with pytest.raises(ValueError, match="ascending"):
        arrival_features(pool_of([]), [2.0, 1.0], [MINUTES_5])
    with pytest.raises(ValueError, match="positive"):
        arrival_features(pool_of([]), [1.0], [MINUTES_5, 0.0])


@given(
    seed=st.integers(0, 2**32 - 1),
    n_jobs=st.integers(0, 320),
    style=st.sampled_from(["minutes", "seconds", "instants", "bursts"]),
    share=st.floats(0, 1.1),
)
def test_agrees_with_masks_over_all_events(random_pool, plain_features, seed, n_jobs, style, share):
    history = random_pool(seed, n_jobs, style)
    last = history.arrival_s[-1] if n_jobs else DAY
    ticks = np.floor(np.array([0.3, 0.6, 1.0]) * share * last / 60) * 60
    for k in (MINUTES_5, HOUR, HALF_DAY):
        rows = arrival_features(history, ticks, [k])[:, 0]
        for tick, row in zip(ticks, rows, strict=True):
            expected = plain_features(history, tick, k)
            for name, value in zip(feature_names(), row, strict=True):
                assert value == pytest.approx(expected[name], rel=1e-9, abs=1e-9), (name, tick, k)
