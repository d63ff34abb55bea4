"""Models that are one JSON file, but for regimes, which learn for long: kept whole, found by name, served by rows."""

import numpy as np
import pandas as pd
import pytest

from jobcast.domain.errors import RegistryError
from jobcast.models.completion.completion_time import CompletionTime
from jobcast.models.completion.job_size import JobSize
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.models.fitted_goodput import FittedGoodput
from jobcast.models.metadata import METADATA, JsonModel
from jobcast.models.predictors import load_predictor, served_form
from jobcast.models.pyfunc import served
from jobcast.models.scheduling.policy import DevicePolicy
from jobcast.traces.goodput_tables import StepTable
from jobcast.traces.profiles import profile_table
from tests.models.completion.test_job_size import trace_of
from tests.models.curves.test_accuracy_curve import three_apps
from tests.models.epoch_time.conftest import rows_of
from tests.models.scheduling.test_scheduling_policy import policy
from tests.models.test_fitted_goodput import steps
from tests.shared import kept, refused


def jobs():
    return trace_of(np.random.default_rng(1).uniform(10, 1000, 50), tag=["x", "y"] * 25)


def profiles():
    kinds = {"v100": 1.0, "k80": 4.0}
    rows = (rows_of(f"app{i}", 0.1 * (i + 1), 0.2 + 0.1 * i, 0.02, kinds) for i in range(2))
    return profile_table([row for part in rows for row in part], "made.csv")


MAKERS = {
    "completion-time": lambda: CompletionTime().fit(jobs(), 0.0, 1e4),
    "job-size": lambda: JobSize().fit(jobs(), 0.0, 1e4),
    "goodput": lambda: FittedGoodput().fit(StepTable("steps.csv", "0" * 64, {"net": steps()})),
    "epoch-time": lambda: EpochTime().fit(profiles()),
    "accuracy-curve": lambda: AccuracyCurve().fit(three_apps()),
    "mlf-policy": policy,
    "device-rl": lambda: policy(DevicePolicy),
}


@pytest.fixture(scope="module", params=MAKERS)
def model(request) -> JsonModel:
    return MAKERS[request.param]()


def test_equal_data_and_reading_it_back_give_equal_bytes(model, tmp_path):
    first = kept(model, tmp_path / "first")
    assert set(first) == {METADATA}
    loaded = load_predictor(model.name, tmp_path / "first")
    assert type(loaded) is type(model)
    assert kept(loaded, tmp_path / "read") == first
    assert kept(MAKERS[model.name](), tmp_path / "again") == first
    other = "goodput" if model.name != "goodput" else "regime"
    refused(RegistryError, f"holds '{model.name}', not '{other}'", load_predictor, other, tmp_path / "first")


def test_its_form_answers_its_example_as_before_it_was_kept(model, tmp_path):
    kept(model, tmp_path / model.name)
    form = served(tmp_path / model.name)
    example = form.example()
    assert list(example) == list(form.inputs)
    answers = form.predict(example)
    assert list(answers) == list(form.outputs)
    pd.testing.assert_frame_equal(answers, served_form(model.name)(model).predict(example))
    for low in (name for name in answers if name.startswith("low")):
        assert (answers[low] < answers[low.replace("low", "high")]).all()
