"""The event log: what a running cluster did, in a database that only grows."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobcast.domain.errors import LedgerError
from jobcast.traces.files import disk_trouble, reason, unwritable

SUBMIT, START, END, LOOK = "submit", "start", "end", "look"
"""What happened to a job; a look tells only that somebody looked, and saw all there was to see by then."""
BUSY_TIMEOUT_S = 30.0  # another process may be writing
TABLES = """
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY, known_s REAL NOT NULL, kind TEXT NOT NULL, job_id TEXT NOT NULL, at_s REAL NOT NULL,
    facts TEXT NOT NULL, UNIQUE (job_id, kind, at_s)
);
CREATE TRIGGER IF NOT EXISTS no_update BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'rows of the event log are never changed'); END;
CREATE TRIGGER IF NOT EXISTS no_delete BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'rows of the event log are never changed'); END;
"""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes
    ----------
    known_s : from when it was known, seconds from the epoch
    kind : `SUBMIT`, `START`, `END` or `LOOK`
    job_id : empty for a look
    at_s : when it happened, seconds from the epoch
    facts : of a submission `pool`, `gpus`, `user` and `tag`; of an end `duration_s`, where it is told
    """

    known_s: float
    kind: str
    job_id: str
    at_s: float
    facts: Mapping[str, Any] = field(default_factory=dict)


class EventLog:
    """Events under a home; several processes may write at once. What was appended survives a killed process.

    All methods raise LedgerError where the file cannot be used.

    Parameters
    ----------
    home : see `registry.home.find_home`
    """

    def __init__(self, home: Path) -> None:
        self.file = (home / "live" / "live.sqlite").absolute()

    def append(self, events: Iterable[Event]) -> int:
        """Keep events; how many were new comes back: of one job, kind and time the first stays."""
        rows = [(one.known_s, one.kind, one.job_id, one.at_s, json.dumps(dict(one.facts))) for one in events]
        with self._open() as database, database:
            before = database.total_changes
            database.executemany(
                "INSERT OR IGNORE INTO events (known_s, kind, job_id, at_s, facts) VALUES (?, ?, ?, ?, ?)", rows
            )
            return database.total_changes - before

    def since(self, number: int) -> list[tuple[int, Event]]:
        """Events with their numbers, in the order in which they were kept, after the one with `number`."""
        query = "SELECT number, known_s, kind, job_id, at_s, facts FROM events WHERE number > ? ORDER BY number"
        with self._open() as database:
            found = database.execute(query, (number,)).fetchall()
        return [
            (place, Event(known_s, kind, job_id, at_s, json.loads(facts)))
            for place, known_s, kind, job_id, at_s, facts in found
        ]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.file, timeout=BUSY_TIMEOUT_S)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.executescript(TABLES)
                yield database
        except (sqlite3.Error, OSError) as error:
            if disk_trouble(error):
                raise LedgerError(unwritable(self.file, error)) from error
            raise LedgerError(
                f"{self.file}: cannot be used as event log ({reason(error)}); check its folder, or move it away"
            ) from error
