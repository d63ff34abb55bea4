"""A policy's scratch: starts so far in this decision, laid over a view that does not change meanwhile."""

from collections.abc import Iterator, Sequence
from math import inf

from jobcast.domain.jobs import Job
from jobcast.domain.policy import NOTHING, Decision, Grant, PoolView, View
from jobcast.schedulers.tally import Tally, tally_of


class Draft:
    """What the cluster would look like after the starts decided on so far.

    Attributes
    ----------
    free : idle GPUs left
    """

    __slots__ = ("_allocated", "_changes", "_dedicated", "_pending", "_started", "_tally", "_view", "_waiting", "free")

    def __init__(self, view: View) -> None:
        self.free = view.free_gpus
        self._view = view
        self._changes: dict[int, Grant | None] = {}
        self._started: set[int] = set()
        self._allocated: dict[str, float] = {}  # changes by pool
        self._dedicated: dict[str, float] = {}
        self._pending: dict[str, float] = {}
        self._waiting: Sequence[PoolView] | None = None
        self._tally: Tally | None = None

    @property
    def tally(self) -> Tally:
        """The view's, before any start."""
        if self._tally is None:
            self._tally = tally_of(self._view)
        return self._tally

    def waiting(self) -> Sequence[PoolView]:
        """Pools with jobs pending, names ascending."""
        if self._waiting is None:
            waiting = self.tally.waiting
            if self._pending:
                waiting = [pool for pool in waiting if self.pending_gpus(pool) > 0]
            self._waiting = waiting
        return self._waiting

    def ready(self) -> Iterator[tuple[PoolView, Job]]:
        """Pools whose first pending job fits their unused quota, and that job; in any order."""
        changed = self._changed()
        for name, pool in self.tally.ready.items():
            if name not in changed and (job := pool.pending.head()) is not None:
                yield pool, job
        for pool in changed.values():
            job = self.head(pool)
            if job is not None and job.gpus <= self.unused_quota(pool):
                yield pool, job

    def pledged(self) -> float:
        """Unused quota that pending jobs lay claim to: min(pending, unused) summed up over all pools."""
        total = self.tally.pledged
        for pool in self._changed().values():
            total += min(self.pending_gpus(pool), self.unused_quota(pool))
            total -= min(pool.pending.gpus, pool.quota - pool.dedicated)
        return total

    def roomy(self) -> Iterator[tuple[PoolView, float]]:
        """Pools whose unused quota exceeds what their pending jobs ask for, and the GPUs by which it does."""
        changed = self._changed()
        if not changed:
            yield from self.tally.roomy.values()
            return
        yield from (row for name, row in self.tally.roomy.items() if name not in changed)
        for pool in changed.values():
            room = self.unused_quota(pool) - self.pending_gpus(pool)
            if room > 0:
                yield pool, room

    def narrowest(self, max_lane: float) -> float:
        """Width that no pending job in lanes up to `max_lane` is below; infinite where there is none.

        Jobs started in this decision count as pending still: at least one pending job is that wide or was.
        """
        return self.tally.narrowest(max_lane)

    def firsts(self, max_gpus: float, max_lane: float) -> Iterator[tuple[PoolView, Job]]:
        """First pending job, of each pool that has one, that is narrow enough, in lanes up to `max_lane`; any order."""
        for pool in self.tally.holders(max_gpus, max_lane).values():
            job = pool.pending.first(max_gpus, max_lane, self._started)
            if job is not None:
                yield pool, job

    def anybody(self, max_gpus: float, max_lane: float) -> bool:
        """Whether any pending job is narrow enough, in lanes up to `max_lane`."""
        if not self._started:
            return self.tally.narrowest(max_lane) <= max_gpus
        return next(self.firsts(max_gpus, max_lane), None) is not None

    def head(self, pool: PoolView) -> Job | None:
        """First pending job of a pool."""
        return pool.pending.head(self._started)

    def first(self, pool: PoolView, max_gpus: float, max_lane: float) -> Job | None:
        """First pending job of a pool that is narrow enough, in lanes up to `max_lane`."""
        return pool.pending.first(max_gpus, max_lane, self._started)

    def allocated(self, pool: PoolView) -> float:
        """GPUs that the pool's jobs hold."""
        return pool.allocated + self._allocated.get(pool.name, 0.0) if self._allocated else pool.allocated

    def dedicated(self, pool: PoolView) -> float:
        """GPUs that count against the pool's quota."""
        return pool.dedicated + self._dedicated.get(pool.name, 0.0) if self._dedicated else pool.dedicated

    def pending_gpus(self, pool: PoolView) -> float:
        """Widths of the pool's pending jobs, summed up."""
        return pool.pending.gpus + self._pending.get(pool.name, 0.0) if self._pending else pool.pending.gpus

    def unused_quota(self, pool: PoolView) -> float:
        """Quota less what counts against it. SIA, Figure 8, line 3 of ReserveResourcesForFuture."""
        return pool.quota - self.dedicated(pool)

    def share(self, pool: PoolView) -> float:
        """Allocation / quota, by which pools are visited: max-min fairness."""
        return self.allocated(pool) / pool.quota

    def start(self, job: Job, dedicated: bool = True) -> None:
        """Start a pending job."""
        self._changes[job.seq] = Grant(job.gpus, (), dedicated)
        self._started.add(job.seq)
        self.free -= job.gpus
        pool = job.pool
        self._allocated[pool] = self._allocated.get(pool, 0.0) + job.gpus
        left = self._pending[pool] = self._pending.get(pool, 0.0) - job.gpus
        if dedicated:
            self._dedicated[pool] = self._dedicated.get(pool, 0.0) + job.gpus
        if self._waiting is not None and self._view.pools[pool].pending.gpus + left <= 0:
            self._waiting = [other for other in self._waiting if other.name != pool]

    def decision(self, wake_s: float = inf) -> Decision:
        """The starts, in the order in which they were made."""
        return Decision(self._changes, wake_s) if self._changes or wake_s < inf else NOTHING

    def _changed(self) -> dict[str, PoolView]:
        """Pools that the tally tells nothing true of any more, by name."""
        if not self._pending and not self._dedicated:
            return {}
        pools = self._view.pools
        return {name: pools[name] for name in (*self._pending, *self._dedicated)}
