import os
import sys
from pathlib import Path

import pytest

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.home import (
    artifact_folder,
    find_home,
    home_of_database,
    shared_artifact_folder,
    user_data_home,
)
from tests.shared import refused


def test_the_variable_wins(tmp_path, monkeypatch):
    (tmp_path / "dvc.yaml").touch()
    monkeypatch.chdir(tmp_path)
    for told, home in ((str(tmp_path / "other"), tmp_path / "other"), ("~/jobs", Path.home() / "jobs")):
        monkeypatch.setenv("JOBCAST_HOME", told)
        assert find_home() == home


def test_the_nearest_project_above(tmp_path, monkeypatch):
    inner = tmp_path / "project" / "inner"
    deep = inner / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "project" / "dvc.yaml").touch()
    monkeypatch.delenv("JOBCAST_HOME", raising=False)
    monkeypatch.chdir(deep)
    assert find_home() == tmp_path / "project"
    (inner / "dvc.yaml").touch()
    assert find_home() == inner
    monkeypatch.chdir(inner)
    assert find_home() == inner


def test_a_folder_of_that_name_marks_no_project(tmp_path, monkeypatch):
    (tmp_path / "dvc.yaml").mkdir()
    monkeypatch.delenv("JOBCAST_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert find_home() == user_data_home(os.environ, sys.platform)


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, Path.home() / ".local/share/jobcast"),
        ("linux", {"XDG_DATA_HOME": "/data"}, Path("/data/jobcast")),
        ("darwin", {}, Path.home() / "Library/Application Support/jobcast"),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local/jobcast")),
        ("win32", {}, Path.home() / "AppData/Local/jobcast"),
    ],
)
def test_the_users_own_place(platform, environ, expected):
    assert user_data_home(environ, platform) == expected


@pytest.mark.parametrize("uri", [None, "sqlite:////srv/mlruns/other.db", "mysql:////srv/mlruns/mlflow.db"])
def test_other_databases_belong_to_no_home(uri):
    assert home_of_database(uri) is None


@pytest.mark.parametrize("uri", ["file:/artifacts/a", "jobcast:/other/a", "jobcast:/artifacts/../a", "jobcast:/"])
def test_artifacts_lie_in_the_store(uri):
    refused(RegistryError, "not an artifact of a jobcast store", artifact_folder, Path("/srv"), uri)


def test_artifacts_that_clients_share_lie_in_the_folder_that_is_named(monkeypatch):
    uri = "jobcast:/artifacts/new-load/models/m-1"
    monkeypatch.setenv("JOBCAST_ARTIFACTS", "/share")
    assert shared_artifact_folder(uri) == Path("/share/new-load/models/m-1")
    monkeypatch.delenv("JOBCAST_ARTIFACTS")
    assert shared_artifact_folder(uri) == find_home() / "mlruns/artifacts/new-load/models/m-1"
