"""The pipeline through DVC, for real, on a small trace: what a user of `make repro` relies on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import jobcast
from jobcast.pipelines.config import Params

ROOT = Path(jobcast.__file__).parents[2]
ROOMS = ("domain", "traces", "features", "models", "simulator", "schedulers", "pipelines")
SMALL = {
    "prepare": {"trace": "campus", "settings": {"weeks": 2, "jobs": 2400, "pools": 3}, "train_share": 0.7},
    "backtest": {"seeds": 1, "draws": 100},
}


def run(command: list[str], folder: Path, home: Path | None = None) -> str:
    """Output of a command that must succeed, in a folder, without the caller's settings."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("JOBCAST_")}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    if home is not None:
        env["JOBCAST_HOME"] = str(home)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A checkout in which `dvc repro` has run once."""
    pytest.importorskip("dvc")
    folder = tmp_path_factory.mktemp("dvc") / "project"
    folder.mkdir()
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("dvc.yaml", ".dvcignore", ".gitignore"):
        shutil.copy(ROOT / file, folder / file)
    (folder / "params.yaml").write_text(yaml.safe_dump(Params.model_validate(SMALL).model_dump(mode="json")))
    run(["git", "init", "-q"], folder)
    run(["dvc", "init", "-q"], folder)
    run(["dvc", "config", "core.analytics", "false"], folder)
    run(["dvc", "repro", "-q"], folder)
    return folder


def metrics(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "processed/metrics").iterdir())}


def test_a_second_repro_runs_nothing(project):
    assert "Data and pipelines are up to date." in run(["dvc", "repro"], project)


def test_metrics_and_plots_are_shown(project):
    shown = json.loads(run(["dvc", "metrics", "show", "--json"], project))
    files = shown[""]["data"]
    assert {Path(name).name for name in files} == {
        "train-will-jobs-arrive.json",
        "train-new-load.json",
        "train-job-duration.json",
        "evaluate.json",
        "backtest.json",
    }
    told = files["data/processed/metrics/backtest.json"]["data"]
    assert told["fcfs"]["speedup_gmean"] == 1.0
    assert told["sia oracle"]["slowed_pct"] == 0.0
    run(["dvc", "plots", "show", "-o", "plots"], project)
    page = (project / "plots/index.html").read_text(encoding="utf-8")
    assert "precision against recall" in page
    assert "Speedup over fcfs" in page


def test_the_same_stages_without_dvc_give_the_same_metrics_byte_for_byte(project, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "jobcast", "run", "--out", str(out), "--params", str(project / "params.yaml")]
    printed = run(command, tmp_path, tmp_path / "home")
    assert metrics(out) == metrics(project / "data")
    assert "sia" in printed
    assert str(out / "processed/report.html") in printed


def test_a_moved_checkout_still_answers(project, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(project, moved, symlinks=True)
    away = project.with_name("away")
    project.rename(away)  # whatever still pointed at the old place would fail now
    try:
        listed = json.loads(run([sys.executable, "-m", "jobcast", "models", "list", "--json", "-"], moved))
        assert {(one["name"], alias) for one in listed["models"] for alias in one["aliases"]} >= {
            ("will-jobs-arrive", "champion"),
            ("new-load", "champion"),
            ("new-load", "challenger"),
        }
        command = [sys.executable, "-m", "jobcast", "predict", "will-jobs-arrive", "--at", "2024-01-12T12:00:00Z"]
        said = run([*command, "--trace", "data/raw/jobs.parquet", "--json", "-"], moved)
        assert len(json.loads(said)["pools"]) == 3
    finally:
        away.rename(project)
