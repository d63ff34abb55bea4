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


def test_the_variable_wins(tmp_path):
    (tmp_path / "dvc.yaml").touch()
    assert find_home(tmp_path, {"JOBCAST_HOME": str(tmp_path / "other")}) == tmp_path / "other"
    assert find_home(tmp_path, {"JOBCAST_HOME": "~/jobs"}) == Path.home() / "jobs"


def test_the_nearest_project_above(tmp_path, monkeypatch):
    inner = tmp_path / "project" / "inner"
    deep = inner / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "project" / "dvc.yaml").touch()
    assert find_home(deep, {}) == tmp_path / "project"
    (inner / "dvc.yaml").touch()
    assert find_home(deep, {}) == inner
    assert find_home(inner, {}) == inner
    monkeypatch.chdir(deep)
    monkeypatch.delenv("JOBCAST_HOME", raising=False)
    assert find_home() == inner


def test_a_folder_of_that_name_marks_no_project(tmp_path):
    (tmp_path / "dvc.yaml").mkdir()
    assert find_home(tmp_path, {"XDG_DATA_HOME": "/data"}, platform="linux") == Path("/data/jobcast")


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
    with pytest.raises(RegistryError, match="not an artifact of a jobcast store"):
        artifact_folder(Path("/srv"), uri)


def test_artifacts_that_clients_share_lie_in_the_folder_that_is_named():
    uri = "jobcast:/artifacts/new-load/models/m-1"
    assert shared_artifact_folder(uri, {"JOBCAST_ARTIFACTS": "/share"}) == Path("/share/new-load/models/m-1")
    assert shared_artifact_folder(uri, {}) == find_home() / "mlruns/artifacts/new-load/models/m-1"
