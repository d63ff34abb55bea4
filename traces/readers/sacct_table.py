"""Tables of Slurm's commands whose fields are separated by "|", as `sacct --parsable2` and `--parsable` write them."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place
from jobcast.traces.files import FileBytes

SEPARATOR = b"|"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
AFTER_LAST = "_after_last"
"""Stands for the empty field that --parsable writes after the last one."""
STAND_IN = "\x1f"
"""Stands for a separator in a job's name while a table is read."""
FREE_TEXT = "jobname"
"""The one column whose text users choose freely: it may hold separators, which Slurm does not escape."""
EXPORT = "export with sacct --parsable2"


@dataclass(frozen=True, slots=True)
class PipeTable:
    """Rows as text under lower-case column names; empty fields are null.

    Attributes
    ----------
    frame : the rows, repeated header lines included
    place : names rows by their lines, columns as the file writes them
    joined : rows whose job name held separators, put together again
    """

    frame: pl.DataFrame
    place: Place
    joined: int


def header_names(head: bytes) -> list[str]:
    """Columns, lower case, of a table that begins with `head`; none where its first line has no separator.

    >>> header_names(b"JobID|Submit|\\n1|2|\\n")
    ['jobid', 'submit', '']
    """
    line = head.lstrip(BYTE_ORDER_MARK).lstrip(b"\r\n").partition(b"\n")[0].rstrip(b"\r")
    if SEPARATOR not in line or not line.isascii():
        return []
    return [name.strip().lower() for name in line.decode("ascii").split("|")]


def read_pipes(file: FileBytes) -> PipeTable:
    """Read a table.

    Raises
    ------
    TraceError
        The file is no UTF-8 text, has no header, a column is given twice, or a row has too few or too many fields.
    """
    data = file.data.lstrip(BYTE_ORDER_MARK).replace(b"\r\n", b"\n")
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise TraceError(f"{file.path}, row {line}: holds binary data; {EXPORT}")
    body = data.lstrip(b"\n" + BYTE_ORDER_MARK)
    before = data[: len(data) - len(body)].count(b"\n")
    names = header_names(body)
    _check_header(names, file.path)
    shown = body.partition(b"\n")[0].decode("ascii").split("|")
    names = [*names[:-1], names[-1] or AFTER_LAST]
    columns = {name: written.strip() for name, written in zip(names, shown, strict=True)}
    lines: Sequence[int] = range(before + 2, before + 2 + body.count(b"\n"))
    frame, joined = _frame(body, names), 0
    if frame is None:
        rows, lines, joined = _mended(body, names, before, file.path)
        frame = _frame(rows, names)
    if frame is None:
        raise TraceError(f"{file.path}: its rows cannot be read as fields between |; {EXPORT}")
    if joined:
        frame = frame.with_columns(pl.col(FREE_TEXT).str.replace_all(STAND_IN, "|", literal=True))
    place = Place(file.path, lambda index: f"row {lines[index]}", columns)
    if names[-1] == AFTER_LAST:
        last = frame[AFTER_LAST]
        place.refuse(last.is_not_null(), last, "the row has more fields than the header", "correct the line")
        frame = frame.drop(AFTER_LAST)
    return PipeTable(frame, place, joined)


def _check_header(names: list[str], path: str) -> None:
    if not names:
        raise TraceError(f"{path}, row 1: no header of names between |; {EXPORT} and keep the header")
    given = names[:-1] if names[-1] == "" else names
    repeated = sorted({name for name in given if given.count(name) > 1})
    if repeated or "" in given:
        what = f"column {repeated[0]} is given twice" if repeated and repeated[0] else "a column has no name"
        raise TraceError(f"{path}, row 1: {what}; {EXPORT}")


def _frame(body: bytes, names: list[str]) -> pl.DataFrame | None:
    """All rows, where each is a line of as many fields as the header; None where that does not hold."""
    lines = body.count(b"\n") + (not body.endswith(b"\n"))
    if b"\n\n" in body or body.count(SEPARATOR) != lines * (len(names) - 1):
        return None
    try:
        frame = pl.read_csv(
            io.BytesIO(body), separator="|", quote_char=None, infer_schema=False, has_header=False, skip_rows=1,
            new_columns=names,
        ) if lines > 1 else pl.DataFrame(schema=dict.fromkeys(names, pl.String))  # fmt: skip
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    return frame if (frame.height, frame.width) == (lines - 1, len(names)) else None


def _mended(body: bytes, names: list[str], before: int, path: str) -> tuple[bytes, Sequence[int], int]:
    """The table without blank lines and with stand-ins for separators in job names; its rows' lines; how many."""
    header, *lines = body.split(b"\n")
    free = names.index(FREE_TEXT) if FREE_TEXT in names else None
    separators, joined = len(names) - 1, 0
    rows: list[bytes] = [header]
    numbers: list[int] = []
    for line, row in enumerate(lines, start=before + 2):
        if not row.strip():
            continue
        surplus = row.count(SEPARATOR) - separators
        if surplus > 0 and free is not None and STAND_IN.encode() not in row:
            fields = row.split(SEPARATOR)
            end = free + surplus + 1
            row = SEPARATOR.join([*fields[:free], STAND_IN.encode().join(fields[free:end]), *fields[end:]])
            joined += 1
        elif surplus:
            counts = f"{row.count(SEPARATOR) + 1} fields where the header has {separators + 1}"
            raise TraceError(f"{path}, row {line}: {counts}; correct the line")
        _check_text(row, path, line)
        rows.append(row)
        numbers.append(line)
    return b"\n".join(rows), numbers, joined


def _check_text(row: bytes, path: str, line: int) -> None:
    try:
        row.decode("utf-8")
    except UnicodeDecodeError:
        raise TraceError(f"{path}, row {line}: not UTF-8 text; convert the file to UTF-8") from None
