"""A registry elsewhere: MLflow's tracking server by http(s), or a PostgreSQL database.

What never changes is copied here when it is first read: a version's files, a finished run. What does, the versions and
aliases of a model, is asked for each time and remembered, so that a registry that cannot be reached answers with what
was last seen of it.
"""

import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from uuid import NAMESPACE_URL, uuid5

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import ModelVersion, RegisteredModel
from jobcast.models.registry.folders import checked_card
from jobcast.models.registry.home import (
    ARTIFACT_ROOT,
    ARTIFACTS_VARIABLE,
    SCHEME,
    Address,
    redacted,
    shared_artifact_folder,
    store_folder,
)
from jobcast.models.registry.sqlite_store import first_line
from jobcast.models.registry.store import ALIASES_TAG, MS_PER_S, OWNER_TAG, RunRecord, Stale, UnfinishedRun
from jobcast.traces.files import flush, replacing
from jobcast.traces.owners import scratch_room, sweep_drafts_below

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run
    from mlflow.entities.model_registry import ModelVersion as MlflowVersion

PATIENCE_S = 5.0  # for a connection
RETRY_S = 30.0  # who did not answer is not asked again for so long
PORTS = {"http": 80, "https": 443, "postgresql": 5432, "postgres": 5432}
DRIVER = "postgresql+psycopg"  # SQLAlchemy 2.1's own choice for postgresql://, named for versions before
CODE_EXPERIMENT = "jobcast-code"
CODE_TAG = "code_sha256"
REFUSED = ("authentication failed", "does not exist", "permission denied", "pg_hba.conf", "no password supplied")
"""Words of a database that is there and refuses."""
LOCAL_SCHEMES = ("", "file")
LOGGER = logging.getLogger("jobcast.registry")


class UnreachableError(RegistryError):
    """Nobody answers where the registry should be."""


class RemoteStore:
    """A `Store` that others share.

    Parameters
    ----------
    address : of the server or the database
    home : folder under which copies are kept
    """

    is_made = True

    def __init__(self, address: Address, home: Path) -> None:
        self.home, self.place = home, address.shown
        self.stale: Stale | None = None
        self._address = address
        # Copies, a folder a registry.
        self._room = store_folder(home) / "remote" / uuid5(NAMESPACE_URL, address.uri).hex
        self._down: tuple[float, UnreachableError] | None = None
        self._opened: MlflowClient | None = None

    @property
    def artifact_root(self) -> str | None:
        """A server says itself where artifacts go; those of a database lie where its clients share them."""
        if not self._address.is_database:
            return None
        shared = os.environ.get(ARTIFACTS_VARIABLE, "")
        return shared if "://" in shared else ARTIFACT_ROOT

    def names(self) -> list[str]:
        """Names of the registered models; while nobody answers, of those that were seen."""
        try:
            with self.client() as client:
                models = _pages(client.search_registered_models)
            found = sorted(model.name for model in models if model.latest_versions)
        except UnreachableError as error:
            seen = [self._seen(file.name) for file in (self._room / "seen").glob("*.json")]
            # An answer may have been that there is no such model.
            known = [one for one in seen if one and one["answer"]]
            if not known:
                raise
            self._note(min(one["seen_s"] for one in known), error)
            return sorted(one["answer"]["name"] for one in known)
        self.stale = None
        return found

    def model(self, name: str) -> RegisteredModel | None:  # noqa: D102
        return _model_told(self._asked(_model_file(name), lambda client: _model_of(client, name)))

    def recalled(self, name: str) -> RegisteredModel | None:
        """What was last seen of a model; nothing is asked where it was seen before."""
        seen = self._seen(_model_file(name))
        return _model_told(seen["answer"]) if seen else self.model(name)

    def run(self, run_id: str) -> RunRecord:
        """What a finished run was logged with, copied when it is first asked for."""
        file = self._room / "runs" / f"{run_id}.json"
        if not file.is_file():
            with self.client() as client:
                found = client.get_run(run_id)
            _write(file, {"metrics": found.data.metrics, "parameters": found.data.params, "tags": found.data.tags})
        return RunRecord(**json.loads(file.read_text(encoding="utf-8")))

    def folder(self, version: ModelVersion) -> Path:
        """A copy of a version's MLflow model, checked against the version before anybody can read it."""
        target = self._room / "versions" / version.name / version.run_id
        # A version never changes: a copy that is there is whole, since it appeared by one rename.
        if not target.is_dir():
            with self.client(), replacing(target) as draft:
                self._download(version.location, draft, str(version))
                checked_card(draft, version)
        return target

    def code(self, sha256: str) -> Path:
        """A copy of the archive of a state of the code, where the registry has one."""
        file = self._room / "code" / f"{sha256}.zip"
        if not file.is_file():
            with self.client() as client:
                for run in self._code_runs(client, sha256):
                    with replacing(file) as draft:
                        self._download(f"{run.info.artifact_uri}/{file.name}", draft, "the code of the version")
        return file

    def share_code(self, client: "MlflowClient", sha256: str, write: Callable[[Path], None]) -> None:
        """Log the archive with a run of its own, once a state of the code."""
        if self._code_runs(client, sha256):
            return
        run = client.create_run(self.experiment(client, CODE_EXPERIMENT), run_name=sha256)
        with scratch_room("code") as room:
            write(room / f"{sha256}.zip")
            client.log_artifact(run.info.run_id, str(room / f"{sha256}.zip"))
        client.set_tag(run.info.run_id, CODE_TAG, sha256)  # last: a run without it is nobody's
        client.set_terminated(run.info.run_id)

    def _code_runs(self, client: "MlflowClient", sha256: str) -> "list[Run]":
        found, query = client.get_experiment_by_name(CODE_EXPERIMENT), f"tags.{CODE_TAG} = '{sha256}'"
        return client.search_runs([found.experiment_id], query) if found else []

    def _download(self, location: str, draft: Path, what: str) -> None:
        """Copy an artifact, a file or a folder, to `draft`, whose folder holds nothing else."""
        from mlflow.artifacts import download_artifacts
        from mlflow.exceptions import MlflowException

        try:
            made = download_artifacts(artifact_uri=location, dst_path=str(draft.parent), tracking_uri=self._uri)
        except (MlflowException, FileNotFoundError) as error:
            if isinstance(error, MlflowException) and isinstance(self.explained(error, False), UnreachableError):
                raise
            shared = f" ({ARTIFACTS_VARIABLE} names the folder that the registry's clients share)"
            raise RegistryError(
                f"{what}: its files are missing at {redacted(location)} of {self.place}"
                f"{shared if self._address.is_database else ''}; restore them or train the model again"
            ) from error
        if not any(Path(made).iterdir()) if Path(made).is_dir() else not Path(made).is_file():
            raise RegistryError(f"{what}: its files are missing at {redacted(location)} of {self.place}")
        Path(made).rename(draft)

    def settle(self, location: str) -> None:
        """Flush what lies in a folder; a server answers for what it has taken."""
        if location.startswith(f"{SCHEME}:"):
            flush(shared_artifact_folder(location).parent)

    def discard(self, location: str) -> None:  # noqa: D102
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        repository: Any = get_artifact_repository(location, tracking_uri=self._uri)
        repository.delete_artifacts()

    def unfinished_runs(self) -> list[UnfinishedRun]:  # noqa: D102
        with self.client() as client:
            experiments = [one.experiment_id for one in _pages(client.search_experiments)]
            query = "attributes.status = 'RUNNING' AND tags.jobcast_version LIKE '%'"
            found = _pages(client.search_runs, experiments, query, order_by=["attributes.start_time ASC"])
            return [_unfinished(client, run) for run in found] if experiments else []

    def models_without_version(self, run_id: str) -> list[tuple[str, str]]:  # noqa: D102
        with self.client() as client:
            made = {one.source for one in _pages(client.search_model_versions, f"run_id = '{run_id}'")}
            experiment = client.get_run(run_id).info.experiment_id
            logged = _pages(client.search_logged_models, [experiment], filter_string=f"source_run_id = '{run_id}'")
            return [(one.model_id, one.artifact_location) for one in logged if one.artifact_location not in made]

    def sweep_drafts(self) -> int:  # noqa: D102
        return sweep_drafts_below(self._room)

    @contextmanager
    def client(self) -> "Iterator[MlflowClient]":
        """MLflow's client of the registry. Raises UnreachableError where nobody answers."""
        from jobcast.models.registry.mlflow_door import client_of, mlflow_errors

        self._knock()
        with mlflow_errors(self.place, self.explained):
            if self._opened is None:
                if self._address.is_database:
                    self._log_in()
                self._opened = client_of(self._uri)
            yield self._opened

    def experiment(self, client: "MlflowClient", name: str) -> str:
        """Id of the experiment of a predictor, which is made where there is none."""
        found = client.get_experiment_by_name(name)
        root = self.artifact_root and f"{self.artifact_root}/{name}"
        number = found.experiment_id if found else client.create_experiment(name, artifact_location=root)
        location = (found or client.get_experiment(number)).artifact_location
        if urlsplit(location).scheme in LOCAL_SCHEMES:
            raise RegistryError(
                f"{self.place}: keeps the artifacts of experiment {name} in a folder of its own machine ({location});"
                " start it anew with `mlflow server --serve-artifacts --artifacts-destination FOLDER`"
            )
        return str(number)

    def explained(self, error: Exception, from_database: bool) -> Exception:
        """The error to raise in the place of one of MLflow's, of the database's or of the connection's."""
        from mlflow.exceptions import RestException
        from requests import RequestException

        why = redacted(first_line(error)).replace(self._address.uri, self.place)
        unanswered = ("failed with exception", "failed with error code 5", "too many 5")
        code = getattr(error, "error_code", "")
        lost = from_database or isinstance(error, RequestException) or code == "TEMPORARILY_UNAVAILABLE"
        if lost or (not isinstance(error, RestException) and any(sign in why for sign in unanswered)):
            return self._give_up(why)
        if "error code 401" in why or "error code 403" in why or code in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
            why += "; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
        return RegistryError(f"{self.place}: {why}")

    def _asked(self, file: str, ask: "Callable[[MlflowClient], Any]") -> Any:
        """What the registry answers, as JSON; what it answered last where it cannot be reached."""
        try:
            with self.client() as client:
                answer = ask(client)
        except UnreachableError as error:
            seen = self._seen(file)
            if seen is None:
                raise
            self._note(seen["seen_s"], error)
            return seen["answer"]
        self.stale = None
        _write(self._room / "seen" / file, {"seen_s": time.time(), "answer": answer})
        return answer

    def _seen(self, file: str) -> dict[str, Any] | None:
        try:
            saved: dict[str, Any] = json.loads((self._room / "seen" / file).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return saved

    def _note(self, seen_s: float, error: UnreachableError) -> None:
        """Remember that answers are old, and say it once."""
        # Once a store, not once a question.
        if self.stale is None:
            age = _age(time.time() - seen_s)
            LOGGER.warning("note: %s; going on with what was last seen of it, %s ago", error, age)
        self.stale = Stale(min(seen_s, self.stale.seen_s if self.stale else seen_s), str(error))

    def _knock(self) -> None:
        """Raise UnreachableError in seconds where nobody listens; importing MLflow alone takes longer."""
        # Many questions in a row would each wait for the same silence.
        if self._down and time.monotonic() - self._down[0] < RETRY_S:
            raise self._down[1]
        self._down = None
        parts = urlsplit(self._address.uri)
        scheme = parts.scheme.partition("+")[0].lower()
        # A proxy may reach what this machine cannot.
        if parts.hostname is None or (scheme in getproxies() and not proxy_bypass(parts.hostname)):
            return  # a socket of the system, or somebody else connects
        try:
            socket.create_connection((parts.hostname, parts.port or PORTS[scheme]), timeout=PATIENCE_S).close()
        except (OSError, ValueError) as error:
            raise self._give_up(getattr(error, "strerror", None) or str(error)) from None

    def _log_in(self) -> None:
        """Raise where the database cannot be used: MLflow would try for minutes. Its tables are made if need be."""
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
        from sqlalchemy import create_engine
        from sqlalchemy.exc import DBAPIError
        from sqlalchemy.pool import NullPool

        try:
            arguments = {"connect_timeout": int(PATIENCE_S)}
            create_engine(self._uri, connect_args=arguments, poolclass=NullPool).connect().close()
        except ImportError as error:
            raise RegistryError(f"{self.place}: needs a driver ({error}); pip install 'jobcast[postgres]'") from None
        except DBAPIError as error:
            why = redacted(" ".join(str(error.orig).split()))
            # It is there and refuses: waiting or remembering would not help.
            if any(sign in why for sign in REFUSED):
                raise RegistryError(f"{self.place}: {why}; mend {self._address.variable}") from None
            raise self._give_up(why) from None
        make_store: Any = SqlAlchemyStore
        make_store(self._uri, self.artifact_root).engine.dispose()

    def _give_up(self, why: str) -> UnreachableError:
        lines = f"{self.place}: cannot be reached ({why}); start it, or change {self._address.variable}"
        error = UnreachableError(lines)
        # A connection that was lost is opened anew next time.
        self._down, self._opened = (time.monotonic(), error), None
        return error

    @property
    def _uri(self) -> str:
        """The address as MLflow takes it."""
        scheme, _, rest = self._address.uri.partition("://")
        # Whoever names a driver gets that one.
        return f"{DRIVER}://{rest}" if self._address.is_database and "+" not in scheme else self._address.uri


def _pages(search: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
    """All that a search of MLflow's finds."""
    # MLflow answers in pages and cuts off silently.
    found, token = list[Any](), None
    while True:
        page = search(*arguments, **options, page_token=token)
        found += page
        token = page.token
        if not token:
            return found


def _model_of(client: "MlflowClient", name: str) -> dict[str, Any] | None:
    """A model as `RegisteredModel` has it, JSON-ready; None where there is no version of that name."""
    from mlflow.exceptions import MlflowException

    try:
        model = client.get_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return None
    aliases = {alias: int(number) for alias, number in sorted(model.aliases.items())}
    there = [one for one in _pages(client.search_model_versions, f"name = '{name}'") if one.status == "READY"]
    versions = sorted((_version_of(one, aliases) for one in there), key=lambda one: -one["version"])
    about = {"name": name, "description": model.description or "", "tags": dict(model.tags), "aliases": aliases}
    return {**about, "versions": versions} if versions else None


def _version_of(one: "MlflowVersion", aliases: dict[str, int]) -> dict[str, Any]:
    number = int(one.version)
    return {
        "name": one.name,
        "version": number,
        "aliases": [alias for alias, target in aliases.items() if target == number],
        "run_id": one.run_id,
        "location": one.source,
        "created_s": one.creation_timestamp / MS_PER_S,
        "tags": dict(one.tags),
    }


def _model_told(figures: dict[str, Any] | None) -> RegisteredModel | None:
    if figures is None:
        return None
    versions = tuple(ModelVersion(**{**one, "aliases": tuple(one["aliases"])}) for one in figures["versions"])
    return RegisteredModel(**{**figures, "versions": versions})


def _model_file(name: str) -> str:
    return f"model-{name}.json"


def _unfinished(client: "MlflowClient", run: "Run") -> UnfinishedRun:
    made = _pages(client.search_model_versions, f"run_id = '{run.info.run_id}'")
    tags = run.data.tags
    return UnfinishedRun(
        run.info.run_id,
        run.info.start_time / MS_PER_S,
        tags.get(OWNER_TAG, ""),
        tuple(filter(None, tags.get(ALIASES_TAG, "").split(","))),
        next(((one.name, int(one.version)) for one in made), None),
    )


def _write(file: Path, value: object) -> None:
    with replacing(file) as draft:
        draft.write_text(json.dumps(value), encoding="utf-8")


def _age(seconds: float) -> str:
    """How long ago, for people.

    >>> _age(90.0), _age(7200.0)
    ('90 s', '2.0 h')
    """
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 3600:.1f} h"
