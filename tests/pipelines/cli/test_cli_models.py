"""`jobcast train` and `jobcast models`: versions, aliases, and what is told of them."""

import json
from pathlib import Path

import polars as pl
import pytest

import jobcast
from jobcast.models.new_load import NewLoad
from jobcast.models.registry import load_exported, open_registry


@pytest.fixture
def train(run):
    """Words that train new-load in a moment."""
    return ("train", "new-load", "--trace", run.trace, "--until", run.trained_until, "--min-jobs", 50)


def champion(shell, name="new-load"):
    return open_registry(shell.home).resolve(name).version


def test_training_tells_what_was_registered(shell, run, store, train):
    set_up = ("--horizons", "5,60", "--coverage", 0.9, "--algorithm", "sliding-max")
    told = shell.json(*train, "--seed", 4, *set_up)
    assert set(told) == {
        "predictor", "version", "aliases", "run_id", "algorithm", "seed", "training", "validation", "inputs", "notes",
        "home", "jobcast", "new", "command", "weak_validation",
    }  # fmt: skip
    assert (told["predictor"], told["version"], told["aliases"]) == ("new-load", 2, ["challenger"])
    assert (told["algorithm"], told["seed"], told["jobcast"]) == ("sliding-max", 4, jobcast.__version__)
    assert told["training"]["train_until"] == run.trained_until
    assert told["training"]["pool_names"] == ["production-1", "research-1", "wide-1"]
    assert told["training"]["coverage"] == 0.9
    assert set(told["validation"]["horizons"]) == {"5min", "60min"}
    assert told["inputs"]["trace"]["path"] == str(run.trace)
    assert shell.json("models", "show", "new-load:2")["run_id"] == told["run_id"]
    assert champion(shell) == 1
    # A trace that ends where training ends gives the same model: nothing at or after that instant is read.
    until = pl.lit(run.trained_until).str.to_datetime(time_zone="UTC")
    pl.read_parquet(run.trace).filter(pl.col("submit_time") < until).write_parquet("early.parquet")
    early = shell.json("train", "new-load", "--trace", "early.parquet", *train[4:], *set_up, "--seed", 9)
    assert told["inputs"]["trace"]["sha256"] != early["inputs"]["trace"]["sha256"]
    assert (early["version"], early["new"]) == (2, False)


def test_the_first_version_of_a_name_is_champion_and_challenger(shell, tmp_path, train):
    shell.home = tmp_path / "new home"
    told = shell.json(*train)
    assert (told["version"], told["aliases"], told["home"]) == (1, ["challenger", "champion"], str(shell.home))
    assert told["gated"] is False


def test_the_same_data_give_the_same_model(shell, run, store):
    words = ("train", "job-duration", "--trace", run.trace, "--until", run.trained_until, "--min-jobs", 50)
    set_up = ("--horizons", "60", "--algorithm", "lightgbm")
    first = shell.json(*words, *set_up)
    told = shell.works(*words, *set_up, "--json", "again.json").out
    assert "the same model was registered before" in told
    second = json.loads(Path("again.json").read_text())
    assert [(told["version"], told["new"]) for told in (first, second)] == [(2, True), (2, False)]


def test_the_list_has_a_row_a_version(shell, run):
    told = shell.json("models", "list")["models"]
    assert [(one["name"], one["version"], one["aliases"]) for one in told] == [
        ("job-duration", 1, ["challenger", "champion"]),
        ("new-load", 1, ["challenger", "champion"]),
        ("will-jobs-arrive", 1, ["challenger", "champion"]),
    ]
    assert {one["trained_until"] for one in told} == {run.trained_until}
    lines = shell.works("models", "list").out.splitlines()
    assert lines[0].split() == ["model", "version", "aliases", "algorithm", "trace", "trained", "until"]
    assert [line.split()[0] for line in lines[1:]] == ["job-duration", "new-load", "will-jobs-arrive"]


def test_a_version_is_shown_with_parameters_and_metrics(shell):
    told = shell.json("models", "show", "new-load")
    assert {"name", "version", "aliases", "run_id", "content_sha256", "parameters", "metrics"} <= set(told)
    assert told["parameters"]["algorithm"] == "sliding-max"
    assert told["metrics"]["validation/horizons/5min/coverage"] <= 1
    out = shell.works("models", "show", "new-load@champion").out
    assert "new-load" in out
    assert "sliding-max" in out


def test_an_export_loads_without_a_database(shell, tmp_path):
    assert shell.works("models", "export", "new-load@champion", "deep/exported").out == ("new-load 1: deep/exported\n")
    assert isinstance(load_exported(tmp_path / "deep/exported"), NewLoad)
    card = json.loads(Path("deep/exported/jobcast.json").read_text())
    assert (card["name"], card["version"]) == ("new-load", 1)
    assert "exists already" in shell.refuses("models", "export", "new-load", "deep/exported")
    assert [path.name for path in Path("deep").iterdir()] == ["exported"]


def test_the_home_is_the_nearest_project_when_the_variable_is_not_set(shell, run, tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / "deep/er").mkdir(parents=True)
    (project / "dvc.yaml").write_text("stages: {}\n")
    (project / "mlruns").symlink_to(run.home / "mlruns")
    monkeypatch.chdir(project / "deep/er")
    shell.home = ""
    assert len(shell.json("models", "list")["models"]) == 3
