"""Which algorithm forecasts arrivals best, and the search for its settings."""

import math
from dataclasses import replace

import numpy as np
import pytest

from jobcast.features.corpus import build_corpus
from jobcast.models.algorithms import ALGORITHMS, AverageSettings
from jobcast.models.arrival_folds import OutOfFold
from jobcast.models.arrival_selection import (
    FALLBACK,
    Selection,
    averages_the_others,
    flat,
    relative_log_loss,
    tune_arrivals,
)
from jobcast.models.classifiers import BoosterSettings
from tests.features.pools import arrived


def told(arrives, probability, fold=None):
    arrives = np.array(arrives, bool)
    fold = np.zeros(len(arrives), np.int64) if fold is None else np.array(fold)
    return OutOfFold(np.arange(len(arrives)), fold, arrives, np.array(probability, float))


def test_relative_log_loss_by_hand():
    # One in two arrives: saying 1/2 loses log 2, and so does not knowing; .9 loses -log .9.
    assert relative_log_loss(told([1, 0], [0.5, 0.5])) == pytest.approx(1.0)
    assert relative_log_loss(told([1, 0], [0.9, 0.1])) == pytest.approx(-math.log(0.9) / math.log(2))
    # Each fold counts the same; one without both classes says nothing.
    both = told([1, 0, 1, 0, 1], [0.9, 0.1, 0.5, 0.5, 0.2], [0, 0, 1, 1, 2])
    assert relative_log_loss(both) == pytest.approx((1.0 - math.log(0.9) / math.log(2)) / 2)
    assert relative_log_loss(told([1, 1], [0.9, 0.9])) is None


def test_the_least_loss_wins_and_folds_can_be_left_out():
    early = told([1, 0, 1, 0], [0.9, 0.1, 0.5, 0.5], [0, 0, 1, 1])
    late = told([1, 0, 1, 0], [0.6, 0.4, 0.99, 0.01], [0, 0, 1, 1])
    selection = Selection({"lightgbm": [early], "logistic": [late]}, (5,))
    assert selection.winner() == "logistic"
    assert selection.winner(folds=1) == "lightgbm"
    table = selection.table()
    assert [row["algorithm"] for row in table] == ["logistic"] * 2 + ["lightgbm"] * 2
    assert [row["horizon"] for row in table] == ["5min", "all"] * 2
    assert table[0]["pr_auc"] == 1.0
    assert (table[0]["folds"], table[0]["rows"]) == (2.0, 4.0)


def test_without_folds_the_first_is_taken_and_the_table_is_empty():
    selection = Selection({name: [told([], [])] for name in ALGORITHMS}, (5,))
    assert selection.winner() == FALLBACK == "lightgbm"
    assert selection.table() == []


def test_one_class_in_all_folds_gives_no_reason_to_choose():
    selection = Selection({name: [told([0, 0], [0.2, 0.2])] for name in ALGORITHMS}, (5,))
    assert selection.winner() == FALLBACK
    assert len(selection.table()) == 2 * len(ALGORITHMS)


def test_tuned_members_do_not_stand_for_the_average():
    few = BoosterSettings(trees=9)
    assert averages_the_others({})
    assert averages_the_others({"xgboost": few})
    assert not averages_the_others({"lightgbm": few})
    assert averages_the_others({"lightgbm": few, "average": AverageSettings(lightgbm=few)})


DAY_S = 86400.0


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(5)
    arrival_s = np.sort(rng.uniform(0, 8 * DAY_S, 1500))
    arrival_s = arrival_s[(arrival_s % DAY_S > 8 * 3600) & (arrival_s % DAY_S < 18 * 3600)]
    return build_corpus({"one": arrived(arrival_s, run_s=60.0)}, 0.0, 8 * DAY_S, (5, 60))


@pytest.mark.slow
def test_equal_seeds_search_alike_and_the_first_trial_is_the_default(corpus):
    said = []
    first = tune_arrivals(corpus, 0.0, 8 * DAY_S, "lightgbm", 7, 3, lambda *done: said.append(done))
    again = tune_arrivals(corpus, 0.0, 8 * DAY_S, "lightgbm", 7, 3)
    assert first == again
    assert said == [(trial, 7) for trial in range(1, 8)]
    assert {name: first.trials[0][name] for name in flat(BoosterSettings())} == flat(BoosterSettings())
    complete = [trial for trial in first.trials if trial["state"] == "complete"]
    best = min(complete, key=lambda trial: trial["value"])
    assert {name: best[name] for name in flat(first.settings)} == flat(first.settings)
    assert best["value"] <= first.trials[0]["value"]
    assert all(trial["folds"] == 3 for trial in complete)
    assert all(trial["folds"] < 3 for trial in first.trials if trial["state"] == "pruned")


def test_bad_trials_are_pruned(corpus):
    trials = tune_arrivals(corpus, 0.0, 8 * DAY_S, "logistic", 14, 0).trials
    states = [trial["state"] for trial in trials]
    assert "pruned" in states
    assert set(states[:4]) == {"complete"}


def test_windows_that_reach_the_end_are_not_read(corpus):
    until_s = 6 * DAY_S
    untouched = np.stack([corpus.purged(until_s, horizon) for horizon in range(2)], axis=1)
    arrives = np.where(untouched, corpus.arrives, ~corpus.arrives)
    other = replace(corpus, arrives=arrives, X=np.where(untouched[:, :, None], corpus.X, -1.0).astype(np.float32))
    assert tune_arrivals(corpus, 0.0, until_s, "logistic", 2) == tune_arrivals(other, 0.0, until_s, "logistic", 2)


def test_all_of_an_averages_members_are_searched(corpus):
    tuned = tune_arrivals(corpus, 0.0, 3 * DAY_S, "average", 1)
    assert tuned.settings == AverageSettings()
    assert {"lightgbm_leaves", "logistic_inverse_l2", "extra_trees_min_rows_leaf"} <= set(tuned.trials[0])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_too_little_time_leaves_the_defaults(corpus, name):
    tuned = tune_arrivals(corpus, 0.0, 300.0, name, 3)
    assert tuned.settings == ALGORITHMS[name].settings()
    assert tuned.trials == []
