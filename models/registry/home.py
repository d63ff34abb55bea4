"""Where the store and the data lie. Imports nothing heavy: every command calls it.

Where things lie in a store, and how the database names them: never by an absolute path.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from jobcast.domain.errors import RegistryError

SCHEME = "jobcast"
ARTIFACT_ROOT = f"{SCHEME}:/artifacts"
"""Artifact location of everything, relative to the home's `mlruns/`: a moved or copied checkout still works."""


def store_folder(home: Path) -> Path:
    """Folder of the store."""
    return home / "mlruns"


def database_file(home: Path) -> Path:
    """MLflow's sqlite database."""
    return store_folder(home) / "mlflow.db"


def database_uri(file: Path) -> str:
    """The database as SQLAlchemy and MLflow name it.

    >>> database_uri(Path("/srv/mlruns/mlflow.db"))
    'sqlite:////srv/mlruns/mlflow.db'
    """
    return f"sqlite:///{file.as_posix()}"


def home_of_database(uri: str | None) -> Path | None:
    """The home that a tracking URI belongs to; None where it is not the database of one of our stores.

    >>> home_of_database("sqlite:////srv/mlruns/mlflow.db").as_posix()
    '/srv'
    >>> home_of_database("http://localhost:5000") is None
    True
    """
    if uri is None or not uri.startswith("sqlite:///"):
        return None
    file = Path(uri.removeprefix("sqlite:///"))
    return file.absolute().parent.parent if file.parts[-2:] == ("mlruns", "mlflow.db") else None


def artifact_folder(home: Path, uri: str) -> Path:
    """Folder of an artifact URI.

    >>> artifact_folder(Path("/srv"), "jobcast:/artifacts/new-load/models/m-1").as_posix()
    '/srv/mlruns/artifacts/new-load/models/m-1'
    """
    scheme, _, path = uri.partition(":/")
    parts = PurePosixPath(path).parts
    if scheme != SCHEME or parts[:1] != ("artifacts",) or ".." in parts:
        raise RegistryError(f"{uri}: not an artifact of a jobcast store; expected {ARTIFACT_ROOT}/...")
    return store_folder(home).joinpath(*parts)


HOME_VARIABLE = "JOBCAST_HOME"
PROJECT_MARK = "dvc.yaml"  # the file that makes a folder a project


def find_home(
    start: Path | None = None, environ: Mapping[str, str] | None = None, *, platform: str = sys.platform
) -> Path:
    """The folder that holds `mlruns/` and `data/`, as an absolute path; it need not exist yet.

    `JOBCAST_HOME`, else the nearest folder from the working directory upwards that holds `dvc.yaml`,
    else the user's data directory.

    Parameters
    ----------
    start : folder to look upwards from, default the working directory
    environ : environment to read, default the process's own

    Examples
    --------
    >>> find_home(environ={"JOBCAST_HOME": "/srv/jobcast"}).as_posix()
    '/srv/jobcast'
    """
    environ = os.environ if environ is None else environ
    if given := environ.get(HOME_VARIABLE):
        return Path(given).expanduser().absolute()
    start = (Path.cwd() if start is None else start).absolute()
    for folder in (start, *start.parents):
        if (folder / PROJECT_MARK).is_file():
            return folder
    return user_data_home(environ, platform)


def user_data_home(environ: Mapping[str, str], platform: str) -> Path:
    """The user's own data directory, by the platform's custom (XDG base directories on Unix)."""
    user = Path.home()
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or user / "AppData" / "Local") / "jobcast"
    if platform == "darwin":
        return user / "Library" / "Application Support" / "jobcast"
    return Path(environ.get("XDG_DATA_HOME") or user / ".local" / "share") / "jobcast"
