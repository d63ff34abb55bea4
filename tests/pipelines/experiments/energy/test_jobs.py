"""Clusters and scenarios of energy: kinds of nodes, what a trace may leave out, what is refused."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from jobcast.domain.errors import OverlapError, TraceError
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.pipelines.experiments.energy import simulation as forecasting
from jobcast.pipelines.experiments.energy.jobs import energy_jobs
from jobcast.pipelines.experiments.energy.simulation import believed_times, noisy
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.sources import Ask, Registered
from jobcast.traces.cluster_file import read_cluster
from jobcast.traces.profiles import write_profiles
from jobcast.traces.readers import read_trace
from tests.shared import refused

CLUSTER = """
nodes:
  - {count: 2, gpus: 2, gpu_type: v100, power_w: [0, 420, 670]}
  - {gpus: 1, gpu_type: t4, power_w: [0, 240], name: slow}
  - {count: 1, gpus: 2, gpu_type: v100, power_w: [0, 420, 670]}
energy: {pue: 1.5, tariff: [{from_h: 0, price_eur_kwh: 0.1}, {from_h: 8.5, price_eur_kwh: 0.2}]}
"""


@pytest.fixture
def nodes(tmp_path):
    """Three alike nodes of two V100 in two groups, and one of a T4."""
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    return read_cluster(path)


@pytest.fixture
def jobs(csv):
    """Writes and reads a trace of the rows given."""
    plain = "job_id,pool,submit_time,duration,gpus,model,epochs,batch_size"
    return lambda *rows, columns=plain: read_trace(csv(*rows, header=columns))


@pytest.fixture
def profiles(csv):
    """Writes profiles of the rows given."""
    return lambda *rows: csv(*rows, name="profiles.csv", header="model,batch_size,gpu_type,gpus,epoch_s")


def test_times_are_laid_out_by_job_and_kind(nodes, jobs, profiles):
    trace = jobs("a,p,0,10,1,m,7,32", "b,p,5,10,1,m,3,64")
    table = profiles("m,32,v100,1,8", "m,32,v100,2,5", "m,32,t4,1,20", "m,32,t4,2,11", "m,64,t4,1,15")
    scenario = energy_jobs(cut_scenario(trace, nodes), profiles=table)
    inf = np.inf
    assert_array_equal(scenario.facts.times.epoch_s, [[[8, 5], [20, inf]], [[inf, inf], [15, inf]]])
    assert_array_equal(scenario.facts.times.epochs, [7, 3])
    assert [job.submit_s for job in scenario.workload.jobs] == [0, 5]
    assert scenario.workload.servers == [2, 2, 1, 2]
    assert all(job.preemptible for job in scenario.workload.jobs)


def test_an_application_is_a_model_at_a_batch_size(nodes, jobs, profiles):
    trace = jobs("a,p,0,10,1,m,7,32", "b,p,5,10,1,m,3,64", "c,p,6,10,1,n,3,32", "d,p,7,10,1,m,9,32")
    table = profiles(*(f"{model},{size},t4,1,8" for model in "mn" for size in (32, 64)))
    scenario = energy_jobs(cut_scenario(trace, nodes), profiles=table)
    assert scenario.facts.times.applications.tolist() == [0, 1, 2, 0]


def test_what_a_trace_leaves_out_is_told(nodes, jobs, profiles):
    trace = jobs("a,p,0,10,1,m,7", columns="job_id,pool,submit_time,duration,gpus,model,epochs")
    scenario = energy_jobs(cut_scenario(trace, nodes), profiles=profiles("m,,t4,1,20"))
    assert [job.due_s for job in scenario.workload.jobs] == [np.inf]
    assert [job.weight for job in scenario.workload.jobs] == [1.0]
    told = " ".join(scenario.notes)
    assert all(word in told for word in ("no deadline", "no weight", "no batch_size"))


def test_due_dates_and_weights_with_gaps(nodes, jobs, profiles):
    columns = "job_id,pool,submit_time,duration,gpus,model,epochs,deadline,weight"
    trace = jobs("a,p,0,10,1,m,7,100,3", "b,p,1,10,1,m,7,,", columns=columns)
    scenario = energy_jobs(cut_scenario(trace, nodes), profiles=profiles("m,,t4,1,20"))
    assert [job.due_s for job in scenario.workload.jobs] == [100.0, np.inf]
    assert [job.weight for job in scenario.workload.jobs] == [3.0, 1.0]


def test_a_job_that_can_run_nowhere_is_named(nodes, jobs, profiles):
    trace = jobs("a,p,0,10,1,m,7,32", "b,p,0,10,1,m,7,64", "c,p,0,10,1,m,7,64")
    table = profiles("m,32,t4,1,20", "m,64,k80,1,20", "m,64,t4,4,9")
    line = refused(TraceError, "", energy_jobs, cut_scenario(trace, nodes), profiles=table)
    for part in ("job b (model m, batch size 64)", "k80, t4", "v100, t4", "(1 more such jobs)"):
        assert part in line


def test_noise_is_drawn_by_seed_job_kind_and_gpus():
    epoch_s = np.full((3, 2, 4), 10.0)
    epoch_s[1, 1, 3] = np.inf
    once, again = (noisy(epoch_s, ("a", "b", "c"), 0.3, 5) for _ in range(2))
    assert_array_equal(once, again)
    assert np.isinf(once[1, 1, 3])
    assert len(np.unique(once)) == once.size
    alone = noisy(epoch_s[2:], ("c",), 0.3, 5)
    assert_array_equal(alone[0], once[2])
    assert_array_equal(noisy(epoch_s, ("a", "b", "c"), 0.0, 5), epoch_s)
    assert not np.array_equal(noisy(epoch_s, ("a", "b", "c"), 0.3, 6), once)


def test_the_spread_of_noise_is_what_was_asked_for():
    many = noisy(np.full((500, 4, 4), 10.0), tuple(map(str, range(500))), 0.2, 1)
    logs = np.log(many / 10.0)
    assert_allclose(logs.std(), 0.2, atol=0.01)
    assert_allclose(logs.mean(), 0.0, atol=0.01)


def test_provenance_names_what_went_in(nodes, jobs, profiles):
    told = energy_jobs(cut_scenario(jobs("a,p,0,10,1,m,7,32"), nodes), profiles=profiles("m,32,t4,1,20")).provenance()
    assert (told["nodes"], told["gpus"], told["pue"]) == (4, 7, 1.5)
    assert told["tariff"] == {"0.0": 0.1, "30600.0": 0.2}
    assert len(told["profiles"]["sha256"]) == len(told["trace"]["sha256"]) == 64


@pytest.fixture
def scenario(campaign):
    """The small campaign."""
    trace, nodes = read_trace(campaign / "energy.jobs.parquet"), read_cluster(campaign / "energy.yaml")
    return energy_jobs(cut_scenario(trace, nodes), profiles=campaign / "profiles.csv")


@pytest.fixture
def registered(monkeypatch):
    """Registers a version that knows nothing but the prior; what it says it was trained on is given."""

    def put(sha256="another", models=(), model=None):
        version = SimpleNamespace(name="epoch-time", version=7, trace_sha256=sha256, train_until_s=0.0)
        model = EpochTime.untrained() if model is None else model
        monkeypatch.setattr(EpochTime, "models_", property(lambda self: tuple(models)))
        monkeypatch.setattr(forecasting, "registered", lambda *asked: Registered(version, model))

    return put


def believed(scenario, tmp_path, known=None, allow_overlap=False):
    return believed_times(scenario, Ask(policy="edf", home=tmp_path, allow_overlap=allow_overlap), known)


def test_forecasts_go_by_three_points_a_model_and_type(scenario, registered, tmp_path):
    registered()
    told = believed(scenario, tmp_path)
    true = scenario.facts.times.epoch_s
    assert told.models == {"epoch-time": 7}
    assert told.tally.figures() == {}
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
    refused(TraceError, "model ConvNet has no known point", believed, scenario, tmp_path, known=tmp_path / "known.csv")


def test_a_version_of_the_same_profiles_is_refused_unless_it_is_allowed(scenario, registered, tmp_path):
    registered(scenario.facts.profiles.sha256, ("LSTM-big", "other"))
    with pytest.raises(OverlapError, match=r"version 7 was trained on .*knows its models, LSTM-big among them"):
        believed(scenario, tmp_path)
    assert believed(scenario, tmp_path, allow_overlap=True).overlap
    registered(scenario.facts.profiles.sha256, ("other",))
    assert not believed(scenario, tmp_path).overlap
