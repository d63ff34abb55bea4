"""Errors of Optimus' models, on made-up runs and on the measured ones."""

import os
from pathlib import Path

import numpy as np
import pytest

from jobcast.models.evaluation.optimus import few_shot_errors, final_errors, speed_errors
from jobcast.traces.goodput_tables import StepTimes, read_step_times
from jobcast.traces.learning_curves import LearningCurve, read_learning_curves


@pytest.fixture(scope="module")
def curves_folder() -> Path:
    if not (data := os.environ.get("JOBCAST_DATA")):
        pytest.skip("JOBCAST_DATA is not set: no training curves")
    return Path(data) / "curves"


def test_final_errors_by_hand():
    epochs = np.arange(1, 11)
    falling = LearningCurve("made-up", 32, epochs, 10.0 - epochs)
    short = LearningCurve("short", 32, epochs[:2], np.array([0.2, 0.1]))
    errors = final_errors([falling, short], 0.5)
    # after 5 of 10 epochs the last value is 5, the line goes to 0, the range is 9
    assert errors["made-up"]["last"] == pytest.approx(5 / 9)
    assert errors["made-up"]["line"] == pytest.approx(0.0, abs=1e-9)
    assert "short" not in errors


def test_speed_errors_vanish_on_the_models_own_times():
    nodes, gpus = np.array([(n, w) for n in (1, 2, 4) for w in (4, 6, 8)], float).T
    times = StepTimes(nodes, gpus, np.full(9, 32.0), 0.1 + 0.02 * gpus, np.full(9, 0.01))
    assert speed_errors(times)["optimus"] == pytest.approx(0.0, abs=1e-9)


def test_measured_curves_are_foreseen_better_early_than_by_the_last_value(curves_folder: Path):
    curves = read_learning_curves(curves_folder / "training_curves.csv").curves
    early = final_errors(curves, 0.2)
    assert early["all"]["optimus"] < 0.85 * early["all"]["last"] < 0.1 * early["all"]["line"]


def test_measured_step_times_of_left_out_configurations(curves_folder: Path):
    measured = read_step_times(curves_folder / "step_times.csv")
    for app in ("bert", "deepspeech2"):
        errors = speed_errors(measured[app])
        assert errors["pollux"] < errors["optimus"] < 0.16


def test_few_configurations_do_worse(curves_folder: Path):
    times = read_step_times(curves_folder / "step_times.csv")["deepspeech2"]
    assert speed_errors(times)["optimus"] < few_shot_errors(times, 8)["optimus"] < 0.25
