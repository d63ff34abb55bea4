"""A run's own past, growing with it, on top of what the trace did before the run began."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from jobcast.domain.history import Floats, PoolHistory
from jobcast.domain.jobs import Job

FIRST_CAPACITY = 64


@dataclass(frozen=True, slots=True)
class Finished:
    """A job that has ended; implements `domain.history.FinishedJob`. Times in seconds."""

    job: Job
    end_s: float
    duration_s: float


@dataclass(frozen=True, slots=True, eq=False)
class EarlierJobs:
    """Jobs submitted before the run begins, as the trace ran them; they may start and end after that.

    Attributes
    ----------
    jobs : by (submit time, job id, row)
    start_s, end_s : (n_jobs,) seconds from the epoch; NaN or inf where the trace knows none
    duration_s : (n_jobs,) run times, seconds
    """

    jobs: Sequence[Job]
    start_s: Floats
    end_s: Floats
    duration_s: Floats


class Column:
    """A float64 array that grows at its end, in amortised O(1)."""

    __slots__ = ("_buffer", "_count")

    def __init__(self) -> None:
        self._buffer: Floats = np.empty(FIRST_CAPACITY, dtype=np.float64)
        self._count = 0

    def append(self, value: float) -> int:
        """Add a value; its position comes back."""
        position = self._count
        if position == len(self._buffer):
            self._buffer = np.concatenate([self._buffer, np.empty_like(self._buffer)])
        self._buffer[position] = value
        self._count = position + 1
        return position

    def put(self, position: int, value: float) -> None:
        """Replace a value."""
        self._buffer[position] = value

    def view(self) -> Floats:
        """The values so far, read-only, not copied."""
        values = self._buffer[: self._count]
        values.flags.writeable = False
        return values


class PoolEvents:
    """Growing columns of one pool; see `domain.history.PoolHistory`."""

    __slots__ = ("arrival_gpus", "arrival_s", "completion_duration_s", "completion_s", "end_s", "start_s")

    def __init__(self) -> None:
        self.arrival_s, self.arrival_gpus = Column(), Column()
        self.start_s, self.end_s = Column(), Column()
        self.completion_s, self.completion_duration_s = Column(), Column()

    def views(self) -> PoolHistory:
        """The columns as they stand."""
        return PoolHistory(
            self.arrival_s.view(),
            self.arrival_gpus.view(),
            self.start_s.view(),
            self.end_s.view(),
            self.completion_s.view(),
            self.completion_duration_s.view(),
        )


class RunHistory:
    """Past of a run; implements `domain.history.History`. Holds nothing after `now_s`.

    Earlier jobs are known as the trace ran them; a start or end of theirs shows only once `advance` reaches it.

    Parameters
    ----------
    pools : names of the pools of the run; earlier jobs of other pools count as finished jobs all the same
    earlier : jobs submitted before the run
    """

    def __init__(self, pools: Sequence[str], earlier: EarlierJobs | None = None) -> None:
        self._now_s = -inf
        self._pools = tuple(sorted(pools))
        self._events = {name: PoolEvents() for name in self._pools}
        self._finished: list[Finished] = []
        self._start_rows: dict[tuple[bool, int], int] = {}  # (earlier?, seq) of running jobs -> row of their start
        self._earlier = _ahead(earlier)
        self._next_earlier = 0

    @property
    def now_s(self) -> float:
        """The instant that the history reaches to, seconds from the epoch."""
        return self._now_s

    @property
    def pools(self) -> Sequence[str]:
        """Names of the run's pools, ascending."""
        return self._pools

    def pool(self, name: str) -> PoolHistory:
        """Events of one pool up to now, as read-only views that hold until the next `advance`."""
        return self._of(name).views()

    def finished_since(self, count: int) -> Sequence[Finished]:
        """Jobs in order of completion, without the first `count`."""
        return self._finished[count:]

    def advance(self, now_s: float) -> None:
        """Move to an instant: what earlier jobs did until then becomes known."""
        self._now_s = now_s
        events = self._earlier
        while self._next_earlier < len(events) and events[self._next_earlier][0] <= now_s:
            at_s, kind, seq, job, duration_s = events[self._next_earlier]
            self._next_earlier += 1
            if kind == _ARRIVAL:
                self._arrived(job, at_s)
            elif kind == _START:
                self._started(job, at_s, (True, seq))
            else:
                self._ended(job, at_s, (True, seq), duration_s)

    def arrived(self, job: Job) -> None:
        """A job of the run arrives now."""
        self._arrived(job, self._now_s)

    def started(self, job: Job) -> None:
        """A job of the run starts now."""
        self._started(job, self._now_s, (False, job.seq))

    def stopped(self, job: Job) -> None:
        """A job of the run is stopped now: that stretch has ended, the job has not."""
        self._of(job.pool).end_s.put(self._start_rows.pop((False, job.seq)), self._now_s)

    def completed(self, job: Job, duration_s: float) -> None:
        """A job of the run ends now, after a run time of `duration_s`."""
        self._ended(job, self._now_s, (False, job.seq), duration_s)

    def _of(self, pool: str) -> PoolEvents:
        events = self._events.get(pool)
        if events is None:
            events = self._events[pool] = PoolEvents()
        return events

    def _arrived(self, job: Job, at_s: float) -> None:
        events = self._of(job.pool)
        events.arrival_s.append(at_s)
        events.arrival_gpus.append(job.gpus)

    def _started(self, job: Job, at_s: float, who: tuple[bool, int]) -> None:
        events = self._of(job.pool)
        self._start_rows[who] = events.start_s.append(at_s)
        events.end_s.append(inf)

    def _ended(self, job: Job, at_s: float, who: tuple[bool, int], duration_s: float) -> None:
        events = self._of(job.pool)
        row = self._start_rows.pop(who, None)
        if row is not None:
            events.end_s.put(row, at_s)
        events.completion_s.append(at_s)
        events.completion_duration_s.append(duration_s)
        self._finished.append(Finished(job, at_s, duration_s))


_ARRIVAL, _START, _END = 0, 1, 2

_Ahead = tuple[float, int, int, Job, float]


def _ahead(earlier: EarlierJobs | None) -> list[_Ahead]:
    """Events of the earlier jobs as (time, kind, position, job, run time), ascending."""
    if earlier is None:
        return []
    events: list[_Ahead] = []
    rows = zip(earlier.jobs, earlier.start_s.tolist(), earlier.end_s.tolist(), earlier.duration_s.tolist(), strict=True)
    for position, (job, start_s, end_s, duration_s) in enumerate(rows):
        times = ((_ARRIVAL, job.submit_s), (_START, start_s), (_END, end_s))
        events += [(at_s, kind, position, job, duration_s) for kind, at_s in times if isfinite(at_s)]
    events.sort(key=lambda event: event[:3])
    return events
