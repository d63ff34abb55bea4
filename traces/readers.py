"""Readers by the format's name; other packages add theirs through the entry point group "jobcast.readers"."""

import os
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.canonical import CanonicalReader
from jobcast.traces.csv_table import header_of
from jobcast.traces.files import PathLike, read_file
from jobcast.traces.philly import PhillyReader
from jobcast.traces.table import Trace

ENTRY_POINT_GROUP = "jobcast.readers"
HEAD_BYTES = 65536
"""How much of a file a reader is shown to recognise its format by."""


class Reader(Protocol):
    """A format that traces come in."""

    @property
    def name(self) -> str:
        """What users call the format."""
        ...

    @property
    def needs(self) -> Sequence[str]:
        """Columns that a file of this format has, for the message to those whose file has not."""
        ...

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` is of this format."""
        ...

    def read(self, path: PathLike, timezone: str | None, strict: bool) -> Trace:
        """Read a trace; `timezone` is that of times without an offset, `strict` makes bad rows an error."""
        ...


READERS: dict[str, Reader] = {reader.name: reader for reader in (CanonicalReader(), PhillyReader())}
"""The readers that come with the project; the first that recognises a file reads it."""


def read_trace(
    path: PathLike, *, format: str | None = None, timezone: str | None = None, strict: bool = False
) -> Trace:
    """Read a trace from a file.

    Parameters
    ----------
    path : the file
    format : name of its format; None looks at how the file begins
    timezone : IANA zone of times without an offset; None reads them as UTC, and a note says so
    strict : make an error of what would otherwise be noted: rows left out, times without an offset

    Raises
    ------
    TraceError
        The file cannot be read, is of no known format, or a row of it cannot be used.
    ConfigError
        The format or the zone is not known.
    """
    reader = reader_named(format) if format is not None else _reader_for(path)
    return reader.read(path, timezone, strict)


def reader_named(name: str) -> Reader:
    """Reader of a format, ours or another package's.

    Raises
    ------
    ConfigError
        There is none of that name, or it cannot be loaded.
    """
    if name in READERS:
        return READERS[name]
    for entry in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return _loaded(entry)
    raise ConfigError(f"format {name!r} is not known; give one of {', '.join(format_names())}")


def format_names() -> list[str]:
    """Names of all formats, ours first."""
    others = {entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)} - set(READERS)
    return [*READERS, *sorted(others)]


def _loaded(entry: EntryPoint) -> Reader:
    try:
        made = entry.load()
        reader: Reader = made() if isinstance(made, type) else made
    except Exception as error:  # another package's code may fail in any way
        raise ConfigError(f"reader {entry.name!r} ({entry.value}) does not load ({error}); mend it") from error
    return reader


def _reader_for(path: PathLike) -> Reader:
    head = read_file(path, HEAD_BYTES).data
    for name in format_names():
        reader = reader_named(name)
        if reader.recognises(path, head):
            return reader
    found = ", ".join(header_of(head))
    if not found:
        raise TraceError(f"{os.fspath(path)}: neither CSV text nor Parquet; give a trace in one of these")
    needed = "; or ".join(f"{', '.join(reader.needs)} ({name})" for name, reader in READERS.items())
    missing = min(([c for c in reader.needs if c not in header_of(head)] for reader in READERS.values()), key=len)
    lacks = f"no known format, column {' and '.join(missing)} missing" if missing else "no known format"
    raise TraceError(f"{os.fspath(path)}: {lacks}; found columns {found}; needed are {needed}")
