import numpy as np
import pytest

from jobcast.models.evaluation.arrivals import distribution, recall_by_pool, recall_per_pool_hour


def test_recall_per_pool_hour_by_hand():
    # Two pools, two hours of 12 predictions. Pool 0: nothing comes in hour 0; 4 windows in hour 1, one of them found.
    # Pool 1: 12 windows in hour 0, all found; one in hour 1, missed.
    tick_s = np.tile(np.arange(24) * 300.0, 2)
    pool = np.repeat([0, 1], 24)
    arrives, declared = np.zeros(48, bool), np.zeros(48, bool)
    arrives[12:16], declared[15] = True, True
    arrives[24:36], declared[24:36] = True, True
    arrives[40] = True
    declared[5] = True  # a false alarm is no matter of recall
    told = recall_per_pool_hour(arrives, declared, pool, tick_s)
    assert told["hours"] == 3
    assert told["mean"] == pytest.approx((0.25 + 1.0 + 0.0) / 3)
    assert (told["share_0"], told["share_1"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert [point["recall"] for point in told["cdf"]] == [0.0, 0.25, 1.0]
    assert [point["share"] for point in told["cdf"]] == pytest.approx([1 / 3, 2 / 3, 1.0])
    # 13 of 17 windows are found: an hour of one window is always extreme, one of four or twelve seldom.
    whole = 13 / 17
    apart = [whole**n + (1 - whole) ** n for n in (4, 12, 1)]
    assert told["extremes_if_independent"] == pytest.approx(np.mean(apart))


def test_errors_that_come_in_spells_show_and_independent_ones_do_not():
    rng = np.random.default_rng(0)
    hours = 400
    tick_s, pool = np.arange(12 * hours) * 300.0, np.zeros(12 * hours, int)
    arrives = np.ones(12 * hours, bool)
    spells, apart = np.repeat(rng.random(hours) < 0.6, 12), rng.random(12 * hours) < 0.6
    in_spells, alone = (recall_per_pool_hour(arrives, one, pool, tick_s) for one in (spells, apart))
    assert in_spells["share_0"] + in_spells["share_1"] == 1.0
    assert in_spells["extremes_if_independent"] < 0.01
    assert alone["share_0"] + alone["share_1"] == pytest.approx(alone["extremes_if_independent"], abs=0.02)


def test_hours_of_different_pools_are_different_hours():
    told = recall_per_pool_hour(np.ones(2, bool), np.array([True, False]), np.array([0, 1]), np.zeros(2))
    assert (told["hours"], told["share_0"], told["share_1"]) == (2, 0.5, 0.5)


def test_nothing_came():
    told = recall_per_pool_hour(np.zeros(3, bool), np.ones(3, bool), np.zeros(3, int), np.zeros(3))
    assert (told["hours"], told["mean"], told["share_0"], told["cdf"]) == (0, None, None, [])


def test_recall_by_pool_counts_each_pool_once_and_leaves_out_pools_without_arrivals():
    told = recall_by_pool({"a": 0.5, "b": None, "c": 1.0, "d": 0.5})
    assert told["pools"] == 3
    assert told["p50"] == 0.5
    assert told["cdf"] == [{"recall": 0.5, "share": pytest.approx(2 / 3)}, {"recall": 1.0, "share": 1.0}]
    assert distribution(np.empty(0)) == {**dict.fromkeys(("mean", "p10", "p25", "p50", "p75", "p90")), "cdf": []}
