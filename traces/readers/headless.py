"""Tables of plain text without a header: one line a record, a separator between fields, no quotes."""

import io
from collections.abc import Sequence

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place
from jobcast.traces.files import FileBytes

FIRST_LINE = 1


def read_headless(
    file: FileBytes, names: Sequence[str], separator: str, first_line: int = FIRST_LINE
) -> tuple[pl.DataFrame, Place]:
    """Read such a table as text; empty fields are null.

    Parameters
    ----------
    file : its bytes
    names : of its columns, in order
    separator : between fields, one character
    first_line : number of the first line as a person sees it in the file

    Raises
    ------
    TraceError
        The file is no UTF-8 text, or a line has another number of fields; the first such line is named.
    """
    text = file.text("give a text file in UTF-8")
    lines = text.count("\n") + (not text.endswith("\n"))
    frame = None
    if text.count(separator) == lines * (len(names) - 1):
        frame = _plain(file.data, names, separator)
    if frame is None or frame.height != lines or frame.width != len(names):
        raise _first_bad(file, text, len(names), separator, first_line)
    return frame, Place(file.path, lambda index: f"row {index + first_line}")


def _plain(data: bytes, names: Sequence[str], separator: str) -> pl.DataFrame | None:
    try:
        return pl.read_csv(
            io.BytesIO(data.removeprefix(b"\xef\xbb\xbf")),
            has_header=False,
            new_columns=list(names),
            separator=separator,
            infer_schema=False,
            quote_char=None,
        )
    except pl.exceptions.PolarsError:
        return None


def _first_bad(file: FileBytes, text: str, width: int, separator: str, first_line: int) -> TraceError:
    for number, line in enumerate(text.splitlines(), first_line):
        found = line.count(separator) + 1 if line.strip() else 0
        if found != width:
            return TraceError(f"{file.path}, row {number}: {found} fields where {width} are due; correct the line")
    return TraceError(f"{file.path}: not a table of {width} fields a line; check the file")
