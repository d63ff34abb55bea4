"""MLflow runs that end, whatever ends them: by themselves or, where their process was killed, by who comes next.

What code, parameters and data pipeline a run was made by stands in its tags.
"""

import getpass
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import jobcast
from jobcast.models.registry.cards import RegisteredModel
from jobcast.models.registry.home import project_above
from jobcast.models.registry.promotions import end_moves, half_moved
from jobcast.models.registry.references import CHALLENGER, CHAMPION
from jobcast.models.registry.store import MS_PER_S, OWNER_TAG, Store, UnfinishedRun
from jobcast.models.registry.store_lock import locked
from jobcast.models.registry.stores import store_of
from jobcast.traces.files import sha256_of
from jobcast.traces.owners import Owner, is_left_over

if TYPE_CHECKING:
    from mlflow import MlflowClient


SOURCE_TYPE = "LOCAL"  # MLflow's word for a command that somebody ran
GIT_PATIENCE_S = 10.0
FILES = {"dvc_rev": "dvc.lock", "params_sha256": "params.yaml", "lock_sha256": "requirements.lock"}
"""Tag -> file of the project that it holds the hash of."""
DVC_VARIABLES = {"dvc_experiment": "DVC_EXP_NAME", "dvc_baseline": "DVC_EXP_BASELINE_REV"}
"""Tag -> variable by which DVC tells its stages of the experiment that they belong to."""


def provenance() -> dict[str, str]:
    """Tags of every run: MLflow's own ones, git's commit, hashes of DVC's lock, parameters and locked packages, user.

    What there is not, because nobody uses git or DVC here, is left out. Paths are not told.
    """
    project = project_above() or Path(jobcast.__file__).resolve().parents[2]  # the package's own checkout
    commit = _git(project, "rev-parse", "HEAD")
    result: dict[str, str | None] = {
        "mlflow.user": _user(),
        "mlflow.source.name": "jobcast",
        "mlflow.source.type": SOURCE_TYPE,
        "mlflow.source.git.commit": commit,
        "git_commit": commit,
        "git_dirty": None if commit is None else str(bool(_git(project, "status", "--porcelain", "-uno"))).lower(),
        **{tag: sha256_of(project / name) for tag, name in FILES.items() if (project / name).is_file()},
        **{tag: os.environ.get(variable) for tag, variable in DVC_VARIABLES.items()},
    }
    return {tag: value for tag, value in result.items() if value}


def run_tags() -> dict[str, str]:
    """What every run carries: who made it, by which code."""
    return {**provenance(), "jobcast_version": jobcast.__version__, "python": platform.python_version()}


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


@dataclass(frozen=True, slots=True)
class Swept:
    """What died commands had left.

    Attributes
    ----------
    runs : ended in their place
    drafts : half-written files and folders, removed
    """

    runs: int
    drafts: int


@contextmanager
def open_run(
    client: "MlflowClient", store: Store, experiment_id: str, name: str, tags: Mapping[str, str]
) -> Iterator[str]:
    """A run that ends as FINISHED, FAILED or, on Ctrl-C, KILLED; a model that came to no version goes with it."""
    mine = {**tags, OWNER_TAG: str(Owner.here())}
    run_id = str(client.create_run(experiment_id, run_name=name, tags=mine).info.run_id)
    # Until the end is known: KeyboardInterrupt is no Exception.
    status = "KILLED"
    try:
        yield run_id
        status = "FINISHED"
    except Exception:
        status = "FAILED"
        raise
    finally:
        # Before the run ends, so that whoever sweeps meanwhile leaves it alone.
        if status != "FINISHED":
            _discard_models(client, store, run_id)
        client.set_terminated(run_id, status)


def log_numbers(
    client: "MlflowClient",
    run_id: str,
    metrics: Mapping[str, float],
    params: Mapping[str, object],
    series: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Log figures of now, parameters as text, and `series` of values by step, of which those are left out that are no
    numbers, with a run.
    """
    from mlflow.entities import Metric, Param

    now_ms = int(time.time() * MS_PER_S)
    courses = {**{name: (value,) for name, value in metrics.items()}, **(series or {})}
    figures = [
        Metric(name, value, now_ms, step)
        for name, values in courses.items()
        for step, value in enumerate(values)
        if isfinite(value)
    ]
    # The client makes as many calls of it as a server takes.
    client.log_batch(run_id, metrics=figures, params=[Param(name, str(value)) for name, value in params.items()])


def sweep_store(home: Path) -> Swept:
    """End the runs of dead processes and remove what they left half-written; what living ones own is not touched.

    A run whose version is whole is finished: the version gets the aliases that it was to get. Models that were to be
    promoted together all are.

    Raises RegistryError where there is something to sweep and the store cannot be written to.
    """
    store = store_of(home)
    if not store.is_made:
        return Swept(0, 0)
    with locked(home):
        return sweep_locked(store)


def sweep_locked(store: Store) -> Swept:
    """`sweep_store` for who holds the lock already."""
    drafts = store.sweep_drafts()
    # What living processes write is theirs.
    left = [run for run in store.unfinished_runs() if _is_left(run)]
    moves = half_moved(store)
    if left or moves:
        with store.client() as client:
            for run in left:
                _end(client, store, run)
            end_moves(client, store, moves)
    return Swept(len(left), drafts)


def _is_left(run: UnfinishedRun) -> bool:
    return is_left_over(Owner.parse(run.owner), run.began_s)


def _end(client: "MlflowClient", store: Store, run: UnfinishedRun) -> None:
    # Without a version nobody can have seen its model.
    if run.made is None:
        _discard_models(client, store, run.run_id)
        client.set_terminated(run.run_id, "KILLED")
    else:
        point_aliases(client, store, *run.made, run.aliases)
        client.set_terminated(run.run_id, "FINISHED")


def point_aliases(client: "MlflowClient", store: Store, name: str, number: int, aliases: tuple[str, ...]) -> None:
    """Give a new version its aliases: `champion` to the first one, `challenger` where no newer version is."""
    model = store.model(name)
    if model is None:
        return
    if CHAMPION in aliases and CHAMPION not in model.aliases and model.versions[-1].version == number:
        client.set_registered_model_alias(name, CHAMPION, str(number))
    if CHALLENGER in aliases and _newest(model) == number:
        client.set_registered_model_alias(name, CHALLENGER, str(number))
        newer = store.model(name)  # who registered meanwhile, elsewhere, may have pointed it further already
        if newer is not None and _newest(newer) != number:
            client.set_registered_model_alias(name, CHALLENGER, str(_newest(newer)))


def _newest(model: RegisteredModel) -> int:
    """The newest version that is not a second of equal files: its client, elsewhere, removes that one at once, and
    MLflow then removes the aliases that it finds there, wherever they point by then."""
    firsts = {one.tags.get("content_sha256", one.version): one.version for one in model.versions}
    return max(firsts.values())


def _discard_models(client: "MlflowClient", store: Store, run_id: str) -> None:
    """Remove what a run logged as models, unless a version is made of it: files first, so that it can be repeated."""
    for model_id, location in store.models_without_version(run_id):
        store.discard(location)
        client.delete_logged_model(model_id)
