"""What is known of a running cluster at a moment: its events, and jobs as these tell them."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from jobcast.domain.jobs import Job
from jobcast.live.event_log import Event
from jobcast.live.recorded_jobs import ClusterRecord, in_order, recorded_jobs
from jobcast.simulator.history import EarlierJobs


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
    row_of : by job id, its place among the jobs
    spare : jobs whose GPUs, by their last start, count against no quota
    """

    number: int = 0
    known_s: float = -inf
    events: Sequence[Event] = ()
    record: ClusterRecord = field(default_factory=ClusterRecord)
    jobs: EarlierJobs = field(default_factory=lambda: recorded_jobs(()))
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
        row_of = {job.job_id: row for row, job in enumerate(jobs.jobs)}
        starts = ((name, one.start) for name, one in record.jobs.items())
        spare = {name for name, start in starts if start is not None and not start.facts.get("dedicated", True)}
        return State(rows[-1][0], known_s, events, record, jobs, row_of, spare)

    def job(self, job_id: str) -> Known | None:
        """A job; None for one that nobody has heard of."""
        row, jobs = self.row_of.get(job_id), self.jobs
        if row is None:
            return None
        start_s, known_s, run_s = (float(column[row]) for column in (jobs.start_s, jobs.known_s, jobs.duration_s))
        return Known(jobs.jobs[row], start_s, float(np.fmin(start_s + run_s, known_s)))

    def known(self) -> Iterator[Known]:
        """All jobs, by submission."""
        jobs = self.jobs
        # Of one that ended without a start only this is known: from when.
        end_s = np.fmin(jobs.start_s + jobs.duration_s, jobs.known_s)
        return map(Known, jobs.jobs, jobs.start_s.tolist(), end_s.tolist())
