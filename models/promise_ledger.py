"""The promise ledger: when jobs were told to start and end, and when they did, in a database that only grows.

Free of command line, replays and MLflow, so that whatever answers users can keep what it said.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from jobcast.traces.growing_database import GrowingDatabase

START, END = "start", "end"
"""What is promised of a job: its first GPUs, its completion."""
SCHEMA = 1
"""Of the tables below; a database tells its own."""
OURS = 0x6A6F6263
"""Application id of the database: the letters jobc."""
TABLES = """
CREATE TABLE promises (
    id INTEGER PRIMARY KEY, job_id TEXT NOT NULL, submit_s REAL NOT NULL, kind TEXT NOT NULL, pool TEXT NOT NULL,
    gpus INTEGER NOT NULL, at_s REAL NOT NULL, asked_s REAL NOT NULL, policy TEXT NOT NULL, version TEXT NOT NULL,
    sizes TEXT NOT NULL, point_s REAL, intervals TEXT NOT NULL, futures_s TEXT NOT NULL, what_if INTEGER NOT NULL,
    simulated INTEGER NOT NULL, trace_sha256 TEXT NOT NULL
);
CREATE TABLE outcomes (
    id INTEGER PRIMARY KEY, job_id TEXT NOT NULL, submit_s REAL NOT NULL, kind TEXT NOT NULL, event_s REAL,
    known_s REAL NOT NULL, trace_sha256 TEXT NOT NULL
);
CREATE INDEX promises_by_policy ON promises (policy, version, kind);
CREATE UNIQUE INDEX once ON outcomes (job_id, submit_s, kind, event_s IS NULL, ifnull(event_s, known_s));
"""
LISTS = ("intervals", "futures_s")
"""Columns of promises that are lists, kept as JSON."""
IN_ORDER = "event_s IS NOT NULL, CASE WHEN event_s IS NULL THEN known_s ELSE id END"
"""What is known of an event goes after that it had not come; of either, the latest is last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What was told of one event of a job.

    Attributes
    ----------
    job_id, submit_s : the job; ids are used again, so that its submission (seconds from the epoch) is part of its name
    kind : `START` or `END`
    pool, gpus : of the job
    at_s : as of when: nothing later was known, seconds from the epoch
    asked_s : when it was asked, by the computer's clock, seconds from the epoch
    policy : that the futures were played under
    version : of the predictor
    sizes : where run times came from
    point_s : one instant, seconds from the epoch; None where there was none
    intervals : (share of such jobs that it is to hold, lower end, upper end), seconds from the epoch
    futures_s : quantiles of the futures behind it, as `promise_record.SHARES` counts them, seconds from the epoch
    what_if : of a job that there is not, or not with that many GPUs: nothing will come of it
    simulated : whether the state of the queue came from a replay
    trace_sha256 : of the file that the queue was read from
    """

    job_id: str
    submit_s: float
    kind: str
    pool: str
    gpus: int
    at_s: float
    asked_s: float
    policy: str
    version: str
    sizes: str
    point_s: float | None
    intervals: Sequence[tuple[float, float, float]]
    futures_s: Sequence[float] = ()
    what_if: bool = False
    simulated: bool = True
    trace_sha256: str = ""

    @property
    def event(self) -> "Event":
        """What it is about."""
        return self.job_id, self.submit_s, self.kind


Event = tuple[str, float, str]
"""Job id, submission and kind."""
LOOK: Event = ("", 0.0, "look")
"""Stands for all that is still open: its outcome tells until when somebody has looked."""


class Outcome(NamedTuple):
    """What came of an event.

    Attributes
    ----------
    event_s : when it came, seconds from the epoch; None where it had not by `known_s`
    known_s : from when that was known, seconds from the epoch
    """

    event_s: float | None
    known_s: float


Outcomes = Mapping[Event, Outcome]


class PromiseLedger:
    """Promises and outcomes under a home; several processes may write at once. Without a file it reads as empty.

    All methods raise LedgerError for a file that is none of ours, is of a newer jobcast, or cannot be reached.

    Parameters
    ----------
    home : see `registry.home.find_home`
    """

    def __init__(self, home: Path) -> None:
        file = home / "promises" / "ledger.db"
        self._database = GrowingDatabase(file, "promise ledger", OURS, SCHEMA, TABLES, ("promises", "outcomes"))
        self.file = self._database.file

    def keep(self, promises: Iterable[Promise]) -> int:
        """Add promises, all or none of them; how many there were."""
        rows = [asdict(one) | {name: json.dumps(getattr(one, name)) for name in LISTS} for one in promises]
        return self._database.add("INSERT", "promises", rows)

    def keep_outcomes(self, outcomes: Outcomes, trace_sha256: str) -> int:
        """Add outcomes; how many were new. The same outcome is kept once, a corrected one beside the old."""
        names = ("job_id", "submit_s", "kind", "event_s", "known_s", "trace_sha256")
        rows = [dict(zip(names, (*event, *one, trace_sha256), strict=True)) for event, one in outcomes.items()]
        return self._database.add("INSERT OR IGNORE", "outcomes", rows)

    def promises(self, **of: str) -> list[Promise]:
        """In the order in which they were kept; `of`: columns and what they must be."""
        where = " AND ".join(["TRUE", *(f"{name} = ?" for name in of)])
        with self._database.open() as database:
            found = database.execute(f"SELECT * FROM promises WHERE {where} ORDER BY id", tuple(of.values()))
            rows = [dict(row) for row in found]
        # The number of the row is the ledger's own.
        plain = ({name: value for name, value in row.items() if name != "id"} for row in rows)
        return [Promise(**row | {name: json.loads(row[name]) for name in LISTS}) for row in plain]

    def outcomes(self, until_s: float = math.inf) -> dict[Event, Outcome]:
        """The last that was known of each event by an instant."""
        query = f"SELECT * FROM outcomes WHERE known_s <= ? ORDER BY {IN_ORDER}"
        with self._database.open() as database:
            return {
                (row["job_id"], row["submit_s"], row["kind"]): Outcome(row["event_s"], row["known_s"])
                for row in database.execute(query, (until_s,))
            }
