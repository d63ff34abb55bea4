"""What is known of a queue when a pending job asks how long it will wait: one function for training, replay and live.

A trace with starts tells it by itself. A table of snapshots of a cluster (`traces.readers.queue_snapshots`) tells what
was ahead of its jobs, and of other jobs only those that are in it; a job is known from its snapshot on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import DAY_S, HOUR_S
from jobcast.traces.readers.queue_snapshots import AHEAD, MB_PER_GB, SHARES
from jobcast.traces.table import Trace

RECENT_S = 10 * DAY_S
"""Starts and ends of longer ago tell nothing of today's queue."""
WEIGHED_DAYS = (1.0, 4.0)
"""Days after which a start weighs 1 / e."""
LAGS_DAYS = (1.0, 3.0, 7.0)
"""How long ago queues are looked at, of whose jobs it is asked how many have started since."""
GROUPS = ("pool", "account", "both", "like")
"""Jobs of the same pool; account (else user); both; and like in all that they ask for."""
FIRST_WEEKDAY = 3
"""The epoch was a Thursday."""
NEAREST = (3, 2, 1, 0)
"""Groups from the most alike on."""
HOURS_OF_CORES, HOURS_OF_GPUS = 3, 5
"""Places among what jobs ask for."""
HALF, DRAIN = 0.5, 0.1
"""Starts added, so that none is not infinitely long."""
LONGEST_S = 30 * DAY_S
"""Jobs of which nothing is known run no longer than that."""
LEAST_S = 1.0
"""Waits are counted from a second on: less is none."""
WHOSE = ("", "p_", "a_", "p_a_")
"""All jobs, those of the pool, of the account, of both: as columns of snapshots name them."""
JOB = ("cores", "mem gb", "mem gb a core", "limit s", "priority", "gpus", "age s", "eligible s", "weekday", "hour")
EXPECTED = tuple(f"expected {whose}{what}" for whose in WHOSE for what in ("core_hours", "gpu_hours"))
STARTS = "starts 1d"
OF_GROUP = (
    "pending", "ahead", "oldest s", STARTS, "log wait 1d", "starts 4d", "log wait 4d", "started core s", "priority",
    "since start s", "hazard 1d", "hazard 3d", "hazard 7d", "left 1d", "still 1d", "log run", "run share",
)  # fmt: skip
DRAINS = ("pool drain", "account drain", "both drain")


def queue_columns() -> tuple[str, ...]:
    """Names of the columns of a row.

    - what the job asks for: cores, GB, GB a core, time limit (s), priority, GPUs; how long it has waited since its
      submission, and since it might start, -1 before that (s); weekday (0 = Monday) and hour of the instant, UTC
    - `q_..._above`, `r_..._above`: see `queue_snapshots.AHEAD`; by priority, else by submission. A whole trace counts
      all running jobs, and hours by the limit that is left; jobs without a limit count by what like ones ran
    - `expected ..._core_hours`, `expected ..._gpu_hours`: of pending jobs ahead, by what like ones ran as of then;
      not of a table of snapshots, which lacks many of those ahead
    - `level_fs_poll ...`: see `queue_snapshots.SHARES`

    and of each group of `GROUPS`

    - `GROUP pending`, `GROUP ahead`, `GROUP oldest s`: its pending jobs, those before this one by priority and
      submission, and how long its oldest one waits
    - `GROUP starts Nd`, `GROUP log wait Nd`: weight exp(-days / N) of its starts and their mean log10 wait (s)
    - `GROUP started core s`: core-seconds by limit of its starts, so weighed, N = 1
    - `GROUP priority`: the job's priority over the mean of its starts, N = 4
    - `GROUP since start s`: since its last start
    - `GROUP hazard Nd`: log10 of the seconds waited a start in the last N days by the jobs that were pending then
    - `GROUP left 1d`, `GROUP still 1d`: of those pending a day ago, the mean log10 of how long they have waited since
      (s), and the share that still waits
    - `GROUP log run`, `GROUP run share`: mean log10 run time (s) of its jobs that ended, and its share of their limits

    - `GROUP drain`, not of like jobs: log10 of its `q_..._jobs_above` over its starts, N = 1

    >>> len(queue_columns()), queue_columns()[:2]
    (138, ('cores', 'mem gb'))
    """
    return (*JOB, *AHEAD, *EXPECTED, *SHARES, *(f"{group} {name}" for group in GROUPS for name in OF_GROUP), *DRAINS)


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """Jobs as columns, (n,) each.

    Attributes
    ----------
    seen_s : from when on a job is known: its snapshot, else its submission; seconds from the epoch, as all times
    submit_s, eligible_s, start_s, known_s : when it came, might start, started, and its end was known; the last two are
        infinite where it has not
    run_s : run time, NaN of jobs that had not ended
    cores, mem_gb, gpus, limit_s, priority : what it asks for and its place in the queue; NaN where it is not told
    groups : (n, G) number of its group of each of `GROUPS`
    given : (n, A) what its snapshot tells of the queue, in the order of `AHEAD`; (n, 0) of a whole trace
    shares : (n, S) its account's fair-share, in the order of `SHARES`; NaN where it is not told
    """

    seen_s: Floats
    submit_s: Floats
    eligible_s: Floats
    start_s: Floats
    known_s: Floats
    run_s: Floats
    cores: Floats
    mem_gb: Floats
    gpus: Floats
    limit_s: Floats
    priority: Floats
    groups: Ints
    given: Floats
    shares: Floats

    @classmethod
    def of(cls, trace: Trace) -> "Queue":
        """All jobs of a trace, in its order."""
        asked = cores, mem_gb, gpus, limit_s = [
            trace.numbers(name, np.nan) for name in ("cores", "mem_gb", "gpus", "time_limit_s")
        ]
        return cls(
            trace.seen_s, trace.submit_s, trace.eligible_s, trace.start_s, trace.known_s, trace.duration_s,
            cores, mem_gb, gpus, limit_s, trace.numbers("priority", np.nan), _groups(trace, asked),
            _told(trace, AHEAD if trace.is_snapshots else ()), _told(trace, SHARES),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.seen_s)

    def among(self, rows: Ints) -> "Queue":
        """Some of the jobs."""
        return replace(self, **{one.name: getattr(self, one.name)[rows] for one in fields(self)})

    def pending(self, at_s: float) -> Ints:
        """Jobs that were known to wait at an instant, ascending."""
        return np.flatnonzero((self.seen_s <= at_s) & (self.start_s > at_s))

    def near(self, at_s: float) -> Ints:
        """Jobs known at an instant that waited, ran or had not long ended, ascending."""
        return np.flatnonzero((self.seen_s <= at_s) & (self.known_s > at_s - RECENT_S))


def _groups(trace: Trace, asked: Sequence[Floats]) -> Ints:
    who = [pl.Series(trace.values(name), dtype=pl.String) for name in ("account", "user")]
    pool, account = trace.jobs["pool"], who[0].zip_with(who[0].is_not_null(), who[1]).fill_null("")
    like = [pl.Series(str(place), values) for place, values in enumerate(asked)]
    keys = [[pool], [account], [pool, account.alias("account")], [pool, account.alias("account"), *like]]
    return np.column_stack([pl.DataFrame(one).to_struct().rank("dense").to_numpy() for one in keys]).astype(np.int64)


def _told(trace: Trace, names: Sequence[str]) -> Floats:
    """Columns of a trace, (n, names); what is no finite number is not told."""
    columns = [trace.numbers(name, np.nan) for name in names]
    result = np.column_stack(columns) if columns else np.empty((len(trace), 0))
    return np.where(np.isfinite(result), result, np.nan)


def queue_rows(queue: Queue, at_s: float, asked: Ints) -> NDArray[np.float32]:
    """Rows of pending jobs at an instant, (n_asked, F) float32; see `queue_columns`.

    Of what came later nothing is read: neither a start nor an end, nor a job that was not known yet.

    Parameters
    ----------
    asked : (n_asked,) of `Queue.pending`
    """
    near = queue.near(at_s)
    moment, which = Moment.of(queue.among(near), at_s), np.searchsorted(near, asked)
    # Groups of which nothing is known yet have means of 0 / 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead, groups = moment.ahead(which), [moment.of_group(group)[which] for group in range(len(GROUPS))]
        drains = [
            np.log10(
                (ahead[:, AHEAD.index(f"q_{whose}jobs_above")] + 1.0) / (result[:, OF_GROUP.index(STARTS)] + DRAIN)
            )
            for whose, result in zip(WHOSE[1:], groups, strict=False)
        ]
        parts = [moment.job(which), ahead, moment.expected(which), moment.queue.shares[which], *groups]
    result = np.column_stack([*parts, *drains])
    # Of a job without cores memory a core is infinite, which trees do not split.
    return np.where(np.isfinite(result), result, np.nan).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A queue at an instant.

    Attributes
    ----------
    queue : jobs that were known
    waiting : (p,) its pending jobs, by priority and submission
    running, begun, ended : jobs that run; that started, that ended, in the last `RECENT_S`
    """

    queue: Queue
    at_s: float
    waiting: Ints
    running: Ints
    begun: Ints
    ended: Ints

    @classmethod
    def of(cls, queue: Queue, at_s: float) -> "Moment":
        """Of the jobs that are `Queue.near`."""
        started, over = queue.start_s <= at_s, queue.known_s <= at_s
        waits = np.flatnonzero(~started)
        order = np.lexsort((queue.submit_s[waits], -np.nan_to_num(queue.priority[waits])))
        recent = np.flatnonzero(started & (queue.start_s > at_s - RECENT_S))
        return cls(queue, at_s, waits[order], np.flatnonzero(started & ~over), recent, np.flatnonzero(over))

    def job(self, which: Ints) -> Floats:
        """Columns of `JOB`."""
        one = self.queue.among(which)
        weekday, hour = (self.at_s // DAY_S + FIRST_WEEKDAY) % 7, self.at_s % DAY_S / HOUR_S
        columns = (one.cores, one.mem_gb, one.mem_gb / one.cores, one.limit_s, one.priority, one.gpus)
        eligible_s = np.where(one.eligible_s <= self.at_s, self.at_s - one.eligible_s, -1.0)
        calendar = (np.full(len(which), weekday), np.full(len(which), hour))
        return np.column_stack([*columns, self.at_s - one.submit_s, eligible_s, *calendar])

    def ahead(self, which: Ints) -> Floats:
        """Columns of `AHEAD`: as the snapshot tells them, else counted."""
        if self.queue.given.shape[1]:
            return self.queue.given[which]
        limit_s = np.where(np.isnan(self.queue.limit_s), self.expected_s, self.queue.limit_s)
        left_s = np.maximum(limit_s[self.running] - (self.at_s - self.queue.start_s[self.running]), 0.0)
        waits, runs = self._asked(self.waiting, limit_s[self.waiting]), self._asked(self.running, left_s)
        pending, running = [], []
        for codes in self._scopes():
            pending.append(self._of_waiting(sums_before(codes[self.waiting], waits))[which])
            running.append(np.column_stack([_counted(codes, self.running, one) for one in runs.T])[which])
        return np.hstack([*pending, *running])

    def expected(self, which: Ints) -> Floats:
        """Columns of `EXPECTED`: of a whole trace alone, since a table of snapshots lacks many of those ahead."""
        if self.queue.given.shape[1]:
            return np.full((len(which), len(EXPECTED)), np.nan)
        work = self._asked(self.waiting, self.expected_s[self.waiting])[:, [HOURS_OF_CORES, HOURS_OF_GPUS]]
        return np.hstack([self._of_waiting(sums_before(codes[self.waiting], work))[which] for codes in self._scopes()])

    @property
    def expected_s(self) -> Floats:
        """(n,) how long jobs of the nearest group of which any had ended ran, as of now, no longer than the limit."""
        log_s = np.full(len(self.queue), np.nan)
        for group in NEAREST:
            codes = self.queue.groups[:, group]
            log_s = np.where(np.isnan(log_s), self._mean_of(codes, self.ended, self._run_log), log_s)
        return np.fmin(np.fmin(10.0**log_s, self.queue.limit_s), LONGEST_S)

    @property
    def _run_log(self) -> Floats:
        return np.log10(np.fmax(np.fmin(self.queue.run_s, self.queue.limit_s), LEAST_S)[self.ended])

    def _scopes(self) -> list[Ints]:
        """Groups by `WHOSE`."""
        return [np.zeros(len(self.queue), np.int64), *self.queue.groups.T[: len(WHOSE) - 1]]

    def _asked(self, jobs: Ints, seconds: Floats) -> Floats:
        """What jobs ask for in the order of `AHEAD`, (jobs, 6)."""
        one, hours = self.queue.among(jobs), seconds / HOUR_S
        columns = (np.ones(len(jobs)), one.cores, MB_PER_GB * one.mem_gb, one.cores * hours, one.gpus, one.gpus * hours)
        return np.nan_to_num(np.column_stack(columns))

    def _of_waiting(self, values: Floats) -> Floats:
        """Values of pending jobs in their order, at their places among all jobs."""
        result = np.full((len(self.queue), *values.shape[1:]), np.nan)
        result[self.waiting] = values
        return result

    def _mean_of(self, codes: Ints, jobs: Ints, values: Floats, weight: Floats | float = 1.0) -> Floats:
        """(n,) mean over some jobs of each job's group."""
        return _counted(codes, jobs, weight * values) / _counted(codes, jobs, weight)

    def of_group(self, group: int) -> Floats:
        """Columns of `OF_GROUP`, of all jobs."""
        queue, codes, waiting = self.queue, self.queue.groups[:, group], self.waiting
        before = self._of_waiting(sums_before(codes[waiting], np.ones(len(waiting))))
        oldest_s = _largest(codes, waiting, self.at_s - queue.submit_s[waiting])
        share = np.fmin(queue.run_s / queue.limit_s, 1.0)[self.ended]
        ran = self._mean_of(codes, self.ended, self._run_log), self._mean_of(codes, self.ended, share)
        counts = _counted(codes, waiting), before, oldest_s
        return np.column_stack([*counts, *self._starts(codes), *self._since(codes), *ran])

    def _starts(self, codes: Ints) -> list[Floats]:
        """Of a group's starts, by how long ago they were."""
        queue, begun = self.queue, self.begun
        ago_s = self.at_s - queue.start_s[begun]
        waited = np.log10(np.maximum(queue.start_s[begun] - queue.submit_s[begun], LEAST_S))
        weights = [np.exp(-ago_s / (DAY_S * days)) for days in WEIGHED_DAYS]
        means = [(_counted(codes, begun, one), self._mean_of(codes, begun, waited, one)) for one in weights]
        work = _counted(codes, begun, weights[0] * np.nan_to_num(queue.cores * queue.limit_s)[begun])
        priority = queue.priority / self._mean_of(codes, begun, queue.priority[begun], weights[1])
        return [*means[0], *means[1], work, priority, -_largest(codes, begun, -ago_s)]

    def _since(self, codes: Ints) -> list[Floats]:
        """What came of a group's jobs that waited some days ago; by `LAGS_DAYS`, then more of the shortest."""
        queue, hazards, more = self.queue, list[Floats](), list[Floats]()
        for days in LAGS_DAYS:
            then_s = self.at_s - DAY_S * days
            waited = np.flatnonzero((queue.seen_s <= then_s) & (queue.start_s > then_s))
            since_s = np.minimum(queue.start_s[waited], self.at_s) - then_s
            waits = (queue.start_s[waited] > self.at_s).astype(np.float64)
            starts, seconds = _counted(codes, waited, 1.0 - waits), _counted(codes, waited, since_s)
            hazards.append(np.where(seconds, np.log10((seconds + HOUR_S) / (starts + HALF)), np.nan))
            # Kept of the first lag alone.
            more = more or [
                self._mean_of(codes, waited, described) for described in (np.log10(np.maximum(since_s, LEAST_S)), waits)
            ]
        return [*hazards, *more]


def sums_before(codes: Ints, values: Floats) -> Floats:
    """Sums over the earlier rows of the same group, as `values`: (n,) or (n, k).

    >>> sums_before(np.array([0, 1, 0]), np.array([[1.0], [2.0], [4.0]])).ravel().tolist()
    [0.0, 0.0, 1.0]
    """
    order = np.argsort(codes, kind="stable")
    sorted_codes, rows = codes[order], values[order]
    before = np.cumsum(rows, axis=0) - rows
    result = np.empty_like(before)
    result[order] = before - before[np.searchsorted(sorted_codes, sorted_codes)]
    return result


def _counted(codes: Ints, jobs: Ints, weight: Floats | float = 1.0) -> Floats:
    """(n,) weight of some jobs of each job's group."""
    weights = np.zeros(len(codes))
    weights[jobs] = weight
    return np.bincount(codes, weights)[codes].astype(np.float64)


def _largest(codes: Ints, jobs: Ints, values: Floats) -> Floats:
    """(n,) largest value of some jobs of each job's group; NaN where none of it is among them."""
    most = np.full(len(np.bincount(codes)), -np.inf)
    np.maximum.at(most, codes[jobs], values)
    return np.where(np.isfinite(most), most, np.nan)[codes]
