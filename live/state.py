"""What is known of a running cluster at a moment: its events, and jobs as these tell them."""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from jobcast.domain.jobs import Job
from jobcast.live.event_log import Event, EventLog
from jobcast.live.growing_history import Past
from jobcast.live.job_record import JobRecord
from jobcast.live.recorded_jobs import ClusterRecord, Stopped, earlier
from jobcast.simulator.history import EarlierJobs, Happening

STALE_S = 60.0
"""Age of what is known of the cluster from which on answers are conservative, and advice is none."""
WEEK_S = 7 * 86_400.0
"""For which waits, promises and scores count."""


class Known(NamedTuple):
    """A job, its start and its end, seconds from the epoch; NaN for what is not known to have come."""

    job: Job
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class State:
    """What is known; replaced as a whole when events come, and what it tells stays as it is.

    Attributes
    ----------
    number : of the last event
    known_s : when that was known, seconds from the epoch; -inf before any
    record : of the cluster; it goes on with the next state, which this one does not
    jobs : by id, among them some that came later
    places : how many of them there were
    active : jobs that have not ended, by id
    past : of all jobs
    gpus : of all nodes that are up, None where nobody told
    lends : whether any job was granted GPUs, or held some, beyond its pool's quota
    limited : whether jobs have several time limits
    """

    number: int = 0
    known_s: float = -inf
    record: ClusterRecord = field(default_factory=ClusterRecord)
    jobs: Mapping[str, JobRecord] = field(default_factory=dict)
    places: int = 0
    active: Mapping[str, JobRecord] = field(default_factory=dict)
    past: Past = field(default_factory=Past)
    gpus: int | None = None
    lends: bool = False
    limited: bool = False

    def after(self, rows: Sequence[tuple[int, Event]]) -> "State":
        """With more events and their numbers."""
        record = self.record.after([event for _, event in rows])
        of_jobs = record.jobs, record.places, dict(record.active), record.past
        return State(
            rows[-1][0], record.known_s, record, *of_jobs, record.gpus, record.lent > 0, len(record.limits) > 1
        )

    @property
    def quotas(self) -> Mapping[str, int]:
        """GPUs of each pool."""
        return self.record.quotas

    @property
    def stopped(self) -> Sequence[Stopped]:
        """Jobs on lease that were, most by an owner who took GPUs back."""
        return self.record.stopped

    def job(self, job_id: str) -> Known | None:
        """A job; None for one that nobody has heard of, or whose submission is not known."""
        known = self._known(job_id)
        return None if known is None or not known.came else Known(known.job(), known.start_s, known.ended_s)

    def _known(self, job_id: str) -> JobRecord | None:
        # The others have ended: of these the newest is what was known, unless it came later.
        known = self.active.get(job_id) or self.jobs.get(job_id)
        return None if known is None or known.place >= self.places else known

    def ended(self, most: int, now_s: float) -> EarlierJobs:
        """Of the jobs that ran and were known by an instant to have ended, those that came last, by submission."""
        rows, found = self.past.rows[Happening.ARRIVAL], list[JobRecord]()
        for at in range(rows.count - 1, -1, -1):
            one = self._known(rows.kept[at].name)
            if one is not None and one.times[2] > 0.0 and one.times[1] <= now_s:
                found.append(one)
                if len(found) == most:
                    break
        return earlier(found[::-1])

    def waits_s(self, since_s: float, now_s: float) -> list[float]:
        """Seconds that jobs had waited which started between two instants."""
        rows = self.past.rows[Happening.START]
        first = bisect_left(rows.kept, since_s, 0, rows.count, key=lambda one: one.start_s)
        return [one.start_s - one.submit_s for one in rows.since(first) if one.start_s <= now_s]


class LogReader:
    """What is known of a cluster, made of its log once for all who ask in this process, from several threads.

    Parameters
    ----------
    log : where events are kept

    Attributes
    ----------
    state : what is known as of the last reading
    """

    def __init__(self, log: EventLog) -> None:
        self.log, self.state, self._lock = log, State(), threading.Lock()
        self.read()

    def read(self) -> None:
        """Read what the log has beyond what is known, whoever wrote it."""
        with self._lock:
            rows = self.log.since(self.state.number)
            if rows:
                self.state = self.state.after(rows)

    def keep(self, events: Iterable[Event]) -> int:
        """Keep events; how many were new comes back, once they are kept for good and known."""
        new = self.log.append(events)
        if new:
            self.read()
        return new
