"""A database of sqlite that only grows: made whole or not at all, told apart from others, shared by processes."""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from jobcast.domain.errors import LedgerError
from jobcast.traces.files import disk_trouble, reason, unwritable
from jobcast.traces.owners import draft_room, sweep_drafts

BUSY_TIMEOUT_S = 30.0  # another process may be writing


class GrowingDatabase:
    """Rows are added and never changed; several processes may write at once. Without a file it reads as empty.

    All methods raise LedgerError for a file that is none of ours, is of a newer jobcast, or cannot be reached.

    Parameters
    ----------
    file : of the database
    what : it is called in errors
    ours : application id by which it is known
    schema : number of its tables' form; a file tells its own
    definitions : SQL that makes the tables
    tables : their names
    """

    def __init__(self, file: Path, what: str, ours: int, schema: int, definitions: str, tables: Sequence[str]) -> None:
        self.file = file.absolute()
        self._what, self._ours, self._schema = what, ours, schema
        never = (
            f"CREATE TRIGGER no_{how}_of_{table} BEFORE {how} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, 'rows of the {what} are never changed'); END;"
            for table in tables
            for how in ("UPDATE", "DELETE")
        )
        marks = (f"PRAGMA application_id = {ours};", f"PRAGMA user_version = {schema};")
        self._script = "\n".join((definitions, *marks, *never))

    def add(self, how: str, table: str, rows: Sequence[Mapping[str, Any]]) -> int:
        """Add rows of the same columns, all or none of them; how many were new.

        `how`: INSERT, or INSERT OR IGNORE where a row may be there already.
        """
        if not rows:
            return 0
        names, values = ", ".join(rows[0]), ", ".join(f":{name}" for name in rows[0])
        with self.open(make=True) as database:
            # Taken at once: two that read first and write then would wait for each other.
            database.execute("BEGIN IMMEDIATE")
            before = database.total_changes
            database.executemany(f"{how} INTO {table} ({names}) VALUES ({values})", rows)
            database.execute("COMMIT")
            return database.total_changes - before

    def make(self) -> None:
        """Make the file where there is none."""
        with self.open(make=True):
            pass

    @contextmanager
    def open(self, make: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection whose rows go by name; `make`: the file, where there is none."""
        try:
            if make and not self.file.exists():
                self._make()
            # An empty one in memory where there is no file to read.
            place = f"{self.file.as_uri()}?mode=rw" if self.file.exists() else None
            with closing(_connected(place or ":memory:")) as database:
                if place is None:
                    database.executescript(self._script)
                self._check(database)
                yield database
        except (sqlite3.Error, OSError) as error:
            if disk_trouble(error):
                raise LedgerError(unwritable(self.file, error)) from error
            raise LedgerError(
                f"{self.file}: cannot be used as {self._what} ({reason(error)}); check its folder, or move it away"
            ) from error

    def _make(self) -> None:
        """Make the database beside its place first: others see a whole one, or none."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        sweep_drafts(self.file.parent, self.file.name)
        with draft_room(self.file) as room:
            draft = room / self.file.name
            with closing(_connected(draft.as_uri())) as database:
                # Readers and a writer at once; kept in the file.
                database.execute("PRAGMA journal_mode = WAL")
                database.executescript(self._script)
            # Where another process was first its database is the one.
            with suppress(FileExistsError):
                os.link(draft, self.file)

    def _check(self, database: sqlite3.Connection) -> None:
        ours, schema = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        if ours != self._ours:
            raise LedgerError(f"{self.file}: is a database, but no {self._what}; move it away")
        if schema > self._schema:
            raise LedgerError(
                f"{self.file}: was written by a newer jobcast (schema {schema}, not {self._schema}); update jobcast"
            )


def _connected(place: str) -> sqlite3.Connection:
    # Transactions are begun and ended by hand.
    made = sqlite3.connect(place, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    made.row_factory = sqlite3.Row
    return made
