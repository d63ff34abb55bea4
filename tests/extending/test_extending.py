"""What it takes to add a policy, a predictor, a reader and an option: four patches, each applied to a copy and used."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ROOMS = ("domain", "traces", "features", "models", "simulator", "schedulers", "pipelines", "src")
LOG = (
    "job_id,cards,state,submit_time,start_time,end_time,duration\n"
    "a,2,COMPLETED,2023-03-01 10:00:00+00:00,2023-03-01 10:00:05+00:00,2023-03-01 10:10:05+00:00,600\n"
)
PREDICT = """
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.testing import check_predictor
check_predictor(lambda: find_predictor("steady-arrivals"), range(1))
print("keeps to the rules")
"""
READ = ["-m", "jobcast", "trace", "convert", "site-log", "log_site.csv", "--out", "jobs.csv"]
CASES = {
    "policy": (1, ["-m", "jobcast", "policies", "widest"], "widest"),
    "predictor": (2, ["-c", PREDICT], "keeps to the rules"),
    "reader": (1, READ, "1 of 1 rows"),
    "option": (3, ["-m", "jobcast", "policies", "--kind", "energy"], "andreas"),
}
"""Files of code that may be touched, what is run, and what it says."""

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("thing", CASES)
def test_a_patch_adds_it_in_few_files(thing, tmp_path):
    most, words, said = CASES[thing]
    # What is compiled comes along, which takes longest to make, but not what somebody else is just writing of it.
    written = shutil.ignore_patterns("*.tmp.*", "*.pyc.*")
    for name in ROOMS:
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=written)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "log_site.csv").write_text(LOG)
    patch = HERE / f"{thing}.patch"
    rows = git(tmp_path, "apply", "--numstat", patch).splitlines()
    assert 1 <= sum(row.endswith(".py") for row in rows) <= most
    assert run(tmp_path, words).returncode != 0
    git(tmp_path, "apply", patch)
    install(tmp_path)
    done = run(tmp_path, words)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout + done.stderr


def git(folder, *words):
    """What git says; outside any repository, so that paths are the folder's."""
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


def install(folder):
    """Entry points as pip would write them of the copy's pyproject.toml."""
    groups = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"]
    told = folder / "src" / "jobcast-0.1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: jobcast\nVersion: 0.1.0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items()) for group, rows in groups.items()]
    (told / "entry_points.txt").write_text("\n".join(lines))


def run(folder, words):
    """Run Python on the copy."""
    env = {**os.environ, "PYTHONPATH": str(folder / "src"), "JOBCAST_HOME": str(folder / "home")}
    return subprocess.run([sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True)
