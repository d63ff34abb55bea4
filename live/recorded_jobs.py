"""What is known of a cluster, event by event, and its jobs in the form that a history is made of.

The same as the canonical table of a trace is what forecasts learn from later.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.live.event_log import CHANGE, END, GPUS, QUOTA, REQUEUE, START, SUBMIT, Event
from jobcast.live.growing_history import Past
from jobcast.live.job_record import JobRecord
from jobcast.simulator.history import EarlierJobs, Happening
from jobcast.traces.columns import UTC_TIME

OF_JOBS = frozenset({SUBMIT, CHANGE, START, REQUEUE, END})


class Stopped(NamedTuple):
    """A job on lease that was stopped: when that was known, seconds from the epoch, and what it had done so far."""

    at_s: float
    gpu_hours: float


class ClusterRecord:
    """What is known of a cluster, folded up event by event; whatever is not of jobs, quotas and GPUs is passed over.

    Attributes
    ----------
    jobs : by id. Of jobs that have not ended others take their place here, too; where one that has ended is corrected,
        that is done to a copy: who holds the old one goes on to see what was known
    active : those that have not ended, by id
    past : of all jobs
    limits : of all jobs, how many have each time limit, seconds
    lent : of all jobs, how many were granted GPUs, or held some, beyond their pool's quota
    quotas : GPUs of each pool
    gpus : of all nodes that are up, None where nobody told
    stopped : jobs on lease that were, most by an owner who took GPUs back
    taken : events so far
    known_s : the latest instant at which anything was known, seconds from the epoch; -inf before
    places : of jobs, in the order in which they were first told of
    """

    def __init__(self) -> None:
        self.jobs: dict[str, JobRecord] = {}
        self.active: dict[str, JobRecord] = {}
        self.past = Past()
        self.limits, self.lent = Counter[float](), 0
        self.quotas: dict[str, int] = {}
        self.gpus: int | None = None
        self.stopped: list[Stopped] = []
        self.taken: list[Event] = []
        self.known_s = -inf
        self.places = 0
        self._last: dict[tuple[str, str], Event] = {}  # of quotas and of GPUs, what was told last
        self._changed: dict[str, JobRecord | None] = {}  # as they were when the past was told

    def take(self, events: Iterable[Event]) -> "ClusterRecord":
        """Go on by events, by when they were known: of several starts or ends of a job that which comes last counts."""
        apart = False
        for event in events:
            self.known_s = max(self.known_s, event.known_s)
            self.taken.append(event)
            if event.kind in (QUOTA, GPUS):
                if _is_late(event, self._last.get((event.kind, event.job_id))):
                    continue
                self._last[event.kind, event.job_id] = event
                if event.kind == QUOTA:
                    self.quotas[event.job_id] = event.facts["gpus"]
                else:
                    self.gpus = event.facts["gpus"]
            elif event.kind in OF_JOBS:
                known = self.jobs.get(event.job_id)
                if known is not None and known.over and not apart:
                    self.jobs, apart = dict(self.jobs), True
                self._of_job(event, known)
        for name, old in self._changed.items():
            self._count(old, -1)
            self._count(self.jobs.get(name), 1)
        self.past = self.past.after(self._changed, self.jobs)
        self._changed = {}
        return self

    def after(self, events: Sequence[Event]) -> "ClusterRecord":
        """As if all events had come by when they were known; in place.

        A job of which something known later was told before is told anew, and no other.
        """
        new = in_order(events)
        of_jobs = [one for one in new if one.kind in OF_JOBS]
        late = {one.job_id for one in of_jobs if one.job_id in self.jobs and _is_late(one, self.jobs[one.job_id].last)}
        if late:
            self._tell_anew(late, [one for one in of_jobs if one.job_id in late])
        return self.take(one for one in new if one.kind not in OF_JOBS or one.job_id not in late)

    def _tell_anew(self, names: Container[str], events: Sequence[Event]) -> None:
        """All that is known of some jobs, with more events."""
        told = [one for one in self.taken if one.job_id in names and one.kind in OF_JOBS]
        before, now = (ClusterRecord().take(in_order(rows)) for rows in (told, [*told, *events]))
        self.taken += events
        self.known_s = max(self.known_s, now.known_s)
        # Of those that are equal it does not matter which is taken out.
        stopped = Counter(self.stopped) + Counter(now.stopped)
        self.stopped = list((stopped - Counter(before.stopped)).elements())
        # A name that is used again may have been given up at another instant: there is no job of that name any more.
        self.jobs = dict(self.jobs)
        for name in before.jobs.keys() - now.jobs.keys():
            self._changed.setdefault(name, self.jobs.pop(name))
            self.active.pop(name, None)
        for name, job in now.jobs.items():
            self._keep(job._replace(place=self._place(name)))

    def _of_job(self, event: Event, known: JobRecord | None) -> None:
        name, job = event.job_id, known or JobRecord(event.job_id, place=self._place(event.job_id))
        if event.facts.get("lent"):
            gpus = event.facts.get("gpus") or job.facts.get("gpus", 0)
            self.stopped.append(Stopped(event.known_s, gpus * event.facts["lost_s"] / 3_600.0))
        if event.kind == SUBMIT:
            if job.end is not None and job.over and event.at_s > job.end.at_s:
                # A name that is used again; what was called so before keeps its past.
                before = f"{name} until {job.end.at_s:.0f}"
                self._keep(job._replace(name=before, place=self._place(before)))
                job = JobRecord(name, place=job.place)
            # A later submission corrects the one before; what was changed before any was told is newer than it.
            facts: Mapping[str, Any] = event.facts
            if job.facts:
                facts = {**job.facts, **event.facts} if job.came else {**event.facts, **job.facts}
            self._keep(JobRecord(name, event.at_s, facts, job.start, job.end, event, job.place))
            return
        _, submit_s, facts, start, end, _, place = job
        if event.kind == CHANGE:
            facts = {**facts, **event.facts}
        elif event.kind == START:
            start = event
        elif event.kind == END:
            end = event
        elif start is not None and event.at_s >= start.at_s:
            start = None
        self._keep(JobRecord(name, submit_s, facts, start, end, event, place))

    def _place(self, name: str) -> int:
        known = self.jobs.get(name)
        if known is not None:
            return known.place
        self.places += 1
        return self.places - 1

    def _keep(self, job: JobRecord) -> None:
        self._changed.setdefault(job.name, self.jobs.get(job.name))
        self.jobs[job.name] = job
        if job.over:
            self.active.pop(job.name, None)
        else:
            self.active[job.name] = job

    def _count(self, job: JobRecord | None, one: int) -> None:
        if job is not None:
            self.lent += one * (bool(job.facts.get("granted")) or not job.dedicated)
            if job.came and job.limit_s < inf:
                self.limits[job.limit_s] += one
                # None are left that nobody has.
                if not self.limits[job.limit_s]:
                    del self.limits[job.limit_s]

    def recorded(self) -> EarlierJobs:
        """Jobs by submission; one whose submission is not known is left out."""
        return earlier([self.jobs[one.name] for one in self.past.rows[Happening.ARRIVAL].since(0)])


def earlier(records: Sequence[JobRecord]) -> EarlierJobs:
    """Jobs in the form that a history is made of, numbered as they come."""
    times = np.array([one.times for one in records], dtype=np.float64).reshape(-1, 3)
    return EarlierJobs([one.job(seq) for seq, one in enumerate(records)], *times.T)


def in_order(events: Iterable[Event], now_s: float = inf) -> list[Event]:
    """Events that were known by an instant, by when they were known."""
    return sorted((one for one in events if one.known_s <= now_s), key=_in_time)


def _is_late(event: Event, last: Event | None) -> bool:
    """Whether what was told last was known later."""
    return last is not None and _in_time(last) > _in_time(event)


def _in_time(event: Event) -> tuple[float, float]:
    return event.known_s, event.at_s


TIMES = ("submit_time", "start_time", "end_time", "known_time")


def exported(record: ClusterRecord) -> pl.DataFrame:
    """A row a job, by submission; `known_time` is from when its end was known.

    Jobs that ended without having run are left out, as in exports of accounting; those that wait or run have no end.
    Raises TraceError where there is no job.
    """
    jobs = record.recorded()
    named = zip(jobs.jobs, jobs.duration_s.tolist(), strict=True)
    rows = [_row(job.job_id, record.jobs[job.job_id], run_s) for job, run_s in named]
    kept = [row for row in rows if row is not None]
    if not kept:
        raise TraceError("nothing was seen of a cluster yet; start `jobcast serve --slurm` or `jobcast advise --slurm`")
    schema: dict[str, Any] = {"job_id": pl.String, "pool": pl.String, **dict.fromkeys(TIMES, UTC_TIME)}
    schema |= {
        "duration": pl.Float64,
        "gpus": pl.Int64,
        "user": pl.String,
        "tag": pl.String,
        "time_limit_s": pl.Float64,
    }
    return pl.DataFrame(kept, schema=schema)


def _row(name: str, known: JobRecord, run_s: float) -> dict[str, Any] | None:
    end = known.end if known.over else None
    if end is not None and not run_s > 0.0:
        return None
    return {
        "job_id": name,
        "pool": known.facts["pool"],
        "submit_time": _time(known.submit_s),
        "start_time": _time(known.start_s),
        "end_time": None if end is None else _time(max(end.at_s, known.submit_s)),
        "known_time": None if end is None else _time(max(end.known_s, known.submit_s)),
        "duration": None if end is None else run_s,
        "gpus": known.facts["gpus"],
        "user": known.facts.get("user") or None,
        "tag": known.facts.get("tag") or None,
        "time_limit_s": known.facts.get("time_limit_s"),
    }


def _time(at_s: float) -> datetime | None:
    return None if isnan(at_s) else datetime.fromtimestamp(at_s, UTC)
