"""The home's own store, read without MLflow: importing it takes seconds of CPU, and looking up a version takes none.

Reads the tables of MLflow's registry as they are; a test holds the answers against `MlflowClient`'s.
Whatever is written goes through MLflow (see `writer`).
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import ModelVersion, RegisteredModel
from jobcast.models.registry.home import (
    ARTIFACT_ROOT,
    artifact_folder,
    database_file,
    database_uri,
    store_folder,
)
from jobcast.models.registry.store import ALIASES_TAG, MS_PER_S, OWNER_TAG, RunRecord, Stale, UnfinishedRun
from jobcast.traces.files import disk_trouble, flush, flush_one, unwritable
from jobcast.traces.owners import sweep_drafts

if TYPE_CHECKING:
    from mlflow import MlflowClient

BUSY_TIMEOUT_S = 30.0  # another process may be writing a version
LIVE = "status = 'READY' AND current_stage != 'Deleted_Internal'"
"""What is left of the versions without half-made and deleted ones, whose rows MLflow keeps."""


class SqliteStore:
    """A `Store` under a home; without a database there it reads as an empty registry.

    Parameters
    ----------
    home : folder that holds `mlruns/`
    """

    stale: Stale | None = None

    def __init__(self, home: Path) -> None:
        self.home, self.file = home, database_file(home)
        self.place = str(store_folder(home))

    @property
    def is_made(self) -> bool:  # noqa: D102
        return store_folder(self.home).is_dir()

    def names(self) -> list[str]:
        """Names of the registered models that have a version, ascending."""
        query = f"SELECT DISTINCT name FROM model_versions WHERE {LIVE} ORDER BY name"
        with self._open() as rows:
            return [name for (name,) in rows(query)]

    def model(self, name: str) -> RegisteredModel | None:
        """A model with all its versions, newest first; None where there is no version of that name."""
        with self._open() as rows:
            aliases = dict(
                rows("SELECT alias, version FROM registered_model_aliases WHERE name = ? ORDER BY alias", name)
            )
            versions = tuple(self._versions(rows, name, aliases))
            tags = dict(rows("SELECT key, value FROM registered_model_tags WHERE name = ? ORDER BY key", name))
            about = list(rows("SELECT description FROM registered_models WHERE name = ?", name))
        if not versions:
            return None
        return RegisteredModel(name, about[0][0] or "" if about else "", tags, aliases, versions)

    def recalled(self, name: str) -> RegisteredModel | None:  # noqa: D102
        return self.model(name)

    def run(self, run_id: str) -> RunRecord:
        """What a run was logged with; nothing where there is no such run."""
        with self._open() as rows:
            metrics = rows(
                "SELECT key, value FROM latest_metrics WHERE run_uuid = ? AND NOT is_nan ORDER BY key", run_id
            )
            parameters = rows("SELECT key, value FROM params WHERE run_uuid = ? ORDER BY key", run_id)
            tags = rows("SELECT key, value FROM tags WHERE run_uuid = ? ORDER BY key", run_id)
            return RunRecord(dict(metrics), dict(parameters), dict(tags))

    def unfinished_runs(self) -> list[UnfinishedRun]:
        """Runs of jobcast's that are marked as running, oldest first."""
        query = (
            "SELECT runs.run_uuid, start_time, coalesce(owner.value, ''), coalesce(aliases.value, ''), made.name,"
            " made.version FROM runs JOIN tags AS ours ON ours.run_uuid = runs.run_uuid"
            " LEFT JOIN tags AS owner ON owner.run_uuid = runs.run_uuid AND owner.key = ?"
            " LEFT JOIN tags AS aliases ON aliases.run_uuid = runs.run_uuid AND aliases.key = ?"
            f" LEFT JOIN (SELECT * FROM model_versions WHERE {LIVE}) AS made ON made.run_id = runs.run_uuid"
            " WHERE runs.status = 'RUNNING' AND ours.key = 'jobcast_version' ORDER BY start_time"
        )
        with self._open() as rows:
            return [
                UnfinishedRun(
                    run_id,
                    began_ms / MS_PER_S,
                    owner,
                    tuple(filter(None, aliases.split(","))),
                    (name, version) if name else None,
                )
                for run_id, began_ms, owner, aliases, name, version in rows(query, OWNER_TAG, ALIASES_TAG)
            ]

    def models_without_version(self, run_id: str) -> list[tuple[str, str]]:
        """Id and location of the models that a run logged and that no version is made of."""
        query = (
            "SELECT model_id, artifact_location FROM logged_models WHERE source_run_id = ?"
            " AND lifecycle_stage = 'active' AND artifact_location NOT IN (SELECT source FROM model_versions)"
        )
        with self._open() as rows:
            return list(rows(query, run_id))

    def folder(self, version: ModelVersion) -> Path:
        """The folder of a version's MLflow model. Raises RegistryError where it is gone."""
        folder = artifact_folder(self.home, version.location)
        if not folder.is_dir():
            raise RegistryError(f"{version}: its files are missing at {folder}; restore them or train the model again")
        return folder

    def code(self, sha256: str) -> Path:  # noqa: D102
        return store_folder(self.home) / "artifacts" / "code" / f"{sha256}.zip"

    @contextmanager
    def client(self) -> Iterator["MlflowClient"]:
        """A client of the database, which is made where there is none."""
        from jobcast.models.registry.mlflow_door import client_of, create_database, mlflow_errors

        with mlflow_errors(str(self.file), self.explained):
            if not self.file.exists():
                create_database(self.file)
            yield client_of(database_uri(self.file))

    def explained(self, error: Exception, from_database: bool) -> Exception:
        """The error to raise in the place of one of MLflow's or of its database's."""
        why = first_line(error)
        return unreadable(self.file, why) if from_database else RegistryError(f"{self.file}: {why}")

    def share_code(self, client: "MlflowClient", sha256: str, write: Callable[[Path], None]) -> None:
        """Write the archive where there is none yet."""
        if not self.code(sha256).exists():
            write(self.code(sha256))

    def experiment(self, client: "MlflowClient", name: str) -> str:  # noqa: D102
        # Relative location, which a moved home keeps.
        found = client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        return client.create_experiment(name, artifact_location=f"{ARTIFACT_ROOT}/{name}")

    def settle(self, location: str) -> None:
        """Have the disk hold a model's files and the folders that they lie in, before a version names them."""
        model = artifact_folder(self.home, location).parent
        flush(model)
        for folder in (model.parent, model.parent.parent):
            flush_one(folder)

    def discard(self, location: str) -> None:  # noqa: D102
        shutil.rmtree(artifact_folder(self.home, location).parent, ignore_errors=True)

    def sweep_drafts(self) -> int:  # noqa: D102
        return sweep_drafts(store_folder(self.home)) + sweep_drafts(self.code("").parent)

    @staticmethod
    def _versions(rows, name: str, aliases: Mapping[str, int]) -> Iterator[ModelVersion]:  # type: ignore[no-untyped-def]
        tags: dict[int, dict[str, str]] = {}
        for version, key, value in rows(
            "SELECT version, key, value FROM model_version_tags WHERE name = ? ORDER BY key", name
        ):
            tags.setdefault(version, {})[key] = value
        found = rows(
            "SELECT version, run_id, coalesce(storage_location, source), creation_time FROM model_versions"
            f" WHERE name = ? AND {LIVE} ORDER BY version DESC",
            name,
        )
        for version, run_id, location, created_ms in found:
            pointing = tuple(alias for alias, target in aliases.items() if target == version)
            yield ModelVersion(name, version, pointing, run_id, location, created_ms / MS_PER_S, tags.get(version, {}))

    @contextmanager
    def _open(self):  # type: ignore[no-untyped-def]
        """A function that answers one query; RegistryError where the file is no MLflow database.

        Opened for writing though nothing is written: what an interrupted writer left has to be rolled back.
        """
        if not self.file.exists():
            yield lambda query, *values: iter(())
            return
        try:
            connection = sqlite3.connect(f"{self.file.as_uri()}?mode=rw", uri=True, timeout=BUSY_TIMEOUT_S)
            try:
                # One transaction: all queries of an answer see the same state.
                connection.execute("BEGIN")
                yield lambda query, *values: connection.execute(query, values)
            finally:
                connection.close()
        except sqlite3.Error as error:
            if disk_trouble(error):
                raise RegistryError(unwritable(self.file, error)) from error
            raise unreadable(self.file, str(error)) from error


def unreadable(file: Path, reason: str) -> RegistryError:
    """The one line for a store that cannot be opened."""
    return RegistryError(
        f"{file}: cannot be read as jobcast's model store ({reason}); restore it from a copy,"
        " or move the folder that holds it away and train again"
    )


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].removesuffix(".")
