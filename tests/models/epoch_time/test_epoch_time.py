"""EpochTime: learns what jobs share, forecasts a new one from three points a type, is saved whole."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from jobcast.domain.errors import ConfigError, RegistryError, TraceError, TrainingError
from jobcast.models.epoch_time.epoch_time import EpochTime, ServedEpochTime, believed_epoch_s, pick_profiles
from jobcast.models.epoch_time.fitting import fit_points, forecast_log, widening
from jobcast.models.epoch_time.jobs import IN_ALL, PER_GPU, Residual, StepPrior, jobs_of, pick_points
from jobcast.models.pyfunc import served
from jobcast.traces.profiles import KEY, profile_table
from tests.shared import refused


@pytest.fixture(scope="module")
def trained(make):
    return EpochTime().fit(make())


def errors(model, table):
    known = pick_profiles(table, model.plan_)
    asked = table.frame.join(known.frame, on=KEY, how="anti")
    told = model.forecast(known, asked)
    truth = asked["epoch_s"].to_numpy()
    return np.abs(told.epoch_s / truth - 1), (truth >= told.low_s) & (truth <= told.high_s)


def test_a_job_that_it_has_not_seen(trained, make):
    """Steps without noise: what is left is what three points do not tell."""
    off, inside = errors(trained, make(3, seed=7))
    assert off.mean() < 0.05
    assert inside.mean() > 0.8


@pytest.mark.parametrize("in_all", [False, True])
def test_it_learns_what_batch_sizes_mean(make, in_all):
    model = EpochTime().fit(make(4, kinds=("t4",), in_all=in_all))
    assert model.counts_ == {PER_GPU: 0 if in_all else 4, IN_ALL: 4 if in_all else 0}
    off, _ = errors(model, make(2, kinds=("t4",), in_all=in_all, seed=3))
    assert off.mean() < 0.08


def test_a_type_without_a_point_is_slower_as_other_jobs_were(trained, make):
    """k80s are 4 times as slow as v100s in all of them, within exp(0.2 x normal)."""
    table = make(1, seed=11)
    known = profile_table(pick_profiles(table, "middle-wide").frame.filter(pl.col("gpu_type") == "v100"))
    asked = table.frame.filter(pl.col("gpu_type") == "k80")
    told = trained.forecast(known, asked)
    ratio = told.epoch_s / asked["epoch_s"].to_numpy()
    assert 0.5 < np.exp(np.log(ratio).mean()) < 2.0
    near = trained.forecast(known, known.frame)
    assert (np.log(told.high_s / told.low_s)).min() > np.log(near.high_s / near.low_s).max()


def test_more_points_make_surer(make):
    job = jobs_of(make(1))[0]
    prior, residual = StepPrior(), Residual()
    sds = [
        forecast_log(fit_points(job.at(pick_points(job, "middle-wide", n)), PER_GPU, prior, residual), job.places)[1]
        for n in (1, 2, 3)
    ]
    assert sds[0].mean() > sds[1].mean() > sds[2].mean()


def test_points_come_back(trained, make):
    """Forecasts of the points themselves lie within the noise of a measurement."""
    known = pick_profiles(make(2, seed=5), "middle-wide")
    told = trained.forecast(known, known.frame)
    assert np.abs(np.log(told.epoch_s / known.frame["epoch_s"].to_numpy())).max() < 3 * trained.residual.noise


def test_rows_of_any_batch_size(trained):
    known = profile_table([("A", None, "v100", 1, 100.0), ("A", None, "v100", 8, 20.0)])
    asked = pl.DataFrame({"model": ["A"] * 2, "batch_size": [None, 64], "gpu_type": ["v100"] * 2, "gpus": [4, 4]})
    told = trained.forecast(known, asked).epoch_s
    assert told[0] == told[1]
    assert 20.0 < told[0] < 100.0


def test_twin(trained):
    twin = trained.twin_without("app0")
    assert twin.models_ == ("app1", "app2", "app3", "app4")
    assert trained.twin_without("elsewhere") is trained


def test_untrained_it_still_answers(make):
    off, _ = errors(EpochTime.untrained(), make(2, seed=9))
    assert off.mean() < 0.15


def test_refusals(trained, make):
    refused(TrainingError, "one model only", lambda: EpochTime().fit(make(1)))
    asked = pl.DataFrame({"model": ["Z"], "batch_size": [1], "gpu_type": ["v100"], "gpus": [1]})
    refused(TraceError, "model Z has no profile", trained.forecast, make(1), asked)
    refused(ConfigError, "batch=both", trained.forecast, make(1), make(1).frame, "both")


def test_nothing_left_out_widens_nothing():
    assert widening([]) == 1.0


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


def test_jobs_without_a_batch_size(model):
    known = profile_table([("A", 16, "v100", 1, 90.0), ("A", 64, "v100", 1, 60.0)])
    unsized, smallest = believed_epoch_s(model, known, ["A", "A"], [None, 16], ["v100"], 4)
    np.testing.assert_allclose(unsized[:, 1:], smallest[:, 1:])


def test_as_mlflow_serves_it(model, tmp_path):
    model.save(tmp_path / "epoch-time")
    form = served(tmp_path / "epoch-time")
    assert isinstance(form, ServedEpochTime)
    answers = form.predict(form.example())
    assert ((answers["low_s"] < answers["epoch_s"]) & (answers["epoch_s"] < answers["high_s"])).tolist() == [True] * 4
    assert form.predict(form.example().head(0)).empty
    with pytest.raises(RegistryError, match="cannot be read"):
        form.predict(pd.DataFrame([("A", 1, "t4", 1, float("nan"))], columns=list(form.inputs)))
