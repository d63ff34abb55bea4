"""The past of a running cluster: columns in which a job that changes costs its own rows, and looks at them."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.history import FinishedJob, PoolHistory, StartedJob
from jobcast.domain.jobs import Pool
from jobcast.features.finished import DurationTracker
from jobcast.live.job_record import JobRecord, by_submission
from jobcast.models.forecasts import GRID_S
from jobcast.models.job_duration import JobDuration
from jobcast.simulator.history import Happening

FEW, SHARE = 16, 200
"""Jobs that change one by one, at least, and of all that there are: where more do, columns are made anew."""
NOTHING: Floats = np.empty(0)
EMPTY = PoolHistory(*[NOTHING] * 6)
TIMES: Mapping[Happening, Callable[[JobRecord], float]] = {
    Happening.ARRIVAL: lambda one: one.submit_s,
    Happening.START: lambda one: one.start_s,
    Happening.END: lambda one: one.times[1],
}
"""When each happens, or is known to have; seconds from the epoch, NaN for what has not."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rows(Generic[T]):
    """Rows that never change; longer ones share them, others are copied."""

    kept: list[T] = field(default_factory=list)
    count: int = 0

    def put(self, at: int, row: T) -> "Rows[T]":
        """With a further row at a place."""
        if at == self.count == len(self.kept):
            # Behind all that anybody reads.
            self.kept.append(row)
            return Rows(self.kept, self.count + 1)
        return Rows([*self.kept[:at], row, *self.kept[at : self.count]], self.count + 1)

    def without(self, at: int) -> "Rows[T]":
        """Without the row at a place."""
        return Rows([*self.kept[:at], *self.kept[at + 1 : self.count]], self.count - 1)

    def since(self, count: int, until: int | None = None) -> list[T]:
        """Rows after the first `count`."""
        return self.kept[count : self.count if until is None else until]


class _Happened(NamedTuple):
    """What a job has in the columns of its pool; one that tells of another job, or of another instant, is another."""

    at_s: float
    submit_s: float
    name: str
    pool: str
    value: float
    facts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Past:
    """All that is known of the jobs of a cluster; replaced as a whole when more is.

    Rows of one instant lie by submission, then by name.

    Attributes
    ----------
    pools : by name
    rows : of each kind all jobs to which it happened, in order of time, as they were known when it did
    touched_s : instants of what was put in or taken out, in the order in which that was done
    """

    pools: Mapping[str, PoolHistory] = field(default_factory=dict)
    rows: Mapping[Happening, Rows[JobRecord]] = field(default_factory=lambda: {kind: Rows() for kind in Happening})
    touched_s: Rows[float] = field(default_factory=Rows)

    @classmethod
    def made(cls, jobs: Iterable[JobRecord]) -> "Past":
        """From all jobs at once."""
        come = by_submission(jobs)
        start_s, known_s, run_s = np.array([one.times for one in come], np.float64).reshape(-1, 3).T
        submit_s = np.array([one.submit_s for one in come], np.float64)
        gpus = np.array([one.facts["gpus"] for one in come], np.float64)
        numbers: dict[str, int] = {}
        pool = np.array([numbers.setdefault(one.facts["pool"], len(numbers)) for one in come], np.int64)
        # Stable: jobs of one instant stay by submission.
        arrived, started, ended = (_in_time(at_s) for at_s in (submit_s, start_s, known_s))
        end_s = np.where(known_s >= start_s, known_s, inf)
        pools = {}
        for name, number in numbers.items():
            came, began, over = (places[pool[places] == number] for places in (arrived, started, ended))
            pools[name] = PoolHistory(
                submit_s[came], gpus[came], start_s[began], end_s[began], known_s[over], run_s[over]
            )
        kinds = zip(Happening, (arrived, started, ended), strict=True)
        rows = {kind: Rows([come[place] for place in places.tolist()], len(places)) for kind, places in kinds}
        return cls(pools, rows)

    def after(self, changed: Mapping[str, JobRecord | None], jobs: Mapping[str, JobRecord]) -> "Past":
        """With jobs as they are now, of which some were others before; None, or not there, for one that is none."""
        if not changed:
            return self
        if len(changed) > max(FEW, len(jobs) // SHARE):
            return Past.made(jobs.values())
        draft = _Draft(dict(self.pools), dict(self.rows), self.touched_s)
        for name, old in changed.items():
            draft.change(old, jobs.get(name))
        return Past(draft.pools, draft.rows, draft.touched_s)


def _in_time(at_s: Floats) -> Any:
    """Places of those that are known, in order of time."""
    places = np.flatnonzero(np.isfinite(at_s))
    return places[np.argsort(at_s[places], kind="stable")]


@dataclass(slots=True)
class _Draft:
    """A past that is being changed; what was read of it before stays as it is."""

    pools: dict[str, PoolHistory]
    rows: dict[Happening, Rows[JobRecord]]
    touched_s: Rows[float]

    def change(self, old: JobRecord | None, new: JobRecord | None) -> None:
        """Take out what is another now, the last first, and put it in, the first first."""
        before, after = ({} if one is None else _happened(one) for one in (old, new))
        for kind in reversed(Happening):
            if kind in before and before[kind] != after.get(kind):
                assert old is not None
                at, row = self._places(kind, before[kind])
                self.rows[kind] = self.rows[kind].without(at)
                self._columns(kind, before[kind], old, lambda values, _: np.delete(values, row), inf)  # noqa: B023
        for kind in Happening:
            if kind in after and before.get(kind) != after[kind]:
                assert new is not None
                at, row = self._places(kind, after[kind])
                self.rows[kind] = self.rows[kind].put(at, new)
                self._columns(kind, after[kind], new, lambda values, one: np.insert(values, row, one), after[kind].at_s)  # noqa: B023

    def _places(self, kind: Happening, one: _Happened) -> tuple[int, int]:
        """Where it lies, or would, among all jobs and in its pool's columns."""
        rows, at_s = self.rows[kind], TIMES[kind]
        first = bisect_left(rows.kept, one.at_s, 0, rows.count, key=at_s)
        at = bisect_left(rows.kept, one[:3], first, rows.count, key=lambda row: (at_s(row), row.submit_s, row.name))
        column = _columns(self.pools.get(one.pool, EMPTY))[kind][0]
        alike = sum(row.facts["pool"] == one.pool for row in rows.kept[first:at])
        return at, int(column.searchsorted(one.at_s)) + alike

    def _columns(
        self, kind: Happening, one: _Happened, job: JobRecord, change: Callable[[Floats, float], Floats], end_s: float
    ) -> None:
        """Change both columns of a kind; an end stands beside its start, too."""
        pool = self.pools.get(one.pool, EMPTY)
        times, values = (change(*pair) for pair in zip(_columns(pool)[kind], (one.at_s, one.value), strict=True))
        if kind == Happening.ARRIVAL:
            pool = replace(pool, arrival_s=times, arrival_gpus=values)
        elif kind == Happening.START:
            pool = replace(pool, start_s=times, end_s=values)
        else:
            pool = replace(pool, completion_s=times, completion_duration_s=values)
            if one.at_s >= job.start_s:
                _, row = self._places(Happening.START, _happened(job)[Happening.START])
                ends_s = pool.end_s.copy()
                ends_s[row] = end_s
                pool = replace(pool, end_s=ends_s)
        self.pools[one.pool] = pool
        self.touched_s = self.touched_s.put(self.touched_s.count, one.at_s)


def _columns(pool: PoolHistory) -> Mapping[Happening, tuple[Floats, Floats]]:
    return {
        Happening.ARRIVAL: (pool.arrival_s, pool.arrival_gpus),
        Happening.START: (pool.start_s, pool.end_s),
        Happening.END: (pool.completion_s, pool.completion_duration_s),
    }


def _happened(job: JobRecord) -> dict[Happening, _Happened]:
    """What a job has in its pool's columns; a start is there without its end."""
    if not job.came:
        return {}
    submit_s, (start_s, known_s, run_s) = job.submit_s, job.times
    pool, gpus = job.facts["pool"], job.facts["gpus"]
    about = (gpus, *(job.facts.get(name, "") for name in ("user", "tag")), job.limit_s)
    # An end is told with the start beside which it stands.
    end_about = (*about, start_s if isfinite(start_s) else None)
    found = {
        Happening.ARRIVAL: _Happened(submit_s, submit_s, job.name, pool, gpus, about),
        Happening.START: _Happened(start_s, submit_s, job.name, pool, inf, about),
        Happening.END: _Happened(known_s, submit_s, job.name, pool, run_s, end_about),
    }
    return {kind: one for kind, one in found.items() if isfinite(one.at_s)}


@dataclass(frozen=True, slots=True)
class _Each(Sequence[T]):
    """Of jobs what is made of each when it is asked for: a long past is read through once, and not held twice."""

    rows: Sequence[JobRecord]
    make: Callable[[JobRecord], T]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> Any:
        return [*map(self.make, self.rows[at])] if isinstance(at, slice) else self.make(self.rows[at])

    def __iter__(self) -> Iterator[T]:
        return map(self.make, self.rows)


class Window:
    """A past up to an instant; implements `domain.history.History`.

    Parameters
    ----------
    pools : of the cluster
    past : of which nothing after `now_s` is told, seconds from the epoch
    read_s : instant up to which jobs are told one by one; None: up to `now_s`
    """

    def __init__(self, pools: Iterable[Pool], past: Past, now_s: float, read_s: float | None = None) -> None:
        self.pools: Sequence[str] = tuple(sorted(pool.name for pool in pools))
        self.move(past, now_s, read_s)

    def move(self, past: Past, now_s: float, read_s: float | None = None) -> None:
        """Tell a past that only goes on where the last one ended, up to a later instant."""
        self._past, self.now_s = past, now_s
        self._read_s = now_s if read_s is None else read_s
        self._views: dict[str, PoolHistory] = {}

    def pool(self, name: str) -> PoolHistory:
        """Events of one pool up to now."""
        if name not in self._views:
            self._views[name] = _until(self._past.pools.get(name, EMPTY), self.now_s)
        return self._views[name]

    def finished_since(self, count: int) -> Sequence[FinishedJob]:
        """Jobs in the order in which their ends were known, without the first `count`."""
        return _Each(self._since(Happening.END, count), lambda one: FinishedJob(one.job(), *one.times[1:]))

    def started_since(self, count: int) -> Sequence[StartedJob]:
        """Starts in order of time, without the first `count`."""
        return _Each(self._since(Happening.START, count), lambda one: StartedJob(one.job(), one.start_s))

    def _since(self, kind: Happening, count: int) -> list[JobRecord]:
        rows = self._past.rows[kind]
        return rows.since(count, bisect_right(rows.kept, self._read_s, 0, rows.count, key=TIMES[kind]))


def _until(pool: PoolHistory, now_s: float) -> PoolHistory:
    came, began, over = (
        int(at_s.searchsorted(now_s, "right")) for at_s in (pool.arrival_s, pool.start_s, pool.completion_s)
    )
    end_s = pool.end_s[:began]
    if over < len(pool.completion_s):
        end_s = np.where(end_s <= now_s, end_s, inf)
    return PoolHistory(
        pool.arrival_s[:came],
        pool.arrival_gpus[:came],
        pool.start_s[:began],
        end_s,
        pool.completion_s[:over],
        pool.completion_duration_s[:over],
    )


class GrowingHistory:
    """A history of a record, moved from look to look; what is asked of it is what a history of all events tells.

    Forecasts are asked of steps of time and of arrivals, rows of jobs of their submissions. So nothing is read after
    the last of these: what becomes known late, but happened since, comes in time.

    Attributes
    ----------
    history : the last one; another object where what was read before is another now
    """

    def __init__(self) -> None:
        self.history: Window | None = None
        self._touched: Rows[float] = Rows()
        self._read_s = -inf
        self._tracker: tuple[Window, JobDuration, DurationTracker] | None = None

    def at(self, past: Past, pools: Sequence[Pool], now_s: float) -> Window:
        """What was known at an instant, seconds from the epoch."""
        last, seen, before_s = self.history, self._touched, self._read_s
        rows = past.rows[Happening.ARRIVAL]
        came = bisect_right(rows.kept, now_s, 0, rows.count, key=TIMES[Happening.ARRIVAL])
        self._read_s = max(now_s - now_s % GRID_S, rows.kept[came - 1].submit_s if came else -inf)
        self._touched = past.touched_s
        made = Window(pools, past, now_s, self._read_s)
        goes_on = (
            last is not None
            and last.pools == made.pools
            and last.now_s <= now_s
            and seen.kept is past.touched_s.kept
            and all(at_s > before_s for at_s in past.touched_s.since(seen.count))
        )
        if last is None or not goes_on:
            self.history = made
            return made
        last.move(past, now_s, self._read_s)
        return last

    def tracker(self, durations: JobDuration | None) -> DurationTracker | None:
        """Of a predictor, what it has read of the history; None for nobody."""
        if durations is None or self.history is None:
            return None
        if self._tracker is None or self._tracker[0] is not self.history or self._tracker[1] is not durations:
            self._tracker = self.history, durations, durations.tracker()
        return self._tracker[2]
