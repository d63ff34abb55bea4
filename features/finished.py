"""Run times of the jobs most like a newly submitted one, among those that have finished: the live way."""

import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from jobcast.domain.history import FinishedJob, History
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, duration_bin
from jobcast.domain.jobs import Job
from jobcast.features.durations import LAST_FINISHED, Floats, Ints


class _LastFinished:
    """The last n finished jobs of a group: their bins, and how many there are of each."""

    __slots__ = ("counts", "jobs")

    def __init__(self, n_bins: int) -> None:
        self.counts = [0] * n_bins
        self.jobs: deque[tuple[int, float]] = deque()

    def add(self, job: tuple[int, float], last_n: int) -> None:
        self.jobs.append(job)
        self.counts[job[0]] += 1
        if len(self.jobs) > last_n:
            self.counts[self.jobs.popleft()[0]] -= 1

    def log_mean(self) -> float:
        """Mean log run time, added up oldest first as the batch way does (`sum` would round otherwise)."""
        total = 0.0
        for _, log_s in self.jobs:
            total += log_s
        return total / len(self.jobs) if self.jobs else math.nan


class FinishedTracker:
    """Finished jobs as they come in; gives the rows of `durations.duration_history` for one job at a time.

    Add jobs in the order of (end, seq), each before any job submitted at or after its end is asked about.

    Parameters
    ----------
    horizons_min : inner edges of the duration bins
    last_n : finished jobs of a group that count

    >>> from types import SimpleNamespace
    >>> old, new = Job(0, "0", "a", 0.0, 1), Job(1, "1", "a", 90.0, 2)
    >>> tracker = FinishedTracker(horizons_min=(5, 60), last_n=20)
    >>> tracker.add(SimpleNamespace(job=old, end_s=60.0, duration_s=60.0))
    >>> tracker.row(new).tolist()
    [[0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 0, 0]]
    """

    def __init__(self, horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN, last_n: int = LAST_FINISHED) -> None:
        self._horizons_min = tuple(horizons_min)
        self._last_n = last_n
        self._groups: dict[tuple[object, ...], _LastFinished] = {}
        self._none = _LastFinished(len(self._horizons_min) + 1)
        self.count = 0
        """Jobs added so far."""

    def add(self, finished: FinishedJob) -> None:
        """Take in a job that has ended."""
        entry = (duration_bin(finished.duration_s, self._horizons_min), math.log(finished.duration_s))
        for key in _keys(finished.job):
            if key is not None:
                group = self._groups.get(key)
                if group is None:
                    group = self._groups[key] = _LastFinished(len(self._horizons_min) + 1)
                group.add(entry, self._last_n)
        self.count += 1

    def catch_up(self, history: History) -> None:
        """Take in what has ended in a run since the last call."""
        for finished in history.finished_since(self.count):
            self.add(finished)

    def row(self, job: Job) -> Ints:
        """Finished jobs by group and duration bin, (4, B) int64: a row of `DurationHistory.counts`."""
        return np.array([group.counts for group in self._of(job)], np.int64)

    def log_means_s(self, job: Job) -> Floats:
        """Mean log run time by group, (4,) float64: a row of `DurationHistory.log_mean_s`."""
        return np.array([group.log_mean() for group in self._of(job)], np.float64)

    def _of(self, job: Job) -> list[_LastFinished]:
        return [self._none if key is None else self._groups.get(key, self._none) for key in _keys(job)]


def _keys(job: Job) -> tuple[tuple[object, ...] | None, ...]:
    """The job's groups, in the order of `durations.GROUPS`."""
    tag = ("tag", job.tag) if job.tag else None
    return tag, ("pool_width", job.pool, job.gpus), ("pool", job.pool), ("all",)
