"""What tests share: how they look at what is refused, time zones, and what all workers of a session have in common."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobcast.domain.errors import JobcastError
from jobcast.models.registry.store_lock import locked


def refused(kind: type[Exception], words: str, attempt: Callable[..., object], /, *args: Any, **named: Any) -> str:
    """What an attempt is refused with: an error of that kind, in which `words` are found; ours take one line."""
    with pytest.raises(kind, match=words or None) as error:
        attempt(*args, **named)
    assert not isinstance(error.value, JobcastError) or "\n" not in str(error.value)
    return str(error.value)


def kept(model: Any, folder: Path) -> dict[str, bytes]:
    """What a model saves in a folder, by file."""
    model.save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def shared_folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder of all workers, whose own lie beside one another: whoever needs it first makes it."""
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
