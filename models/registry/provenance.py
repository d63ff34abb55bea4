"""What code, parameters and data pipeline a run was made by, as its tags."""

import getpass
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path

import jobcast
from jobcast.models.registry.home import PROJECT_MARK
from jobcast.traces.files import sha256_of

SOURCE_TYPE = "LOCAL"  # MLflow's word for a command that somebody ran
GIT_PATIENCE_S = 10.0
FILES = {"dvc_rev": "dvc.lock", "params_sha256": "params.yaml", "lock_sha256": "requirements.lock"}
"""Tag -> file of the project that it holds the hash of."""
DVC_VARIABLES = {"dvc_experiment": "DVC_EXP_NAME", "dvc_baseline": "DVC_EXP_BASELINE_REV"}
"""Tag -> variable by which DVC tells its stages of the experiment that they belong to."""


def provenance(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Tags of every run: MLflow's own ones, git's commit, hashes of DVC's lock, parameters and locked packages, user.

    What there is not, because nobody uses git or DVC here, is left out. Paths are not told.
    """
    environ = os.environ if environ is None else environ
    project = _project()
    commit = _git(project, "rev-parse", "HEAD")
    result: dict[str, str | None] = {
        "mlflow.user": _user(),
        "mlflow.source.name": "jobcast",
        "mlflow.source.type": SOURCE_TYPE,
        "mlflow.source.git.commit": commit,
        "git_commit": commit,
        "git_dirty": None if commit is None else str(bool(_git(project, "status", "--porcelain", "-uno"))).lower(),
        **{tag: sha256_of(project / name) for tag, name in FILES.items() if (project / name).is_file()},
        **{tag: environ.get(variable) for tag, variable in DVC_VARIABLES.items()},
    }
    return {tag: value for tag, value in result.items() if value}


def run_tags() -> dict[str, str]:
    """What every run carries: who made it, by which code."""
    return {**provenance(), "jobcast_version": jobcast.__version__, "python": platform.python_version()}


def _project() -> Path:
    """The nearest folder from the working directory upwards that holds `dvc.yaml`, else the package's own checkout."""
    here = Path.cwd()
    package = Path(jobcast.__file__).resolve().parents[2]
    return next((folder for folder in (here, *here.parents) if (folder / PROJECT_MARK).is_file()), package)


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's number that has no name
        return None


def _git(folder: Path, *words: str) -> str | None:
    """What git prints; None where there is no git, or the folder is no checkout."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=GIT_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
