"""Reading the tables ourselves must say what MLflow says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.artifacts import JobcastArtifactRepository
from jobcast.models.registry.home import database_file, database_uri
from jobcast.models.registry.mlflow_door import mlflow_errors

READS = """
import sys
from pathlib import Path
from jobcast.models.registry import open_registry
registry = open_registry(Path(sys.argv[1]))
registry.list(), registry.show("new-load")
for name in ("new-load", "will-jobs-arrive"):
    registry.load(registry.resolve(name))
print(sorted(name for name in sys.modules if name in ("mlflow", "sqlalchemy", "xgboost", "matplotlib")))
"""


def test_the_answers_are_mlflows(registry, variant, card):
    registry.register(variant("new-load", 4), card(seed=4, description="wider"))
    registry.promote("new-load", 2)
    uri = database_uri(database_file(registry.home))
    client = MlflowClient(tracking_uri=uri, registry_uri=uri)
    names = sorted(model.name for model in client.search_registered_models())
    assert sorted({version.name for version in registry.list()}) == names
    for name in names:
        ours, theirs = registry.show(name), client.get_registered_model(name)
        assert (ours.name, dict(ours.aliases), dict(ours.tags)) == (theirs.name, theirs.aliases, theirs.tags)
        for version in ours.versions:
            their = client.get_model_version(name, str(version.version))
            assert list(version.aliases) == sorted(their.aliases)
            assert (version.run_id, dict(version.tags)) == (their.run_id, their.tags)
            assert version.created_s == their.creation_timestamp / 1000
            assert version.location == client.get_model_version_download_uri(name, str(version.version))
            run = client.get_run(version.run_id)
            ours_of_run = registry.store.run(version.run_id)
            assert ours_of_run.metrics == run.data.metrics
            assert ours_of_run.parameters == registry.parameters(version) == run.data.params
            assert ours_of_run.tags == run.data.tags
            assert run.info.status == "FINISHED"


def test_a_deleted_version_is_gone(registry, variant, card):
    registry.register(variant("new-load", 4), card(seed=4))
    uri = database_uri(database_file(registry.home))
    MlflowClient(tracking_uri=uri, registry_uri=uri).delete_model_version("new-load", "1")
    assert [str(version) for version in registry.list() if version.name == "new-load"] == ["new-load:2"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(28, "No space left on device", "/srv/file"), "/srv/file: no space left on the device"),
        (OSError(28, "No space left on device"), "the store: no space left on the device"),
        (PermissionError(13, "Permission denied", "/srv/file"), "/srv/file: may not be written (Permission denied)"),
    ],
)
def test_what_the_system_refuses_is_one_line(error, line):
    with pytest.raises(RegistryError, match=f"^{re.escape(line)}"), mlflow_errors("the store", None):
        raise error


@pytest.mark.parametrize("told", ["tracking_uri", "registry_uri"])
def test_artifacts_lie_beside_the_database_that_is_named(told):
    repository = JobcastArtifactRepository("jobcast:/artifacts/a", **{told: "sqlite:////srv/mlruns/mlflow.db"})
    assert repository.artifact_dir == "/srv/mlruns/artifacts/a"


def test_reading_imports_no_mlflow(registry):
    done = subprocess.run(
        [sys.executable, "-c", READS, str(registry.home)], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout.strip() == "[]"


def test_only_the_draft_of_a_new_database_does_without_the_disk(tmp_path, monkeypatch, create_database):
    from mlflow.store.db import utils
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import Pool

    unguarded = set()

    def watch(connection, record):
        file = connection.execute("PRAGMA database_list").fetchone()[2]
        connection.set_trace_callback(lambda said: "synchronous" in said and unguarded.add(Path(file).name))

    def meanwhile(*_args, **_kwargs):
        create_engine(f"sqlite:///{tmp_path}/other.db").connect().close()
        raise KeyboardInterrupt

    monkeypatch.setattr(utils, "_upgrade_db", meanwhile)
    event.listen(Pool, "connect", watch)
    try:
        with pytest.raises(KeyboardInterrupt):
            create_database(tmp_path / "mlruns" / "mlflow.db")
    finally:
        event.remove(Pool, "connect", watch)
    assert unguarded == {"mlflow.db"}
