"""One process at a time finds and registers, or sweeps; whatever else goes on in a home goes on at once."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.home import store_folder
from jobcast.traces.files import unwritable
from jobcast.traces.owners import Owner

PATIENCE_S = 300.0  # registering takes seconds: who waits so long waits for a process that hangs
LOOK_EVERY_S = 0.05
TOLD_AFTER_S = 2.0  # a shorter wait needs no reason
LOGGER = logging.getLogger("jobcast.registry")


def lock_file(home: Path) -> Path:
    """The file that is locked; it holds who locked it, and is there only while somebody does."""
    return store_folder(home) / ".lock"


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the lock of a home's store, which is made where there is none.

    The system lets go of the lock of a process that dies, however it dies: a file that such a process left is taken
    over. On a file system without locks everybody gets it at once.

    Raises RegistryError where the store cannot be written to, and where the lock is held for minutes.
    """
    file = lock_file(home)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        held = _acquire(file)
    except OSError as error:
        raise RegistryError(unwritable(error.filename or file, error)) from None
    try:
        yield
    finally:
        with suppress(FileNotFoundError):  # somebody has moved the home away meanwhile
            file.unlink()
        os.close(held)


def _acquire(file: Path) -> int:
    """An open, locked file; waits its turn."""
    for tries in range(round(PATIENCE_S / LOOK_EVERY_S)):
        number = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # The file may have been removed between opening and locking: then it locks nothing.
            if lock_now(number) and _is(file, number):
                # Who died without removing it may have left a longer text.
                os.ftruncate(number, os.write(number, f"{Owner.here()}\n".encode()))
                return number
        except BaseException:
            os.close(number)
            raise
        os.close(number)
        if tries == round(TOLD_AFTER_S / LOOK_EVERY_S):
            LOGGER.warning("note: %s: held by %s; waiting for it, %.0f s at most", file, _holder(file), PATIENCE_S)
        time.sleep(LOOK_EVERY_S)
    raise RegistryError(f"{file}: held for {PATIENCE_S:.0f} s by {_holder(file)}; wait for that command or end it")


def lock_now(number: int) -> bool:
    """Whether the file could be locked at once."""
    try:
        import fcntl
    except ImportError:  # Windows: as on a file system without locks
        return True
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a network file system that knows no locks
        return True
    return True


def _is(file: Path, number: int) -> bool:
    """Whether the open file still has its name: who held it before has removed it."""
    try:
        return os.path.samestat(os.fstat(number), file.stat())
    except FileNotFoundError:
        return False


def _holder(file: Path) -> str:
    try:
        owner = Owner.parse(file.read_text(encoding="utf-8").strip())
    except OSError:
        owner = None
    return f"process {owner.pid}" if owner else "another process"
