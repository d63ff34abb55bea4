import json

import numpy as np
import pytest

from jobcast.models import scores

ARRIVES = np.array([True, True, True, False, False])
PROBABILITY = np.array([0.9, 0.8, 0.3, 0.6, 0.1])


def test_idle_detection_by_hand():
    figures = scores.idle_detection(ARRIVES, PROBABILITY >= 0.5)
    assert figures == {"precision": 0.5, "recall": 0.5, "f1": 0.5}


def test_average_precision_by_hand():
    # Hits at ranks 1, 2 and 4 of 5: (1/1 + 2/2 + 3/4) / 3.
    assert scores.pr_auc(ARRIVES, PROBABILITY) == pytest.approx((1 + 1 + 0.75) / 3)


def test_roc_auc_by_hand():
    # Of the 6 pairs of a window with and one without arrivals, only (.3, .6) is in the wrong order.
    assert scores.roc_auc(ARRIVES, PROBABILITY) == pytest.approx(5 / 6)


def test_calibration_error_by_hand():
    # Bins of width 1/15: .9 and .95 fall into two, each off by its distance from 1; .48 and .52 share one, half right.
    truth = np.array([True, True, True, False])
    error = scores.ece(truth, np.array([0.9, 0.95, 0.48, 0.52]))
    assert error == pytest.approx((0.1 + 0.05 + 2 * abs(0.5 - 0.5)) / 4)


def test_a_sure_forecast_belongs_to_the_last_bin():
    told = scores.reliability(np.array([True, True, False]), np.array([0.9, 0.95, 1.0]))
    assert [(one["n"], one["observed"]) for one in told] == [(1, 1.0), (2, 0.5)]


def test_coverage_by_hand():
    figures = scores.coverage(np.array([0.0, 8.0, 2.0, 0.0]), np.array([0.0, 4.0, 4.0, 2.0]))
    assert figures == {"coverage": 0.75, "coverage_nonzero": 0.5, "over": 1.0, "missed": 0.4}
    assert scores.coverage(np.array([1.0, 8.0]), np.array([2.0, 4.0]))["coverage_nonzero"] == 0.5


def test_bins_by_hand():
    truth = np.array([0, 0, 1, 2])
    probability = np.array([[0.6, 0.3, 0.1], [0.4, 0.4, 0.2], [0.1, 0.8, 0.1], [0.7, 0.1, 0.2]])
    figures = scores.bin_scores(truth, scores.likeliest_bin(probability), probability, ["short", "middle", "long"])
    # Forecasts 0, 1 (the longer of equals), 1, 0: the last one falls short.
    assert figures["accuracy"] == 0.5
    assert figures["under_predicted"] == 0.25
    assert figures["ece"] == pytest.approx((0.4 + 0.4 + 0.2 + 0.7) / 4)  # each in a bin of its own
    assert scores.bin_rule_scores(truth, np.array([0, 0, 1, 0]), ["short", "middle", "long"])["accuracy"] == 0.75
    assert figures["log_loss"] == pytest.approx(-np.log([0.6, 0.4, 0.8, 0.2]).mean())
    assert figures["macro_f1"] == pytest.approx((0.5 + 2 / 3 + 0.0) / 3)
    assert figures["by_bin"]["long"] == {"n": 1, "precision": None, "recall": 0.0, "f1": 0.0}


@pytest.mark.parametrize("truth", [np.zeros(3, bool), np.ones(3, bool), np.zeros(0, bool)])
def test_undefined_figures_are_none_in_strict_json(truth):
    probability = np.full(len(truth), 0.2)
    figures = {
        **scores.detection(truth, probability > 0.5),
        "pr_auc": scores.pr_auc(truth, probability),
        "roc_auc": scores.roc_auc(truth, probability),
        "ece": scores.ece(truth, probability),
        **scores.gate(truth, probability > 0.5),
        **scores.coverage(truth.astype(float), probability * 0),
    }
    assert figures["roc_auc"] is None
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
