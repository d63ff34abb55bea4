"""MLflow itself: a client with explicit addresses, no global state, no telemetry, no chatter."""

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.database import unreadable
from jobcast.models.registry.home import ARTIFACT_ROOT, database_file, database_uri
from jobcast.traces.files import disk_trouble, flush_one, unwritable
from jobcast.traces.owners import draft_room, scratch_room

if TYPE_CHECKING:
    from mlflow import MlflowClient

QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
}
CHATTERING_LOGGERS = ("mlflow", "alembic", "sqlalchemy")
SILENT = logging.CRITICAL
"""Above what MLflow and SQLAlchemy log with an error's whole traceback: whoever calls them is told in one line."""


def hush() -> None:
    """Keep MLflow from phoning home and from writing to the user's terminal; what the user has set stays."""
    for variable, value in QUIET.items():
        os.environ.setdefault(variable, value)
    for name in CHATTERING_LOGGERS:
        logging.getLogger(name).setLevel(SILENT)


@contextmanager
def mlflow_errors(home: Path) -> Iterator[None]:
    """Turn what MLflow and its database raise into one line."""
    hush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pydantic, pandas 4 and SQLAlchemy 2.1: nothing a user can act on
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with _own_temporaries():
                yield
        except (MlflowException, SQLAlchemyError, OSError) as error:
            raise _told(database_file(home), error, isinstance(error, SQLAlchemyError)) from error


def _told(file: Path, error: Exception, from_database: bool) -> Exception:
    """The error to raise in the place of one of MLflow's, its database's or the system's."""
    if disk_trouble(error):
        return RegistryError(unwritable(getattr(error, "filename", None) or file, error))
    if isinstance(error, PermissionError):
        return RegistryError(
            f"{error.filename}: may not be written ({error.strerror}); make it writable or set JOBCAST_HOME"
        )
    if isinstance(error, OSError):
        return error
    return unreadable(file, _first_line(error)) if from_database else RegistryError(f"{file}: {_first_line(error)}")


@contextmanager
def _own_temporaries() -> Iterator[None]:
    """Have the files that MLflow makes on the way lie in a folder that tells whose they are, and goes with them."""
    before = tempfile.tempdir
    with scratch_room("mlflow") as room:
        tempfile.tempdir = str(room)
        try:
            yield
        finally:
            tempfile.tempdir = before


def open_client(home: Path) -> "MlflowClient":
    """A client of the home's store, which is made where there is none. Call inside `mlflow_errors`."""
    from mlflow import MlflowClient

    from jobcast.models.registry.artifacts import register_scheme

    register_scheme()
    file = database_file(home)
    if not file.exists():
        create_database(file)
    return MlflowClient(tracking_uri=database_uri(file), registry_uri=database_uri(file))


def create_database(file: Path) -> None:
    """Make an empty store under a temporary name and put it in place whole; an existing one is left alone."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    file.parent.mkdir(parents=True, exist_ok=True)
    with draft_room(file) as folder:
        made = folder / file.name
        make_store: Any = SqlAlchemyStore
        store = make_store(database_uri(made), ARTIFACT_ROOT)
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


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].removesuffix(".")
