"""What made a run, as far as git and the project's files tell."""

import hashlib
import subprocess
from pathlib import Path

import pytest

import jobcast
from jobcast.models.registry.provenance import provenance

USER = ("-c", "user.name=me", "-c", "user.email=me@example.org")


def git(*words):
    return subprocess.run(["git", *USER, *words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project that DVC knows; the working directory lies below."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    for name in ("dvc.yaml", "dvc.lock"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_the_commit_and_whether_the_files_are_those_of_it(project):
    git("init", "-q", str(project))
    git("-C", str(project), "add", ".")
    git("commit", "-qm", "first")
    found = provenance({"DVC_EXP_NAME": "warm-fir", "DVC_EXP_BASELINE_REV": ""})
    assert found.pop("mlflow.user", "me")
    commit = git("rev-parse", "HEAD")
    assert found == {
        "mlflow.source.name": "jobcast",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": commit,
        "git_commit": commit,
        "git_dirty": "false",
        "dvc_rev": hashlib.sha256(b"dvc.lock").hexdigest(),
        "dvc_experiment": "warm-fir",
    }
    (project / "new").touch()  # which git does not know
    assert provenance({})["git_dirty"] == "false"
    (project / "dvc.lock").write_text("changed")
    assert provenance({})["git_dirty"] == "true"


def test_without_git_nothing_is_told_of_it(project, capfd):
    assert not any("git" in tag for tag in provenance({}))
    assert capfd.readouterr() == ("", "")


def test_elsewhere_the_package_s_own_project_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = Path(jobcast.__file__).resolve().parents[2] / "params.yaml"
    assert provenance({})["params_sha256"] == hashlib.sha256(own.read_bytes()).hexdigest()
