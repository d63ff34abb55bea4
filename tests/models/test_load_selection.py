import numpy as np
import pytest

from jobcast.models.load_data import Demands, LoadData, Nested, coverage_error, demanded_coverage
from jobcast.models.load_quantile import QuantileSettings
from jobcast.models.load_selection import Scored, select, tune_loads
from tests.features.pools import arrived

DAY_S = 86400.0


def data(days, seed=0, per_day=40):
    rng = np.random.default_rng(seed)
    count = rng.poisson(days * per_day)
    arrival_s = np.sort(rng.uniform(0, days * DAY_S, count))
    history = arrived(arrival_s, rng.choice([1.0, 2.0, 8.0], count))
    return LoadData.of({"a": history}, 0.0, days * DAY_S, (60,))


def test_the_demand_on_loaded_windows_counts_where_most_are_empty():
    load = np.array([0.0] * 90 + [4.0] * 10)
    # 70 % of the ten loaded windows: three of a hundred may be passed.
    assert demanded_coverage(load, 0.95, 0.7) == pytest.approx(0.97)
    # Half of the windows are loaded: 5 % of all is the stricter of the two.
    assert demanded_coverage(np.array([0.0, 4.0]), 0.95, 0.7) == 0.95


def test_the_spread_of_a_coverage_is_that_of_its_days():
    # Days of ten rows, all right or all wrong: the standard error of a mean of four days, by hand.
    covered = np.repeat([True, True, True, False], 10)
    tick_s = np.repeat(np.arange(4) * DAY_S, 10)
    assert coverage_error(covered, tick_s) == pytest.approx(np.std([1, 1, 1, 0], ddof=1) / 2)
    assert coverage_error(covered[:10], tick_s[:10]) == 0.0


def test_the_smallest_candidate_that_covers_with_something_to_spare():
    load = np.tile([1.0, 2.0, 3.0, 4.0], 25)
    tick_s = np.repeat(np.arange(10) * DAY_S, 10)
    chosen, reached = Nested(load, tick_s, lambda i: np.full(100, float(i)), 8).smallest(0.75)
    assert (chosen, reached) == (4, 1.0)  # 3 covers three quarters on average, on some days less
    assert Nested(load, tick_s, lambda i: np.full(100, float(i)), 3).smallest(0.75) == (2, 0.5)


def test_what_falls_short_ranks_behind_what_reserves_more():
    holds = Scored("a", (0.95,), (0.95,), (9.0,))
    short = Scored("b", (0.90,), (0.95,), (1.0,))
    assert min((short, holds), key=lambda one: one.rank) is holds
    assert Scored("c", (0.941,), (0.95,), (1.0,)).rank[0] == 0
    # a window in 400 has load, of which 70 % shall be covered: an estimate of nothing misses .25 % where .075 % may be
    assert Scored("nothing", (0.9975,), (0.99925,), (1.0,)).rank[0] == 1


def test_selection_tells_both_and_takes_one():
    algorithm, table = select(data(20), Demands())
    assert {row["algorithm"] for row in table} == {"quantile", "sliding-max"}
    assert [row["algorithm"] for row in table if row["chosen"]] == [algorithm]
    assert select(data(0.05, per_day=900), Demands()) == ("sliding-max", [])


def test_a_search_begins_with_the_defaults_and_ends_no_worse():
    rows = data(12)
    settings, trials = tune_loads(rows, Demands(0.9), trials=3, seed=1)
    assert trials[0]["trees"] == QuantileSettings().trees
    assert min(trial["value"] for trial in trials) <= trials[0]["value"]
    best = min(trials, key=lambda trial: trial["value"])
    assert settings.leaves == best["leaves"]
    assert tune_loads(rows, Demands(0.9), trials=3, seed=1)[1] == trials
