"""The cluster at any instant of a finished run: who held GPUs, who was pending, what was idle."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.pipelines.experiments.explain.baseline import fcfs_starts_s
from jobcast.pipelines.experiments.explain.run_table import RunTable
from jobcast.simulator.log import Bools, Floats, Ints


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
        instants: Floats = np.unique(np.concatenate([table.submit_s, table.held_from_s, table.held_until_s]))
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
        return np.asarray(
            self._level(pool, "active").at(instants_s) - self.allocated(pool, instants_s), dtype=np.float64
        )

    def idle(self, instants_s: Any) -> Floats:
        """GPUs that nobody holds."""
        return np.asarray(self.total - self._level(-1, "held").at(instants_s), dtype=np.float64)

    def running_at(self, instant_s: float) -> Ints:
        """Jobs that hold GPUs, in order of submission."""
        return self.held_within(instant_s, instant_s)

    def held_within(self, from_s: float, until_s: float) -> Ints:
        """Jobs that hold GPUs at any time in [from_s, until_s], ends that fall on from_s not counted."""
        table = self.table
        rows = (table.held_from_s <= until_s) & (table.held_until_s > from_s)
        return np.unique(table.held_job[rows])

    def gpu_seconds(self, from_s: float, until_s: float) -> Floats:
        """(n_jobs,) GPU-seconds that each job holds in [from_s, until_s)."""
        table = self.table
        begin, end = np.maximum(table.held_from_s, from_s), np.minimum(table.held_until_s, until_s)
        seconds = np.bincount(table.held_job, weights=np.clip(end - begin, 0.0, None), minlength=len(table))
        return np.asarray(seconds * table.gpus, dtype=np.float64)

    def spans_of(self, job: int) -> list[tuple[float, float]]:
        """Stretches in which a job held its GPUs."""
        rows = self.table.held_job == job
        return list(zip(self.table.held_from_s[rows].tolist(), self.table.held_until_s[rows].tolist(), strict=True))

    def members(self, pool: int) -> Ints:
        """Jobs of a pool in order of submission."""
        return np.flatnonzero(self.table.pool == pool)

    def fcfs_s(self, pool: int) -> Floats:
        """(n_jobs,) starts without sharing of a pool's jobs; not-a-number for those of others."""
        if pool not in self._fcfs:
            table, mine = self.table, self.members(pool)
            starts: Floats = np.full(len(table), np.nan)
            own = fcfs_starts_s(table.submit_s[mine], table.gpus[mine], table.duration_s[mine], int(self.quota(pool)))
            starts[mine] = self._snapped(own)
            self._fcfs[pool] = starts
        return self._fcfs[pool]

    def _snapped(self, instants_s: Floats) -> Floats:
        """Instants with those that all but fall on an event moved there: tables round, and sums of times drift."""
        events_s = self.events_s
        after = np.clip(np.searchsorted(events_s, instants_s), 1, len(events_s) - 1) if len(events_s) > 1 else 0
        low, high = events_s[np.maximum(after - 1, 0)], events_s[after]
        nearest = np.where(np.abs(instants_s - low) < np.abs(high - instants_s), low, high)
        return np.where(np.abs(nearest - instants_s) <= tolerance.LATER_S, nearest, instants_s)

    def shares(self) -> bool:
        """Whether any pool ever held more than its quota, or any job ran on spare GPUs."""
        return bool((~self.table.dedicated).any()) or any(
            bool((self.allocated(pool, self.table.held_from_s) > self.quota(pool)).any())
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
        rows: Bools = np.ones(len(table.held_job), dtype=np.bool_) if pool < 0 else table.pool[table.held_job] == pool
        if kind == "dedicated":
            rows = rows & table.dedicated[table.held_job]
        jobs = table.held_job[rows]
        return level(table.held_from_s[rows], table.held_until_s[rows], table.gpus[jobs])
