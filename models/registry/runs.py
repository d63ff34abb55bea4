"""MLflow runs that end, whatever ends them: by themselves or, where their process was killed, by who comes next."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jobcast.models.registry.code_archive import code_folder
from jobcast.models.registry.database import StoreDatabase, UnfinishedRun
from jobcast.models.registry.home import artifact_folder, store_folder
from jobcast.models.registry.promotions import end_move, is_half_moved
from jobcast.models.registry.references import CHALLENGER, CHAMPION
from jobcast.models.registry.store_lock import locked
from jobcast.traces.owners import Owner, is_left_over, sweep_drafts

if TYPE_CHECKING:
    from mlflow import MlflowClient

OWNER_TAG = "jobcast.owner"
"""Tag of a run: the process that writes it."""
ALIASES_TAG = "jobcast.aliases"
"""Tag of a run: aliases that its version is to get, between commas."""
CREATING = ".creating-*"
"""Databases in the making, as they were named before drafts named their owner."""


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
    client: "MlflowClient", home: Path, experiment_id: str, name: str, tags: Mapping[str, str]
) -> Iterator[str]:
    """A run that ends as FINISHED, FAILED or, on Ctrl-C, KILLED; a model that came to no version goes with it."""
    mine = {**tags, OWNER_TAG: str(Owner.here())}
    run_id = str(client.create_run(experiment_id, run_name=name, tags=mine).info.run_id)
    status = "KILLED"
    try:
        yield run_id
        status = "FINISHED"
    except Exception:
        status = "FAILED"
        raise
    finally:
        if status != "FINISHED":
            _discard_models(client, home, run_id)
        client.set_terminated(run_id, status)


def sweep_store(home: Path) -> Swept:
    """End the runs of dead processes and remove what they left half-written; what living ones own is not touched.

    A run whose version is whole is finished: the version gets the aliases that it was to get. Models that were to be
    promoted together all are.

    Raises RegistryError where there is something to sweep and the store cannot be written to.
    """
    if not store_folder(home).is_dir():
        return Swept(0, 0)
    with locked(home):
        return sweep_locked(home)


def sweep_locked(home: Path) -> Swept:
    """`sweep_store` for who holds the lock already."""
    store = store_folder(home)
    drafts = sweep_drafts(store) + sweep_drafts(code_folder(home)) + _sweep_old_databases(store)
    left = [run for run in StoreDatabase(home).unfinished_runs(OWNER_TAG, ALIASES_TAG) if _is_left(run)]
    if left or is_half_moved(home):
        _end(home, left)
    return Swept(len(left), drafts)


def _sweep_old_databases(store: Path) -> int:
    old = [folder for folder in store.glob(CREATING) if is_left_over(None, folder.stat().st_mtime)]
    for folder in old:
        shutil.rmtree(folder, ignore_errors=True)
    return len(old)


def _is_left(run: UnfinishedRun) -> bool:
    return is_left_over(Owner.parse(run.owner), run.began_s)


def _end(home: Path, left: list[UnfinishedRun]) -> None:
    from jobcast.models.registry.mlflow_door import mlflow_errors, open_client

    with mlflow_errors(home):
        client = open_client(home)
        for run in left:
            if run.name is None or run.version is None:
                _discard_models(client, home, run.run_id)
                client.set_terminated(run.run_id, "KILLED")
            else:
                point_aliases(client, home, run.name, run.version, run.aliases)
                client.set_terminated(run.run_id, "FINISHED")
        if is_half_moved(home):
            end_move(client, home)


def point_aliases(client: "MlflowClient", home: Path, name: str, number: int, aliases: tuple[str, ...]) -> None:
    """Give a new version its aliases: `champion` to the first one, `challenger` where no newer version is."""
    model = StoreDatabase(home).model(name)
    if model is None:
        return
    if CHAMPION in aliases and CHAMPION not in model.aliases and model.versions[-1].version == number:
        client.set_registered_model_alias(name, CHAMPION, str(number))
    if CHALLENGER in aliases and model.versions[0].version == number:
        client.set_registered_model_alias(name, CHALLENGER, str(number))


def _discard_models(client: "MlflowClient", home: Path, run_id: str) -> None:
    """Remove what a run logged as models, unless a version is made of it: files first, so that it can be repeated."""
    for model_id, location in StoreDatabase(home).models_without_version(run_id):
        shutil.rmtree(artifact_folder(home, location).parent, ignore_errors=True)
        client.delete_logged_model(model_id)
