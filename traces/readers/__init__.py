"""Readers by the format's name, found through the entry point group "jobcast.readers": ours and other packages'."""

import os
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.files import PathLike, read_file
from jobcast.traces.readers.reading import Reading
from jobcast.traces.readers.unknown import described
from jobcast.traces.table import Trace

ENTRY_POINT_GROUP = "jobcast.readers"
HEAD_BYTES = 65536
"""How much of a file a reader is shown to recognise its format by."""


class Reader(Protocol):
    """A format that traces come in.

    Another package adds one by naming a class without arguments (or an object) of this shape as an entry point:

        [project.entry-points."jobcast.readers"]
        ours = "our_package.traces:OurReader"

    The entry point's name is what `jobcast trace convert` calls the format. `read` makes a `Reading` of a
    `Trace.from_frame` of canonical columns (`columns.COLUMNS`), with every record either a job of the trace or counted
    in its `dropped`, so that `len(trace) + sum(trace.dropped.values()) == trace.source.rows`; what cannot be read at
    all is a `TraceError` of one line that names file, row, column and value. `reading.leave_out`, `typed_columns` and
    `read_csv` do most of that.
    """

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
        """Whether a file that begins with `head` (its first `HEAD_BYTES` bytes) is of this format."""
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

    Parameters and errors as `read_trace`; without a format the files are looked at until one is recognised.
    """
    if not sources:
        raise ConfigError("no file to read; name one")
    reader = reader_named(format) if format is not None else reader_for(sources)
    return reader.read(sources, timezone, strict)


def reader_named(name: str) -> Reader:
    """Reader of a format, ours or another package's.

    Raises
    ------
    ConfigError
        There is none of that name, or it cannot be loaded.
    """
    entries = _entries()
    if name not in entries:
        raise ConfigError(f"format {name!r} is not known; give one of {', '.join(entries)}")
    return _loaded(entries[name])


def format_names() -> list[str]:
    """Names of all formats: canonical, then by name."""
    return list(_entries())


def reader_for(sources: Sequence[PathLike]) -> Reader:
    """Reader of the first source that one recognises; a format's further tables may be recognised by none.

    Raises
    ------
    TraceError
        A file cannot be read, or none is of a known format: the line says what the first holds, what the nearest
        format lacks, and which formats there are.
    """
    heads = [(path, read_file(path, HEAD_BYTES).data) for path in sources]
    readers, broken = [], []
    for entry in _entries().values():
        try:
            reader = _loaded(entry)
        except ConfigError as error:  # another package's reader is in nobody's way; told where no other will do
            broken.append(f"; {error}")
            continue
        if any(reader.recognises(path, head) for path, head in heads):
            return reader
        readers.append(reader)
    path, head = heads[0]
    raise TraceError(f"{os.fspath(path)}: of no known format: {described(head, readers)}{''.join(broken)}")


def _entries() -> dict[str, EntryPoint]:
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    return {name: found[name] for name in sorted(found, key=lambda name: (name != FIRST, name))}


def _loaded(entry: EntryPoint) -> Reader:
    try:
        made = entry.load()
        reader: Reader = made() if isinstance(made, type) else made
    except Exception as error:  # another package's code may fail in any way
        raise ConfigError(f"reader {entry.name!r} ({entry.value}) does not load ({error}); mend it") from error
    return reader
