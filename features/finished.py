"""What is known, in a run, of jobs like a newly submitted one: the live way."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.history import FinishedJob, History, StartedJob
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job, Requirements
from jobcast.features.duration_tables import Finished, Started
from jobcast.features.durations import (
    GROUPS,
    NO_GROUP,
    Key,
    duration_columns,
    edges_s,
    empty_state,
    group_keys,
)

ROOM_FOR_GROUPS = 256
"""Groups that there is room for at first; room doubles."""
ROOM_FOR_JOBS = 1024
"""Jobs that there is room for at first; room doubles."""
_NOTHING = np.array([])
_ASKS_NOTHING = Requirements()
Table = TypeVar("Table", Finished, Started)


class DurationTracker:
    """Started and finished jobs as they come in; gives the rows of `durations.duration_rows` for one job at a time.

    A row tells what was known when its job was submitted, also when it is asked for later. Jobs are taken in from a
    run's history by `catch_up`, or by `begin` and `add`, in the order of starts, and of (end, seq).

    Parameters
    ----------
    horizons_min : inner edges of the duration bins

    >>> from types import SimpleNamespace
    >>> old, new = Job(0, "0", "a", 0.0, 1), Job(1, "1", "a", 90.0, 2)
    >>> tracker = DurationTracker(horizons_min=(5, 60))
    >>> tracker.add([SimpleNamespace(job=old, end_s=60.0, duration_s=60.0)])
    >>> known = dict(zip(duration_columns((5, 60)), tracker.row(new).tolist(), strict=True))
    >>> known["pool last 5 <=5min"], known["pool_width last 5 <=5min"], known["log2 gpus"]
    (1.0, 0.0, 1.0)
    """

    def __init__(self, horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN) -> None:
        # Importing numba takes a second; runs without duration models never need it.
        from jobcast.features import duration_kernels

        self._kernels = duration_kernels
        self._edges_s = edges_s(horizons_min)
        self._n_columns = len(duration_columns(horizons_min))
        self._numbers: dict[Key, int] = {}
        self._ended, self._begun = empty_state(ROOM_FOR_JOBS, ROOM_FOR_GROUPS)
        self._history: History | None = None
        self._running: dict[str, int] = {}  # job id -> number of its start
        self._starts = 0  # that have been taken in, those after a stop among them
        self._bins: dict[int, int] = {}  # number of its start -> bin, of those that have ended
        self.started: list[Job] = []
        """Jobs in order of their first start."""
        self.count = 0
        """Jobs added so far."""

    def begin(self, started: Iterable[StartedJob]) -> None:
        """Take in jobs that have started; one that was stopped began before."""
        first, start_s = len(self.started), list[float]()
        for one in started:
            job = one.job
            # A stopped job that goes on: its first start counts, as in a trace, which has one start a job.
            if job.job_id not in self._running:
                self._running[job.job_id] = len(self.started)
                self.started.append(job)
                start_s.append(one.start_s)
        groups = self._numbered(self.started[first:])
        self._make_room()
        self._kernels.begin_all(self._begun, first, groups, np.array(start_s, np.float64))

    def add(self, finished: Iterable[FinishedJob]) -> None:
        """Take in jobs that have ended."""
        names, ends_s, run_s = list[str](), list[float](), list[float]()

        def read(one: FinishedJob) -> Job:
            names.append(one.job.job_id)
            # As in the batch way: an end that rounds to the submission must not be seen by the job itself.
            ends_s.append(max(one.end_s, math.nextafter(one.job.submit_s, math.inf)))
            run_s.append(one.duration_s)
            return one.job

        # Jobs of a long past are let go of one by one.
        groups, first = self._numbered(map(read, finished)), self.count
        self.count += len(names)
        self._make_room()
        times_s = np.array(ends_s, np.float64), np.array(run_s, np.float64)
        self._kernels.note_all(self._ended, first, groups, self._edges_s, *times_s)
        bins = self._ended.bins[first : self.count].tolist()
        for name, at_s, which in zip(names, ends_s, bins, strict=True):
            # None where its start was never taken in.
            number = self._running.pop(name, None)
            if number is not None:
                self._begun.end_s[number] = at_s
                self._bins[number] = which

    def catch_up(self, history: History) -> None:
        """Take in what has started and ended in a run since the last call; rows read what was submitted, too."""
        self._history = history
        starts = history.started_since(self._starts)
        self._starts += len(starts)
        # Most often nothing has happened.
        if starts:
            self.begin(starts)
        if finished := history.finished_since(self.count):
            self.add(finished)

    def row(self, job: Job) -> Floats:
        """The job's row, (F,) float64."""
        row = np.empty(self._n_columns)
        # At the submission, whenever it is asked for: later events must not change a row.
        limit_s = (job.requirements or _ASKS_NOTHING).time_limit_s
        at_s, edges = float(job.submit_s), self._edges_s
        self._kernels.fill(self._ended, self._begun, self._groups(job), edges, float(limit_s), at_s, row)
        self._kernels.pool_columns(*self._events(job.pool), at_s, float(job.gpus), edges, row)
        return row

    def rows(self, jobs: Sequence[Job]) -> Floats:
        """Rows of several jobs, (n_jobs, F)."""
        return np.array([self.row(job) for job in jobs]).reshape(len(jobs), self._n_columns)

    def settled(self, number: int, lag_s: float = 0.0) -> tuple[float, int]:
        """When at the latest the bin of a job of `started` is known, seconds from the epoch, and the bin.

        That is when the last bin begins, from its start on, and an end before would have been told, within `lag_s`
        seconds: one that still runs then belongs to it.
        """
        known_s = float(self._begun.start_s[number] + self._edges_s[-1] + lag_s)
        ended = self._begun.end_s[number] <= known_s
        return known_s, self._bins[number] if ended else len(self._edges_s)

    def _groups(self, job: Job) -> Ints:
        # A new group is not numbered by a question: rows must not depend on who asked before.
        find = self._numbers.get
        keys = group_keys(*_asked(job))
        return np.array([NO_GROUP if key is None else find(key, NO_GROUP) for key in keys], np.int64)

    def _numbered(self, jobs: Iterable[Job]) -> Ints:
        """As `_groups`, of several jobs, (n_jobs, G), where new groups are given numbers."""
        numbers, found = self._numbers, dict[tuple[Any, ...], list[int]]()
        result = list[int]()
        for job in jobs:
            asked = _asked(job)
            # Many jobs of a long past ask for the same.
            if asked not in found:
                keys = group_keys(*asked)
                found[asked] = [NO_GROUP if key is None else numbers.setdefault(key, len(numbers)) for key in keys]
            result += found[asked]
        return np.array(result, np.int64).reshape(-1, len(GROUPS))

    def _events(self, pool: str) -> tuple[Floats, Floats, Floats, Floats]:
        if self._history is None:
            return _NOTHING, _NOTHING, _NOTHING, _NOTHING
        events = self._history.pool(pool)
        return events.start_s, events.end_s, events.arrival_s, events.arrival_gpus

    def _make_room(self) -> None:
        """For all jobs taken in, and for all groups that have a number: both tables number the same."""
        self._ended = _roomy(self._ended, self.count, len(self._numbers))
        self._begun = _roomy(self._begun, len(self.started), len(self._numbers))


def _roomy(table: Table, jobs: int, groups: int) -> Table:
    parts: list[Any] = list(table)
    # Doubling keeps the cost of growing constant a job.
    while jobs > len(parts[0]):
        parts[:-1] = [np.concatenate([part, np.zeros_like(part)]) for part in parts[:-1]]
    while groups > len(parts[-1]):
        parts[-1] = np.concatenate([parts[-1], np.full_like(parts[-1], NO_GROUP)])
    return type(table)(*parts)


def _asked(job: Job) -> tuple[Any, ...]:
    """What tells a job's groups: arguments of `durations.group_keys`."""
    asks = job.requirements or _ASKS_NOTHING
    return job.pool, job.gpus, job.user, job.tag, asks.account, asks.cores, asks.mem_gb, asks.time_limit_s
