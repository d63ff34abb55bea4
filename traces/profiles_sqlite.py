"""The table `profiles` of a SQLite file: read, written anew, or merged into in one transaction."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path

import polars as pl

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.files import FileBytes, reason, replacing

SQLITE_MAGIC = b"SQLite format 3\0"
SQLITE_SUFFIXES = (".sqlite", ".db")
CREATE = """
CREATE TABLE IF NOT EXISTS profiles (
    model TEXT NOT NULL,
    batch_size INTEGER,
    gpu_type TEXT NOT NULL,
    gpus INTEGER NOT NULL CHECK (gpus >= 1),
    epoch_s REAL NOT NULL CHECK (epoch_s > 0)
)
"""
UNIQUE = """
CREATE UNIQUE INDEX IF NOT EXISTS profiles_key ON profiles (model, ifnull(batch_size, -1), gpu_type, gpus)
"""
DELETE = "DELETE FROM profiles WHERE model = ? AND batch_size IS ? AND gpu_type = ? AND gpus = ?"
INSERT = "INSERT INTO profiles (model, batch_size, gpu_type, gpus, epoch_s) VALUES (?, ?, ?, ?, ?)"


def sqlite_frame(file: FileBytes) -> pl.DataFrame:
    """The table `profiles` as text, in the file's order. Raises TraceError where it cannot be read."""
    path = file.path
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as opened:
            asked = opened.execute("SELECT * FROM profiles ORDER BY rowid")
            names = [column[0] for column in asked.description]
            rows = asked.fetchall()
    except sqlite3.Error as error:
        raise TraceError(f"{path}: its table profiles cannot be read ({reason(error)}); write it again") from None
    columns = {
        name: pl.Series(name, [None if row[at] is None else str(row[at]) for row in rows], dtype=pl.String)
        for at, name in enumerate(names)
    }
    return pl.DataFrame(columns)


def write_sqlite(frame: pl.DataFrame, path: str | PathLike[str]) -> None:
    """Write a file that holds these rows alone. Raises ConfigError if it cannot be written.

    Parameters
    ----------
    frame : model, batch_size, gpu_type, gpus, epoch_s; checked
    path : what was there is replaced at the end
    """
    with replacing(path) as draft, _opened(draft, path) as opened:
        _insert(opened, frame)


def merge_sqlite(frame: pl.DataFrame, path: str | PathLike[str]) -> tuple[int, int]:
    """Lay rows over those of a file, in one transaction; its other tables stay.

    Returns
    -------
    added, replaced : how many rows are new, and how many took the place of one with the same key

    Raises ConfigError if it cannot be written; then it stays as it was.
    """
    if not Path(path).exists():
        write_sqlite(frame, path)
        return frame.height, 0
    with _opened(path, path) as opened:
        replaced = sum(opened.execute(DELETE, key).rowcount for key in frame.drop("epoch_s").iter_rows())
        _insert(opened, frame)
    return frame.height - replaced, replaced


def _insert(opened: sqlite3.Connection, frame: pl.DataFrame) -> None:
    opened.executemany(INSERT, frame.iter_rows())


@contextmanager
def _opened(place: str | PathLike[str], told: str | PathLike[str]) -> Iterator[sqlite3.Connection]:
    """A transaction over a file with the table; errors name `told`."""
    try:
        with closing(sqlite3.connect(place, isolation_level=None)) as opened:
            opened.execute("BEGIN IMMEDIATE")
            try:
                opened.execute(CREATE)
                opened.execute(UNIQUE)
                yield opened
            except BaseException:
                opened.execute("ROLLBACK")
                raise
            opened.execute("COMMIT")
    except sqlite3.Error as error:
        raise ConfigError(f"{told}: cannot be written ({reason(error)}); check the file and its folder") from None
