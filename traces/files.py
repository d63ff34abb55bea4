"""Files read as a whole, with one clear line when that fails, and written under a temporary name first."""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobcast.domain.errors import ConfigError, TraceError

STDERR = 2
"""File descriptor of the standard error."""
PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class FileBytes:
    """What a file held when it was read, once."""

    path: str
    data: bytes

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes, in hex."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def name(self) -> str:
        """The file's name without folders and suffix."""
        return Path(self.path).stem


@dataclass(frozen=True, slots=True)
class Spooled:
    """What came through a pipe, kept in a file: it has the pipe's name and can be read as often as a file."""

    path: str
    copy: Path

    def __fspath__(self) -> str:
        return self.path


@contextmanager
def rereadable(paths: Iterable[PathLike]) -> Iterator[list[PathLike]]:
    """The paths, pipes among them spooled: a pipe tells what it holds once, and a format is looked for first.

    Raises
    ------
    TraceError
        A pipe cannot be read, or there is no room for what it holds.
    """
    with ExitStack() as stack:
        yield [_spooled(path, stack) if _is_pipe(path) else path for path in paths]


def kept_copy(path: PathLike) -> PathLike:
    """Where to open a source: the copy of what was spooled, any other as it is."""
    return path.copy if isinstance(path, Spooled) else path


def _is_pipe(path: PathLike) -> bool:
    try:
        return not isinstance(path, Spooled) and stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False  # told when it is read


def _spooled(path: PathLike, stack: ExitStack) -> Spooled:
    shown = os.fspath(path)
    try:
        room = stack.enter_context(tempfile.TemporaryDirectory(prefix="jobcast-"))
        copy = Path(room) / "pipe"
        with open(path, "rb") as pipe, open(copy, "wb") as file:
            shutil.copyfileobj(pipe, file)
    except OSError as error:
        raise TraceError(f"{shown}: cannot be kept while it is read ({reason(error)}); give a file") from None
    return Spooled(shown, copy)


def read_file(path: PathLike, most: int | None = None) -> FileBytes:
    """Read a file, or its first `most` bytes.

    Raises
    ------
    TraceError
        There is no such file, it is a folder, it is empty, or it cannot be read.
    """
    shown = os.fspath(path)
    try:
        with open(kept_copy(path), "rb") as opened:
            data = opened.read(-1 if most is None else most)
    except FileNotFoundError:
        raise TraceError(f"{shown}: no such file; check the path") from None
    except IsADirectoryError:
        raise TraceError(f"{shown}: is a folder; name a file in it") from None
    except (OSError, ValueError) as error:
        raise TraceError(f"{shown}: cannot be read ({reason(error)}); check its permissions") from None
    if not data:
        raise TraceError(f"{shown}: the file is empty; give a CSV or Parquet file with a header and rows")
    return FileBytes(shown, data)


def reason(error: BaseException) -> str:
    """Why an error was raised, in one line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return text.strip().splitlines()[0]


@contextmanager
def hushed() -> Iterator[None]:
    """Drop what libraries print on the process's standard error meanwhile, past Python: a panic's own lines.

    Not for work on several threads at once: the stream is one for the whole process.
    """
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        kept = os.dup(STDERR)
    except OSError:  # it is closed, so nothing shows anyway
        yield
        return
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, STDERR)
        os.close(nothing)
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """Give a temporary path beside `path`; what was written there, a file or a folder, takes its place at the end.

    Folders on the way are made. An interruption leaves the old one or the new one, never half of one.

    Raises
    ------
    ConfigError
        The place cannot be written to.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        room = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written ({reason(error)}); check the folder") from None
    draft, old = room / target.name, room / "old"
    try:
        yield draft
        if target.is_dir() and draft.is_dir():
            target.rename(old)
        os.replace(draft, target)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written ({reason(error)}); check the folder") from None
    finally:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(room, ignore_errors=True)
