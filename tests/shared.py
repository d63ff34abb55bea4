"""What all workers of a session share: whoever needs it first makes it, the others wait for it; and time zones."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobcast.models.registry.store_lock import locked


def shared_folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder of all workers, whose own lie beside one another."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    return folder


def made_once(folder: Path, make: Callable[[], object]) -> None:
    """Make what a shared folder holds, unless it is there."""
    finished = folder / "finished"
    with locked(folder):
        if not finished.exists():
            make()
            finished.touch()


@contextmanager
def time_zone(name: str) -> Iterator[None]:
    """The computer stands in a time zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        try:
            yield
        finally:
            patch.undo()
            time.tzset()
