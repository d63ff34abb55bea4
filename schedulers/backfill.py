"""Backfilling by time limits, each pool by itself: EASY and conservative. docs/backfill.md has the rules.

Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem and Feitelson, TPDS 12(6), 2001; Slurm's sched/backfill.

A pool's jobs as columns, for rules that look at all of them at once: who waits, and until when the others run.
"""

import sys
from collections import defaultdict
from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.forecasts import Forecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import NOTHING, Decision, Grant, PoolView, View
from jobcast.domain.rounding import rounded
from jobcast.domain.scheduling_rules import NO_RULES, SchedulingRules
from jobcast.schedulers.accounting import Accounting
from jobcast.schedulers.availability import Availability, Reserving

# Slurm's KillWait: what a job that is past its limit may still take.
KILL_WAIT_S = 30.0


class Row(NamedTuple):
    """What is kept of a waiting job.

    Attributes
    ----------
    gpus, submit_s : as it asks, and when, seconds from the epoch
    run_s : longest run time that is reckoned with, seconds
    own_points, whose : see `accounting`
    reserved_s : where its reservation begins, seconds from the epoch; NaN without one
    """

    gpus: float
    submit_s: float
    run_s: float
    own_points: float
    whose: int
    reserved_s: float = np.nan


ROW = np.dtype([(name, np.int64 if name == "whose" else np.float64) for name in Row._fields])


class PoolJobs:
    """Waiting jobs in order of submission, and running ones; kept up at each decision, and read anew where it differs.

    Attributes
    ----------
    arrived : jobs that were submitted since it was kept up last
    jobs, rows : (n,) waiting jobs, and what is kept of them
    ended : whether a job has ended since
    """

    def __init__(self) -> None:
        self.arrived: list[Job] = []
        self.jobs: list[Job] = []
        self.rows = np.empty(0, dtype=ROW)
        self.ended = False
        self._running: dict[int, tuple[float, float]] = {}  # GPUs, and when the limit is over

    def catch_up(self, view: View, pool: PoolView, row_of: Callable[[Job], Row]) -> None:
        """Bring it to the view; `row_of` says what is kept of a job."""
        self._append(self.arrived, row_of)
        self.arrived = []
        # What was decided may not have been done, and a run may begin amid things: then all is read from the view.
        if len(self.jobs) != len(pool.pending):
            self.jobs, self.rows = [], self.rows[:0]
            waiting = (job for seq, job in view.active.items() if job.pool == pool.name and seq not in view.running)
            self._append(sorted(waiting, key=lambda job: job.seq), row_of)
        before = len(self._running)
        self._running = {seq: held for seq, held in self._running.items() if seq in view.running}
        self.ended = len(self._running) < before
        if sum(gpus for gpus, _ in self._running.values()) != pool.allocated:
            self._running = {
                seq: (held.grant.gpus, held.start_s + row_of(held.job).run_s)
                for seq, held in view.running.items()
                if held.job.pool == pool.name
            }
            self.ended = True

    def _append(self, jobs: list[Job], row_of: Callable[[Job], Row]) -> None:
        if jobs:
            self.jobs += jobs
            self.rows = np.concatenate([self.rows, np.array([row_of(job) for job in jobs], dtype=ROW)])

    def start(self, places: list[int], now_s: float) -> None:
        """Jobs at some places run from now on."""
        if not places:
            return
        for place in places:
            row = self.rows[place]
            self._running[self.jobs[place].seq] = (float(row["gpus"]), now_s + float(row["run_s"]))
        # From the last on: places before it stay as they are.
        for place in sorted(places, reverse=True):
            del self.jobs[place]
        self.rows = np.delete(self.rows, places)

    def overdue(self, now_s: float) -> bool:
        """Whether a job runs beyond its limit."""
        return any(end_s <= now_s + tolerance.INSTANT_S for _, end_s in self._running.values())

    def releases(self, now_s: float) -> tuple[Floats, Floats]:
        """When running jobs end at the latest, (n,) seconds, and their GPUs; those beyond their limit end shortly."""
        gpus, ends_s = np.array([*self._running.values()]).reshape(-1, 2).T
        return np.where(ends_s <= now_s + tolerance.INSTANT_S, now_s + KILL_WAIT_S, ends_s), gpus


# Slurm takes a job without a limit, of a partition without one, for a year long.
UNLIMITED_S = 365.0 * 86400.0
CLUSTER, MULTIFACTOR = "cluster", "multifactor"


class Backfill:
    """What both share: queues in order of priority, limits by account, and run times that are reckoned with.

    Parameters
    ----------
    priority : `fifo`, `multifactor`, or `cluster`: multifactor where the cluster gives weights
    bf_max_job_test : jobs of a pool that are looked at, in order, beside those that start at once; 0 for all
    """

    def __init__(self, priority: str = CLUSTER, bf_max_job_test: int = 0) -> None:
        self._priority, self.depth = priority, bf_max_job_test or sys.maxsize
        self._pools: defaultdict[str, PoolJobs] = defaultdict(PoolJobs)
        self._books: Accounting | None = None

    @property
    def apart(self) -> bool:
        """Whether what happens in a pool never touches another, as futures of one pool's jobs want to know."""
        return self._books is not None and not self._books.needed

    @property
    def overtakes(self) -> bool:
        """Whether later jobs may be first in the queue: who fills gaps behind a reservation hardly delays anybody."""
        return self._books is None or self._books.ranked

    def key(self, job: Job) -> float:
        """Queues are kept here: a job's place in them may change while it waits."""
        self._pools[job.pool].arrived.append(job)
        return 0.0

    def run_s(self, job: Job) -> float:
        """Longest run time that is reckoned with, seconds."""
        return UNLIMITED_S if job.requirements is None else min(job.requirements.time_limit_s, UNLIMITED_S)

    def decide(self, view: View) -> Decision:
        """Pools by name; those without an arrival or a completion only where limits reach across pools."""
        books = self._books = self._books or self._accounting(view)
        if books.needed:
            books.catch_up(view)
        pools = sorted(view.pools.values() if books.limited else view.touched, key=lambda pool: pool.name)
        # All of them before the first decides: whoever came counts among those that have shares.
        for pool in pools:
            self._pools[pool.name].catch_up(view, pool, lambda job: self._row(job, books, view))
        # Where limits reach across pools, so does the room that an end leaves.
        ended = books.limited and any(self._pools[pool.name].ended for pool in pools)
        changes: dict[int, Grant | None] = {}
        for pool in pools:
            jobs = self._pools[pool.name]
            jobs.ended = jobs.ended or ended
            if not jobs.jobs:
                continue
            given = sum(one.gpus for one in changes.values() if one is not None)
            free = min(pool.quota - pool.dedicated, view.free_gpus - given)
            places = self.starts(Queue(jobs, books, view.now_s, free))
            changes |= {jobs.jobs[place].seq: Grant(jobs.jobs[place].gpus) for place in places}
            jobs.start(places, view.now_s)
        return Decision(changes) if changes else NOTHING

    def starts(self, queue: "Queue") -> list[int]:
        """Places of the jobs of a pool that start now, among its waiting jobs as they were submitted."""
        raise NotImplementedError

    def _accounting(self, view: View) -> Accounting:
        # Views of tests and environments may know nothing.
        rules: SchedulingRules = view.facts(SchedulingRules) or NO_RULES
        return Accounting(rules, is_ranked(self._priority, rules))

    def _row(self, job: Job, books: Accounting, view: View) -> Row:
        own = books.own_points(job, view.total_gpus) if books.ranked else np.nan
        return Row(job.gpus, job.submit_s, self.run_s(job), own, books.number(job))


def is_ranked(priority: str, rules: SchedulingRules) -> bool:
    """Whether queues go by multifactor priority, else by submission."""
    return priority == MULTIFACTOR or (priority == CLUSTER and rules.weights.any)


class Queue:
    """Waiting jobs of a pool in order of priority, the earlier submission first among equals, during one decision.

    Attributes
    ----------
    now_s, free : the instant, and the pool's GPUs that are free
    order : (n,) places of the jobs among those of the pool as they were submitted; what follows is in this order
    gpus, run_s, rows : (n,) what they ask for, how long at the longest, and all that is kept of them
    rooms : (n,) GPUs that limits leave to each
    started : those that start, by the same places, in the order in which that was decided
    """

    def __init__(self, jobs: PoolJobs, books: Accounting, now_s: float, free: float) -> None:
        self.jobs, self.now_s, self.free, self._books = jobs, now_s, free, books
        rows = jobs.rows
        if books.ranked:
            result = books.priorities(rows["submit_s"], rows["own_points"], rows["whose"], now_s)
            self.order: Ints = np.argsort(-result, kind="stable")
            self.rows = rows[self.order]
        else:
            self.order, self.rows = np.arange(len(rows)), rows
        self.gpus, self.run_s, self._whose = (
            np.ascontiguousarray(self.rows[name]) for name in ("gpus", "run_s", "whose")
        )
        self.rooms = books.rooms(self._whose)
        self.started: list[int] = []
        self._releases = [jobs.releases(now_s)]

    def first(self, among: Bools, at: int = 0, end: int | None = None) -> int | None:
        """The first of some jobs from a place on, before another."""
        found = np.flatnonzero(among[at:end])
        return at + int(found[0]) if len(found) else None

    def start(self, place: int) -> None:
        """The job at a place starts."""
        at = int(self.order[place])
        self.started.append(at)
        self.free -= self.gpus[place]
        self._releases.append((self.now_s + self.run_s[place : place + 1], self.gpus[place : place + 1]))
        if self._books.needed:
            self._books.start(self.jobs.jobs[at], self.now_s)
        if self._books.limited:
            self.rooms = self._books.rooms(self._whose)

    def releases(self) -> tuple[Floats, Floats]:
        """When jobs that run end at the latest, those started here too: (n,) seconds, and their GPUs."""
        ends_s, gpus = zip(*self._releases, strict=True)
        return np.concatenate(ends_s), np.concatenate(gpus)

    def shadow(self, place: int) -> tuple[float, float]:
        """When the job at a place can start at the latest, and the GPUs that it leaves over then.

        Both are infinite where not all that run make room for it.
        """
        ends_s, gpus = self.releases()
        order = np.argsort(ends_s, kind="stable")
        there = np.flatnonzero(self.free + np.cumsum(gpus[order]) >= self.gpus[place] - tolerance.GPUS)
        if not len(there):
            return inf, inf
        shadow_s = float(ends_s[order][there[0]])
        return shadow_s, self.free + float(gpus[ends_s <= shadow_s + tolerance.INSTANT_S].sum()) - self.gpus[place]


class Easy(Backfill):
    """The first job that does not fit gets a reservation; others start behind it where they do not touch that."""

    name = "easy"

    def starts(self, queue: Queue) -> list[int]:
        """In order while they fit, then those that end by the shadow time, or take what is over then."""
        head = queue.first(queue.gpus <= queue.rooms)
        while head is not None and queue.gpus[head] <= queue.free:
            queue.start(head)
            head = queue.first(queue.gpus <= queue.rooms, head + 1)
        if head is None or queue.free <= 0:
            return queue.started
        shadow_s, extra = queue.shadow(head)
        short = queue.now_s + queue.run_s <= shadow_s + tolerance.INSTANT_S
        place: int | None = head
        while place is not None:
            fits = (queue.gpus <= np.minimum(queue.free, queue.rooms)) & (short | (queue.gpus <= extra))
            place = queue.first(fits, place + 1, head + 1 + self.depth)
            if place is not None:
                queue.start(place)
                if not short[place]:
                    extra -= queue.gpus[place]
        return queue.started


class EasyForecast(Easy):
    """EASY by forecast run times, where these are shorter than the limit. Tsafrir et al., TPDS 18(6), 2007."""

    name = "easy_forecast"

    def __init__(self, forecasts: Forecasts, priority: str = CLUSTER, bf_max_job_test: int = 0) -> None:
        super().__init__(priority, bf_max_job_test)
        self._forecasts = forecasts

    def run_s(self, job: Job) -> float:
        """The forecast of a job's submission, at most its limit; seconds."""
        return min(super().run_s(job), rounded(self._forecasts.duration_s(job)))


class Conservative(Backfill):
    """Every waiting job has a reservation, at the first instant from which on its GPUs are free for its run time.

    Parameters
    ----------
    priority, bf_max_job_test : see `Backfill`
    reservations : `kept`: none is ever moved to a later instant unless a job outlives its limit; `renewed`: all are
        made anew, in order, whenever the pool is looked at
    """

    name = "conservative_backfill"

    def __init__(self, priority: str = CLUSTER, bf_max_job_test: int = 0, reservations: str = "kept") -> None:
        super().__init__(priority, bf_max_job_test)
        self._kept = reservations == "kept"

    def starts(self, queue: Queue) -> list[int]:
        """Those whose reservations begin now."""
        now_s, jobs, reserved_s = queue.now_s, queue.jobs, queue.rows["reserved_s"].copy()
        reserved_s[self.depth :] = np.nan
        # Before anybody else looks for a place: what held jobs had is free.
        reserved_s[queue.gpus > queue.rooms] = np.nan
        broken = jobs.overdue(now_s) or bool((reserved_s < now_s - tolerance.INSTANT_S).any())
        if broken or not self._kept:
            reserved_s[:] = np.nan
        profile, asked, place = self._profile(queue, reserved_s), reserved_s[: self.depth], 0
        # Nobody asks where reservations would be that are not kept, and nobody can start any more.
        while place < len(asked) and (self._kept or queue.free > 0):
            gpus, run_s, rooms = (one[: self.depth] for one in (queue.gpus, queue.run_s, queue.rooms))
            # Those that have one look for an earlier one only once somebody has ended.
            place = profile.reserve(Reserving(gpus, run_s, rooms, asked), place, queue.free, jobs.ended)
            if place < len(asked):
                queue.start(place)
                place += 1
        jobs.rows["reserved_s"][queue.order] = reserved_s
        return queue.started

    def _profile(self, queue: Queue, reserved_s: Floats) -> Availability:
        """What is free from now on, running jobs and reservations taken out."""
        (ends_s, gpus), there = queue.releases(), ~np.isnan(reserved_s)
        begin_s, taken = np.maximum(reserved_s[there], queue.now_s), queue.gpus[there]
        changes_s = np.concatenate([ends_s, begin_s, reserved_s[there] + queue.run_s[there]])
        changes = np.concatenate([gpus, -taken, taken])
        return Availability(queue.now_s, queue.free, changes_s, changes, len(queue.gpus))
