"""What is known of a running cluster at a moment: its events, and jobs as these tell them."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import inf, nan
from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.jobs import Job
from jobcast.live.event_log import Event
from jobcast.live.recorded_jobs import ClusterRecord, in_order
from jobcast.simulator.history import EarlierJobs

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
    """What is known; replaced as a whole when events come.

    Attributes
    ----------
    number : of the last event
    known_s : when that was known, seconds from the epoch; -inf before any
    events : all of them, in the order in which they were kept
    record : of the cluster; it goes on with the next state, which this one does not
    jobs : as the events tell them
    ended_s : when each ended, seconds from the epoch; NaN of those that have not, as far as anybody knows
    row_of : by job id, its place among the jobs
    spare : jobs whose GPUs, by their last start, count against no quota
    """

    number: int = 0
    known_s: float = -inf
    events: Sequence[Event] = ()
    record: ClusterRecord = field(default_factory=ClusterRecord)
    jobs: EarlierJobs = field(default_factory=lambda: ClusterRecord().recorded())
    ended_s: Floats = field(default_factory=lambda: np.empty(0))
    row_of: Mapping[str, int] = field(default_factory=dict)
    spare: Set[str] = frozenset()

    def after(self, rows: Sequence[tuple[int, Event]]) -> "State":
        """With more events and their numbers."""
        new = [event for _, event in rows]
        events, known_s = [*self.events, *new], max(self.known_s, *(event.known_s for event in new))
        # Whoever tells late what was known before has all of it told anew, in order.
        late = any(event.known_s < self.known_s for event in new)
        record = ClusterRecord().take(in_order(events)) if late else self.record.take(in_order(new))
        jobs = record.recorded()
        if jobs is self.jobs:
            return replace(self, number=rows[-1][0], known_s=known_s, events=events, record=record)
        row_of = {job.job_id: row for row, job in enumerate(jobs.jobs)}
        starts = ((name, one.start) for name, one in record.jobs.items())
        spare = {name for name, start in starts if start is not None and not start.facts.get("dedicated", True)}
        ends = ((record.jobs[job.job_id].over, record.jobs[job.job_id].end) for job in jobs.jobs)
        ended_s = np.array([end.at_s if over and end is not None else nan for over, end in ends])
        return State(rows[-1][0], known_s, events, record, jobs, ended_s, row_of, spare)

    def job(self, job_id: str) -> Known | None:
        """A job; None for one that nobody has heard of."""
        row, jobs = self.row_of.get(job_id), self.jobs
        if row is None:
            return None
        return Known(jobs.jobs[row], float(jobs.start_s[row]), float(self.ended_s[row]))

    def active(self) -> Iterator[tuple[Job, float]]:
        """Jobs that have not ended, and their starts, NaN where they wait."""
        rows = np.flatnonzero(np.isnan(self.ended_s)).tolist()
        return ((self.jobs.jobs[row], float(self.jobs.start_s[row])) for row in rows)

    def known(self) -> Iterator[Known]:
        """All jobs, by submission."""
        jobs = self.jobs
        return map(Known, jobs.jobs, jobs.start_s.tolist(), self.ended_s.tolist())
