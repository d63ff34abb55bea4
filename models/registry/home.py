"""Where the store and the data lie. Imports nothing heavy: every command calls it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

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
