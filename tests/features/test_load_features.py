import numpy as np
import pytest

from jobcast.domain.history import PoolHistory
from jobcast.features.arrivals import feature_names
from jobcast.features.load_features import MAXIMA, MEANS, load_feature_names, load_features
from jobcast.features.loads import window_loads

DAY_S = 86400.0
HOUR_S = 3600.0
NONE = np.empty(0)


def told(arrival_s, gpus, now_s, horizon_s=HOUR_S):
    history = PoolHistory(np.asarray(arrival_s, float), np.asarray(gpus, float), NONE, NONE, NONE, NONE)
    row = load_features(history, [now_s], [horizon_s])[0, 0]
    return dict(zip(load_feature_names(), row.tolist(), strict=True))


def test_loads_of_past_windows_by_hand():
    now_s = 10 * DAY_S
    columns = told([3 * DAY_S + 60, 9 * DAY_S + 60, now_s - 1.5 * HOUR_S, now_s - 60], [16, 8, 4, 2], now_s)
    shown = {name: round(np.expm1(value), 9) for name, value in columns.items() if name.startswith("log_l")}
    assert shown["log_load_last_1k"] == 2
    assert shown["log_load_before_last_1k"] == 4
    assert shown["log_largest_load_of_2k"] == 4
    assert shown["log_largest_load_of_24k"] == 8
    assert columns["log_mean_load_of_4k"] == pytest.approx(np.log1p(6 / 4))
    assert shown["log_load_1d_ago"] == 8
    assert shown["log_load_7d_ago"] == 16
    assert columns["log_load_per_k_of_day"] == pytest.approx(np.log1p(14 / 24))


def test_a_window_longer_than_a_day_is_clipped_at_t():
    now_s = 10 * DAY_S
    arrivals = [now_s - 60, now_s + 60]
    assert np.expm1(told(arrivals, [2, 64], now_s, 2 * DAY_S)["log_load_1d_ago"]) == pytest.approx(2)


def test_columns_of_arrivals_come_first():
    assert load_feature_names()[: len(feature_names())] == feature_names()


@pytest.mark.parametrize("seed", range(5))
def test_events_after_t_change_nothing(seed):
    rng = np.random.default_rng(seed)
    arrival_s, gpus = np.sort(rng.uniform(0, 20 * DAY_S, 200)), rng.integers(1, 9, 200)
    now_s = float(rng.uniform(0, 20 * DAY_S))
    known = arrival_s <= now_s
    for horizon_s in (300.0, HOUR_S, 2 * DAY_S):
        assert told(arrival_s, gpus, now_s, horizon_s) == told(arrival_s[known], gpus[known], now_s, horizon_s)


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_sums_over_windows_alone_or_among_many_instants(seed):
    rng = np.random.default_rng(seed)
    arrival_s, gpus = np.sort(rng.uniform(0, 20 * DAY_S, 300).round(seed)), rng.integers(1, 65, 300).astype(float)
    history = PoolHistory(arrival_s, gpus, NONE, NONE, NONE, NONE)
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
    history = PoolHistory(np.array([60.0]), np.array([1.0]), NONE, NONE, NONE, NONE)
    assert load_features(history, [], [300.0]).shape == (0, 1, len(load_feature_names()))
