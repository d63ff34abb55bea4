"""What is known of a running cluster at a moment: its events, and jobs as these tell them."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from jobcast.domain.jobs import Job
from jobcast.live.event_log import START, Event
from jobcast.live.recorded_jobs import recorded_jobs
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
    jobs : as the events tell them
    row_of : by job id, its place among the jobs
    spare : jobs whose GPUs, by their last start, count against no quota
    """

    number: int = 0
    known_s: float = -inf
    events: Sequence[Event] = ()
    jobs: EarlierJobs = field(default_factory=lambda: recorded_jobs(()))
    row_of: Mapping[str, int] = field(default_factory=dict)
    spare: Set[str] = frozenset()

    def after(self, rows: Sequence[tuple[int, Event]]) -> "State":
        """With more events and their numbers."""
        events = [*self.events, *(event for _, event in rows)]
        jobs = recorded_jobs(events)
        row_of = {job.job_id: row for row, job in enumerate(jobs.jobs)}
        starts = [event for _, event in rows if event.kind == START]
        spare = {one.job_id for one in starts if not one.facts.get("dedicated", True)}
        known_s = max(self.known_s, *(event.known_s for _, event in rows))
        return State(rows[-1][0], known_s, events, jobs, row_of, (self.spare - {one.job_id for one in starts}) | spare)

    def job(self, job_id: str) -> Known | None:
        """A job; None for one that nobody has heard of."""
        row, jobs = self.row_of.get(job_id), self.jobs
        if row is None:
            return None
        start_s, known_s, run_s = (float(column[row]) for column in (jobs.start_s, jobs.known_s, jobs.duration_s))
        return Known(jobs.jobs[row], start_s, float(np.fmin(start_s + run_s, known_s)))

    def active(self) -> Iterator[tuple[Job, float]]:
        """Jobs that have not ended, and their starts, NaN where they wait."""
        rows = np.flatnonzero(np.isnan(self.jobs.known_s)).tolist()
        return ((self.jobs.jobs[row], float(self.jobs.start_s[row])) for row in rows)

    def known(self) -> Iterator[Known]:
        """All jobs, by submission."""
        jobs = self.jobs
        # Of one that ended without a start only this is known: from when.
        end_s = np.fmin(jobs.start_s + jobs.duration_s, jobs.known_s)
        return map(Known, jobs.jobs, jobs.start_s.tolist(), end_s.tolist())
