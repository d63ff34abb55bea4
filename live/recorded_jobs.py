"""What is known of a cluster, event by event, and its jobs in the form that a history is made of."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.jobs import Job, Requirements
from jobcast.live.event_log import CHANGE, END, GPUS, QUOTA, REQUEUE, START, SUBMIT, Event
from jobcast.simulator.history import EarlierJobs


class Stopped(NamedTuple):
    """A job on lease that was stopped: when that was known, seconds from the epoch, and what it had done so far."""

    at_s: float
    gpu_hours: float


@dataclass(slots=True)
class JobRecord:
    """What is known of a job.

    Attributes
    ----------
    submit_s : seconds from the epoch, NaN where its submission is not known
    facts : of its submission, as changed since
    start : the last one that holds, None where it waits
    end : the last one, None where none is known
    """

    submit_s: float = nan
    facts: dict[str, Any] = field(default_factory=dict)
    start: Event | None = None
    end: Event | None = None

    @property
    def start_s(self) -> float:
        """When it started, seconds from the epoch, not before it came, whatever clocks say; NaN where it waits."""
        return nan if self.start is None else max(self.start.at_s, self.submit_s)

    @property
    def over(self) -> bool:
        """Whether it has ended; an end before its start was of an earlier run, or is a mistake."""
        return self.end is not None and (self.start is None or self.end.at_s >= self.start.at_s)

    @property
    def runs(self) -> bool:
        """Whether it holds GPUs."""
        return self.start is not None and not self.over

    @property
    def holds(self) -> bool:
        """Whether GPUs are its own: it runs, or was granted some that it will start on."""
        return self.runs or (not self.over and not self.held and bool(self.facts.get("granted")))

    @property
    def held(self) -> bool:
        """Whether it may not start yet, whatever is free."""
        return bool(self.facts.get("held"))


class ClusterRecord:
    """What is known of a cluster, folded up event by event; whatever is not of jobs, quotas and GPUs is passed over.

    Attributes
    ----------
    jobs : by id
    quotas : GPUs of each pool
    gpus : of all nodes that are up, None where nobody told
    stopped : jobs on lease that were, most by an owner who took GPUs back
    taken : events so far
    known_s : the latest instant at which anything was known, seconds from the epoch; -inf before
    """

    def __init__(self) -> None:
        self.jobs: dict[str, JobRecord] = {}
        self.quotas: dict[str, int] = {}
        self.gpus: int | None = None
        self.stopped: list[Stopped] = []
        self.taken: list[Event] = []
        self.known_s = -inf
        self._recorded: EarlierJobs | None = None

    def take(self, events: Iterable[Event]) -> "ClusterRecord":
        """Go on by events, by when they were known: of several starts or ends of a job that which comes last counts."""
        for event in events:
            self.known_s = max(self.known_s, event.known_s)
            self.taken.append(event)
            if event.kind == QUOTA:
                self.quotas[event.job_id] = event.facts["gpus"]
            elif event.kind == GPUS:
                self.gpus = event.facts["gpus"]
            elif event.kind in (SUBMIT, CHANGE, START, REQUEUE, END):
                self._of_job(event)
        return self

    def _of_job(self, event: Event) -> None:
        self._recorded = None
        job = self.jobs.setdefault(event.job_id, JobRecord())
        if event.facts.get("lent"):
            gpus = event.facts.get("gpus") or job.facts.get("gpus", 0)
            self.stopped.append(Stopped(event.known_s, gpus * event.facts["lost_s"] / 3_600.0))
        if event.kind == SUBMIT:
            if job.over and job.end is not None and event.at_s > job.end.at_s:
                # A name that is used again; what was called so before keeps its past.
                self.jobs[f"{event.job_id} until {job.end.at_s:.0f}"] = job
                job = self.jobs[event.job_id] = JobRecord()
            job.submit_s = event.at_s
            # What was changed meanwhile is newer, in whatever order both are told.
            job.facts = {**event.facts, **job.facts}
        elif event.kind == CHANGE:
            job.facts |= event.facts
        elif event.kind == START:
            job.start = event
        elif event.kind == END:
            job.end = event
        elif job.start is not None and event.at_s >= job.start.at_s:
            job.start = None

    def job(self, name: str) -> Job | None:
        """A job by its name, numbered 0; None where its submission is not known."""
        known = self.jobs.get(name)
        return None if known is None or known.submit_s != known.submit_s else _job(0, known.submit_s, name, known)

    def run_s(self, name: str) -> float:
        """How long a job that has ended ran, seconds."""
        return _times(self.jobs[name])[2]

    def recorded(self) -> EarlierJobs:
        """Jobs by submission; one whose submission is not known is left out."""
        if self._recorded is None:
            self._recorded = self._made()
        return self._recorded

    def _made(self) -> EarlierJobs:
        known = [(one.submit_s, name, one) for name, one in self.jobs.items() if one.submit_s == one.submit_s]
        known.sort(key=lambda row: row[:2])
        jobs = [_job(seq, *row) for seq, row in enumerate(known)]
        times = np.array([_times(one) for _, _, one in known], dtype=np.float64).reshape(-1, 3)
        return EarlierJobs(jobs, *times.T)


def in_order(events: Iterable[Event], now_s: float = inf) -> list[Event]:
    """Events that were known by an instant, by when they were known."""
    return sorted((one for one in events if one.known_s <= now_s), key=lambda one: (one.known_s, one.at_s))


def _job(seq: int, submit_s: float, name: str, known: JobRecord) -> Job:
    facts = known.facts
    limit_s = facts.get("time_limit_s")
    asks = None if limit_s is None else Requirements(time_limit_s=limit_s)
    user, tag = (facts.get(key, "") for key in ("user", "tag"))
    return Job(seq, name, facts["pool"], submit_s, facts["gpus"], user, tag, requirements=asks)


def _times(known: JobRecord) -> tuple[float, float, float]:
    """Start, from when the end of a run is known, and run time, in seconds; NaN for what is not known."""
    if known.end is None or not known.over:
        return known.start_s, nan, nan
    run_s = known.end.facts.get("duration_s", nan if known.start is None else known.end.at_s - known.start.at_s)
    # Who was cancelled while it waited never ran, and tells nothing of run times; an end without a start may.
    return known.start_s, known.end.known_s if run_s == run_s else nan, run_s
