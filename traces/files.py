"""Files read as a whole, with one clear line when that fails, and written under a temporary name first."""

import errno
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobcast.domain.errors import ConfigError, TraceError, UserError
from jobcast.traces.owners import draft_room, scratch_room, sweep_drafts

DISK_TROUBLES = {
    errno.ENOSPC: (
        (errno.ENOSPC, errno.EDQUOT),
        ("no space left on device", "disk quota exceeded", "database or disk is full"),
    ),
    errno.EROFS: ((errno.EROFS,), ("read-only file system", "attempt to write a readonly database")),
}
"""How a disk that cannot be written to shows: numbers of the system's errors, and words of SQLite's and others'."""
CANNOT_FLUSH = (errno.EINVAL, errno.ENOTSUP)
"""What a file system answers that knows no flushing: a pipe, some network file systems."""
STDERR = 2
"""File descriptor of the standard error."""
_KEPT: list[int] = []
"""What standard error was, while it is hushed."""
PathLike = str | os.PathLike[str]


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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

    def text(self, remedy: str, first_line: int = 1, error: type[UserError] = TraceError) -> str:
        """The bytes as UTF-8 text; an error names the line that holds other bytes, counted from `first_line`."""
        try:
            at, found = self.data.find(b"\0"), "holds binary data"
            # a null byte is valid UTF-8, but never text
            if at < 0:
                return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as wrong:
            at, found = wrong.start, "not UTF-8 text"
        # counted only now: sound files never pay for it
        line = self.data[:at].count(b"\n") + first_line
        raise error(f"{self.path}, row {line}: {found}; {remedy}")


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
        # only pipes are copied, files are read where they are
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
        copy = stack.enter_context(scratch_room("pipe")) / "pipe"
        with open(path, "rb") as pipe, open(copy, "wb") as file:
            # in pieces: what comes may be larger than memory
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
    # strerror is without the number and the path, which we tell ourselves
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return text.strip().splitlines()[0]


@contextmanager
def hushed() -> Iterator[None]:
    """Drop what libraries print on the process's standard error meanwhile, past Python: a panic's own lines.

    Not for work on several threads at once: the stream is one for the whole process.
    """
    if sys.stderr is not None:
        # what Python buffered was meant to be seen
        sys.stderr.flush()
    try:
        kept = os.dup(STDERR)
    except OSError:  # it is closed, so nothing shows anyway
        yield
        return
    _KEPT.append(kept)
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, STDERR)
        os.close(nothing)
        yield
    finally:
        heard()


def heard() -> None:
    """Standard error is what it was: also where a signal came before `hushed` could end, as right after a library."""
    while _KEPT:
        os.dup2(_KEPT[-1], STDERR)
        os.close(_KEPT.pop())


def unwritable(place: PathLike, error: BaseException) -> str:
    """The one line for a place that cannot be written to: what, why, what to do."""
    shown = os.fspath(place)
    trouble = disk_trouble(error)
    if trouble == errno.ENOSPC:
        return f"{shown}: no space left on the device; free some or choose another place"
    if trouble == errno.EROFS:
        return f"{shown}: cannot be written (its file system is read-only); make it writable or choose another place"
    return f"{shown}: cannot be written ({reason(error)}); check the folder"


def disk_trouble(error: BaseException | None) -> int | None:
    """ENOSPC where an error, or one that it came from, is of a full disk; EROFS of a read-only one; else None.

    Libraries tell of it in errors of their own, some in words alone.
    """
    seen: set[int] = set()
    # causes may form a ring
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        number, words = getattr(error, "errno", None), str(error).lower()
        for trouble, (numbers, signs) in DISK_TROUBLES.items():
            # SQLite and Arrow keep no errno, only words
            if number in numbers or any(sign in words for sign in signs):
                return trouble
        error = error.__cause__ or error.__context__
    return None


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """Give a temporary path beside `path`; what was written there, a file or a folder, takes its place at the end.

    Folders on the way are made. An interruption leaves the old one or the new one, never half of one, and so does a
    machine that loses power: all is on the disk before it gets its name. What a killed process left of an earlier
    attempt is removed.

    Raises
    ------
    ConfigError
        The place cannot be written to.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # first, so that drafts of crashed runs do not add up
        sweep_drafts(target.parent, target.name)
        with draft_room(target) as room:
            yield room / target.name
            _put_in_place(room / target.name, target, room / "old")
    except OSError as error:
        raise ConfigError(unwritable(target, error)) from None


def keep_others(folder: Path, kind: str, ours: Callable[[Path], bool]) -> None:
    """ConfigError where a folder of a kind, which is replaced as a whole, would replace what is not of it.

    `ours` tells a folder of the kind, or an empty one.
    """
    if folder.exists() and not (folder.is_dir() and ours(folder)):
        raise ConfigError(f"--out {folder}: holds something else than {kind}; name a new folder")


def _put_in_place(draft: Path, target: Path, old: Path) -> None:
    """Give a draft its name; a folder that had it moves aside first, and back should that fail."""
    # bytes before the name: else a power cut leaves the new name on an empty file
    flush(draft)
    try:
        # a rename replaces a file, but no folder that holds something
        if target.is_dir() and draft.is_dir():
            target.rename(old)
        os.replace(draft, target)
    finally:
        if old.exists() and not target.exists():
            old.rename(target)
    # the rename itself lies in the folder
    flush_one(target.parent)


def flush(path: Path) -> None:
    """Have the disk hold a file, or a folder with all in it, before it gets its final name."""
    for inner in path.rglob("*") if path.is_dir() else ():
        flush_one(inner)
    flush_one(path)


def flush_one(path: Path) -> None:
    """Have the disk hold a file's bytes, or a folder's names."""
    try:
        number = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder on Windows, which flushes names by itself
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in CANNOT_FLUSH:
            raise
    finally:
        os.close(number)
