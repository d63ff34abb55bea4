import math

import numpy as np
import pytest

from jobcast.models.algorithms import ALGORITHMS, AverageSettings
from jobcast.models.arrival_folds import OutOfFold
from jobcast.models.arrival_selection import FALLBACK, Selection, averages_the_others, relative_log_loss
from jobcast.models.classifiers import BoosterSettings


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
