"""Features of arrivals, by hand: every window with events on both of its edges."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.history import PoolHistory
from jobcast.features.arrivals import (
    FEATURE_SETS,
    PAPER_SETS,
    REST,
    TABLE_9,
    arrival_features,
    feature_names,
    feature_sets,
)
from jobcast.features.kernels import N_COLUMNS
from jobcast.features.load_features import InstantFeatures, load_features
from jobcast.features.loads import sliding_max, window_loads
from tests.features.pools import known_at, plain_features, pool_of, random_pool
from tests.shared import refused

MONDAY = 345600.0 + 40 * 604800.0
"""1970-01-05 was a Monday; so is the day 40 weeks later."""
T = MONDAY + 6 * 3600.0
MINUTES_5, HOUR, HALF_DAY, DAY = 300.0, 3600.0, 43200.0, 86400.0
QUIET = 60 * DAY


def at(history, t=T, k=MINUTES_5):
    """The row at t by name."""
    row = arrival_features(history, [t], [k])[0, 0]
    return dict(zip(feature_names(), row.tolist(), strict=True))


def arrivals(*times):
    """Pool of jobs of one GPU that all run for a second, much later than any instant asked about."""
    return pool_of([(time, T + 90 * DAY, T + 90 * DAY + 1, 1) for time in times])


def test_one_name_a_column():
    assert len(feature_names()) == N_COLUMNS == len(set(feature_names()))


def test_shape_and_column_order_over_instants_and_horizons():
    pool = arrivals(T, T + 400)
    rows = arrival_features(pool, [T, T + 300, T + 600], [MINUTES_5, HOUR])
    assert rows.shape == (3, 2, len(feature_names()))
    assert rows[:, :, feature_names().index("arrivals_last_1k")].tolist() == [[1, 1], [1, 1], [1, 2]]


def test_refuses_descending_instants_and_empty_horizons():
    refused(ValueError, "ascending", arrival_features, pool_of([]), [2.0, 1.0], [MINUTES_5])
    refused(ValueError, "positive", arrival_features, pool_of([]), [1.0], [MINUTES_5, 0.0])


def assert_written_plainly(history, ticks, k):
    rows = arrival_features(history, ticks, [k])[:, 0]
    for tick, row in zip(ticks, rows, strict=True):
        expected = plain_features(history, tick, k)
        for name, value in zip(feature_names(), row, strict=True):
            assert value == pytest.approx(expected[name], rel=1e-9, abs=1e-9), (name, tick, k)


@pytest.mark.parametrize(
    ("times", "k"),
    [
        ((0,), MINUTES_5),  # longer ago than is counted
        ((T - 20, T - 20, T - 20), MINUTES_5),  # no mean rate: the next may come at any time
        ((T - 20, T - 17), MINUTES_5),
        ((T - 20, T - 17, T - 16, T - 11), MINUTES_5),
        ((T - 20, T - 19.9, T - 19.5), 0.25),  # more than one a second
        ((T - 0.75, T - 0.25), 0.5),
        ((T - 8, T - 4), 4.0),  # no gap is longer than the time waited
        ((T - 14, T - 4), 6.0),  # the one gap is longer than 4 s, and not than 10
    ],
)
def test_agrees_with_masks_over_a_few_arrivals(times, k):
    assert_written_plainly(arrivals(*times), [T], k)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_jobs=st.integers(0, 320),
    style=st.sampled_from(["minutes", "seconds", "instants", "bursts"]),
    share=st.floats(0, 1.1),
)
def test_agrees_with_masks_over_all_events(seed, n_jobs, style, share):
    history = random_pool(seed, n_jobs, style)
    last = history.arrival_s[-1] if n_jobs else DAY
    ticks = np.floor(np.array([0.3, 0.6, 1.0]) * share * last / 60) * 60
    for k in (MINUTES_5, HOUR, HALF_DAY):
        assert_written_plainly(history, ticks, k)


HORIZONS_S = (300.0, 3600.0, 43200.0)
DAY = 86400.0

pools = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(0, 300),
    st.sampled_from(["minutes", "seconds", "instants", "bursts"]),
)


def ticks_over(history, step_s):
    """Instants over the whole history and beyond it, and the events' own instants among them."""
    end = history.arrival_s[-1] + DAY if history.arrival_s.size else DAY
    events = np.concatenate((history.arrival_s[::7], history.completion_s[::11], history.start_s[::13]))
    return np.sort(np.concatenate((np.arange(0.0, end, step_s), events)))


@given(pool=pools, step_s=st.sampled_from([3600.0, 7300.5]))
def test_training_rows_are_serving_rows_whether_made_anew_or_kept_up(pool, step_s):
    """Instants that ascend, stay, and go back; a history that grows, and a whole one; pools at different instants."""
    history = random_pool(*pool)
    ticks = ticks_over(history, step_s)
    batch, arrived = load_features(history, ticks, HORIZONS_S), arrival_features(history, ticks, HORIZONS_S)
    loads, largest = window_loads(history, ticks, 3600.0, 10), sliding_max(history, ticks, 43200.0, 8)
    kept = InstantFeatures(HORIZONS_S)
    for i in [*range(ticks.size), *range(ticks.size // 2, ticks.size, 3)]:
        tick, live, other = ticks[i], known_at(history, ticks[i]), min(i + 1, ticks.size - 1)
        rows = kept.rows(["live", "whole"], [live, history], [tick, ticks[other]])
        assert np.array_equal(rows[0], batch[i])
        assert np.array_equal(rows[1], batch[other])
        assert np.array_equal(arrival_features(live, [tick], HORIZONS_S)[0], arrived[i])
        assert np.array_equal(window_loads(live, [tick], 3600.0, 10)[0], loads[i])
        assert sliding_max(live, [tick], 43200.0, 8)[0] == largest[i]


def test_a_start_counts_the_ends_of_its_instant_that_are_told_later():
    second = (T, T, T + DAY, 1)
    kept, later = InstantFeatures([MINUTES_5]), pool_of([(T - 100, T - 100, T, 1), second])
    kept.rows(["pool"], [pool_of([(T - 100, T - 100, T + DAY, 1), second])], [T])
    rows = kept.rows(["pool"], [later], [T + 1])
    assert rows[0, 0, feature_names().index("expected_completions_within_k")] == 1
    assert np.array_equal(rows, load_features(later, [T + 1], [MINUTES_5]))


def test_read_only_columns_give_the_same_rows():
    history = random_pool(1, 100, "seconds")
    ticks = np.arange(0.0, DAY, 300.0)
    expected = arrival_features(history, ticks, HORIZONS_S)
    for name in PoolHistory.__dataclass_fields__:
        getattr(history, name).flags.writeable = False
    ticks.flags.writeable = False
    assert np.array_equal(arrival_features(history, ticks, HORIZONS_S), expected)


def test_sets_are_cumulative_and_end_with_all_columns():
    sets = list(FEATURE_SETS.values())
    for smaller, larger in pairwise(sets):
        assert set(smaller) < set(larger)
    assert sets[-1] == feature_names()


def test_the_first_four_are_table_9_with_its_fourteen_columns():
    # SIA, Table 9: 6 periodic, 3 of recent arrivals, 3 of recent completions, 2 of future completions.
    assert tuple(FEATURE_SETS)[:4] == PAPER_SETS
    assert [len(FEATURE_SETS[label]) for label in PAPER_SETS] == [6, 9, 12, 14]
    assert FEATURE_SETS["+ future completions"] == TABLE_9
    assert not any("expected" in name for name in FEATURE_SETS["+ recent completions"])


def test_columns_that_no_set_names_come_last_and_nothing_is_lost():
    sets = feature_sets(("something_new", "arrivals_1h_ago"))
    assert sets == {"periodic": ("arrivals_1h_ago",), REST: ("something_new", "arrivals_1h_ago")}
    assert feature_sets(()) == {}


def test_only_the_last_fifty_run_times_count():
    old = [(i, 100.0 + i, 1e6 + i, 1) for i in range(30)]
    new = [(i, 2e6 + i, 2e6 + i + 100, 1) for i in range(50)]
    running = [(T - 10, T - 10, T + 10, 1)]
    assert at(pool_of(old + new + running), k=91.0)["expected_completions_within_k"] == 1
    assert at(pool_of(old + new[1:] + running), k=91.0)["expected_completions_within_k"] == 0


def test_a_first_completion_is_what_is_expected():
    jobs = [(T - 500, T - 500, T - 400, 1), (T - 10, T - 10, T + 10, 1)]
    assert at(pool_of(jobs), k=90.5)["expected_completions_within_k"] == 1
    assert at(pool_of(jobs), k=89.5)["expected_completions_within_k"] == 0


def test_who_has_run_as_long_as_expected_runs_as_long_again():
    pool = pool_of([(T - HOUR, T - HOUR, T + DAY, 1)])
    assert at(pool, k=HOUR - 1)["expected_completions_later"] == 1
    assert at(pool, k=HOUR)["expected_completions_within_k"] == 1


def test_the_weekend_begins_with_saturday():
    days = [MONDAY, MONDAY + 5 * DAY - 1, MONDAY + 5 * DAY, MONDAY + 7 * DAY - 1, MONDAY + 7 * DAY]
    assert [at(pool_of([]), t)["weekend"] for t in days] == [0, 0, 1, 1, 0]
