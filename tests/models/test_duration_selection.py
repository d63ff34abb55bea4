"""How an algorithm, a blend and settings are chosen: out of fold, in order of time."""

import numpy as np
import polars as pl
import pytest

from jobcast.models.duration_booster import (
    FIRST,
    Blend,
    DurationSettings,
    best_blend,
    cheapest_bin,
    cost_matrix,
    log_loss,
)
from jobcast.models.duration_data import DurationData, OutOfFold, blended_forward, out_of_fold, selection_table
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


def test_the_best_blend_tempers_what_is_too_sure():
    """Two bins, right 7 times of 10, forecast with .7 squared and scaled: temperature 2 would undo it."""
    sure = 0.49 / (0.49 + 0.09)
    booster = np.tile([sure, 1 - sure], (1000, 1))
    bins = np.array([0] * 700 + [1] * 300)
    blend = best_blend(booster, np.full((1000, 2), 0.5), bins)
    assert log_loss(blend(booster, np.full((1000, 2), 0.5)), bins) < log_loss(booster, bins) - 0.01
    assert blend.temperature > 1.0 or blend.weight > 0.0


def test_a_booster_that_knows_is_left_alone():
    booster = np.tile([0.7, 0.3], (1000, 1))
    assert best_blend(booster, np.full((1000, 2), 0.5), np.array([0] * 700 + [1] * 300)) == Blend(0.0, 1.0)
    assert best_blend(np.empty((0, 2)), np.empty((0, 2)), np.empty(0, np.int64)) == FIRST


def test_each_fold_is_blended_by_those_before_it():
    """Booster wrong and shares right in fold 0, the other way round in fold 1."""
    right, wrong = [0.9, 0.1], [0.1, 0.9]
    booster, shares = np.array([wrong] * 50 + [right] * 50), np.array([right] * 50 + [wrong] * 50)
    bins, fold = np.zeros(100, np.int64), np.repeat([0, 1], 50)
    proba = blended_forward(booster, shares, bins, fold)
    assert np.array_equal(proba[:50], FIRST(booster, shares)[:50])  # nothing is known yet
    assert (proba[50:, 0] < 0.6).all()  # half and half, which did best before


def test_forecasters_see_what_ended_before_their_fold(data):
    until_s, seen = 18 * DAY_S, []

    def forecaster(known, scored, from_s):
        seen.append((known.end_s.max(), from_s, scored.submit_s.min(), scored.end_s.max()))
        return np.full((len(scored), 4), 0.25)

    parts = out_of_fold(data.ended(until_s), until_s, {"even": forecaster})
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
    assert chosen.algorithm == min(overall, key=overall.get)


def test_without_folds_the_rule_is_taken(data):
    chosen = select(data.among(np.arange(len(data)) < 30), 18 * DAY_S)
    assert (chosen.algorithm, chosen.table) == (FALLBACK, [])


def test_a_search_is_repeatable_and_no_worse_than_the_defaults(data):
    settings, trials = tune_durations(data, 18 * DAY_S, 4, seed=5)
    again, same = tune_durations(data, 18 * DAY_S, 4, seed=5)
    assert settings == again
    assert trials == same
    assert [trial["trial"] for trial in trials] == [0, 1, 2, 3]
    assert {trials[0][name] for name in ("trees", "leaves")} == {DurationSettings().trees, DurationSettings().leaves}
    complete = [trial["value"] for trial in trials if trial["state"] == "complete"]
    best = next(trial for trial in trials if trial["value"] == min(complete))
    assert best["trees"] == settings.trees
    assert min(complete) <= trials[0]["value"]


def test_what_comes_later_does_not_change_a_search(data):
    before = data.among(data.end_s < 18 * DAY_S)
    assert tune_durations(data, 18 * DAY_S, 2) == tune_durations(before, 18 * DAY_S, 2)


def test_no_search_without_folds(data):
    assert tune_durations(data.among(np.arange(len(data)) < 30), 18 * DAY_S, 3) == (DurationSettings(), [])


def test_costs_are_a_quantile():
    """under_cost / (1 + under_cost) of the distribution over bins: the newsvendor's."""
    rng = np.random.default_rng(0)
    for under_cost in (0.5, 1.0, 2.0, 5.0):
        proba = rng.dirichlet(np.ones(4), 200)
        quantile = (proba.cumsum(axis=1) < under_cost / (1 + under_cost)).sum(axis=1)
        assert np.array_equal(cheapest_bin(proba, under_cost), quantile)
    assert (np.diag(cost_matrix(4, 3.0)) == 0).all()


def test_costs_may_differ_by_job():
    proba = np.random.default_rng(1).dirichlet(np.ones(4), 200)
    costs = np.random.default_rng(2).uniform(0.5, 30.0, 200)
    each = [int(cheapest_bin(row[None], cost)[0]) for row, cost in zip(proba, costs, strict=True)]
    assert cheapest_bin(proba, costs).tolist() == each
    by_matrix = [int((cost_matrix(4, cost) @ row).argmin()) for row, cost in zip(proba, costs, strict=True)]
    assert each == by_matrix
