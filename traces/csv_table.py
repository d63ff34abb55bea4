"""CSV files as tables of text, with each row's line as a person sees it in an editor."""

import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Sequence

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place, shown_columns
from jobcast.traces.files import FileBytes

CONTROL = "Cc"
"""Unicode category of the characters that no header holds."""
UTF_8 = "give a CSV file in UTF-8 or a Parquet file"
FIRST_ROW = 2
"""Line of the first row: the header is line 1."""


def by_line(index: int) -> str:
    """Name of a row in a file whose rows are its lines."""
    return f"row {index + FIRST_ROW}"


def header_of(head: bytes) -> list[str]:
    """Column names in the first line that is not blank, or none if this is no CSV text.

    >>> header_of(b"job_id, pool\\n1,a")
    ['job_id', 'pool']
    """
    line = head.lstrip(b"\r\n").partition(b"\n")[0].rstrip(b"\r")
    try:
        text = line.decode("utf-8-sig")
        row = next(csv.reader([text]), [])
    except (UnicodeDecodeError, csv.Error):
        return []
    if any(unicodedata.category(character) == CONTROL for character in text if character != "\t"):
        return []
    return [name.strip() for name in row]


def read_csv(file: FileBytes) -> tuple[pl.DataFrame, Place]:
    """Read a CSV file as text; empty fields are null, blank lines are no rows.

    Raises
    ------
    TraceError
        The file is no UTF-8 text, or its header or a row of it is malformed.
    """
    names = header_of(file.data)
    check_header(names, file.path)
    frame = _plain(file.data, len(names))
    if frame is None:
        frame, lines = _row_by_row(file, names)
        return frame, Place(file.path, lambda index: f"row {lines[index]}")
    frame.columns = names
    return frame, Place(file.path, by_line)


def rows_of(file: FileBytes, names: list[str], before: int) -> tuple[pl.DataFrame, Sequence[int]]:
    """Rows of a piece of a file, and the line of the whole file that each begins on.

    Parameters
    ----------
    file : a header of one line, then the piece
    names : columns by that header
    before : lines of the whole file before the piece

    Raises
    ------
    TraceError
        The piece is no UTF-8 text, or a row of it is malformed.
    """
    frame = _plain(file.data, len(names))
    if frame is None:
        return _row_by_row(file, names, before - 1)
    frame.columns = names
    return frame, range(before + 1, before + 1 + frame.height)


def check_header(names: list[str], path: str) -> None:
    """Refuse a file without a header, or with a column of it given twice."""
    if not names:
        raise TraceError(f"{path}: not a text file with a header; give a CSV file in UTF-8 or a Parquet file")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise TraceError(f"{path}, row 1: column {shown_columns(repeated)} is given twice; rename or drop one")


def _plain(data: bytes, width: int) -> pl.DataFrame | None:
    """Fast path: one line a row, no quotes, the same number of fields in each; None where that does not hold.

    No row has more fields than the header (that is an error to polars), so the commas tell that none has fewer.
    """
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if b'"' in data or b"\0" in data or data.count(b",") != lines * (width - 1):
        return None
    try:
        frame = pl.read_csv(io.BytesIO(data), infer_schema=False, quote_char=None)
    except pl.exceptions.PolarsError:
        return None
    return frame if frame.height == lines - 1 and frame.width == width else None


def _row_by_row(file: FileBytes, names: list[str], shift: int = 0) -> tuple[pl.DataFrame, Sequence[int]]:
    """Slow path, which knows the line that each row begins on; lines are counted from `shift`."""
    reader = csv.reader(io.StringIO(file.text(UTF_8, shift + 1), newline=""), strict=True)
    rows: list[Sequence[str]] = []
    ends = [0]
    lines: list[int] = []
    try:
        for row in reader:
            ends.append(reader.line_num)
            if row:
                rows.append(row)
                lines.append(ends[-2] + 1 + shift)
    except csv.Error as error:
        line = reader.line_num + shift
        raise TraceError(f"{file.path}, row {line}: malformed ({error}); correct the line") from None
    for fields, line in zip(rows, lines, strict=True):
        if len(fields) != len(names):
            counts = f"{len(fields)} fields where the header has {len(names)}"
            raise TraceError(f"{file.path}, row {line}: {counts}; correct the line")
    columns = zip(*rows[1:], strict=True) if len(rows) > 1 else [()] * len(names)
    frame = pl.DataFrame(
        [
            pl.Series(name, [field or None for field in column], dtype=pl.String)
            for name, column in zip(names, columns, strict=True)
        ]
    )
    return frame, lines[1:]
