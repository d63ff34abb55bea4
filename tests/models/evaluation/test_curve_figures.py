from functools import partial

import numpy as np
import pytest

from jobcast.domain.errors import TrainingError
from jobcast.models.evaluation.curves import score_curves
from jobcast.traces.learning_curves import LearningCurve
from tests.models.curves.formulas import curve as curve_of
from tests.shared import refused


class Constant:
    """Forecasts 0.5 within [0, 0.7] for everything."""

    def __init__(self):
        self.apps = []

    def fit(self, curves):
        self.apps = sorted({curve.app for curve in curves})
        return self

    def forecast(self, prefixes, epochs):
        self.seen, self.epochs = [len(prefix.metric) for prefix in prefixes], epochs
        self.final_mean = np.full(len(prefixes), 0.5)
        self.family_finals = {"pow3": np.full(len(prefixes), 0.6)}
        return self

    def interval(self, level, epochs):
        shape = np.shape(epochs)
        return np.zeros(shape), np.full(shape, 0.7)


curve = partial(curve_of, "a", 1)


def test_figures_are_the_contracts():
    model = Constant()
    found = score_curves(model, [curve([0.2, 0.4, 0.6, 0.8, 0.7]), curve([0.1, 0.3])], 0.4)
    assert (model.seen, model.epochs) == ([2, 1], [5, 2])
    assert found == {
        "curves": 2,
        "mae": pytest.approx((0.2 / 0.6 + 0.2 / 0.2) / 2),
        "mae_last_value": pytest.approx((0.3 / 0.6 + 0.2 / 0.2) / 2),
        "coverage_90": pytest.approx(3 / 4),
        "width_90": pytest.approx((3 * 0.7 / 0.6 + 0.7 / 0.2) / 4),
        "families": {"pow3": pytest.approx((0.1 / 0.6 + 0.3 / 0.2) / 2)},
    }


def test_intervals_are_asked_of_later_epochs_and_hold_their_ends():
    class Edges(Constant):
        def interval(self, level, epochs):
            self.asked = (level, np.array(epochs).tolist())
            return np.full(np.shape(epochs), 0.3), np.full(np.shape(epochs), 0.6)

    model = Edges()
    found = score_curves(model, [curve([0.2, 0.4, 0.3, 0.6, 0.7]), curve([0.1, 0.29])], 0.4)
    assert model.asked == (0.9, [[3.0, 4.0, 5.0], [2.0, 2.0, 2.0]])
    assert (found["coverage_90"], found["width_90"]) == (0.5, pytest.approx((3 * 0.3 / 0.5 + 0.3 / 0.19) / 4))


@pytest.mark.parametrize("prefix", [0.0, 1.0, np.nan])
def test_a_share_outside_of_0_and_1_is_refused(prefix):
    refused(TrainingError, "--prefix", score_curves, Constant(), [curve([0.1, 0.2])], prefix)


@pytest.mark.parametrize(("values", "prefix"), [([0.5, 0.5, 0.5], 0.5), ([0.1, 0.2], 0.8)])
def test_curves_that_are_constant_or_seen_to_their_ends_are_not_scored(values, prefix):
    refused(TrainingError, "varies and goes on", score_curves, Constant(), [curve(values)], prefix)


def test_the_first_epoch_that_was_measured_is_seen_however_late_it_comes():
    late = LearningCurve("a", 1, np.array([5, 10]), np.array([0.1, 0.2]))
    model = Constant()
    assert score_curves(model, [late], 0.2)["curves"] == 1
    assert model.seen == [1]
