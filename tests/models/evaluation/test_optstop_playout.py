"""OptStop played out: by hand on made-up curves, and on the measured ones against the figures that it is to reach."""

import os
from pathlib import Path

import numpy as np
import pytest

from jobcast.domain.errors import TrainingError
from jobcast.domain.optstop import OptStop, Stop, stall_epochs
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.traces.learning_curves import LearningCurve, read_learning_curves
from tests.models.evaluation.optstop_playout import (
    StoppedRun,
    standing_of,
    stopping_epochs,
    stopping_epochs_by_app,
    stopping_figures,
)

EPOCH = np.arange(1, 41)


def made_up(name: str, rate: float, top: float = 0.9, falls: bool = False) -> LearningCurve:
    metric = top - 0.5 * np.exp(-EPOCH / rate)
    return LearningCurve(name, 32, EPOCH, 1 - metric if falls else metric)


@pytest.fixture(scope="module")
def model() -> AccuracyCurve:
    return AccuracyCurve.from_numbers()


@pytest.mark.parametrize("falls", [False, True])
def test_a_level_curve_is_stopped_and_loses_next_to_nothing(model: AccuracyCurve, falls: bool):
    (run,) = stopping_epochs(model, [made_up("quick", 2.0, top=0.7, falls=falls)])
    assert run.reason == Stop.LEVEL
    assert run.saved > 0.4
    assert 0 <= run.lost_final <= 0.01


def test_losses_are_of_the_best_metric_so_far(model: AccuracyCurve):
    metric = np.concatenate([np.linspace(0.1, 0.8, 4), np.full(36, 0.76)])
    curve = LearningCurve("peaks", 32, EPOCH, metric)
    (run,) = stopping_epochs(model, [curve], targets=[0.8], wants_best=False)
    assert (run.reason, run.stopped_at, run.saved) == (Stop.REACHED, 4, 0.9)
    assert run.lost_final == pytest.approx((0.76 - 0.8) / 0.76)
    assert run.lost_best == 0.0


def test_later_epochs_do_not_change_what_was_decided(model: AccuracyCurve):
    curve = made_up("quick", 2.0, top=0.7)
    (run,) = stopping_epochs(model, [curve])
    other = curve.metric.copy()
    other[run.stopped_at :] = 0.99
    (again,) = stopping_epochs(model, [LearningCurve("quick", 32, EPOCH, other)])
    assert again.stopped_at == run.stopped_at
    assert again.lost_best > 0.2


def test_out_of_reach_is_given_up(model: AccuracyCurve):
    (run,) = stopping_epochs(model, [made_up("quick", 2.0, top=0.6)], targets=[0.95], wants_best=False)
    assert run.reason == Stop.HOPELESS
    assert run.stopped_at > stall_epochs(40)


def test_a_run_of_one_epoch_runs(model: AccuracyCurve):
    (run,) = stopping_epochs(model, [LearningCurve("one", 32, np.array([1]), np.array([0.5]))])
    assert (run.stopped_at, run.reason, run.lost_final) == (1, Stop.GO_ON, 0.0)


def test_figures_by_hand():
    runs = [
        StoppedRun("a", 1, 10, 5, Stop.LEVEL, 0.02, 0.04),
        StoppedRun("a", 2, 10, 10, Stop.GO_ON, 0.0, 0.0),
        StoppedRun("b", 1, 80, 60, Stop.LEVEL, -0.01, 0.01),
    ]
    figures = stopping_figures(runs)
    assert figures["a"] == pytest.approx(
        {"runs": 2, "saved": 0.25, "saved_epochs": 0.25, "lost_final": 0.01, "lost_best": 0.02}
    )
    assert figures["all"]["saved"] == pytest.approx(0.25)
    assert figures["all"]["saved_epochs"] == pytest.approx(0.25)
    assert figures["all"]["lost_final"] == pytest.approx(0.01 / 3)


def test_models_have_not_seen_the_application(model: AccuracyCurve):
    seen: list[set[str]] = []

    def fit(others: list[LearningCurve]) -> AccuracyCurve:
        seen.append({curve.app for curve in others})
        return model

    curves = [made_up("a", 2.0), made_up("b", 4.0), made_up("c", 6.0)]
    runs = stopping_epochs_by_app(curves, fit=fit)
    assert seen == [{"b", "c"}, {"a", "c"}, {"a", "b"}]
    assert [run.app for run in runs] == ["a", "b", "c"]


def test_one_application_is_refused():
    with pytest.raises(TrainingError, match="1 application"):
        stopping_epochs_by_app([made_up("a", 2.0)])


def test_measured_curves_end_early_at_little_loss():
    if not (data := os.environ.get("JOBCAST_DATA")):
        pytest.skip("JOBCAST_DATA is not set: no training curves")
    curves = read_learning_curves(Path(data) / "curves" / "training_curves.csv").curves
    figures = stopping_figures(stopping_epochs_by_app(curves))
    assert figures["all"]["saved"] >= 0.3
    assert figures["all"]["saved_epochs"] >= 0.3
    assert figures["all"]["lost_final"] <= 0.005
    # two epochs are too few to stop after one
    assert figures["bert"]["saved"] == 0.0


def test_standing_reads_nothing_past_what_is_seen():
    rule, epoch = OptStop(stall_share=0.1), np.arange(1, 21)
    curve = LearningCurve("made-up", 32, epoch, 0.9 - 0.5 * np.exp(-epoch / 4.0))
    forecast = AccuracyCurve.from_numbers().forecast([curve.prefix(5), curve.prefix(12)], [20, 20])
    whole = np.tile(curve.metric, (2, 1))
    blanked = np.where(np.arange(20) < np.array([[5], [12]]), whole, np.nan)
    told, known = standing_of(whole, forecast, rule), standing_of(blanked, forecast, rule)
    assert told.achieved.tolist() == known.achieved.tolist() == [curve.metric[4], curve.metric[11]]
    # a tenth of 20 epochs before
    assert told.earlier.tolist() == known.earlier.tolist() == [curve.metric[2], curve.metric[9]]
    assert told.sure.tolist() == [True, True]
