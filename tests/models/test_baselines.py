import numpy as np
import pytest

from jobcast.features.corpus import build_corpus
from jobcast.models import baselines
from tests.features.pools import arrived

HOUR_S = 3600.0
DAY_S = 86400.0


def row_at(arrival_s, now_s, horizon_min=60):
    return build_corpus({"a": arrived(arrival_s)}, now_s, now_s + 300.0, [horizon_min])


def test_persistence_looks_back_one_horizon():
    now_s = 10 * DAY_S
    assert baselines.persistence(row_at([now_s - HOUR_S + 1], now_s), 0).tolist() == [1.0]
    assert baselines.persistence(row_at([now_s - HOUR_S - 1, now_s + 1], now_s), 0).tolist() == [0.0]


def test_yesterday_looks_at_the_same_window_a_day_ago():
    now_s = 10 * DAY_S
    assert baselines.yesterday(row_at([now_s - DAY_S + HOUR_S], now_s), 0).tolist() == [1.0]
    assert baselines.yesterday(row_at([now_s - DAY_S, now_s - DAY_S + HOUR_S + 1], now_s), 0).tolist() == [0.0]


def test_yesterday_of_two_days_ends_now():
    now_s = 10 * DAY_S
    assert baselines.yesterday(row_at([now_s + 1.0], now_s, 2880), 0).tolist() == [0.0]
    assert baselines.yesterday(row_at([now_s], now_s, 2880), 0).tolist() == [1.0]


def test_trailing_rate_by_hand():
    now_s = 10 * DAY_S
    # 83 jobs in the last week and one for luck: half a job an hour.
    corpus = row_at(np.linspace(now_s - 6 * DAY_S, now_s, 83), now_s)
    assert baselines.trailing_rate(corpus, 0) == pytest.approx(1 - np.exp(-0.5), abs=1e-6)


def test_loads_by_hand():
    history = arrived([DAY_S, 6 * DAY_S, 8 * DAY_S - 60], [32, 8, 2])
    # A week back from day 8 begins just after the job of 32 GPUs at day 1.
    assert baselines.last_window(history, [8 * DAY_S], HOUR_S).tolist() == [2.0]
    assert baselines.max_of_week(history, [8 * DAY_S], HOUR_S).tolist() == [8.0]
    assert baselines.max_of_week(history, [8 * DAY_S - 300], HOUR_S).tolist() == [32.0]


def test_the_same_window_yesterday_by_hand():
    history = arrived([6 * DAY_S + 60, 6 * DAY_S + 2 * HOUR_S, 7 * DAY_S], [2, 8, 32])
    # At midnight of day 7: the first hour of day 6 brought 2 GPUs, the first two brought 10.
    assert baselines.same_window_yesterday(history, [7 * DAY_S], HOUR_S).tolist() == [2.0]
    assert baselines.same_window_yesterday(history, [7 * DAY_S], 2 * HOUR_S).tolist() == [10.0]
    # A window longer than a day is clipped at t: the whole day before.
    assert baselines.same_window_yesterday(history, [7 * DAY_S], 48 * HOUR_S).tolist() == [42.0]
    assert baselines.max_of_recent(history, [7 * DAY_S], 2 * HOUR_S).tolist() == [32.0]


def test_an_exponentially_weighted_mean_forgets_by_half_a_day_and_knows_no_future():
    times = np.array([0.0, DAY_S, 3 * DAY_S])
    history, known = arrived(times, [2.0, 4.0, 8.0]), arrived(times[:2], [2.0, 4.0])
    ticks = [0.0, DAY_S, 2 * DAY_S]
    a_day = np.log(2.0)
    assert baselines.ewma_rate(history, ticks) * DAY_S == pytest.approx([a_day, 1.5 * a_day, 0.75 * a_day])
    assert np.array_equal(baselines.ewma_rate(history, ticks), baselines.ewma_rate(known, ticks))
    assert baselines.ewma_arrivals(history, [DAY_S], DAY_S) == pytest.approx([1.0 - np.exp(-1.5 * a_day)])
    mean, variance = 5.0 * a_day, 18.0 * a_day  # of 2 / 2 + 4 GPUs, and of 4 / 2 + 16
    assert baselines.ewma_load(history, [DAY_S], DAY_S).tolist() == [np.floor(mean + 1.6448536 * np.sqrt(variance))]


def test_an_exponentially_weighted_mean_of_nothing():
    assert baselines.ewma_rate(arrived(np.empty(0)), [0.0, 5.0]).tolist() == [0.0, 0.0]
    assert baselines.ewma_load(arrived(np.array([9.0])), [5.0], 60.0).tolist() == [0.0]
