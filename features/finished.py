"""What is known, in a run, of jobs like a newly submitted one: the live way."""

from collections.abc import Sequence

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.history import FinishedJob, History, StartedJob
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job, Requirements
from jobcast.features.durations import (
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
FINISHED, STARTED = slice(0, 4), slice(5, 8)
"""Columns of the state that grow with the jobs that have finished, and that have started."""
LAST_FINISHED, LAST_STARTED = 4, 8
_NOTHING = np.empty(0)
_ASKS_NOTHING = Requirements()


class DurationTracker:
    """Started and finished jobs as they come in; gives the rows of `durations.duration_rows` for one job at a time.

    A row tells what was known when its job was submitted, also when it is asked for later. Jobs are taken in from a
    run's history by `catch_up`, or one by one by `begin` and `add`, in the order of starts, and of (end, seq).

    Parameters
    ----------
    horizons_min : inner edges of the duration bins

    >>> from types import SimpleNamespace
    >>> old, new = Job(0, "0", "a", 0.0, 1), Job(1, "1", "a", 90.0, 2)
    >>> tracker = DurationTracker(horizons_min=(5, 60))
    >>> tracker.add(SimpleNamespace(job=old, end_s=60.0, duration_s=60.0))
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
        self._state = list(empty_state(ROOM_FOR_JOBS, ROOM_FOR_GROUPS))
        self._history: History | None = None
        self._running: dict[str, int] = {}  # job id -> number of its start
        self._starts = 0  # that have been taken in, those after a stop among them
        self._bins: dict[int, int] = {}  # number of its start -> bin, of those that have ended
        self.started: list[Job] = []
        """Jobs in order of their first start."""
        self.count = 0
        """Jobs added so far."""

    def begin(self, started: StartedJob) -> None:
        """Take in a job that has started; one that was stopped began before."""
        job, number = started.job, len(self.started)
        # A stopped job that goes on: its first start counts, as in a trace, which has one start a job.
        if job.job_id in self._running:
            return
        self._running[job.job_id] = number
        self.started.append(job)
        groups = self._numbered(job)
        self._make_room(STARTED, LAST_STARTED, number)
        self._kernels.begin(*self._state[5:], number, groups, float(started.start_s), np.inf)

    def add(self, finished: FinishedJob) -> None:
        """Take in a job that has ended."""
        job = finished.job
        # As in the batch way: an end that rounds to the submission must not be seen by the job itself.
        end_s = max(float(finished.end_s), float(np.nextafter(job.submit_s, np.inf)))
        groups = self._numbered(job)
        self._make_room(FINISHED, LAST_FINISHED, self.count)
        self._kernels.note(*self._state[:5], self.count, groups, self._edges_s, end_s, float(finished.duration_s))
        self.count += 1
        # None where its start was never taken in.
        number = self._running.pop(job.job_id, None)
        if number is not None:
            self._state[6][number] = end_s
            self._bins[number] = int(self._state[1][self.count - 1])

    def catch_up(self, history: History) -> None:
        """Take in what has started and ended in a run since the last call; rows read what was submitted, too."""
        self._history = history
        starts = history.started_since(self._starts)
        self._starts += len(starts)
        for started in starts:
            self.begin(started)
        for finished in history.finished_since(self.count):
            self.add(finished)

    def row(self, job: Job) -> Floats:
        """The job's row, (F,) float64."""
        row = np.empty(self._n_columns)
        # At the submission, whenever it is asked for: later events must not change a row.
        limit_s = (job.requirements or _ASKS_NOTHING).time_limit_s
        at_s, edges = float(job.submit_s), self._edges_s
        self._kernels.fill(*self._state, self._groups(job), edges, float(limit_s), at_s, row)
        self._kernels.pool_columns(*self._events(job.pool), at_s, float(job.gpus), edges, row)
        return row

    def rows(self, jobs: Sequence[Job]) -> Floats:
        """Rows of several jobs, (n_jobs, F)."""
        return np.array([self.row(job) for job in jobs]).reshape(len(jobs), self._n_columns)

    def settled(self, number: int) -> tuple[float, int]:
        """When at the latest the bin of a job of `started` is known, seconds from the epoch, and the bin.

        That is when the last bin begins, from its start on: one that still runs then belongs to it.
        """
        known_s = float(self._state[5][number] + self._edges_s[-1])
        ended = self._state[6][number] <= known_s
        return known_s, self._bins[number] if ended else len(self._edges_s)

    def _groups(self, job: Job) -> Ints:
        # A new group is not numbered by a question: rows must not depend on who asked before.
        find = self._numbers.get
        return np.array([NO_GROUP if key is None else find(key, NO_GROUP) for key in _keys(job)], np.int64)

    def _numbered(self, job: Job) -> Ints:
        """As `_groups`, where new groups are given numbers."""
        numbers = self._numbers
        found = [NO_GROUP if key is None else numbers.setdefault(key, len(numbers)) for key in _keys(job)]
        return np.array(found, np.int64)

    def _events(self, pool: str) -> tuple[Floats, Floats, Floats, Floats]:
        if self._history is None:
            return _NOTHING, _NOTHING, _NOTHING, _NOTHING
        events = self._history.pool(pool)
        return events.start_s, events.end_s, events.arrival_s, events.arrival_gpus

    def _make_room(self, columns: slice, last: int, number: int) -> None:
        """For a further job, and for all groups that have a number."""
        # Doubling keeps the cost of growing constant a job.
        while number >= len(self._state[columns.start]):
            self._state[columns] = [np.concatenate([part, np.zeros_like(part)]) for part in self._state[columns]]
        # Both tables number the same groups, so they grow together.
        while len(self._numbers) > len(self._state[last]):
            for which in (LAST_FINISHED, LAST_STARTED):
                self._state[which] = np.concatenate([self._state[which], np.full_like(self._state[which], NO_GROUP)])


def _keys(job: Job) -> tuple[Key | None, ...]:
    asks = job.requirements or _ASKS_NOTHING
    return group_keys(job.pool, job.gpus, job.user, job.tag, asks.account, asks.cores, asks.mem_gb, asks.time_limit_s)
