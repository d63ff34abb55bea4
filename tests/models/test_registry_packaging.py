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
from jobcast.domain.errors import RegistryError
from jobcast.models.pyfunc import served
from jobcast.models.registry.artifacts import register_scheme
from jobcast.models.registry.home import database_file, database_uri

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


def test_rows_of_several_horizons_in_any_order(saved, predictors):
    arrivals = predictors["will-jobs-arrive"]
    X = np.random.default_rng(1).uniform(0, 4, (6, 2, len(arrivals.feature_names_)))
    expected = arrivals.predict_proba(X)
    order = np.random.default_rng(2).permutation(12)
    table = pd.DataFrame(X.reshape(12, -1), columns=arrivals.feature_names_).assign(horizon_min=[5.0, 60.0] * 6)
    answers = served(saved["will-jobs-arrive"]).predict(table.iloc[order])
    assert answers["probability"].to_numpy() == pytest.approx(expected.ravel()[order], abs=0)
    gates = np.tile(arrivals.thresholds_gate_, 6)[order]
    assert (answers["will_arrive"] == (answers["probability"] >= gates)).all()
    assert list(answers.index) == list(order)


def test_an_unknown_horizon_is_named(saved):
    model = served(saved["new-load"])
    with pytest.raises(RegistryError, match="new-load knows the horizons 5min, 60min, not 30min"):
        model.predict(model.example().assign(horizon_min=30.0))


def test_loads_beyond_the_models_windows_do_not_count(saved, predictors):
    model, windows = served(saved["new-load"]), predictors["new-load"].rule_.windows_
    table = model.example().iloc[[0, 0]].assign(horizon_min=[5.0, 60.0])
    loads = np.arange(1.0, len(model.columns) + 1)  # rises with age
    table[model.columns] = loads
    assert model.predict(table)["load_gpus"].tolist() == [float(windows[0]), float(windows[1])]


def test_rows_of_jobs_become_probabilities(saved, predictors, small_trace):
    model, durations = served(saved["job-duration"]), predictors["job-duration"]
    rows = durations.rows(small_trace)[-40:]
    answers = model.predict(pd.DataFrame(rows, columns=durations.columns)[::-1])
    assert answers[model.bins].to_numpy() == pytest.approx(durations.predict_proba(rows)[::-1], abs=0)
    assert answers["bin"].tolist() == [model.bins[b] for b in durations.predict(rows)[::-1]]
    assert answers["chosen"].tolist() == [model.bins[b] for b in durations.choose(rows)[::-1]]
    assert answers["duration_s"].tolist() == durations.predict_duration_s(rows)[::-1].tolist()
    assert len(np.unique(answers[model.bins].to_numpy())) > 40
