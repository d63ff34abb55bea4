"""The cluster at any instant of a finished run: who held GPUs, who was pending, what was idle."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from heapq import heappop, heappush
from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.pipelines.experiments.explain.run_table import RunTable


def fcfs_starts_s(
    submit_s: Floats, gpus: Ints, duration_s: Floats, quota: int, held: Iterable[tuple[float, int]] = ()
) -> Floats:
    """Starts of one pool's jobs on its quota alone, the head blocking the rest; infinite from one too wide on.

    Parameters
    ----------
    submit_s, gpus, duration_s : (n_jobs,) in order of submission
    quota : GPUs of the pool
    held : ends and widths of jobs that run from the beginning on

    Examples
    --------
    >>> fcfs_starts_s(np.array([0.0, 0.0, 1.0]), np.array([2, 3, 1]), np.array([5.0, 5.0, 5.0]), 4).tolist()
    [0.0, 5.0, 5.0]
    """
    starts_s: Floats = np.full(len(submit_s), np.inf)
    ends = sorted(held)
    free, now_s = float(quota - sum(width for _, width in ends)), -np.inf
    for index, (at_s, width, run_s) in enumerate(
        zip(submit_s.tolist(), gpus.tolist(), duration_s.tolist(), strict=True)
    ):
        now_s = max(now_s, at_s)
        # Let all go that has ended by now, then wait for ends until the head fits.
        while ends and (ends[0][0] <= now_s or width > free + tolerance.GPUS):
            end_s, released = heappop(ends)
            now_s, free = max(now_s, end_s), free + released
        # Wider than the whole quota: it and all behind it wait for ever.
        if width > free + tolerance.GPUS:
            break
        starts_s[index] = now_s
        free -= width
        heappush(ends, (now_s + run_s, width))
    return starts_s


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """GPUs that come and go: how many there are right after what happens at an instant.

    Attributes
    ----------
    up_s, down_s : instants, ascending
    up, down : (n + 1,) GPUs that have come or gone after so many of them
    """

    up_s: Floats
    up: Floats
    down_s: Floats
    down: Floats

    def at(self, instants_s: Any) -> Floats:
        """GPUs at each instant, of the shape of `instants_s`."""
        # Right: what happens at the instant itself counts.
        came = self.up[np.searchsorted(self.up_s, instants_s, side="right")]
        went = self.down[np.searchsorted(self.down_s, instants_s, side="right")]
        return np.asarray(came - went, dtype=np.float64)


def level(from_s: Floats, until_s: Floats, gpus: Ints) -> Level:
    """The level of GPUs held in [from_s, until_s)."""
    (up_s, up), (down_s, down) = _summed(from_s, gpus), _summed(until_s, gpus)
    return Level(up_s, up, down_s, down)


def _summed(at_s: Floats, gpus: Ints) -> tuple[Floats, Floats]:
    order = np.argsort(at_s, kind="stable")
    return at_s[order], np.concatenate([[0.0], np.cumsum(gpus[order], dtype=np.float64)])


class ClusterPast:
    """Answers about instants of a run, each right after the decision that was made then.

    Parameters
    ----------
    table : the run

    Attributes
    ----------
    total : GPUs of all pools; infinite where quotas are not known
    """

    def __init__(self, table: RunTable) -> None:
        self.table = table
        self.total = np.inf if table.quotas is None else float(table.quotas.sum())
        self._levels: dict[tuple[int, str], Level] = {}
        self._fcfs: dict[int, Floats] = {}

    @cached_property
    def events_s(self) -> Floats:
        """Instants at which a job was submitted, started, stopped or ended, ascending."""
        table = self.table
        instants: Floats = np.unique(np.concatenate([table.submit_s, table.held.from_s, table.held.until_s]))
        finite: Floats = instants[np.isfinite(instants)]
        return finite

    def quota(self, pool: int) -> float:
        """GPUs of a pool; infinite where they are not known."""
        return np.inf if self.table.quotas is None else float(self.table.quotas[pool])

    def dedicated(self, pool: int, instants_s: Any) -> Floats:
        """GPUs that count against a pool's quota."""
        return self._level(pool, "dedicated").at(instants_s)

    def allocated(self, pool: int, instants_s: Any) -> Floats:
        """GPUs that a pool's jobs hold."""
        return self._level(pool, "held").at(instants_s)

    def unused(self, pool: int, instants_s: Any) -> Floats:
        """Quota of a pool less what counts against it."""
        return np.asarray(self.quota(pool) - self.dedicated(pool, instants_s), dtype=np.float64)

    def pending(self, pool: int, instants_s: Any) -> Floats:
        """GPUs that a pool's pending jobs ask for."""
        active: Floats = self._level(pool, "active").at(instants_s)
        return np.asarray(active - self.allocated(pool, instants_s))

    def idle(self, instants_s: Any) -> Floats:
        """GPUs that nobody holds."""
        return np.asarray(self.total - self._level(-1, "held").at(instants_s), dtype=np.float64)

    def running_at(self, instant_s: float) -> Ints:
        """Jobs that hold GPUs, in order of submission; not those that end then."""
        held = self.table.held
        return np.unique(held.job[(held.from_s <= instant_s) & (held.until_s > instant_s)])

    def gpu_seconds(self, from_s: float, until_s: float) -> Floats:
        """(n_jobs,) GPU-seconds that each job holds in [from_s, until_s)."""
        table = self.table
        begin, end = np.maximum(table.held.from_s, from_s), np.minimum(table.held.until_s, until_s)
        seconds = np.bincount(table.held.job, weights=np.clip(end - begin, 0.0, None), minlength=len(table))
        return np.asarray(seconds * table.gpus, dtype=np.float64)

    def spans_of(self, job: int) -> list[tuple[float, float]]:
        """Stretches in which a job held its GPUs."""
        rows = self.table.held.job == job
        return list(zip(self.table.held.from_s[rows].tolist(), self.table.held.until_s[rows].tolist(), strict=True))

    def members(self, pool: int) -> Ints:
        """Jobs of a pool in order of submission."""
        return np.flatnonzero(self.table.pool == pool)

    def fcfs_s(self, pool: int) -> Floats:
        """(n_jobs,) starts without sharing of a pool's jobs; not-a-number for those of others."""
        if pool not in self._fcfs:
            table, mine = self.table, self.members(pool)
            starts: Floats = np.full(len(table), np.nan)
            there = mine[table.start_s[mine] < table.begin_s]
            # What was left of those that ran at the beginning is what they ran from then on.
            left_s = self.gpu_seconds(table.begin_s, np.inf)[there] / table.gpus[there]
            held = zip((table.begin_s + left_s).tolist(), table.gpus[there].tolist(), strict=True)
            come = np.setdiff1d(mine, there)
            about = table.known_s[come], table.gpus[come], table.duration_s[come]
            starts[there] = table.start_s[there]
            starts[come] = self._snapped(fcfs_starts_s(*about, int(self.quota(pool)), held))
            self._fcfs[pool] = starts
        return self._fcfs[pool]

    def _snapped(self, instants_s: Floats) -> Floats:
        """Instants with those that all but fall on an event moved there: tables round, and sums of times drift."""
        events_s = self.events_s
        # Each instant lies between two events; the nearer one is tried.
        after = np.clip(np.searchsorted(events_s, instants_s), 1, len(events_s) - 1) if len(events_s) > 1 else 0
        low, high = events_s[np.maximum(after - 1, 0)], events_s[after]
        nearest = np.where(np.abs(instants_s - low) < np.abs(high - instants_s), low, high)
        return np.where(np.abs(nearest - instants_s) <= tolerance.LATER_S, nearest, instants_s)

    def shares(self) -> bool:
        """Whether any pool ever held more than its quota, or any job ran on spare GPUs."""
        return bool((~self.table.dedicated).any()) or any(
            bool((self.allocated(pool, self.table.held.from_s) > self.quota(pool)).any())
            for pool in range(len(self.table.pools))
        )

    def _level(self, pool: int, kind: str) -> Level:
        if (pool, kind) not in self._levels:
            self._levels[pool, kind] = self._make(pool, kind)
        return self._levels[pool, kind]

    def _make(self, pool: int, kind: str) -> Level:
        table = self.table
        if kind == "active":
            mine = table.pool == pool
            return level(table.submit_s[mine], table.end_s[mine], table.gpus[mine])
        rows: Bools = np.ones(len(table.held.job), dtype=np.bool_) if pool < 0 else table.pool[table.held.job] == pool
        if kind == "dedicated":
            rows = rows & table.dedicated[table.held.job]
        jobs = table.held.job[rows]
        return level(table.held.from_s[rows], table.held.until_s[rows], table.gpus[jobs])


class Sharing(StrEnum):
    """How a policy lends GPUs."""

    PRIVATE = "private"
    """Each pool runs on its quota alone."""
    WINDOWS = "windows"
    """Spare GPUs go to jobs that end in a window, less what is reserved for their owners."""
    SPARE = "spare"
    """Spare GPUs go to anybody; quotas come first."""
    CLOCK = "clock"
    """Whatever leaves all jobs their virtual starts."""
    SHARED = "shared"
    """GPUs are one pile; quotas say at most whose turn it is."""
    UNKNOWN = "unknown"
    """Quotas are not known."""


ONE_PILE = (Sharing.SHARED, Sharing.CLOCK)
"""Where a pool's quota bounds nobody: all that its jobs wait for are idle GPUs."""
POLICIES = {
    Sharing.PRIVATE: ("fcfs", "ssf", "sjf", "easy", "easy_forecast", "conservative_backfill"),
    Sharing.WINDOWS: ("sia", "sia_risk", "sia_preempt"),
    Sharing.CLOCK: ("sia_vc", "sia_plan"),
    Sharing.SPARE: ("hived",),
    Sharing.SHARED: ("gssf", "mmfs", "karma", "themis_np", "as_recorded"),
}
"""Of policies that are not listed here the log tells it: see `sharing_of`."""
BY_POLICY = {name: sharing for sharing, names in POLICIES.items() for name in names}

SERVICE, DURATION = "service", "duration"
SHORTEST = {"ssf": SERVICE, "gssf": SERVICE, "sjf": DURATION}
"""Policies that serve the shortest job first, and what it is measured by; others serve a pool in submission order."""
WHOLE_CLUSTER = ("gssf",)
"""Policies that order the jobs of all pools in one queue."""


def sharing_of(past: ClusterPast, windows: bool) -> Sharing:
    """How the policy of a run lends GPUs; `windows`: whether it asked for forecasts of duration bins."""
    table = past.table
    if table.quotas is None:
        return Sharing.UNKNOWN
    # By name where it is known: a log need not show what a policy would do.
    if table.policy in BY_POLICY:
        return BY_POLICY[table.policy]
    # Only policies that mark spare starts leave such jobs.
    if (~table.dedicated).any():
        return Sharing.WINDOWS if windows else Sharing.SPARE
    return Sharing.SHARED if past.shares() else Sharing.PRIVATE


def ahead_of(table: RunTable, job: int) -> Ints:
    """Jobs that the policy would serve before a job, pending or not, in that order: by submission, or shorter ones.

    Where priorities order queues, which the log does not tell: those that started before it.
    """
    measure = SHORTEST.get(table.policy or "")
    alike = np.ones(len(table), dtype=np.bool_) if table.policy in WHOLE_CLUSTER else table.pool == table.pool[job]
    places = np.arange(len(table))
    if table.figures.get("ranked"):
        before = np.flatnonzero(alike & (table.start_s < table.start_s[job]))
        return before[np.argsort(table.start_s[before], kind="stable")]
    if measure is None:
        return np.flatnonzero(alike & (places < job))
    # Service is GPU time, in which SSF ranks.
    keys = table.duration_s * (table.gpus if measure == SERVICE else 1)
    before = np.flatnonzero(alike & ((keys < keys[job]) | ((keys == keys[job]) & (places < job))))
    # Stable: equal ones in order of submission.
    return before[np.argsort(keys[before], kind="stable")]
