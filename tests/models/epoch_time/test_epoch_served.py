"""Completed tables for schedulers, and MLflow's form."""

import numpy as np
import pandas as pd
import pytest

from jobcast.domain.errors import ConfigError, RegistryError
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.models.epoch_time.served import ServedEpochTime, believed_epoch_s, pick_profiles
from jobcast.models.pyfunc import served
from jobcast.traces.profiles import profile_table


@pytest.fixture(scope="module")
def model(make):
    return EpochTime().fit(make(3))


def test_points_stay_and_all_else_is_forecast(model, make):
    table = make(2, seed=4)
    known = pick_profiles(table, "middle-wide")
    assert len(known) == 2 * 2 * 3
    assert "12 of 80 rows are known" in known.notes[-1]
    models, sizes, types = ["app0", "app1", "app0"], [64, 256, 64], ["k80", "v100"]
    believed = believed_epoch_s(model, known, models, sizes, types, 8)
    assert believed.shape == (3, 2, 8)
    assert np.isfinite(believed).all()
    assert (believed > 0).all()
    np.testing.assert_array_equal(believed[0], believed[2])
    profiled = known.epoch_s(models, sizes, types, 8)
    here = np.isfinite(profiled)
    np.testing.assert_array_equal(believed[here], profiled[here])
    truth = table.epoch_s(models, sizes, types, 8)
    measured = np.isfinite(truth)
    assert np.abs(believed[measured] / truth[measured] - 1).mean() < 0.1


def test_a_plan_that_is_not_known_is_refused(make):
    with pytest.raises(ConfigError):
        pick_profiles(make(1, seed=4), "none")


def test_jobs_without_a_batch_size(model):
    known = profile_table([("A", 16, "v100", 1, 90.0), ("A", 64, "v100", 1, 60.0)])
    unsized, smallest = believed_epoch_s(model, known, ["A", "A"], [None, 16], ["v100"], 4)
    np.testing.assert_allclose(unsized[:, 1:], smallest[:, 1:])


def test_as_mlflow_serves_it(model, tmp_path):
    model.save(tmp_path / "epoch-time")
    form = served(tmp_path / "epoch-time")
    assert isinstance(form, ServedEpochTime)
    answers = form.predict(form.example())
    assert list(answers.columns) == list(form.outputs)
    assert len(answers) == 4
    assert (answers["low_s"] < answers["epoch_s"]).all()
    assert (answers["epoch_s"] < answers["high_s"]).all()
    assert form.predict(form.example().head(0)).empty
    with pytest.raises(RegistryError, match="cannot be read"):
        form.predict(pd.DataFrame([("A", 1, "t4", 1, float("nan"))], columns=list(form.inputs)))
