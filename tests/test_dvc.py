"""The pipeline through DVC, for real, on a small trace: what a user of `make repro` relies on."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import jobcast
from jobcast.pipelines.stages.config import LEARNED, SCHEDULERS, Learn, Params, Schedule

ROOT = Path(jobcast.__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dvc")]  # what they share is made once
AUTHOR = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
ROOMS = ("domain", "traces", "features", "models", "simulator", "schedulers", "live", "pipelines")
SMALL = {
    "prepare": {"trace": "campus", "settings": {"weeks": 2, "jobs": 2400, "pools": 3}, "train_share": 0.7},
    "enrich": {"train_jobs": 60, "test_jobs": 20},
    "learn": {name: {"algorithms": []} for name in Learn.model_fields if name != "epoch_time"},
    "schedule": {name: {"algorithms": []} for name in Schedule.model_fields},
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
    run(["git", "add", "-A"], folder)
    run(["git", *AUTHOR, "commit", "-q", "-m", "run"], folder)
    return folder


def stages_run(folder: Path, *targets: str) -> list[str]:
    """Stages that `dvc repro` had to run."""
    return re.findall(r"Running stage '(\S+)'", run(["dvc", "repro", *targets], folder))


def versions(folder: Path) -> dict[str, list[str]]:
    """Aliases by version, as a checkout's registry lists them."""
    listed = json.loads(run([sys.executable, "-m", "jobcast", "models", "list", "--json", "-"], folder))
    return {f"{one['name']}:{one['version']} {one['algorithm']}": sorted(one["aliases"]) for one in listed["models"]}


def metrics(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "processed/metrics").iterdir())}


def test_a_second_repro_runs_nothing(project):
    assert "Data and pipelines are up to date." in run(["dvc", "repro"], project)


def test_a_clone_that_pulls_runs_no_stage_and_its_registry_is_restored(project, tmp_path):
    run(["dvc", "remote", "add", "-q", "-f", "folder", str(tmp_path / "remote")], project)
    run(["dvc", "push", "-q", "-r", "folder"], project)
    clone = tmp_path / "clone"
    run(["git", "clone", "-q", str(project), str(clone)], tmp_path)
    run(["dvc", "remote", "add", "-q", "-d", "folder", str(tmp_path / "remote")], clone)
    run(["dvc", "pull", "-q"], clone)
    assert stages_run(clone) == []
    assert versions(clone) == {}
    restore = [sys.executable, "-m", "jobcast", "models", "restore", "--json", "-"]
    told = json.loads(run(restore, clone))
    assert (len(told["restored"]), len(told["known"])) == (len(versions(project)), 0)
    assert versions(clone) == versions(project)
    again = json.loads(run(restore, clone))
    assert (again["restored"], again["champions"]) == ([], [])
    assert sorted(again["known"]) == sorted(told["restored"])
    shutil.rmtree(clone / "mlruns")  # a stage that asks for the versions registers what was pulled
    run(["dvc", "repro", "-q", "-f", "-s", "backtest"], clone)
    assert stages_run(clone) == []
    assert versions(clone)


def test_a_parameter_there_and_back_runs_nothing_the_second_time(project):
    before = (project / "dvc.lock").read_bytes()
    params = project / "params.yaml"
    text = params.read_text(encoding="utf-8")
    told = yaml.safe_load(text)
    told["train"]["new_load"]["algorithms"] = ["quantile"]
    params.write_text(yaml.safe_dump(told), encoding="utf-8")
    ran = stages_run(project)
    assert "train@new-load" in ran
    assert not {"prepare", "featurize", "train@will-jobs-arrive", "train@job-duration", "enrich"} & set(ran)
    assert len(run(["dvc", "metrics", "diff"], project).splitlines()) <= 40
    params.write_text(text, encoding="utf-8")
    assert stages_run(project) == []
    assert (project / "dvc.lock").read_bytes() == before


def test_metrics_and_plots_are_shown(project):
    shown = json.loads(run(["dvc", "metrics", "show", "--json"], project))
    files = shown[""]["data"]
    own = [f"{name}.json" for name in (*LEARNED, *SCHEDULERS)]
    assert sorted(Path(name).name for name in files) == sorted(["evaluate.json", "backtest.json", *own])
    assert set(files["data/processed/metrics/epoch-time.json"]["data"]) == {"mape", "skill", "coverage_90", "andreas"}
    told = files["data/processed/metrics/backtest.json"]["data"]
    assert {policy: set(of) for policy, of in told.items()} == {"sia": {"speedup_gmean", "slowed_pct"}}
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
