"""CSV files of any size, read block by block: only one block is held as text."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place
from jobcast.traces.csv_table import check_header, header_of, rows_of
from jobcast.traces.files import FileBytes, PathLike, kept_copy, read_file, reason

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
        digest.update(data)
        ended = before + data.count(b"\n")
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
    if len(frames) == 1:
        return frames[0]
    text = {name for frame in frames for name, dtype in frame.schema.items() if dtype == pl.String}
    alike = [
        frame.with_columns(pl.col(name).cast(pl.String) for name in frame.columns if name in text) for frame in frames
    ]
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
                end = 0 if data.count(b'"', 0, end) % 2 else end
                rest = data[end:]
                if end:
                    yield data[:end]
    except OSError as error:
        read_file(path, 1)
        raise TraceError(f"{os.fspath(path)}: cannot be read ({reason(error)}); check the disk") from None
    if nothing:
        read_file(path, 1)
    if rest:
        yield rest
