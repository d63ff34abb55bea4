"""CSV files as tables of text, with each row's line as a person sees it in an editor.

Files of any size are read block by block: only one block is held as text.
"""

import csv
import hashlib
import io
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place, shown_columns
from jobcast.traces.files import FileBytes, PathLike, kept_copy, read_file, reason

CONTROL = "Cc"
"""Unicode category of the characters that no header holds."""
UTF_8 = "give a CSV file in UTF-8 or a Parquet file"
FIRST_ROW = 2
"""Line of the first row: the header is line 1."""


def by_line(index: int) -> str:
    """Name of a row in a file whose rows are its lines."""
    return f"row {index + FIRST_ROW}"


def header_of(head: bytes, mark: str = ",") -> list[str]:
    """Column names, parted by a mark, in the first line that is not blank, or none if this is no CSV text.

    >>> header_of(b"job_id, pool\\n1,a")
    ['job_id', 'pool']
    """
    # partition, since splitting would walk the whole of a large head
    line = head.lstrip(b"\r\n").partition(b"\n")[0].rstrip(b"\r")
    try:
        text = line.decode("utf-8-sig")
        row = next(csv.reader([text], delimiter=mark), [])
    except (UnicodeDecodeError, csv.Error):
        return []
    # binary files decode as UTF-8 now and then, control characters give them away
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
    # polars' fast path holds for nearly all files
    frame = _plain(file.data, len(names))
    if frame is None:
        frame, lines = _row_by_row(file, names)
        return frame, Place(file.path, lambda index: f"row {lines[index]}")
    # polars keeps blanks around names
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
    # commas at the end of each line, as spreadsheets leave them
    if "" in repeated:
        raise TraceError(f"{path}, row 1: {names.count('')} columns have no name; name or drop them")
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
    # newline="": else line ends within quotes would be changed, and lines miscounted
    reader = csv.reader(io.StringIO(file.text(UTF_8, shift + 1), newline=""), strict=True)
    rows: list[Sequence[str]] = []
    ends = [0]
    lines: list[int] = []
    try:
        for row in reader:
            # a quoted field may span lines: a row begins after the end of the one before
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
    # zip of nothing would lose the columns
    columns = zip(*rows[1:], strict=True) if len(rows) > 1 else [()] * len(names)
    frame = pl.DataFrame(
        [
            pl.Series(name, [field or None for field in column], dtype=pl.String)
            for name, column in zip(names, columns, strict=True)
        ]
    )
    return frame, lines[1:]


BLOCK_BYTES = 1 << 25
"""How much of a file is read at a time."""


@dataclass(frozen=True, slots=True)
class CsvTable:
    """What was made of a CSV file.

    Attributes
    ----------
    frame : the blocks as they were narrowed, one after another
    place : names each row of `frame` by its line in the file
    sha256 : of the file's bytes, in hex
    """

    frame: pl.DataFrame
    place: Place
    sha256: str


def read_csv_by_blocks(
    path: PathLike, narrow: Callable[[pl.DataFrame], pl.DataFrame], block_bytes: int = BLOCK_BYTES
) -> CsvTable:
    """Read a CSV file of any size.

    Parameters
    ----------
    path : the file
    narrow : given the rows of a block as text (empty fields are null), returns as many rows in leaner types; a
        column that stays text in one block is text in the end
    block_bytes : how much is read at a time; no row is cut

    Raises
    ------
    TraceError
        The file cannot be read, is no UTF-8 text, or its header or a row of it is malformed.
    """
    shown, digest = os.fspath(path), hashlib.sha256()
    header, names = b"", list[str]()
    frames: list[pl.DataFrame] = []
    lines: list[pl.Series] = []
    before = 0
    for data in _blocks(path, block_bytes):
        # hashed on the way, so that the file is read once
        digest.update(data)
        ended = before + data.count(b"\n")
        # the header is that of the first block; later ones get it put before them
        if not names:
            header, names, data, before = _split_header(data, shown)
        frame, numbers = rows_of(FileBytes(shown, header + data), names, before)
        frames.append(narrow(frame))
        lines.append(pl.Series(numbers, dtype=pl.Int64))
        before = ended
    numbering = pl.concat(lines)
    return CsvTable(stacked(frames), Place(shown, lambda index: f"row {numbering[index]}"), digest.hexdigest())


def stacked(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Frames one below another; a column that is text in one of them becomes text, one that is not there is null.

    >>> stacked([pl.DataFrame({"a": [1]}), pl.DataFrame({"a": ["x"], "b": [2]})]).rows()
    [('1', None), ('x', 2)]
    """
    # spares a copy of the whole
    if len(frames) == 1:
        return frames[0]
    text = {name for frame in frames for name, dtype in frame.schema.items() if dtype == pl.String}
    alike = [
        frame.with_columns(pl.col(name).cast(pl.String) for name in frame.columns if name in text) for frame in frames
    ]
    # relaxed: a column may be whole numbers in one block and decimals in the next
    return pl.concat(alike, how="diagonal_relaxed", rechunk=True)


def _split_header(data: bytes, path: str) -> tuple[bytes, list[str], bytes, int]:
    """Header line, its columns, what follows it, and the lines up to there."""
    names = header_of(data)
    check_header(names, path)
    rest = data.lstrip(b"\r\n")
    blank = data[: len(data) - len(rest)].count(b"\n")
    header, _, rest = rest.partition(b"\n")
    return header + b"\n", names, rest, blank + 1


def _blocks(path: PathLike, block_bytes: int) -> Iterator[bytes]:
    """The bytes of a file, or a pipe, in pieces that end where a row does: at a newline outside of quotes."""
    rest = b""
    nothing = True
    try:
        with open(kept_copy(path), "rb") as file:
            while data := file.read(block_bytes):
                nothing = False
                data = rest + data
                end = data.rfind(b"\n") + 1
                # an odd number of quotes: the newline lies within a field, read on
                end = 0 if data.count(b'"', 0, end) % 2 else end
                rest = data[end:]
                if end:
                    yield data[:end]
    except OSError as error:
        # says in our words why a file cannot be read
        read_file(path, 1)
        raise TraceError(f"{os.fspath(path)}: cannot be read ({reason(error)}); check the disk") from None
    # an empty file is an error, but a loop without a turn raises none
    if nothing:
        read_file(path, 1)
    if rest:
        yield rest
