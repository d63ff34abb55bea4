"""What all tests share: examples are drawn anew from the same seed, and a busy machine fails none of them."""

import gc
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before any library starts threads: they sleep while they wait
os.environ.setdefault("OMP_NUM_THREADS", "1")  # what is trained here is small: threads would wait for one another
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")  # tests run in parallel themselves: who wants processes says how many

import pytest
from hypothesis import Phase, settings
from sqlalchemy import event
from sqlalchemy.pool import Pool

from jobcast.models.registry import mlflow_door
from jobcast.traces.owners import draft_room
from tests.shared import shared_folder

gc.disable()  # tests are read faster, and nothing of them is garbage; see `pytest_collection_finish`
settings.register_profile("jobcast", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("mutants", settings.get_profile("jobcast"), phases=(Phase.explicit, Phase.generate))
settings.load_profile("jobcast")


# No test outlives a loss of power: thousands of files and transactions would wait for the disk.
os.fsync = lambda file: None


@event.listens_for(Pool, "connect")
def _unguarded(connection, record):
    # What is no database is for the test to meet: MLflow connects again and again, for minutes, where connecting fails.
    with suppress(sqlite3.DatabaseError):
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture(scope="session", autouse=True)
def create_database(tmp_path_factory):
    """MLflow's migrations take a second: the stores of all tests begin as copies of the first, empty.

    The value is what makes one indeed.
    """
    created = mlflow_door.create_database
    empty = shared_folder(tmp_path_factory, "empty") / "mlflow.db"

    def copied(file):
        if not empty.exists():
            created(empty)  # by two workers at once: the first wins
        file.parent.mkdir(parents=True, exist_ok=True)
        with draft_room(file) as folder:
            mlflow_door._put_in_place(Path(shutil.copyfile(empty, folder / file.name)), file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlflow_door, "create_database", copied)
        yield created


def pytest_configure(config):
    """Compile what is compiled once and is not yet, before workers start that would all do so."""
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        return
    subprocess.run([sys.executable, Path(__file__).parents[1] / ".ci" / "compile"], check=True)


def pytest_collection_finish(session):
    """Libraries stay: the collector of garbage need not look through them again and again."""
    if "mlflow" in sys.modules:
        look_once()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def look_once():
    """What MLflow looks up anew for each store and model is the same for all: its last migration, what is installed."""
    from mlflow.store.db import utils
    from mlflow.utils import requirements_utils

    for module, name in ((utils, "_get_latest_schema_revision"), (requirements_utils, "_check_requirement_satisfied")):
        setattr(module, name, cache(getattr(module, name)))


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder of published data, one folder a source."""
    root = os.environ.get("JOBCAST_DATA")
    if not root:
        pytest.skip("JOBCAST_DATA is not set: name the folder that holds philly/philly_jobs.csv and others")
    return Path(root)


@pytest.fixture(scope="session")
def philly(published) -> Path:
    """Folder of the Philly data."""
    return published / "philly"


LONG = ("dvc", "slurm", "notebooks", "site", "matrix", "worlds")
"""Groups that take a worker for minutes, the longest first; `matrix` makes the run that many later files share."""


def pytest_collection_modifyitems(items):
    """Begin with the long groups, so that no worker is left alone with one at the end, or waits for what all share."""

    def place(item):
        group = item.get_closest_marker("xdist_group")
        return LONG.index(group.args[0]) if group and group.args[0] in LONG else len(LONG)

    items.sort(key=place)
