"""The canonical job table: one row a job, in order of submission.

As of when an end was known: accounting shows it later than it came.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import repeat
from math import isfinite
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools, Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.jobs import Job, Requirements
from jobcast.traces.check import Place, check_jobs, node_names
from jobcast.traces.column_types import Typed, typed_columns
from jobcast.traces.columns import COLUMNS
from jobcast.traces.outliers import without_outliers

_KNOWN_AFTER_S: ContextVar[float] = ContextVar("known_after_s", default=0.0)


def known_after_s() -> float:
    """Seconds after which the ends of traces read now are known, where their rows name no `known_time`."""
    return _KNOWN_AFTER_S.get()


@contextmanager
def ends_known_after(seconds: float) -> Iterator[None]:
    """Ends of traces read meanwhile are known so many seconds later. Raises ConfigError for a number below 0.

    >>> with ends_known_after(60.0):
    ...     known_after_s()
    60.0
    """
    if not (isfinite(seconds) and seconds >= 0.0):
        raise ConfigError(f"known_after_s must be 0 or more seconds, got {seconds:g}; 0 counts an end at once")
    token = _KNOWN_AFTER_S.set(seconds)
    try:
        yield
    finally:
        _KNOWN_AFTER_S.reset(token)


MICROSECONDS = 1e6
NO_GPUS = "no GPUs"
OPEN_NOTE = "duration: empty in"
"""How the note on jobs that had not ended begins."""
NOT_ENDED = "no run time (running or waiting)"
"""Why jobs are left out, as they are counted in `dropped`."""
ASKED = ("cores", "mem_gb", "account", "qos", "partition", "nodes", "time_limit_s", "priority")
"""Columns of `Requirements`, in its order."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a trace came from: path (or a generator's name), SHA-256 of the file's bytes, rows of data in it."""

    path: str
    sha256: str
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What happened: jobs by (submit time, job id, row).

    Attributes
    ----------
    jobs : canonical columns first (see `columns.COLUMNS`), then whatever else the file held; times in UTC
    name : what to call it
    source : where it came from
    notes : what the reader decided, e.g. that times without an offset were read as UTC
    dropped : rows that the reader left out, by reason
    known_after_s : seconds after which the accounting showed an end, where its row names no `known_time`
    """

    jobs: pl.DataFrame
    name: str
    source: Source
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    known_after_s: float = 0.0

    @classmethod
    def from_frame(
        cls,
        frame: pl.DataFrame,
        *,
        name: str,
        source: "Source | str | None" = None,
        notes: tuple[str, ...] = (),
        dropped: Mapping[str, int] | None = None,
        place: Place | None = None,
    ) -> "Trace":
        """Trace from a frame of typed columns, checked and sorted.

        Times may be timestamps (naive = UTC) or numbers of seconds from the epoch. Without a `Source`
        the content's own hash stands in for a file's.

        Raises
        ------
        TraceError
            A required column is missing, a row holds what a trace cannot, or its times lie far from all others
            (see `outliers`).
        """
        place = place or Place(source if isinstance(source, str) else getattr(source, "path", name))
        if not isinstance(frame, pl.DataFrame):
            raise TraceError(
                f"{place.path}: {type(frame).__name__} is no frame of polars; polars.from_pandas makes one"
            )
        # idempotent, so that readers may have typed the columns already
        typed: Typed = typed_columns(frame, place)
        # before the checks: one row of the year 1970 should not stop a trace of millions
        kept, place, odd = without_outliers(typed.frame, place)
        # checked in the file's order, so that errors name the first bad row of the file
        check_jobs(kept, place)
        jobs = _in_order(kept)
        # no file, no hash of one: the content stands in
        if not isinstance(source, Source):
            source = Source(source or name, _content_hash(jobs), typed.frame.height)
        trace = cls(jobs, name, source, (), {**(dropped or {}), **odd}, known_after_s())
        return replace(trace, notes=(*notes, *typed.notes, *_open_notes(trace)))

    def __len__(self) -> int:
        return self.jobs.height

    @property
    def pools(self) -> list[str]:
        """Names of the pools, ascending."""
        return self.jobs["pool"].unique().sort().to_list()

    @property
    def submit_s(self) -> Floats:
        """Submit times, seconds from the epoch, ascending, shape (n_jobs,)."""
        return _seconds(self.jobs["submit_time"])

    @property
    def duration_s(self) -> Floats:
        """Run times in seconds, NaN of jobs that had not ended, shape (n_jobs,)."""
        return self.jobs["duration"].to_numpy()

    @property
    def ended(self) -> Bools:
        """Whether jobs had ended, so that their run times are known, shape (n_jobs,)."""
        return self._names("duration")

    @property
    def gpus(self) -> NDArray[np.int64]:
        """Gang widths, 0 of jobs of cores alone, shape (n_jobs,)."""
        return self.jobs["gpus"].to_numpy()

    @property
    def gpu_time_s(self) -> Floats:
        """GPU-seconds of work, shape (n_jobs,): duration x the GPUs that it holds for; 0 while it is not known."""
        # NaN of open jobs would poison every sum
        known_s: Floats = np.where(self.ended, self.duration_s, 0.0)
        return self.duration_gpus * known_s

    @property
    def elastic(self) -> Bools:
        """Whether `gpus` is the most that a job can use and its duration that on one GPU.

        It names `min_gpus`, and no `duration_gpus`, which an enriched trace does.
        """
        return self._names("min_gpus") & ~self.bound

    @property
    def bound(self) -> Bools:
        """Whether a job takes its duration, alone on `duration_gpus` GPUs, under every law of progress."""
        return self._names("duration_gpus")

    @property
    def duration_gpus(self) -> NDArray[np.int64]:
        """GPUs that durations hold for, shape (n_jobs,): as the trace says, else 1 for elastic jobs, all for others."""
        # elastic durations are work on one GPU
        otherwise = np.where(self.elastic, 1, self.gpus)
        if "duration_gpus" not in self.jobs.columns:
            return otherwise
        return self.jobs["duration_gpus"].fill_null(pl.Series(otherwise)).to_numpy()

    @property
    def start_s(self) -> Floats:
        """When jobs started, seconds from the epoch: `start_time`, else the submission, shape (n_jobs,).

        Infinite for those that had not: neither start nor run time is told, in a trace that has starts.
        """
        if "start_time" not in self.jobs.columns:
            return self.submit_s
        # a trace that has starts tells by an empty one that the job waits
        return self._time_or("start_time", np.where(self.ended, self.submit_s, np.inf))

    @property
    def recorded_start_s(self) -> Floats:
        """When jobs started by `start_time` alone, seconds from the epoch, NaN where it says nothing, (n_jobs,)."""
        return self._time_or("start_time", np.full(len(self), np.nan))

    @property
    def is_snapshots(self) -> bool:
        """Whether it is a table of snapshots: jobs that were pending at some instants, and no others."""
        return "snapshot_time" in self.jobs.columns

    @property
    def seen_s(self) -> Floats:
        """From when on jobs are known, seconds from the epoch: `snapshot_time`, else submission, shape (n_jobs,)."""
        return self._time_or("snapshot_time", self.submit_s)

    @property
    def eligible_s(self) -> Floats:
        """From when on jobs might start, seconds from the epoch: `eligible_time`, else submission, shape (n_jobs,)."""
        return self._time_or("eligible_time", self.submit_s)

    @property
    def end_s(self) -> Floats:
        """When jobs ended, seconds from the epoch: `end_time`, else start + duration, else infinite, (n_jobs,)."""
        return self._time_or("end_time", np.where(self.ended, self.start_s + self.duration_s, np.inf))

    @property
    def known_s(self) -> Floats:
        """From when ends were known, seconds from the epoch, infinite of jobs that had not ended, shape (n_jobs,).

        `known_time`, else `known_after_s` after the end. What forecasts learn from asks this, not `end_s`: until then
        a job runs, as far as anybody could tell.
        """
        # known before it came would let forecasts look ahead
        return np.maximum(self._time_or("known_time", self.end_s + self.known_after_s), self.end_s)

    @property
    def lag_s(self) -> float:
        """Seconds within which 99 of 100 ends were known, of all that are; 0 where all are shown at once.

        Not the longest: one that was corrected months later says nothing of how soon silence means a long job.
        """
        late_s = self.known_s[self.ended] - self.end_s[self.ended]
        return float(np.quantile(late_s, 0.99, method="higher")) if len(late_s) else 0.0

    @property
    def last_known_s(self) -> float:
        """The last instant that it tells of, seconds from the epoch: a submission, snapshot, start or known end."""
        result = np.concatenate([self.submit_s, self.seen_s, self.start_s, self.known_s])
        return float(result[np.isfinite(result)].max())

    @property
    def due_s(self) -> Floats:
        """Due dates, seconds from the epoch: `deadline`, infinite where there is none, shape (n_jobs,)."""
        return self._time_or("deadline", np.full(len(self), np.inf))

    def numbers(self, column: str, otherwise: float) -> Floats:
        """A column of numbers, shape (n_jobs,), or where it is missing or empty the same number."""
        if column not in self.jobs.columns:
            return np.full(len(self), otherwise)
        return self.jobs[column].cast(pl.Float64).fill_null(otherwise).to_numpy()

    def needed(self, column: str, by: str) -> pl.Series:
        """A column that each job must fill, for what needs it. Raises TraceError that names the first that does not."""
        path = self.source.path
        if column not in self.jobs.columns:
            raise TraceError(f"{path}: column {column} missing, which {by} need; add it")
        known = self.jobs[column]
        if known.null_count():
            job_id = self.jobs["job_id"][int(known.is_null().arg_true()[0])]
            raise TraceError(f"{path}: job {job_id} names no {column}; fill the column {column}")
        return known

    def between(self, from_s: float | None, until_s: float | None) -> "Trace":
        """Jobs submitted in [from_s, until_s); None leaves a side open."""
        submit_s = self.submit_s
        # a slice by binary search: jobs stand in order of submission
        first = 0 if from_s is None else int(np.searchsorted(submit_s, from_s, side="left"))
        last = len(self) if until_s is None else int(np.searchsorted(submit_s, until_s, side="left"))
        return replace(self, jobs=self.jobs.slice(first, max(0, last - first)))

    def as_of(self, at_s: float) -> "Trace":
        """What was known at an instant: jobs submitted by then, whose starts and ends after it have not come yet."""
        # between() is open above, and the instant itself counts
        seen = self.between(None, float(np.nextafter(at_s, np.inf)))
        began, known = pl.Series(seen.start_s <= at_s), seen.ends_known(at_s)
        if "start_time" not in known.jobs.columns:
            return known
        # an empty start stands for the submission where the trace has starts of others
        starts = pl.when(began).then(pl.col("start_time").fill_null(pl.col("submit_time"))).alias("start_time")
        return replace(known, jobs=known.jobs.with_columns(starts))

    def ends_known(self, at_s: float) -> "Trace":
        """The trace without the ends that were not known at an instant: their jobs have not ended."""
        # all three columns go together: an end without a duration contradicts
        runs = pl.Series(self.known_s > at_s)
        rows = [name for name in ("duration", "end_time", "known_time") if name in self.jobs.columns]
        return replace(self, jobs=self.jobs.with_columns(pl.when(~runs).then(name).alias(name) for name in rows))

    def without(self, rows: Bools, reason: str) -> "Trace":
        """The trace without the jobs of some rows, (n_jobs,), which are counted under a reason."""
        count = int(rows.sum())
        if not count:
            return self
        dropped = {**self.dropped, reason: self.dropped.get(reason, 0) + count}
        return replace(self, jobs=self.jobs.filter(~rows), dropped=dropped)

    def of_pools(self, pools: Iterable[str]) -> "Trace":
        """The jobs of some pools."""
        return replace(self, jobs=self.jobs.filter(pl.col("pool").is_in(list(pools))))

    def pooled_by(self, column: str) -> "Trace":
        """The trace with account, QOS or partition for pools; of several partitions the first. A note counts the jobs
        that name none, which stay in their pools.

        Raises TraceError where no job names any.
        """
        named = self._names(column)
        if not named.any():
            raise TraceError(f"{self.source.path}: no job names its {column}; leave --pool-by {column} out")
        first = pl.col(column).str.split(",").list.first()
        others = "" if named.all() else f"; {int((~named).sum()):,} of {len(self):,} jobs name none and keep theirs"
        jobs = self.jobs.with_columns(pool=pl.coalesce(first, "pool"))
        return replace(self, jobs=jobs, notes=(*self.notes, f"pool: the {column}{others}"))

    @property
    def on_gpus(self) -> "Trace":
        """The jobs that ask for GPUs: those that forecasts of GPUs and replays are about."""
        return self.without(self.gpus == 0, NO_GPUS)

    def values(self, name: str) -> list[Any]:
        """What a column says of each job; None of all where there is no such column."""
        return self.jobs[name].to_list() if name in self.jobs.columns else [None] * len(self)

    def to_jobs(self) -> tuple[list[Job], Floats]:
        """Jobs as anybody may see them (`seq` = position in the table) and, apart, their run times in seconds."""
        # by column, then one map: millions of jobs, and rows of polars are slow
        columns: list[Iterable[Any]] = [
            self.jobs["job_id"].to_list(),
            self.jobs["pool"].to_list(),
            self.submit_s.tolist(),
            self.jobs["gpus"].to_list(),
            self._filled("user", ""),
            self._filled("tag", ""),
            self._filled("preemptible", False),
            repeat(None),
            self._filled("weight", 1.0),
            self.due_s.tolist() if "deadline" in self.jobs.columns else repeat(np.inf),
            # 0 GPUs is no width to run at; jobs without the column are rigid
            self.jobs["min_gpus"].clip(1).fill_null(0).to_list() if "min_gpus" in self.jobs.columns else repeat(0),
            self._requirements(),
        ]
        return list(map(Job, range(len(self)), *columns)), self.duration_s

    def _requirements(self) -> Iterable[Requirements | None]:
        """What jobs ask for beside GPUs, one object for all that ask alike; None where nothing is told.

        `nodes` of a job that started are those where it ran: what came of its request, which nobody knew.
        """
        # columns that are empty throughout cost nothing
        rows = [name for name in ASKED if self._names(name).any()]
        if not rows:
            return repeat(None)
        untold = [pl.lit(None).alias(name) for name in ASKED if name not in rows]
        asked = (
            self.jobs.with_columns(untold)
            .select(ASKED)
            # nodes of a started job are the outcome, which would leak into a replay
            .with_columns(nodes=pl.when(~pl.Series(self._names("start_time"))).then("nodes"))
        )
        # few different requests among many jobs: one object each
        made = {row: _requirements(*row) for row in asked.unique().iter_rows()}
        return [made[row] for row in asked.iter_rows()]

    def _names(self, column: str) -> Bools:
        """(n_jobs,) whether a job fills a column."""
        if column not in self.jobs.columns:
            return np.zeros(len(self), dtype=bool)
        return self.jobs[column].is_not_null().to_numpy()

    def _filled(self, column: str, empty: str | bool | float) -> Iterable[Any]:
        if column not in self.jobs.columns:
            return repeat(empty)
        return self.jobs[column].fill_null(empty).to_list()

    def _time_or(self, column: str, otherwise: Floats) -> Floats:
        if column not in self.jobs.columns:
            return otherwise
        known = self.jobs[column]
        # zero, not the null itself: nulls become NaT, whose number is nonsense
        return np.where(known.is_not_null().to_numpy(), _seconds(known.fill_null(strategy="zero")), otherwise)


def _requirements(
    cores: float | None,
    mem_gb: float | None,
    account: str | None,
    qos: str | None,
    partition: str | None,
    nodes: str | None,
    limit_s: float | None,
    priority: float | None,
) -> Requirements | None:
    names, limit_s = tuple(node_names(nodes or "") or ()), np.inf if limit_s is None else limit_s
    asked = Requirements(cores, mem_gb, account or "", qos or "", partition or "", names, limit_s, priority)
    return None if asked == Requirements() else asked


def _open_notes(trace: Trace) -> tuple[str, ...]:
    """What becomes of jobs that had not ended, and of those that ask for no GPUs."""
    ended, running, plain = trace.ended, np.isfinite(trace.start_s), trace.gpus == 0
    notes = []
    if count := int((~ended).sum()):
        which = f"{int((~ended & running).sum()):,} running, {int((~ended & ~running).sum()):,} waiting"
        notes.append(
            f"{OPEN_NOTE} {count:,} of {len(trace):,} jobs, which had not ended ({which}): they count as "
            "arrivals, replays leave them out"
        )
    if trace.known_after_s:
        notes.append(f"known_after_s: an end counts from {trace.known_after_s:g} s later on; until then the job runs")
    if count := int(plain.sum()):
        notes.append(f"gpus: 0 in {count:,} of {len(trace):,} jobs: forecasts of GPUs and replays leave them out")
    return tuple(notes)


def _seconds(times: pl.Series) -> Floats:
    return times.dt.timestamp("us").to_numpy() / MICROSECONDS


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Canonical columns first, rows by (submit_time, job_id) and otherwise as they stood."""
    known = [name for name in COLUMNS if name in frame.columns]
    extra = [name for name in frame.columns if name not in COLUMNS]
    # the id breaks ties, so that order does not hang on the file's
    return frame.select(known + extra).sort("submit_time", "job_id", maintain_order=True)


def _content_hash(jobs: pl.DataFrame) -> str:
    # further columns do not count: they are not the trace's meaning
    plain = jobs.select(name for name in COLUMNS if name in jobs.columns)
    return hashlib.sha256(plain.write_csv().encode()).hexdigest()
