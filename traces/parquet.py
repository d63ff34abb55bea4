"""Parquet files of our own, sealed: a byte that changed on its way is found before anything of the file is believed.

The seal lies between the columns and the footer, where nothing of the file points: any Parquet reader skips it, and any
writer that saves the table again leaves it out. So a table that somebody edited is read like any other.
"""

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.files import FileBytes, PathLike, hushed, read_file, reason

PARQUET_MAGIC = b"PAR1"
SEAL_BEGINS, SEAL_ENDS = b"\0jobcast sha256\0", b"\0jobcast sealed\0"
"""What stands around the digest, in hex, of all other bytes of the file."""
SEAL_BYTES = len(SEAL_BEGINS) + 64 + len(SEAL_ENDS)
ENOUGH_ALIKE = 8
"""Bytes around a digest that tell a seal, whatever became of the others."""
TAIL_BYTES = 8
"""A Parquet file ends in the length of its footer, 4 bytes little-endian, and the magic."""
BLOCK_BYTES = 1 << 20
AGAIN = "write or copy it again"


def write_parquet(frame: pl.DataFrame, path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write a table, sealed; the same table gives the same bytes."""
    frame.write_parquet(path, compression="zstd", statistics=True, metadata=dict(metadata) if metadata else None)
    with open(path, "r+b") as file:
        _seal(file)


def read_parquet(source: PathLike | FileBytes, remedy: str = AGAIN) -> pl.DataFrame:
    """Read a table, ours or anyone's; `remedy` is what the user is told to do about one that cannot be read.

    Raises
    ------
    TraceError
        The file cannot be read, is no Parquet, or is not what jobcast wrote: a byte of it has changed.
    """
    file = _checked(source, remedy)
    try:
        with hushed():  # polars tells of a panic by itself, beside the error that it raises
            return pl.read_parquet(io.BytesIO(file.data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise TraceError(f"{file.path}: not a Parquet file that can be read ({reason(error)}); {remedy}") from None


def parquet_metadata(source: PathLike | FileBytes, remedy: str = AGAIN) -> dict[str, str]:
    """Texts that lie in the file beside its table, by key. Raises TraceError as `read_parquet`."""
    file = _checked(source, remedy)
    try:
        with hushed():
            return pl.read_parquet_metadata(io.BytesIO(file.data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise TraceError(f"{file.path}: not a Parquet file that can be read ({reason(error)}); {remedy}") from None


def is_parquet(head: bytes) -> bool:
    """Whether a file that begins so is Parquet."""
    return head.startswith(PARQUET_MAGIC)


def _seal(file: IO[bytes]) -> None:
    """Put the seal of an open Parquet file before its footer."""
    file.seek(-TAIL_BYTES, io.SEEK_END)
    length = int.from_bytes(file.read(4), "little")
    at = file.seek(-TAIL_BYTES - length, io.SEEK_END)
    footer = file.read()
    file.seek(0)
    digest = hashlib.sha256()
    while block := file.read(min(BLOCK_BYTES, at - file.tell())):
        digest.update(block)
    digest.update(footer)
    file.write(SEAL_BEGINS + digest.hexdigest().encode() + SEAL_ENDS + footer)


def _checked(source: PathLike | FileBytes, remedy: str) -> FileBytes:
    file = source if isinstance(source, FileBytes) else read_file(source)
    if not _as_sealed(file.data):
        raise TraceError(f"{file.path}: is not what jobcast wrote, bytes of it have changed; restore it, or {remedy}")
    return file


def _as_sealed(data: bytes) -> bool:
    """Whether a file has no seal, or one that fits; damage to the seal itself does not pass for none."""
    at = len(data) - TAIL_BYTES - int.from_bytes(data[-TAIL_BYTES:-4], "little") - SEAL_BYTES
    seal = data[at : at + SEAL_BYTES] if at >= 0 else b""
    begins, ends = seal[: len(SEAL_BEGINS)], seal[-len(SEAL_ENDS) :]
    alike = sum(map(int.__eq__, begins + ends, SEAL_BEGINS + SEAL_ENDS))
    if alike < ENOUGH_ALIKE and SEAL_BEGINS not in data and SEAL_ENDS not in data:
        return True
    view = memoryview(data)
    digest = hashlib.sha256(view[: max(at, 0)])
    digest.update(view[at + SEAL_BYTES :])
    return seal == SEAL_BEGINS + digest.hexdigest().encode() + SEAL_ENDS
