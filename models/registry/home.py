"""Where the registry is, and where data and models lie. Imports nothing heavy: every command calls it.

Where things lie in a store, and how the database names them: never by an absolute path.
"""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jobcast.domain.errors import RegistryError

SCHEME = "jobcast"
ARTIFACT_ROOT = f"{SCHEME}:/artifacts"
"""Artifact location of everything, relative to the home's `mlruns/`: a moved or copied checkout still works."""
ARTIFACTS_VARIABLE = "JOBCAST_ARTIFACTS"
"""Folder (or URI that MLflow writes to) of the artifacts of a registry in a PostgreSQL database."""
REGISTRY_VARIABLES = ("JOBCAST_REGISTRY", "MLFLOW_TRACKING_URI")
"""Where the registry is, the first that is set; neither = in the home."""
SERVER_SCHEMES = ("http", "https")
DATABASE_SCHEMES = ("postgresql", "postgres")
# Up to the last @ before the host: passwords may hold @ and colons.
PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):[^/\s]*(?=@)")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a registry is that lies in no home.

    Attributes
    ----------
    uri : of the tracking server or database; it may hold a password: show `shown`
    variable : of the environment, that names it
    """

    uri: str
    variable: str

    @property
    def is_database(self) -> bool:
        """Whether it is a database that this process talks to itself; else a server is asked."""
        return _scheme(self.uri) in DATABASE_SCHEMES

    @property
    def shown(self) -> str:
        """The address as it may be told to anybody."""
        return redacted(self.uri)


def redacted(text: str) -> str:
    """A text without the passwords of addresses in it.

    >>> redacted("postgresql://me:secret@db.example/jobcast: refused")
    'postgresql://me:***@db.example/jobcast: refused'
    """
    return PASSWORD.sub(r"\1:***", text)


def registry_address() -> "Address | Path | None":
    """What the environment says of the registry: an address, the home of another local store, or None.

    Raises RegistryError for an address that is none of a server, a PostgreSQL database or one of our stores.
    """
    # Ours first, so that MLflow's own variable may point elsewhere.
    variable = next((name for name in REGISTRY_VARIABLES if os.environ.get(name, "").strip()), None)
    if variable is None:
        return None
    uri = os.environ[variable].strip()
    if _scheme(uri) in (*SERVER_SCHEMES, *DATABASE_SCHEMES) and uri.partition("://")[2]:
        return Address(uri.rstrip("/"), variable)
    if (home := home_of_database(uri)) is not None:
        return home
    raise RegistryError(
        f"{variable}={redacted(uri)}: no registry of jobcast's; name a server (http://HOST:PORT), a database"
        " (postgresql://USER@HOST/NAME) or a store (sqlite:////HOME/mlruns/mlflow.db), or unset it for the home's own"
    )


def _scheme(uri: str) -> str:
    return uri.partition("://")[0].partition("+")[0].lower()


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
    # Only a database in its usual place is one of our stores.
    return file.absolute().parent.parent if file.parts[-2:] == ("mlruns", "mlflow.db") else None


def artifact_folder(home: Path, uri: str) -> Path:
    """Folder of an artifact URI.

    >>> artifact_folder(Path("/srv"), "jobcast:/artifacts/new-load/models/m-1").as_posix()
    '/srv/mlruns/artifacts/new-load/models/m-1'
    """
    return store_folder(home).joinpath(*_parts(uri))


def shared_artifact_folder(uri: str) -> Path:
    """Folder of an artifact URI of a registry in a database, by `JOBCAST_ARTIFACTS`, else in the home found."""
    shared = os.environ.get(ARTIFACTS_VARIABLE)
    if not shared:
        return artifact_folder(find_home(), uri)
    return Path(shared).expanduser().absolute().joinpath(*_parts(uri)[1:])


def _parts(uri: str) -> tuple[str, ...]:
    scheme, _, path = uri.partition(":/")
    # A URI from a database is not trusted: no way up and out of the store.
    parts = PurePosixPath(path).parts
    if scheme != SCHEME or parts[:1] != ("artifacts",) or ".." in parts:
        raise RegistryError(f"{uri}: not an artifact of a jobcast store; expected {ARTIFACT_ROOT}/...")
    return parts


HOME_VARIABLE = "JOBCAST_HOME"
PROJECT_MARK = "dvc.yaml"  # the file that makes a folder a project


def find_home() -> Path:
    """The folder that holds `mlruns/` and `data/`, as an absolute path; it need not exist yet.

    `JOBCAST_HOME`, else the project that the working directory lies in, else the user's data directory.
    """
    if given := os.environ.get(HOME_VARIABLE):
        return Path(given).expanduser().absolute()
    return project_above() or user_data_home(os.environ, sys.platform)


def project_above() -> Path | None:
    """The nearest folder from the working directory upwards that holds `dvc.yaml`."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / PROJECT_MARK).is_file()), None)


def user_data_home(environ: Mapping[str, str], platform: str) -> Path:
    """The user's own data directory, by the platform's custom (XDG base directories on Unix)."""
    user = Path.home()
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or user / "AppData" / "Local") / "jobcast"
    if platform == "darwin":
        return user / "Library" / "Application Support" / "jobcast"
    return Path(environ.get("XDG_DATA_HOME") or user / ".local" / "share") / "jobcast"
