"""How an algorithm and settings are chosen: out of fold, in order of time."""

import numpy as np
import polars as pl
import pytest

from jobcast.models.duration_booster import DurationSettings, cheapest_bin, log_loss, overstays_h
from jobcast.models.duration_data import DurationData, OutOfFold, out_of_fold, selection_table
from jobcast.models.duration_selection import FALLBACK, select, tune_durations
from jobcast.models.job_duration import ALGORITHMS
from jobcast.traces.table import Trace

DAY_S = 86400.0
HORIZONS = (5, 60, 720)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    n = 600
    submit = np.sort(rng.uniform(0, 20 * DAY_S, n)).round()
    pool = rng.choice(["a", "b"], n)
    duration = (np.where(pool == "a", 200.0, 2500.0) * rng.lognormal(0, 0.6, n)).round() + 1
    frame = pl.DataFrame({"submit_time": submit, "duration": duration, "pool": pool}).with_columns(
        gpus=pl.lit(1), job_id=pl.int_range(pl.len()).cast(pl.String).str.zfill(4)
    )
    return DurationData.of(Trace.from_frame(frame, name="two pools"), HORIZONS)


def test_forecasters_see_what_ended_before_their_fold(data):
    until_s, seen = 18 * DAY_S, []

    def forecaster(known, scored, from_s):
        seen.append((known.known_s.max(), from_s, scored.submit_s.min(), scored.known_s.max()))
        return np.full((len(scored), 4), 0.25)

    parts = out_of_fold(data.known(until_s), until_s, {"even": forecaster})
    assert all(last < from_s <= first and end < until_s for last, from_s, first, end in seen)
    assert len(seen) == 3
    assert parts.fold.tolist() == sorted(parts.fold.tolist())
    assert log_loss(parts.proba["even"], parts.bins) == pytest.approx(np.log(4))


def test_the_table_begins_with_the_least_log_loss():
    bins, fold = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    proba = {"coin": np.full((4, 2), 0.5), "oracle": np.eye(2)[bins]}
    table = selection_table(OutOfFold(proba, bins, fold), (5,))
    assert [(row["algorithm"], row["fold"]) for row in table] == [
        (name, fold) for name in ("oracle", "coin") for fold in ("0", "1", "all")
    ]
    assert table[0]["log_loss"] == 0.0
    assert table[5]["log_loss"] == pytest.approx(np.log(2))


def test_all_algorithms_are_compared(data):
    chosen = select(data, 18 * DAY_S)
    overall = {row["algorithm"]: row["log_loss"] for row in chosen.table if row["fold"] == "all"}
    assert set(overall) == set(ALGORITHMS)
    assert chosen.algorithm == "blended"
    assert overall["blended"] < min(overall.values()) + 0.05


def test_without_folds_the_rule_is_taken(data):
    chosen = select(data.among(np.arange(len(data)) < 30), 18 * DAY_S)
    assert (chosen.algorithm, chosen.table) == (FALLBACK, [])


def test_a_search_is_repeatable_and_no_worse_than_the_defaults(data):
    settings, trials = tune_durations(data, 18 * DAY_S, 3, seed=5)
    again, same = tune_durations(data, 18 * DAY_S, 3, seed=5)
    assert settings == again
    assert trials == same
    assert [trial["trial"] for trial in trials] == [0, 1, 2]
    assert {trials[0][name] for name in ("trees", "leaves")} == {DurationSettings().trees, DurationSettings().leaves}
    complete = [trial["value"] for trial in trials if trial["state"] == "complete"]
    best = next(trial for trial in trials if trial["value"] == min(complete))
    assert best["trees"] == settings.trees
    assert min(complete) <= trials[0]["value"]


def test_what_comes_later_does_not_change_a_search(data):
    before = data.among(data.known_s < 18 * DAY_S)
    assert tune_durations(data, 18 * DAY_S, 2) == tune_durations(before, 18 * DAY_S, 2)


def test_no_search_without_folds(data):
    assert tune_durations(data.among(np.arange(len(data)) < 30), 18 * DAY_S, 3) == (DurationSettings(), [])


HOURS = np.triu(np.array([[0.0, 0.5, 3.0, 40.0], [0.0, 0.0, 2.0, 39.0], [0.0, 0.0, 0.0, 28.0], [0.0] * 4]))


def test_costs_may_differ_by_job():
    """Against the costs summed up one by one."""
    proba = np.random.default_rng(1).dirichlet(np.ones(4), 200)
    costs = np.random.default_rng(2).uniform(0.0, 3.0, 200)
    told = cheapest_bin(proba, HOURS, costs)
    for row, cost, chosen in zip(proba, costs, told, strict=True):
        expected = [sum(p * (max(i - j, 0) + cost * HOURS[i, j]) for j, p in enumerate(row)) for i in range(4)]
        assert chosen == min(range(4), key=expected.__getitem__)


def test_the_dearer_overstaying_the_longer_the_bin():
    proba = np.random.default_rng(3).dirichlet(np.ones(4), 200)
    told = np.array([cheapest_bin(proba, HOURS, cost) for cost in (0.0, 0.1, 1.0, 10.0, 1e6)])
    assert (np.diff(told, axis=0) >= 0).all()
    assert (told[0] == 0).all()  # what costs nothing is risked
    assert (told[-1] == 3).all()


def test_how_long_jobs_overstay():
    # Bins up to 5 and 60 minutes; run times of 1 and 3 minutes, of none, of 2 and 4 hours.
    told = overstays_h(np.array([60.0, 180.0, 7200.0, 14400.0]), np.array([0, 0, 2, 2]), (5, 60))
    assert told == pytest.approx(np.array([[0.0, 0.0, 3 - 1 / 12], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))
