"""What a registry keeps its versions in: the home's own sqlite database, or a server or database elsewhere."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jobcast.models.registry.cards import ModelVersion, RegisteredModel

if TYPE_CHECKING:
    from mlflow import MlflowClient

MS_PER_S = 1000.0  # MLflow's instants are milliseconds
OWNER_TAG = "jobcast.owner"
"""Tag of a run: the process that writes it."""
ALIASES_TAG = "jobcast.aliases"
"""Tag of a run: aliases that its version is to get, between commas."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a run was logged with.

    Attributes
    ----------
    metrics : scores by name
    parameters, tags : text by name
    """

    metrics: Mapping[str, float]
    parameters: Mapping[str, str]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run that is marked as running.

    Attributes
    ----------
    run_id : its id
    began_s : seconds from the epoch
    owner : the process that writes it, as text; empty where nobody said
    aliases : that its version is to get
    made : name and number of its version; None where it made none
    """

    run_id: str
    began_s: float
    owner: str
    aliases: tuple[str, ...]
    made: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Stale:
    """Answers of a registry that cannot be reached: what was last seen of it.

    Attributes
    ----------
    seen_s : when, seconds from the epoch; of several answers the oldest
    why : it cannot be reached
    """

    seen_s: float
    why: str


class Store(Protocol):
    """Reads, and what writing through MLflow's client needs beside it.

    Every method raises RegistryError for a store that cannot be used.

    Attributes
    ----------
    home : folder of what is kept here: all of it, or copies
    place : the store as messages name it, without a password
    stale : what answers rest on while the store cannot be reached; None = they are its own
    """

    home: Path
    place: str
    stale: Stale | None

    @property
    def is_made(self) -> bool:
        """Whether anything may ever have been written to it."""

    def names(self) -> list[str]:
        """Names of the registered models that have a version, ascending."""

    def model(self, name: str) -> RegisteredModel | None:
        """A model with all its versions, newest first; None where there is no version of that name."""

    def recalled(self, name: str) -> RegisteredModel | None:
        """A model as it is known here without asking elsewhere; versions that it has never change."""

    def run(self, run_id: str) -> RunRecord:
        """What a finished run was logged with."""

    def folder(self, version: ModelVersion) -> Path:
        """The folder of a version's MLflow model, here."""

    def code(self, sha256: str) -> Path:
        """The archive of a state of the code, here; it need not be there."""

    def client(self) -> "AbstractContextManager[MlflowClient]":
        """A client to write by; what goes wrong meanwhile is told in one line."""

    def share_code(self, client: "MlflowClient", sha256: str, write: Callable[[Path], None]) -> None:
        """Have the archive of a state of the code, which `write` makes, be where others find it."""

    def experiment(self, client: "MlflowClient", name: str) -> str:
        """Id of the experiment of a name, which is made where there is none."""

    def settle(self, location: str) -> None:
        """Have what was just logged outlive a machine that loses power."""

    def discard(self, location: str) -> None:
        """Remove a model's files."""

    def unfinished_runs(self) -> list[UnfinishedRun]:
        """Runs of jobcast's that are marked as running, oldest first."""

    def models_without_version(self, run_id: str) -> list[tuple[str, str]]:
        """Id and location of the models that a run logged and that no version is made of."""

    def sweep_drafts(self) -> int:
        """Remove half-written files that dead processes left here; how many there were."""
