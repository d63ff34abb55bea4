"""Loads of past windows: neighbours that share an edge, each job in exactly one."""

import numpy as np
import pytest

from jobcast.features.loads import PART, sliding_max, window_loads


def test_windows_are_open_at_their_left_and_closed_at_their_right(pool_of):
    jobs = [(0.0, 1), (60.0, 2), (60.5, 4), (120.0, 8), (120.5, 16)]
    pool = pool_of([(time, time, time + 1, gpus) for time, gpus in jobs])
    assert window_loads(pool, [120.0, 120.5, 180.0], 60.0, 3).tolist() == [[12, 2, 1], [24, 6, 1], [16, 12, 2]]


def test_sliding_max_is_the_largest_of_the_last_windows(pool_of):
    jobs = [(30.0, 9), (90.0, 2), (150.0, 5)]
    pool = pool_of([(time, time, time + 1, gpus) for time, gpus in jobs])
    ticks = [0.0, 60.0, 120.0, 180.0, 240.0, 900.0]
    assert sliding_max(pool, ticks, 60.0, 2).tolist() == [0, 9, 9, 5, 5, 0]


def test_each_job_is_in_one_window(random_pool):
    history = random_pool(3, 200, "minutes")
    end = float(np.ceil(history.arrival_s[-1] / 3600) * 3600)
    loads = window_loads(history, [end], 3600.0, int(end / 3600) + 1)
    assert loads.sum() == history.arrival_gpus.sum()


@pytest.mark.parametrize(("horizon_s", "count"), [(0.0, 1), (60.0, 0)])
def test_refuses_no_window(pool_of, horizon_s, count):
    with pytest.raises(ValueError, match="positive"):
        window_loads(pool_of([]), [0.0], horizon_s, count)


def test_instants_are_taken_in_parts_and_give_the_same(random_pool):
    pool = random_pool(3, 400, "minutes")
    ticks = np.arange(3 * PART + 7) * 20.0
    whole = window_loads(pool, ticks, 300.0, 12).max(axis=1)
    assert np.array_equal(sliding_max(pool, ticks, 300.0, 12), whole)
