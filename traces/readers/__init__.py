"""Readers by the format's name, found through the entry point group "jobcast.readers": ours and other packages'."""

import os
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.csv_table import header_of
from jobcast.traces.files import PathLike, read_file
from jobcast.traces.readers.reading import Reading
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
        """Columns that a file of this format has, for the message to those whose file has not; none where it has no
        header."""
        ...

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` is of this format."""
        ...

    def read(self, sources: Sequence[PathLike], timezone: str | None, strict: bool) -> Reading:
        """Read a trace from its file or files, in any order: a format may come in several tables.

        `timezone` is that of times without an offset, `strict` makes bad rows an error.
        """
        ...


FIRST = "canonical"
"""The format that is tried before all others."""


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
    return read_sources([path], format=format, timezone=timezone, strict=strict).trace


def read_sources(
    sources: Sequence[PathLike], *, format: str | None = None, timezone: str | None = None, strict: bool = False
) -> Reading:
    """Read a trace, and its quotas where they are told, from one file or the several tables that a format has.

    Parameters and errors as `read_trace`; without a format the first file is looked at.
    """
    reader = reader_named(format) if format is not None else _reader_for(sources[0])
    return reader.read(sources, timezone, strict)


def reader_named(name: str) -> Reader:
    """Reader of a format, ours or another package's.

    Raises
    ------
    ConfigError
        There is none of that name, or it cannot be loaded.
    """
    for entry in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return _loaded(entry)
    raise ConfigError(f"format {name!r} is not known; give one of {', '.join(format_names())}")


def format_names() -> list[str]:
    """Names of all formats: canonical, then by name."""
    return sorted(
        {entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)}, key=lambda name: (name != FIRST, name)
    )


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
    found = header_of(head)
    if not found:
        raise TraceError(f"{os.fspath(path)}: of no known format; give one of {', '.join(format_names())}")
    lacking = {name: [c for c in reader_named(name).needs if c not in found] for name in format_names()}
    nearest = min((name for name in lacking if lacking[name]), key=lambda name: len(lacking[name]), default=FIRST)
    raise TraceError(
        f"{os.fspath(path)}: no known format; nearest is {nearest}, column {' and '.join(lacking[nearest])} missing, "
        f"found columns {', '.join(found)}; give one of {', '.join(format_names())}"
    )
