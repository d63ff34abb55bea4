"""The event log: what a running cluster did, and what was done to it, in a database that only grows."""

import gc
import json
import threading
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Any

from jobcast.traces.growing_database import GrowingDatabase

SUBMIT, CHANGE, START, REQUEUE, END = "submit", "change", "start", "requeue", "end"
"""What happens to a job. A change tells facts that are others from then on; a requeue takes back what it held."""
LOOK, QUOTA, GPUS = "look", "quota", "gpus"
"""Somebody looked and saw all there was to see by then; GPUs of a pool; GPUs of all nodes that are up."""
INTENT, LEASE, OVERSTAY, ADVISOR = "intent", "lease", "overstay", "advisor"
"""What is about to be done to a job, a lease that was read back, one that outlived it, the name of who does so."""
SCORE, CLOCK = "score", "clock"
"""How an answer of a version on trial did; from when on forecasts count time at another scale."""
KINDS = (SUBMIT, CHANGE, START, REQUEUE, END, LOOK, QUOTA, GPUS, INTENT, LEASE, OVERSTAY, ADVISOR, SCORE, CLOCK)
TOGETHER = 10_000
"""Rows that are read at a time."""
OURS, SCHEMA = 0x6A6F6265, 1
"""Application id of the database, the letters jobe, and the number of its tables' form."""
TABLES = """
CREATE TABLE events (
    number INTEGER PRIMARY KEY, known_s REAL NOT NULL, kind TEXT NOT NULL, job_id TEXT NOT NULL, at_s REAL NOT NULL,
    facts TEXT NOT NULL, UNIQUE (job_id, kind, at_s)
);
"""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes
    ----------
    known_s : from when it was known, seconds from the epoch
    kind : one of `KINDS`
    job_id : of a quota the pool, empty for a look and for GPUs
    at_s : when it happened, seconds from the epoch
    facts : of a submission `pool`, `gpus`, `user`, `tag`, and where told `time_limit_s` and `held` (it may not start
        yet), beside a Slurm `waits_for` (why, in its word), `after` (other jobs), `eligible_s` (from when it may),
        `at_once` (tasks of its array that may run at a time), of one that runs `paused_s` (how long it was suspended
        before) and `suspended_s` (since when it is, else None); of a change those that are others now; of a start
        `dedicated`, of an end `duration_s`, where told; of a quota and of GPUs `gpus`
    """

    known_s: float
    kind: str
    job_id: str
    at_s: float
    facts: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def kept_for_good() -> Iterator[None]:
    """What is made of a log meanwhile stays: nobody looks through millions of objects for garbage, now or later."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class EventLog:
    """Events under a home; several processes may write at once. What was appended survives a killed process.

    Rows are read once, and shared by all who ask in this process.

    All methods raise LedgerError where the file cannot be used.

    Parameters
    ----------
    home : see `registry.home.find_home`
    """

    def __init__(self, home: Path) -> None:
        self._database = GrowingDatabase(home / "live" / "live.sqlite", "event log", OURS, SCHEMA, TABLES, ("events",))
        self.file = self._database.file
        self._numbers, self._events, self._reading = array("q"), list[Event](), threading.Lock()

    def make(self) -> None:
        """Make the file where there is none: what cannot be kept is told before anything happens."""
        self._database.make()

    def append(self, events: Iterable[Event]) -> int:
        """Keep events; how many were new comes back: of one job, kind and time the first stays."""
        names = ("known_s", "kind", "job_id", "at_s", "facts")
        values = ((one.known_s, one.kind, one.job_id, one.at_s, json.dumps(dict(one.facts))) for one in events)
        return self._database.add("INSERT OR IGNORE", "events", [dict(zip(names, row, strict=True)) for row in values])

    def since(self, number: int) -> list[tuple[int, Event]]:
        """Events with their numbers, in the order in which they were kept, after the one with `number`."""
        query = "SELECT number, known_s, kind, job_id, at_s, facts FROM events WHERE number > ? ORDER BY number"
        with self._reading:
            last = self._numbers[-1] if self._numbers else 0
            with self._database.open() as database:
                found = database.execute(query, (last,))
                while rows := found.fetchmany(TOGETHER):
                    self._numbers.extend(row[0] for row in rows)
                    self._events += _events(rows)
            first = bisect_right(self._numbers, number)
            return list(zip(self._numbers[first:], self._events[first:], strict=True))


def _events(rows: Sequence[Sequence[Any]]) -> list[Event]:
    """Of rows of the database. What several tell is there once: millions of names and facts are alike."""
    texts = dict.fromkeys(row[5] for row in rows)
    facts = dict(zip(texts, map(_shared, json.loads(f"[{','.join(texts)}]")), strict=True))
    return [
        Event(known_s, intern(kind), intern(job_id), at_s, facts[text]) for _, known_s, kind, job_id, at_s, text in rows
    ]


def _shared(facts: dict[str, Any]) -> Mapping[str, Any]:
    return {intern(name): intern(one) if type(one) is str else one for name, one in facts.items()}
