"""MLflow itself: a client with explicit addresses, no global state, no telemetry, no chatter."""

import logging
import os
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.home import ARTIFACT_ROOT, database_uri
from jobcast.traces.files import disk_trouble, flush_one, unwritable
from jobcast.traces.owners import draft_room, scratch_room

if TYPE_CHECKING:
    from mlflow import MlflowClient

QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # MLflow's own retries of a server that does not answer last for minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
CHATTERING_LOGGERS = ("mlflow", "alembic", "sqlalchemy")
SILENT = logging.CRITICAL
"""Above what MLflow and SQLAlchemy log with an error's whole traceback: whoever calls them is told in one line."""


def hush() -> None:
    """Keep MLflow from phoning home and from writing to the user's terminal; what the user has set stays."""
    for variable, value in QUIET.items():
        # Set before MLflow is imported, which reads them once.
        os.environ.setdefault(variable, value)
    for name in CHATTERING_LOGGERS:
        logging.getLogger(name).setLevel(SILENT)


Explained = Callable[[Exception, bool], Exception]
"""The error to raise in the place of one of MLflow's, and whether that one came from its database."""


@contextmanager
def mlflow_errors(place: str, explained: Explained) -> Iterator[None]:
    """Turn what MLflow, its database and its connections raise into one line; `place` names the store in it."""
    hush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pydantic, pandas 4 and SQLAlchemy 2.1: nothing a user can act on
        from mlflow.exceptions import MlflowException
        from requests import RequestException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with _own_temporaries():
                yield
        except (MlflowException, RequestException, SQLAlchemyError) as error:
            if disk_trouble(error):
                raise RegistryError(unwritable(place, error)) from error
            raise explained(error, isinstance(error, SQLAlchemyError)) from error
        except OSError as error:
            raise _of_system(error, place) from error


def _of_system(error: OSError, place: str) -> Exception:
    if disk_trouble(error):
        return RegistryError(unwritable(error.filename or place, error))
    if isinstance(error, PermissionError):
        return RegistryError(
            f"{error.filename}: may not be written ({error.strerror}); make it writable or set JOBCAST_HOME"
        )
    return error


@contextmanager
def _own_temporaries() -> Iterator[None]:
    """Have the files that MLflow makes on the way lie in a folder that tells whose they are, and goes with them."""
    # MLflow takes its temporary files from this module variable.
    before = tempfile.tempdir
    with scratch_room("mlflow") as room:
        tempfile.tempdir = str(room)
        try:
            yield
        finally:
            tempfile.tempdir = before


def client_of(uri: str) -> "MlflowClient":
    """A client of a store that is there. Call inside `mlflow_errors`."""
    from mlflow import MlflowClient

    from jobcast.models.registry.artifacts import register_scheme

    # A checkout without installation has no entry point.
    register_scheme()
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def create_database(file: Path) -> None:
    """Make an empty store under a temporary name and put it in place whole; an existing one is left alone."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import event
    from sqlalchemy.pool import Pool

    def unguarded(connection: Any, record: Any) -> None:
        """Each migration would wait for the disk; a draft that a crash cuts short is never put in place."""
        if isinstance(connection, sqlite3.Connection):
            opened = connection.execute("PRAGMA database_list").fetchone()[2]
            if os.path.realpath(opened) == os.path.realpath(made):
                connection.execute("PRAGMA synchronous = OFF")

    file.parent.mkdir(parents=True, exist_ok=True)
    with draft_room(file) as folder:
        made = folder / file.name
        make_store: Any = SqlAlchemyStore
        event.listen(Pool, "connect", unguarded)
        try:
            store = make_store(database_uri(made), ARTIFACT_ROOT)
        finally:
            event.remove(Pool, "connect", unguarded)
        store.engine.dispose()
        flush_one(made)
        _put_in_place(made, file)
    flush_one(file.parent)


def _put_in_place(made: Path, file: Path) -> None:
    """Rename without overwriting: of two processes that create at once, the first wins."""
    try:
        os.link(made, file)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        with suppress(FileExistsError):
            if not file.exists():
                made.rename(file)
