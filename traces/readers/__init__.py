"""Readers by the format's name, found through the entry point group "jobcast.readers": ours and other packages'.

What to say of a file that no reader recognises.
"""

import codecs
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from itertools import product
from typing import Protocol

from polars.exceptions import PanicException

from jobcast.domain.errors import ConfigError, JobcastError, TraceError
from jobcast.traces.check import MOST_SHOWN, shown_columns
from jobcast.traces.csv_table import header_of
from jobcast.traces.files import PathLike, kept_copy, read_file, reason, rereadable
from jobcast.traces.readers.reading import Reading, contradictions
from jobcast.traces.table import Trace

PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""How compressed files begin."""
SHEETS = re.compile(
    rb"\xd0\xcf\x11\xe0|PK\x03\x04.*(xl/(workbook|worksheets|theme|styles)|opendocument\.spreadsheet)", re.DOTALL
)
"""How spreadsheets begin, of Excel and of LibreOffice: most are zip files, by the names of what lies in them."""
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How text begins that Windows calls Unicode, as its shell writes what a command says."""


def described(head: bytes, readers: "Sequence[Reader]") -> str:
    """What a file holds that begins with `head`, what the nearest format wants, and what to do, in one line."""
    names = ", ".join(reader.name for reader in readers)
    if wrapped := _wrapped(head):
        return wrapped
    found = header_of(head)
    if not any(found):
        return f"neither CSV text nor Parquet; name its format to `jobcast trace convert` ({names})"
    if head.lstrip().startswith((b"{", b"[")):
        return f"JSON of none of them; write CSV or Parquet, or name its format to `jobcast trace convert` ({names})"
    headers = {mark: set(header_of(head, mark)) for mark in ",;|\t"}
    for reader, mark in product(readers, headers):
        if reader.needs and set(reader.needs) <= headers[mark]:
            return f"it has the columns of {reader.name} with {mark!r} between; write it as {reader.name} is written"
    # of equal shares the first reader wins, which is canonical
    nearest = max(readers, key=lambda reader: _share(reader.needs, found))
    missing = ", ".join(column for column in nearest.needs if column not in found)
    return (
        f"found {'column' if len(found) == 1 else 'columns'} {shown_columns(found)}; nearest is {nearest.name}"
        f"{', which also needs ' if missing else ''}{missing}; rename the columns, "
        f"or name the format to `jobcast trace convert` ({names})"
    )


def _wrapped(head: bytes) -> str:
    """What is to be done to a file before any format can be read from it, in words; nothing where it is fine.

    >>> _wrapped(b"BZh91AY"), _wrapped(b"job_id,pool")
    ('it is compressed (bzip2); unpack it first', '')
    """
    if head.startswith(UTF_16):
        return "it is text in UTF-16; save it in UTF-8"
    if SHEETS.match(head):
        return "it is a spreadsheet; save its sheet as CSV and give that"
    packer = next((packer for magic, packer in PACKED.items() if head.startswith(magic)), "")
    return f"it is compressed ({packer}); unpack it first" if packer else ""


def _share(needs: Sequence[str], found: Sequence[str]) -> float:
    return sum(column in found for column in needs) / len(needs) if needs else 0.0


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

    @property
    def needs(self) -> Sequence[str]:
        """Columns that a file of this format has, for the message to those whose file has not; none where it has no
        header."""

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` (its first `HEAD_BYTES` bytes) is of this format."""

    def read(self, sources: Sequence[PathLike], timezone: str | None, strict: bool) -> Reading:
        """Read a trace from its file or files, in any order: a format may come in several tables.

        `timezone` is that of times without an offset, `strict` makes bad rows an error.
        """


FIRST = "canonical"
"""The format that is tried before all others."""


OF_FRAMES = "Trace.from_frame(frame, name=NAME) makes a trace of a polars frame"


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
    for path in sources:
        if not isinstance(path, str | os.PathLike):
            raise ConfigError(f"{type(path).__name__} is no path of a file; {OF_FRAMES}")
    # a pipe can be read once, but its format is looked for before it is read
    with rereadable(sources) as kept:
        reader, broken = (reader_named(format), ()) if format is not None else _recognised(kept)
        # another package's reader may well unpack a table that it does not recognise
        if _is_ours(reader):
            _refuse_wrapped(reader, kept)
        reading = _read(reader, kept, timezone, strict)
    # the check on durations is of all formats, so it stands here and in no reader
    more = (*broken, *contradictions(reading.trace, strict))
    trace = replace(reading.trace, notes=(*reading.trace.notes, *more)) if more else reading.trace
    return replace(reading, trace=trace, format_name=reader.name)


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
    with rereadable(sources) as kept:
        return _recognised(kept)[0]


def _recognised(sources: Sequence[PathLike]) -> tuple[Reader, tuple[str, ...]]:
    """As `reader_for`, of sources that can be read again; and a line for each reader that broke on the way."""
    # each file is opened once, however many readers look at its head
    heads = [(kept_copy(path), read_file(path, HEAD_BYTES).data) for path in sources]
    readers, broken = list[Reader](), list[str]()
    for entry in _entries().values():
        try:
            reader = _loaded(entry)
            if _knows(reader, entry, heads):
                return reader, tuple(broken)
        except ConfigError as error:  # another package's reader is in nobody's way
            broken.append(str(error))
            continue
        readers.append(reader)
    text = "".join(f"; {line}" for line in broken)
    raise TraceError(f"{os.fspath(sources[0])}: of no known format: {described(heads[0][1], readers)}{text}")


def _knows(reader: Reader, entry: EntryPoint, heads: Sequence[tuple[PathLike, bytes]]) -> bool:
    try:
        return any(reader.recognises(path, head) for path, head in heads)
    # a reader of ours that fails is a bug of ours, which must not hide behind another format
    except Exception as error:  # another package's code may fail in any way
        if _is_ours(reader):
            raise
        raise ConfigError(
            f"reader {entry.name!r} ({entry.value}) fails to tell a format ({_why(error)}); mend it"
        ) from error


def _refuse_wrapped(reader: Reader, sources: Sequence[PathLike]) -> None:
    """Refuse a source that must be unpacked or saved anew first, unless its reader does that by itself."""
    for path in sources:
        head = read_file(path, HEAD_BYTES).data
        if (wrapped := _wrapped(head)) and not reader.recognises(kept_copy(path), head):
            raise TraceError(f"{os.fspath(path)}: {wrapped}")


def _read(reader: Reader, sources: Sequence[PathLike], timezone: str | None, strict: bool) -> Reading:
    """What a reader makes of its sources; whatever else than a JobcastError comes out of it is told in one line.

    Another package's reader is given the copies of pipes: it may open its sources by itself.
    """
    shown = " + ".join(os.fspath(path) for path in sources)
    try:
        if _is_ours(reader):
            return reader.read(sources, timezone, strict)
        # typed as object: nothing says that another package keeps to the protocol
        reading: object = reader.read([kept_copy(path) for path in sources], timezone, strict)
        if not isinstance(reading, Reading):
            raise TypeError(f"it returns {type(reading).__name__}, no Reading")
        return reading
    except JobcastError:
        raise
    # a panic of polars derives from BaseException, so that the next clause would miss it
    except PanicException as error:
        raise TraceError(f"{shown}: holds what cannot be read ({reason(error)}); write or copy it again") from None
    except Exception as error:
        if _is_ours(reader):
            raise  # a mistake of our own, to be reported
        who = f"reader {reader.name!r} ({type(reader).__module__})"
        raise TraceError(f"{shown}: {who} fails ({_why(error)}); mend it or convert the file by hand") from error


@cache
def _entries() -> dict[str, EntryPoint]:
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    # False sorts before True: the canonical form comes first, all others by name
    return {name: found[name] for name in sorted(found, key=lambda name: (name != FIRST, name))}


def _loaded(entry: EntryPoint) -> Reader:
    try:
        made = entry.load()
        reader: Reader = made() if isinstance(made, type) else made
        # asked for now, so that what a broken plug-in lacks is named here and not in the middle of a message
        _ = f"{reader.name}", tuple(reader.needs)
    except Exception as error:  # another package's code may fail in any way
        raise ConfigError(f"reader {entry.name!r} ({entry.value}) does not load ({_why(error)}); mend it") from error
    return reader


def _is_ours(reader: Reader) -> bool:
    return type(reader).__module__.startswith(f"{__package__}.")


def _why(error: Exception) -> str:
    """
    >>> _why(KeyError("pool"))
    "KeyError: 'pool'"
    """
    return f"{type(error).__name__}: {reason(error)[:MOST_SHOWN]}"
