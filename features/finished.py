"""What is known, in a run, of jobs like a newly submitted one: the live way."""

from collections.abc import Sequence

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.history import FinishedJob, History
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job
from jobcast.features.durations import NO_GROUP, Key, duration_columns, edges_s, empty_state, group_keys

FIRST_GROUPS = 256
"""Groups that there is room for at first; room doubles."""
_NOTHING = np.empty(0)


class DurationTracker:
    """Finished jobs as they come in; gives the rows of `durations.duration_rows` for one job at a time.

    Ask about a job when it is submitted. Jobs that end are taken in from a run's history by `catch_up`, or one by one
    by `add`, in the order of (end, seq).

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
        from jobcast.features import duration_kernels

        self._kernels = duration_kernels
        self._edges_s = edges_s(horizons_min)
        self._n_bins = len(self._edges_s) + 1
        self._n_columns = len(duration_columns(horizons_min))
        self._numbers: dict[Key, int] = {}
        self._state = empty_state(FIRST_GROUPS)
        self._history: History | None = None
        self.count = 0
        """Jobs added so far."""

    def add(self, finished: FinishedJob) -> None:
        """Take in a job that has ended."""
        numbers = self._numbers
        keys = _keys(finished.job)
        groups = [NO_GROUP if key is None else numbers.setdefault(key, len(numbers)) for key in keys]
        while len(numbers) > len(self._state[2]):
            self._grow()
        self._kernels.note(
            *self._state, np.array(groups, np.int64), self._edges_s, float(finished.end_s), float(finished.duration_s)
        )
        self.count += 1

    def catch_up(self, history: History) -> None:
        """Take in what has ended in a run since the last call; rows read what its pools have started, too."""
        self._history = history
        for finished in history.finished_since(self.count):
            self.add(finished)

    def row(self, job: Job) -> Floats:
        """The job's row, (F,) float64."""
        row = np.empty(self._n_columns)
        self._kernels.fill(*self._state, self._groups(job), self._n_bins, float(job.submit_s), row)
        self._kernels.pool_columns(*self._events(job.pool), float(job.submit_s), float(job.gpus), self._edges_s, row)
        return row

    def rows(self, jobs: Sequence[Job]) -> Floats:
        """Rows of several jobs, (n_jobs, F)."""
        return np.array([self.row(job) for job in jobs]).reshape(len(jobs), self._n_columns)

    def _groups(self, job: Job) -> Ints:
        find = self._numbers.get
        return np.array([NO_GROUP if key is None else find(key, NO_GROUP) for key in _keys(job)], np.int64)

    def _events(self, pool: str) -> tuple[Floats, Floats, Floats, Floats]:
        if self._history is None:
            return _NOTHING, _NOTHING, _NOTHING, _NOTHING
        events = self._history.pool(pool)
        return events.start_s, events.end_s, events.arrival_s, events.arrival_gpus

    def _grow(self) -> None:
        bins, logs, done, last_end_s = (np.concatenate([part, np.zeros_like(part)]) for part in self._state)
        self._state = bins, logs, done, last_end_s


def _keys(job: Job) -> tuple[Key | None, ...]:
    return group_keys(job.pool, job.gpus, job.user, job.tag)
