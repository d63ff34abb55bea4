"""Models as MLflow itself loads them, and what registering leaves behind in a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import jobcast
from jobcast.domain.errors import RegistryError, TraceError
from jobcast.features.arrivals import arrival_features
from jobcast.models.pyfunc import served
from jobcast.models.registry.artifacts import register_scheme
from jobcast.models.registry.home import database_file, database_uri
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.traces.history import pool_histories
from tests.shared import refused

REGISTER = """
import sys
from pathlib import Path
from jobcast.models.registry import ModelCard, open_registry
card = ModelCard("new-load", "sliding-max", 0, "small", "5" * 64, 3, 0.0, 1.0, metrics={"coverage": 0.5})
version = open_registry(Path(sys.argv[1])).register(Path(sys.argv[2]), card)
assert version.version == 1
"""

LOAD_WITHOUT_JOBCAST = """
import json, sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
sys.path = [path for path in sys.path if path != sys.argv[2]]
try:
    import jobcast
except ImportError:
    pass
else:
    raise SystemExit("jobcast is importable: the test shows nothing")
import mlflow.pyfunc, pandas
model = mlflow.pyfunc.load_model(sys.argv[1])
answers = model.predict(model.input_example)
import jobcast
assert jobcast.__file__.startswith(sys.argv[1]), jobcast.__file__
print(answers.to_json())
"""


def run(code: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW", "PYTHON"))}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environ, timeout=110)


def test_registering_is_silent_and_leaves_nothing_elsewhere(saved, tmp_path):
    (tmp_path / "cwd").mkdir()
    done = run(REGISTER, tmp_path / "home", saved["new-load"], cwd=tmp_path / "cwd")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list((tmp_path / "cwd").iterdir()) == []
    assert sorted(path.name for path in (tmp_path / "home" / "mlruns").iterdir()) == ["artifacts", "mlflow.db"]


@pytest.mark.slow
def test_an_export_is_an_mlflow_model_that_needs_no_jobcast(registry, tmp_path):
    folder = registry.export(registry.resolve("will-jobs-arrive"), tmp_path / "exported")
    done = run(LOAD_WITHOUT_JOBCAST, folder, Path(jobcast.__file__).parents[1], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answers = pd.DataFrame(json.loads(done.stdout.splitlines()[-1]))
    example = served(folder / "data" / "will-jobs-arrive")
    assert answers["probability"].to_numpy() == pytest.approx(example.predict(example.example())["probability"])


@pytest.mark.parametrize("name", ["will-jobs-arrive", "new-load", "job-duration"])
def test_mlflow_finds_and_serves_every_predictor_by_alias(registry, monkeypatch, name):
    import mlflow.pyfunc
    from mlflow.models import ModelSignature

    monkeypatch.setenv("MLFLOW_TRACKING_URI", database_uri(database_file(registry.home)))
    register_scheme()  # as the entry point does where jobcast is installed
    model = mlflow.pyfunc.load_model(f"models:/{name}@champion")
    direct = served(registry.folder(registry.resolve(name)) / "data" / name)
    answers = model.predict(direct.example())
    pd.testing.assert_frame_equal(answers, direct.predict(direct.example()))
    signature: ModelSignature = model.metadata.signature
    assert signature.inputs.input_names() == list(direct.inputs) == list(direct.example().columns)
    assert signature.outputs.input_names() == list(direct.outputs) == list(answers.columns)


def test_no_pickle_and_no_code(registry):
    for version in registry.list():
        folder = registry.folder(version)
        assert not [file for file in folder.rglob("*") if file.suffix in (".pkl", ".pickle", ".joblib")]
        assert not [file for file in folder.rglob("*") if file.suffix == ".py"]
        pinned = (folder / "requirements.txt").read_text().split()
        assert all("==" in line for line in pinned)
        assert {f"numpy=={np.__version__}", f"jobcast=={jobcast.__version__}"} <= set(pinned)


def events_of(trace, at_s):
    """The table that a scheduler would show at an instant: nothing that comes later."""
    known = trace.between(None, float(np.nextafter(at_s, np.inf)))
    starts, ends = (np.where(times <= at_s, times, np.nan) for times in (known.start_s, known.end_s))
    told = known.jobs.select("job_id", "pool", "gpus").to_pandas()
    return told.assign(submit_time=known.submit_s, start_time=starts, end_time=ends)


@pytest.fixture(scope="module")
def at_s(small_trace):
    return float(np.quantile(small_trace.submit_s, 0.9))


def test_events_become_probabilities_of_pools(saved, predictors, small_trace, at_s):
    arrivals, model = predictors["will-jobs-arrive"], served(saved["will-jobs-arrive"])
    answers = model.predict(events_of(small_trace, at_s), {"at": at_s})
    histories = pool_histories(small_trace)  # with its future, which changes nothing
    rows = np.concatenate([arrival_features(one, [at_s], [300.0, 3600.0]) for one in histories.values()])
    assert answers["probability"].tolist() == arrivals.predict_proba(rows).ravel().tolist()
    assert answers["pool"].tolist() == [pool for pool in histories for _ in range(2)]
    assert answers["horizon_min"].tolist() == [5.0, 60.0] * len(histories)
    gates = np.tile(arrivals.thresholds_gate_, len(histories))
    assert (answers["will_arrive"] == (answers["probability"] >= gates)).all()


def test_events_become_loads_of_pools(saved, predictors, small_trace, at_s):
    loads, model = predictors["new-load"], served(saved["new-load"])
    answers = model.predict(events_of(small_trace, at_s), {"at": at_s, "horizons": [60.0]})
    histories = pool_histories(small_trace)
    rows = np.concatenate([loads.rows(one, [at_s]) for one in histories.values()])
    assert answers["load_gpus"].tolist() == loads.predict_rows(rows)[:, 1].tolist()
    assert answers["lent_gpus"].tolist() == loads.lend_rows(rows)[:, 1].tolist()
    assert set(answers["horizon_min"]) == {60.0}
    assert (answers["load_gpus_q95"] >= answers["load_gpus_q50"]).all()


def test_events_become_bins_of_active_jobs(saved, predictors, small_trace, at_s):
    durations, model = predictors["job-duration"], served(saved["job-duration"])
    answers = model.predict(events_of(small_trace, at_s), {"at": at_s})
    known = small_trace.between(None, float(np.nextafter(at_s, np.inf)))
    assert answers["job_id"].tolist() == known.jobs["job_id"].filter(known.end_s > at_s).to_list()
    jobs, run_s = small_trace.to_jobs()
    history = RunHistory(small_trace.pools, EarlierJobs(jobs, small_trace.start_s, small_trace.known_s, run_s))
    history.advance(at_s)
    tracker = durations.tracker()
    tracker.catch_up(history)
    rows = tracker.rows([job for job in jobs if job.job_id in set(answers["job_id"])])
    assert answers[model.bins].to_numpy().tolist() == durations.predict_proba(rows).tolist()
    assert answers["chosen"].tolist() == [model.bins[b] for b in durations.choose(rows)]
    assert answers["duration_s"].tolist() == durations.predict_duration_s(rows).tolist()


@pytest.mark.parametrize("name", ["will-jobs-arrive", "new-load", "job-duration"])
def test_what_comes_after_the_instant_changes_nothing(saved, small_trace, at_s, name):
    model, later_s = served(saved[name]), float(small_trace.submit_s[-1])
    whole, then = events_of(small_trace, later_s), events_of(small_trace, at_s)
    pd.testing.assert_frame_equal(model.predict(whole, {"at": at_s}), model.predict(then, {"at": at_s}))


def test_the_last_event_is_the_instant_where_none_is_named(saved):
    model = served(saved["will-jobs-arrive"])
    pd.testing.assert_frame_equal(model.predict(model.example()), model.predict(model.example(), {"at": 7200.0}))


def test_the_example_shows_what_is_known(saved):
    model = served(saved["job-duration"])
    assert model.predict(model.example())["job_id"].tolist() == ["2", "4"]
    told = model.predict(model.example(), {"at": 6700.0})  # job 3 ended at 6660, and the accounting shows it at 6720
    assert told["job_id"].tolist() == ["2", "3"]


def test_bad_events_are_named(saved):
    model = served(saved["new-load"])
    with pytest.raises(RegistryError, match="new-load knows the horizons 5min, 60min, not 30min"):
        model.predict(model.example(), {"horizons": [30.0]})
    refused(TraceError, "events: columns gpus missing", model.predict, model.example().drop(columns="gpus"))
    refused(TraceError, "events: no jobs", model.predict, model.example().iloc[:0])
    with pytest.raises(TraceError, match="no job on GPUs was submitted by -1 s; choose a later `at`"):
        model.predict(model.example(), {"at": -1.0})


def test_mlflow_takes_the_instant_and_tables_without_what_is_optional(registry, monkeypatch):
    import mlflow.pyfunc

    monkeypatch.setenv("MLFLOW_TRACKING_URI", database_uri(database_file(registry.home)))
    register_scheme()
    model = mlflow.pyfunc.load_model("models:/will-jobs-arrive@champion")
    direct = served(registry.folder(registry.resolve("will-jobs-arrive")) / "data" / "will-jobs-arrive")
    table = direct.example().drop(columns=["user", "tag", "known_time"])
    answers = model.predict(table, params={"at": 5000.0, "horizons": [60.0]})
    expected = direct.predict(table, {"at": 5000.0, "horizons": [60.0]})
    pd.testing.assert_frame_equal(answers, expected)
