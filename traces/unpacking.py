"""Files taken out of the archives in which public traces come."""

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from jobcast.domain.errors import TraceError
from jobcast.traces.files import reason, replacing

CHUNK_BYTES = 1 << 20
BAD_ARCHIVE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError)


def unpack(archive: Path, wanted: Sequence[str], folder: Path) -> list[Path]:
    """Take files out of an archive (.tar.gz, .zip, .gz), each under the end of its path that is wanted.

    Only what is wanted is written, and only below `folder`, whatever paths the archive names.

    Raises
    ------
    TraceError
        The archive cannot be read, or does not hold one of them.
    """
    kind = next((suffix for suffix in _UNPACKERS if archive.name.endswith(suffix)), None)
    if kind is None:
        raise TraceError(f"{archive}: must be one of {', '.join(_UNPACKERS)}; unpack it by hand")
    try:
        found = _UNPACKERS[kind](archive, wanted, folder)
    except BAD_ARCHIVE as error:
        raise TraceError(f"{archive}: cannot be unpacked ({reason(error)}); delete it and fetch it again") from None
    missing = [name for name in wanted if name not in found]
    if missing:
        raise TraceError(f"{archive}: does not hold {', '.join(missing)}; delete it and fetch it again")
    return [folder / name for name in wanted]


def _match(path: str, wanted: Sequence[str]) -> str | None:
    """The wanted file that a path of an archive is.

    >>> _match("./data/Venus/cluster_log.csv", ["Earth/cluster_log.csv", "Venus/cluster_log.csv"])
    'Venus/cluster_log.csv'
    """
    return next((name for name in wanted if f"/{path}".endswith(f"/{name}")), None)


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def _written(source: _Readable, target: Path) -> None:
    with replacing(target) as draft, draft.open("wb") as file:
        while chunk := _read(source):
            file.write(chunk)


def _read(source: _Readable) -> bytes:
    """The next bytes; what goes wrong here is the archive, not the disk that is written to."""
    try:
        return source.read(CHUNK_BYTES)
    except OSError as error:
        raise EOFError(reason(error)) from None


def _from_tar(archive: Path, wanted: Sequence[str], folder: Path) -> set[str]:
    found: set[str] = set()
    with tarfile.open(archive, "r|gz") as members:
        for member in members:
            name = _match(member.name, wanted) if member.isfile() else None
            source = members.extractfile(member) if name and name not in found else None
            if name and source:
                _written(source, folder / name)
                found.add(name)
            if len(found) == len(wanted):
                break
    return found


def _from_zip(archive: Path, wanted: Sequence[str], folder: Path) -> set[str]:
    found: set[str] = set()
    with zipfile.ZipFile(archive) as members:
        for member in members.infolist():
            name = None if member.filename.startswith("__MACOSX/") else _match(member.filename, wanted)
            if name and name not in found:
                with members.open(member) as source:
                    _written(source, folder / name)
                found.add(name)
    return found


def _from_gzip(archive: Path, wanted: Sequence[str], folder: Path) -> set[str]:
    with gzip.open(archive) as source:
        _written(source, folder / wanted[0])
    return {wanted[0]}


_UNPACKERS: dict[str, Callable[[Path, Sequence[str], Path], set[str]]] = {
    ".tar.gz": _from_tar,
    ".zip": _from_zip,
    ".gz": _from_gzip,
}
