"""A run's own past, growing with it, on top of what the trace did before the run began."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import inf, isfinite, nan
from operator import itemgetter

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.history import FinishedJob, PoolHistory, StartedJob
from jobcast.domain.jobs import Job

FIRST_ROOM = 64
"""Values that a column has room for at first."""


@dataclass(frozen=True, slots=True, eq=False)
class EarlierJobs:
    """Jobs submitted before the run begins, as the trace ran them; they may start and end after that.

    Attributes
    ----------
    jobs : by (submit time, job id, row)
    start_s, known_s : (n_jobs,) starts, and from when ends were known, seconds from the epoch; NaN or inf where the
        trace knows none
    duration_s : (n_jobs,) run times, seconds
    """

    jobs: Sequence[Job]
    start_s: Floats
    known_s: Floats
    duration_s: Floats


class Happening(IntEnum):
    """What happens to a job, in the order of one instant."""

    ARRIVAL, START, END = 0, 1, 2


Ahead = tuple[float, int, tuple[bool, int], Job, float]
"""When, what, whose (whether of an earlier job, and its number), the job, and at an end its run time, seconds."""


class Column:
    """A float64 array that grows at its end, in amortised O(1)."""

    __slots__ = ("_buffer", "_count")

    def __init__(self) -> None:
        self._buffer: Floats = np.empty(FIRST_ROOM, dtype=np.float64)
        self._count = 0

    def append(self, value: float) -> int:
        """Add a value; its position comes back."""
        position = self._count
        if position == len(self._buffer):
            # Doubles, so that appending stays cheap however long a run is.
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
        # A view shares the run's memory.
        values.flags.writeable = False
        return values


class PoolEvents:
    """Growing columns of one pool; see `domain.history.PoolHistory`."""

    __slots__ = ("_views", "arrival_gpus", "arrival_s", "completion_duration_s", "completion_s", "end_s", "start_s")

    def __init__(self) -> None:
        self._views: PoolHistory | None = None
        self.arrival_s, self.arrival_gpus = Column(), Column()
        self.start_s, self.end_s = Column(), Column()
        self.completion_s, self.completion_duration_s = Column(), Column()

    def views(self) -> PoolHistory:
        """The columns as they stand, the same object until one grows."""
        if self._views is None:
            columns = (self.arrival_s, self.arrival_gpus, self.start_s, self.end_s)
            completions = (self.completion_s, self.completion_duration_s)
            self._views = PoolHistory(*(column.view() for column in (*columns, *completions)))
        return self._views

    def growing(self) -> "PoolEvents":
        """The same, about to grow."""
        # Made anew when somebody asks: the columns are longer from now on.
        self._views = None
        return self


class RunHistory:
    """Past of a run; implements `domain.history.History`. Holds nothing after `now_s`.

    Earlier jobs are known as the trace ran them; a start or end of theirs shows only once `advance` reaches it.

    Parameters
    ----------
    pools : names of the pools of the run; earlier jobs of other pools count as finished jobs all the same
    earlier : jobs submitted before the run
    known_after_s : seconds after which an end of the run is known; until then the job counts as running
    """

    def __init__(self, pools: Sequence[str], earlier: EarlierJobs | None = None, known_after_s: float = 0.0) -> None:
        self._now_s = -inf
        self._pools = tuple(sorted(pools))
        self._events = {name: PoolEvents() for name in self._pools}
        self._finished: list[FinishedJob] = []
        self._started_jobs: list[StartedJob] = []
        self._start_rows: dict[tuple[bool, int], int] = {}  # (earlier?, seq) of running jobs -> row of their start
        self._earlier = _ahead(earlier)
        self._next_earlier = 0
        self._known_after_s = known_after_s
        self._unknown: deque[tuple[float, Job, float]] = deque()  # ends of the run: known from, job, run time

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

    def finished_since(self, count: int) -> Sequence[FinishedJob]:
        """Jobs in the order in which their ends were known, without the first `count`."""
        return self._finished[count:]

    def started_since(self, count: int) -> Sequence[StartedJob]:
        """Starts in order of time, without the first `count`."""
        return self._started_jobs[count:]

    def advance(self, now_s: float) -> None:
        """Move to an instant: what earlier jobs did until then becomes known, and ends of the run that are due."""
        self._now_s = now_s
        events = self._earlier
        while self._next_earlier < len(events) and events[self._next_earlier][0] <= now_s:
            at_s, kind, who, job, duration_s = events[self._next_earlier]
            self._next_earlier += 1
            # Ends of the run and events of earlier jobs are told in the order of their times.
            self._tell_ends(at_s)
            if kind == Happening.ARRIVAL:
                self._arrived(job, at_s)
            elif kind == Happening.START:
                self._started(job, at_s, who)
            else:
                self._ended(job, at_s, who, duration_s)
        self._tell_ends(now_s)

    def _tell_ends(self, until_s: float) -> None:
        while self._unknown and self._unknown[0][0] <= until_s:
            at_s, job, duration_s = self._unknown.popleft()
            self._ended(job, at_s, (False, job.seq), duration_s)

    def join(self, jobs: Iterable[tuple[Job, float]]) -> None:
        """Jobs of the run that were there before it began, with their starts; infinite for those that wait.

        Before the first `advance`; until then nothing is known of them.
        """
        events = [
            (at_s, kind, (False, job.seq), job, nan)
            for job, start_s in jobs
            for kind, at_s in ((Happening.ARRIVAL, job.submit_s), (Happening.START, start_s))
            if isfinite(at_s)
        ]
        self._earlier = sorted([*self._earlier, *events], key=_in_time)

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
        """A job of the run ends now, after a run time of `duration_s`; known from now on, or later."""
        # Ends come in order of time, and all are as late: a queue keeps them sorted.
        if self._known_after_s:
            self._unknown.append((self._now_s + self._known_after_s, job, duration_s))
        else:
            self._ended(job, self._now_s, (False, job.seq), duration_s)

    def _of(self, pool: str) -> PoolEvents:
        events = self._events.get(pool)
        if events is None:
            events = self._events[pool] = PoolEvents()
        return events

    def _arrived(self, job: Job, at_s: float) -> None:
        events = self._of(job.pool).growing()
        events.arrival_s.append(at_s)
        events.arrival_gpus.append(job.gpus)

    def _started(self, job: Job, at_s: float, who: tuple[bool, int]) -> None:
        events = self._of(job.pool).growing()
        self._start_rows[who] = events.start_s.append(at_s)
        events.end_s.append(inf)
        self._started_jobs.append(StartedJob(job, at_s))

    def _ended(self, job: Job, at_s: float, who: tuple[bool, int], duration_s: float) -> None:
        events = self._of(job.pool).growing()
        # None where the trace knows an end but no start.
        row = self._start_rows.pop(who, None)
        if row is not None:
            events.end_s.put(row, at_s)
        events.completion_s.append(at_s)
        events.completion_duration_s.append(duration_s)
        self._finished.append(FinishedJob(job, at_s, duration_s))


# At one instant by position; what one job does stays in its order, since sorting is stable. Each kind of event has
# columns of its own, so that it does not matter whether a job starts before or after another one arrives.
_in_time = itemgetter(0, 2)


def _ahead(earlier: EarlierJobs | None) -> list[Ahead]:
    """Events of the earlier jobs as (time, kind, (True, position), job, run time), ascending."""
    if earlier is None:
        return []
    events: list[Ahead] = []
    rows = zip(
        earlier.jobs, earlier.start_s.tolist(), earlier.known_s.tolist(), earlier.duration_s.tolist(), strict=True
    )
    for position, (job, start_s, known_s, duration_s) in enumerate(rows):
        times = ((Happening.ARRIVAL, job.submit_s), (Happening.START, start_s), (Happening.END, known_s))
        events += [(at_s, kind, (True, position), job, duration_s) for kind, at_s in times if isfinite(at_s)]
    events.sort(key=_in_time)
    return events
