"""Epoch times that a registered model forecasts: which points it goes by, what is refused."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from jobcast.domain.errors import OverlapError, TraceError
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.pipelines.experiments.energy import epoch_time_forecasts as forecasting
from jobcast.pipelines.experiments.energy.epoch_time_forecasts import believed_times
from jobcast.pipelines.experiments.energy.jobs import energy_jobs
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.sources import Registered
from jobcast.traces.cluster_file import read_cluster
from jobcast.traces.profiles import write_profiles
from jobcast.traces.readers import read_trace


@pytest.fixture
def scenario(campaign):
    """The small campaign."""
    nodes = read_cluster(campaign / "cluster.yaml")
    return energy_jobs(cut_scenario(read_trace(campaign / "jobs.parquet"), nodes), profiles=campaign / "profiles.csv")


@pytest.fixture
def registered(monkeypatch):
    """Registers a version that knows nothing but the prior; what it says it was trained on is given."""

    def put(sha256="another", models=(), model=None):
        version = SimpleNamespace(version=7, trace_sha256=sha256, train_until_s=0.0)
        model = EpochTime.untrained() if model is None else model
        monkeypatch.setattr(EpochTime, "models_", property(lambda self: tuple(models)))
        monkeypatch.setattr(forecasting, "registered", lambda *asked: Registered(version, model))

    return put


def believed(scenario, tmp_path, known=None, allow_overlap=False):
    spec = parse_forecasts("registry")
    return believed_times(spec, scenario, known=known, home=tmp_path, seed=0, allow_overlap=allow_overlap)


def test_forecasts_go_by_three_points_a_model_and_type(scenario, registered, tmp_path):
    registered()
    told = believed(scenario, tmp_path)
    true = scenario.facts.times.epoch_s
    assert told.models == {"epoch-time": 7}
    assert told.told.figures() == {}
    assert "from 24 points of" in told.notes[0]  # four models on two types
    assert_array_equal(np.isfinite(told.answers), np.isfinite(true))
    runs = np.isfinite(true)
    errors = np.abs(told.answers[runs] / true[runs] - 1.0)
    assert 0.0 < errors.mean() < 0.5
    assert (errors < 1e-12).any()


def test_points_that_are_named_are_believed_as_they_are(scenario, registered, tmp_path):
    registered()
    frame = scenario.facts.profiles.frame.with_columns(epoch_s=pl.col("epoch_s") * 3.0)
    write_profiles(frame, tmp_path / "known.csv")
    told = believed(scenario, tmp_path, known=tmp_path / "known.csv")
    runs = np.isfinite(scenario.facts.times.epoch_s)
    assert_allclose(told.answers[runs], 3.0 * scenario.facts.times.epoch_s[runs])


def test_a_model_without_a_point_is_named(scenario, registered, tmp_path):
    registered()
    write_profiles(scenario.facts.profiles.frame.filter(pl.col("model") != "ConvNet"), tmp_path / "known.csv")
    with pytest.raises(TraceError, match="model ConvNet has no known point"):
        believed(scenario, tmp_path, known=tmp_path / "known.csv")


def test_a_version_of_the_same_profiles_is_refused_unless_it_is_allowed(scenario, registered, tmp_path):
    registered(scenario.facts.profiles.sha256, ("LSTM-big", "other"))
    with pytest.raises(OverlapError, match=r"version 7 was trained on .*knows its models, LSTM-big among them"):
        believed(scenario, tmp_path)
    assert believed(scenario, tmp_path, allow_overlap=True).overlap
    registered(scenario.facts.profiles.sha256, ("other",))
    assert not believed(scenario, tmp_path).overlap
