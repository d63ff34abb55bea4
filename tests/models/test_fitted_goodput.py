"""The throughput models of goodput: what they find, what they have not seen, saved, served."""

import numpy as np
import pytest

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.models.fitted_goodput import FittedGoodput, score_steps
from jobcast.models.goodput import Throughput
from jobcast.traces.goodput_tables import StepTable, StepTimes
from tests.shared import refused

KNOWN = Throughput(0.02, 0.001, 0.1, 0.004, 0.03, 0.002, 2.0)


def steps(gpus=(1, 2, 3, 4, 8), sizes=(16, 64)):
    nodes, count, local = np.array([(-(-one // 4), one, size) for one in gpus for size in sizes], dtype=float).T
    step_s = KNOWN.step_s(nodes, count, local)
    return StepTimes(nodes, count, local, step_s, 0.1 * step_s)


@pytest.fixture(scope="module")
def model():
    return FittedGoodput().fit(StepTable("steps.csv", "0" * 64, {"net": steps()}))


def test_it_finds_the_times_that_it_was_made_from(model):
    times = steps()
    told = model.forecast("net", times.nodes, times.gpus, times.local_batch_size)
    assert told.step_s == pytest.approx(times.step_s, rel=0.05)
    assert (told.low_s <= told.step_s).all()
    assert told.high_s / told.step_s == pytest.approx(np.exp(model.width_))


def test_errors_are_of_configurations_left_out(model):
    figures = score_steps(model, {"net": steps()})
    assert figures["n"] == 10
    assert figures["coverage_90"] >= 0.8
    assert figures["by_app"]["net"] == figures["mape"]
    assert figures["skill"] == 1.0 - figures["mape"] / figures["rule_mape"]
    alone = model.errors("net", steps((1,)))
    assert alone.error == pytest.approx(alone.rule_error)  # one GPU's times stay: the others hang on them


def test_steps_of_configurations_that_were_learnt_are_counted(model):
    """Of other batch sizes too; 16 GPUs were not measured, nor was the other application."""
    other = steps((2, 16))
    assert model.learnt_of({"net": other, "other": other}) == 2
    assert model.learnt_of({"net": steps((16,))}) == 0


def test_who_was_not_learnt_is_refused(model):
    refused(RegistryError, "has not learnt other, but net; train it on step times of other", model.throughput, "other")
    with pytest.raises(TrainingError, match="no step of net on one GPU"):
        FittedGoodput().fit(StepTable("steps.csv", "", {"net": steps((2, 4))}))
    with pytest.raises(TrainingError, match="all steps are on one GPU; add some on more"):
        FittedGoodput().fit(StepTable("steps.csv", "", {"net": steps((1,))}))
    refused(TrainingError, "holds no step", lambda: FittedGoodput().fit(StepTable("steps.csv", "", {})))
