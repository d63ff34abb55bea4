"""Nothing at t depends on what comes after t, and training rows are serving rows, to the last bit."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.history import PoolHistory
from jobcast.features.arrivals import arrival_features, feature_names
from jobcast.features.load_features import InstantFeatures, load_features
from jobcast.features.loads import sliding_max, window_loads

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


def changed_after(history, t, rng):
    """Another future: later events shifted, deleted, invented; jobs that run at t end at any later time."""

    def future(times, *others):
        kept = times <= t
        later = times[~kept][rng.random(np.sum(~kept)) < 0.5] + rng.exponential(5000)
        invented = t + rng.exponential(4000, rng.integers(0, 30)) + 1e-6
        column = np.sort(np.concatenate((times[kept], later, invented)))
        extra = column.size - kept.sum()
        return column, *(np.concatenate((o[kept], rng.integers(1, 9999, extra))) for o in others)

    arrival_s, arrival_gpus = future(history.arrival_s, history.arrival_gpus)
    start_s, end_s = future(history.start_s, history.end_s)
    end_s = np.where((start_s <= t) & (end_s > t), t + 1e-6 + rng.exponential(9e4, end_s.size), end_s)
    end_s = np.where(start_s > t, start_s + rng.exponential(9e4, end_s.size), end_s)
    completion_s, duration_s = future(history.completion_s, history.completion_duration_s)
    return PoolHistory(arrival_s, arrival_gpus, start_s, end_s, completion_s, duration_s)


@given(pool=pools, step_s=st.sampled_from([3600.0, 7300.5]))
def test_training_rows_are_serving_rows(random_pool, known_at, pool, step_s):
    history = random_pool(*pool)
    ticks = ticks_over(history, step_s)
    batch = arrival_features(history, ticks, HORIZONS_S)
    loads = window_loads(history, ticks, 3600.0, 10)
    largest = sliding_max(history, ticks, 43200.0, 8)
    for i, tick in enumerate(ticks):
        live = known_at(history, tick)
        assert np.array_equal(arrival_features(live, [tick], HORIZONS_S)[0], batch[i])
        assert np.array_equal(window_loads(live, [tick], 3600.0, 10)[0], loads[i])
        assert sliding_max(live, [tick], 43200.0, 8)[0] == largest[i]


@given(pool=pools, step_s=st.sampled_from([3600.0, 7300.5]))
def test_rows_that_are_kept_up_are_training_rows(random_pool, known_at, pool, step_s):
    """Instants that ascend, stay, and go back; a history that grows, and a whole one; pools at different instants."""
    history = random_pool(*pool)
    ticks = ticks_over(history, step_s)
    batch = load_features(history, ticks, HORIZONS_S)
    kept = InstantFeatures(HORIZONS_S)
    for i in [*range(ticks.size), *range(ticks.size // 2, ticks.size, 3)]:
        live, other = known_at(history, ticks[i]), min(i + 1, ticks.size - 1)
        rows = kept.rows(["live", "whole"], [live, history], [ticks[i], ticks[other]])
        assert np.array_equal(rows[0], batch[i])
        assert np.array_equal(rows[1], batch[other])


@given(pool=pools, share=st.floats(0, 1))
def test_rows_of_a_trace_cut_at_the_last_instant(random_pool, known_at, pool, share):
    history = random_pool(*pool)
    ticks = ticks_over(history, 900.0)
    ticks = ticks[: 1 + int(share * (ticks.size - 1))]
    whole = arrival_features(history, ticks, HORIZONS_S)
    assert np.array_equal(arrival_features(known_at(history, ticks[-1]), ticks, HORIZONS_S), whole)
    single = arrival_features(history, ticks[-1:], HORIZONS_S)
    assert np.array_equal(single[0], whole[-1])


@given(pool=pools, share=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_another_future_leaves_the_rows_as_they_are(random_pool, pool, share, seed):
    history = random_pool(*pool)
    ticks = ticks_over(history, 900.0)
    ticks = ticks[: 1 + int(share * (ticks.size - 1))]
    other = changed_after(history, ticks[-1], np.random.default_rng(seed))
    assert np.array_equal(arrival_features(other, ticks, HORIZONS_S), arrival_features(history, ticks, HORIZONS_S))
    assert np.array_equal(window_loads(other, ticks, 300.0, 12), window_loads(history, ticks, 300.0, 12))


def shifted(history, t, rng):
    """Later events come later still."""
    by_s = rng.uniform(1.0, 2 * DAY)
    times = {
        name: np.where(getattr(history, name) > t, getattr(history, name) + by_s, getattr(history, name))
        for name in ("arrival_s", "start_s", "end_s", "completion_s")
    }
    return replace(history, **times)


def removed(history, t, rng):
    """Later events never come; what runs at t runs on."""
    known, started, ended = history.arrival_s <= t, history.start_s <= t, history.completion_s <= t
    return PoolHistory(
        history.arrival_s[known],
        history.arrival_gpus[known],
        history.start_s[started],
        np.where(history.end_s[started] > t, np.inf, history.end_s[started]),
        history.completion_s[ended],
        history.completion_duration_s[ended],
    )


FUTURES = {"shifted": shifted, "removed": removed, "invented": changed_after}


@pytest.mark.parametrize("future", FUTURES)
def test_every_column_stays_as_it_is_in_another_future(random_pool, future):
    """Column by column and horizon by horizon, at every instant up to t, whatever happens after t."""
    rng = np.random.default_rng(11)
    differs = np.zeros((len(HORIZONS_S), len(feature_names())), bool)
    moved = np.zeros_like(differs)
    for seed in range(40):
        history = random_pool(seed, 200, ("minutes", "seconds", "instants", "bursts")[seed % 4])
        ticks = ticks_over(history, 1800.0)
        cut = int(rng.integers(1, ticks.size))
        other = FUTURES[future](history, ticks[cut - 1], rng)
        before, after = (arrival_features(one, ticks, HORIZONS_S) for one in (history, other))
        differs |= (before[:cut] != after[:cut]).any(axis=0)
        moved |= (before[cut:] != after[cut:]).any(axis=0)
    assert not [feature_names()[column] for column in np.flatnonzero(differs.any(axis=0))]
    # Later rows do change, in all columns but the calendar's: the futures are others.
    calendar = [name.startswith(("hour_", "week_", "weekend")) for name in feature_names()]
    assert np.array_equal(moved.all(axis=0), ~np.array(calendar))


def test_read_only_columns_give_the_same_rows(random_pool):
    history = random_pool(1, 100, "seconds")
    ticks = np.arange(0.0, DAY, 300.0)
    expected = arrival_features(history, ticks, HORIZONS_S)
    for name in PoolHistory.__dataclass_fields__:
        getattr(history, name).flags.writeable = False
    ticks.flags.writeable = False
    assert np.array_equal(arrival_features(history, ticks, HORIZONS_S), expected)


def test_training_rows_are_serving_rows_on_philly(known_at):
    data = os.environ.get("JOBCAST_DATA")
    if not data:
        pytest.skip("JOBCAST_DATA is not set: name the folder that holds philly/philly_jobs.csv")
    from jobcast.traces.history import pool_histories
    from jobcast.traces.readers import read_trace

    trace = read_trace(Path(data) / "philly" / "philly_jobs.csv")
    ticks = np.arange(np.ceil(trace.submit_s[0] / 300) * 300, trace.submit_s[-1], 300.0)
    for history in pool_histories(trace).values():
        batch = arrival_features(history, ticks, HORIZONS_S)
        for i in range(0, ticks.size, 997):
            live = arrival_features(known_at(history, ticks[i]), ticks[i : i + 1], HORIZONS_S)
            assert np.array_equal(live[0], batch[i])
