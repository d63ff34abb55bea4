"""Reading the store without MLflow: importing it takes seconds of CPU, and looking up a version takes none.

Reads the tables of MLflow's registry as they are; a test holds the answers against `MlflowClient`'s.
Whatever is written goes through MLflow (see `writer`).
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import ModelVersion, RegisteredModel
from jobcast.models.registry.home import database_file
from jobcast.traces.files import disk_trouble, unwritable

MS_PER_S = 1000.0
BUSY_TIMEOUT_S = 30.0  # another process may be writing a version
LIVE = "status = 'READY' AND current_stage != 'Deleted_Internal'"
"""What is left of the versions without half-made and deleted ones, whose rows MLflow keeps."""


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run that is marked as running.

    Attributes
    ----------
    run_id : its id
    began_s : seconds from the epoch
    owner : the process that writes it, as text; empty where nobody said
    aliases : that its version is to get
    name, version : of the version that it made; None where it made none
    """

    run_id: str
    began_s: float
    owner: str
    aliases: tuple[str, ...]
    name: str | None
    version: int | None


class StoreDatabase:
    """The registry's tables, read-only. A home without a store reads as an empty registry."""

    def __init__(self, home: Path) -> None:
        self.file = database_file(home)

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

    def metrics(self, run_id: str) -> dict[str, float]:
        """Scores of a run by name."""
        with self._open() as rows:
            found = rows("SELECT key, value FROM latest_metrics WHERE run_uuid = ? AND NOT is_nan ORDER BY key", run_id)
            return dict(found)

    def parameters(self, run_id: str) -> dict[str, str]:
        """Parameters of a run by name, as text."""
        with self._open() as rows:
            return dict(rows("SELECT key, value FROM params WHERE run_uuid = ? ORDER BY key", run_id))

    def unfinished_runs(self, owner_tag: str, aliases_tag: str) -> list["UnfinishedRun"]:
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
                UnfinishedRun(run_id, began_ms / MS_PER_S, owner, tuple(filter(None, aliases.split(","))), *made)
                for run_id, began_ms, owner, aliases, *made in rows(query, owner_tag, aliases_tag)
            ]

    def models_without_version(self, run_id: str) -> list[tuple[str, str]]:
        """Id and location of the models that a run logged and that no version is made of."""
        query = (
            "SELECT model_id, artifact_location FROM logged_models WHERE source_run_id = ?"
            " AND lifecycle_stage = 'active' AND artifact_location NOT IN (SELECT source FROM model_versions)"
        )
        with self._open() as rows:
            return list(rows(query, run_id))

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
