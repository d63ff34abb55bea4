"""Loads of past windows: neighbours that share an edge, each job in exactly one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import MemoryLimitError
from jobcast.domain.memory import memory_limit
from jobcast.features.arrivals import feature_names
from jobcast.features.load_features import MAXIMA, MEANS, load_feature_names, load_features
from jobcast.features.loads import ROOM_FOR_INSTANTS, sliding_max, window_loads
from jobcast.features.targets import arrivals_within, load_within
from tests.features.pools import arrived, pool_of, random_pool
from tests.shared import refused


def test_windows_are_open_at_their_left_and_closed_at_their_right():
    jobs = [(0.0, 1), (60.0, 2), (60.5, 4), (120.0, 8), (120.5, 16)]
    pool = pool_of([(time, time, time + 1, gpus) for time, gpus in jobs])
    assert window_loads(pool, [120.0, 120.5, 180.0], 60.0, 3).tolist() == [[12, 2, 1], [24, 6, 1], [16, 12, 2]]
    assert window_loads(pool, [60.5], 0.5, 1).tolist() == [[4]]
    assert window_loads(pool, [], 60.0, 3).shape == (0, 3)


def test_windows_of_a_second_and_a_half_are_no_windows_of_whole_seconds():
    pool = pool_of([(time, time, time + 1, gpus) for time, gpus in [(1.2, 1), (2.0, 2), (3.7, 4)]])
    assert window_loads(pool, [1.5, 3.0, 4.5], 1.5, 3).tolist() == [[1, 0, 0], [2, 1, 0], [4, 2, 1]]


def test_sliding_max_is_the_largest_of_the_last_windows():
    jobs = [(30.0, 9), (90.0, 2), (150.0, 5)]
    pool = pool_of([(time, time, time + 1, gpus) for time, gpus in jobs])
    ticks = [0.0, 60.0, 120.0, 180.0, 240.0, 900.0]
    assert sliding_max(pool, ticks, 60.0, 2).tolist() == [0, 9, 9, 5, 5, 0]


@pytest.mark.parametrize(("horizon_s", "count"), [(0.0, 1), (60.0, 0)])
def test_refuses_no_window(horizon_s, count):
    refused(ValueError, "positive", window_loads, pool_of([]), [0.0], horizon_s, count)


@pytest.mark.parametrize(
    ("apart_s", "horizon_s"), [(300.0, 300.0), (300.0, 720.0), (7.0, 40.0), (0.5, 40.0), (9.0, 4.5)]
)
def test_instants_of_a_grid_are_told_what_each_is_told_alone(apart_s, horizon_s):
    pool = random_pool(3, 400, "minutes")
    ticks_s = np.median(pool.arrival_s) // 60.0 * 60.0 + apart_s * np.array([0, 1, 2, 5, 40, 41, 7])
    alone = [window_loads(pool, [tick_s], horizon_s, 30)[0] for tick_s in ticks_s]
    assert np.any(alone)
    assert window_loads(pool, ticks_s, horizon_s, 30).tolist() == np.array(alone).tolist()


def test_instants_are_taken_in_parts_and_give_the_same():
    pool = random_pool(3, 400, "minutes")
    ticks = np.arange(3 * ROOM_FOR_INSTANTS + 7) * 20.0
    whole = window_loads(pool, ticks, 300.0, 12).max(axis=1)
    assert np.array_equal(sliding_max(pool, ticks, 300.0, 12), whole)


DAY_S = 86400.0
HOUR_S = 3600.0


def told(arrival_s, gpus, now_s, horizon_s=HOUR_S):
    history = arrived(arrival_s, gpus)
    row = load_features(history, [now_s], [horizon_s])[0, 0]
    return dict(zip(load_feature_names(), row.tolist(), strict=True))


def test_loads_of_past_windows_by_hand():
    now_s = 10 * DAY_S
    # The first is older than any window.
    times = [DAY_S, 3 * DAY_S + 60, 9 * DAY_S + 60, now_s - 1.5 * HOUR_S, now_s - 60]
    columns = told(times, [64, 16, 8, 4, 2], now_s)
    shown = {name: round(np.expm1(value), 9) for name, value in columns.items() if name.startswith("log_l")}
    assert shown["log_load_last_1k"] == 2
    assert shown["log_load_before_last_1k"] == 4
    assert shown["log_largest_load_of_2k"] == 4
    assert shown["log_largest_load_of_24k"] == 8
    assert columns["log_mean_load_of_4k"] == pytest.approx(np.log1p(6 / 4))
    assert shown["log_load_1d_ago"] == 8
    assert shown["log_load_7d_ago"] == 16
    assert columns["log_load_per_k_of_day"] == pytest.approx(np.log1p(14 / 24))


@pytest.mark.parametrize(("maxima", "means"), [([1, 4], [1, 2]), ([1, 2], [1, 4])])
def test_as_many_windows_are_looked_at_as_any_column_asks(maxima, means):
    """Of minutes: 1 GPU in the last one, 2 in the one before, then 4, then 8."""
    from jobcast.features.kernels import past_loads

    given = (np.array(values, np.float64) for values in ([410, 470, 530, 590], [8, 4, 2, 1], [600], [60]))
    row = past_loads(*given, np.array(maxima), np.array(means), np.array([60.0]))[0, 0]
    largest, mean = {1: 1, 2: 2, 4: 8}, {1: 1.0, 2: 1.5, 4: 3.75}
    assert row.tolist() == [1, 2, *(largest[one] for one in maxima), *(mean[one] for one in means), 1, 1]


def test_a_window_longer_than_a_day_is_clipped_at_t():
    now_s = 10 * DAY_S
    arrivals = [now_s - 60, now_s + 60]
    assert np.expm1(told(arrivals, [2, 64], now_s, 2 * DAY_S)["log_load_1d_ago"]) == pytest.approx(2)


def test_columns_of_arrivals_come_first():
    assert load_feature_names()[: len(feature_names())] == feature_names()
    counts = [name.removesuffix("k").split("_of_")[1] for name in load_feature_names() if "_load_of_" in name]
    assert counts == ["2", "4", "8", "12", "24", "4", "12", "24"]


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_sums_over_windows_alone_or_among_many_instants(seed):
    rng = np.random.default_rng(seed)
    arrival_s, gpus = np.sort(rng.uniform(0, 20 * DAY_S, 300).round(seed)), rng.integers(1, 65, 300).astype(float)
    history = arrived(arrival_s, gpus)
    horizons_s = (300.0, HOUR_S, 2 * DAY_S)
    ticks_s = np.sort(np.concatenate([rng.uniform(0, 21 * DAY_S, 20), arrival_s[:5], arrival_s[:5] + 300.0]))
    X = load_features(history, ticks_s, horizons_s)
    alone = [load_features(history, [now_s], horizons_s)[0] for now_s in ticks_s]
    assert np.array_equal(X, np.stack(alone))
    of = {name: np.expm1(X[:, :, column]) for column, name in enumerate(load_feature_names())}
    for h, horizon_s in enumerate(horizons_s):
        windows = window_loads(history, ticks_s, horizon_s, 24)
        for count in MAXIMA:
            assert of[f"log_largest_load_of_{count}k"][:, h] == pytest.approx(windows[:, :count].max(axis=1))
        for count in MEANS:
            assert of[f"log_mean_load_of_{count}k"][:, h] == pytest.approx(windows[:, :count].mean(axis=1))
        week = window_loads(history, ticks_s, 7 * DAY_S, 1)[:, 0] * horizon_s / (7 * DAY_S)
        assert of["log_load_per_k_of_week"][:, h] == pytest.approx(week)


def test_no_instants_no_rows():
    history = arrived([60.0])
    assert load_features(history, [], [300.0]).shape == (0, 1, len(load_feature_names()))


@given(st.integers(0, 2**32 - 1), st.integers(1, 80), st.sampled_from(["minutes", "instants", "bursts"]))
def test_agrees_with_masks(seed, n_jobs, style):
    history = random_pool(seed, n_jobs, style)
    ticks = np.concatenate((history.arrival_s[:5] - 300.0, history.arrival_s[:5], [0.0, 3600.0]))
    for tick, arrives, load in zip(
        ticks, arrivals_within(history, ticks, [300.0]), load_within(history, ticks, [300.0]), strict=True
    ):
        window = (history.arrival_s > tick) & (history.arrival_s <= tick + 300.0)
        assert arrives[0] == window.any()
        assert load[0] == history.arrival_gpus[window].sum()


def test_a_horizon_with_more_windows_than_memory_holds_is_refused_in_one_line():
    pool = arrived([30.0])
    with memory_limit(4 * 8 * 2 * 1001):
        assert sliding_max(pool, [60.0, 120.0], 0.06, 1000).tolist() == [1.0, 0.0]
        with pytest.raises(MemoryLimitError, match=r"1,001 windows of 0\.001min before each of 2 instants.*--horizons"):
            sliding_max(pool, [60.0, 120.0], 0.06, 1001)
