"""A policy's scratch: starts so far in this decision, laid over a view that does not change meanwhile.

What a policy may start where is the draft's to say: here GPUs are all alike and are counted; in `cells` they lie on
servers. A policy asks its placer for one (`Placed`), and so decides the same way in either.

What policies that share ask about all pools at once the view keeps up (`View.tally`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from math import inf

from jobcast.domain.arrays import Floats
from jobcast.domain.jobs import Job
from jobcast.domain.policy import NOTHING, Decision, Grant, PoolView, View


def _unused(pool: PoolView) -> float:
    return pool.quota - pool.dedicated


class Loads(dict[str, float]):
    """GPUs that pools will ask for within a window beside what is pending: by pool, each asked when it is needed."""

    __slots__ = ("_ask", "horizon_s")

    def __init__(self, horizon_s: float, ask: Callable[[str, float], float]) -> None:
        self.horizon_s, self._ask = horizon_s, ask

    def __missing__(self, pool: str) -> float:
        gpus = self[pool] = self._ask(pool, self.horizon_s)
        return gpus


class TentativeAllocation:
    """What the cluster would look like after the starts decided on so far.

    Attributes
    ----------
    free : idle GPUs left
    """

    # Made at every decision, of which a replay has hundreds of thousands.
    __slots__ = (
        *("_allocated", "_changes", "_dedicated", "_narrowest", "_pending", "_started", "_view", "_waiting"),
        "free",
    )

    def __init__(self, view: View) -> None:
        self.free = view.free_gpus
        self._view = view
        self._changes: dict[int, Grant | None] = {}
        self._started: set[int] = set()
        self._allocated: dict[str, float] = {}  # changes by pool
        self._dedicated: dict[str, float] = {}
        self._pending: dict[str, float] = {}
        self._narrowest: dict[float, float] = {}  # by lane
        self._waiting: Sequence[PoolView] | None = None

    def waiting(self) -> Sequence[PoolView]:
        """Pools with jobs pending, names ascending."""
        if self._waiting is None:
            waiting = self._view.tally.waiting
            if self._pending:
                waiting = [pool for pool in waiting if self.pending_gpus(pool) > 0]
            self._waiting = waiting
        return self._waiting

    def ready(self) -> Iterator[tuple[PoolView, Job]]:
        """Pools whose first pending job fits their unused quota, and that job; in any order."""
        # The tally is of before the first start: pools that changed are worked out by hand.
        changed = self._changed()
        for name, pool in self._view.tally.ready.items():
            if name not in changed and (job := pool.pending.head()) is not None:
                yield pool, job
        for pool in changed.values():
            job = self.head(pool)
            if job is not None and job.gpus <= self.unused_quota(pool):
                yield pool, job

    def due(self) -> Iterable[tuple[PoolView, Job]]:
        """Jobs whose pool's quota is theirs now, the first of each pool, that fit the idle GPUs; in any order."""
        free = self.free
        return [row for row in self.ready() if row[1].gpus <= free] if free > 0 else ()

    def pledged(self, slack: float = 0.0) -> float:
        """GPUs that cannot be lent, whatever is forecast: what pending jobs claim of unused quota.

        `slack` is the share of each quota that is kept free beside it.
        """
        total = self._view.tally.pledged
        for pool in self._changed().values():
            total += min(self.pending_gpus(pool), self.unused_quota(pool))
            # What the tally counted for them is taken out again.
            total -= min(pool.pending.gpus, _unused(pool))
        return total + sum(min(slack * pool.quota, room) for pool, room in self.roomy()) if slack else total

    def usable(self, loads: Loads, most: float = inf) -> float:
        """Width of the widest job that may be lent GPUs for a window; ReserveResourcesForFuture, SIA, Figure 8.

        Forecasts are asked only of pools whose pending jobs leave quota over, and no more once what is reserved
        exceeds `most`.
        """
        reserved = self.pledged()
        for pool, room in self.roomy():
            # Each pool only adds to it, so that the rest need not be forecast.
            if reserved > most:
                break
            gpus = loads[pool.name]
            # Beyond its room a pool has no claim, however much is forecast.
            reserved += gpus if gpus < room else room
        return self.free - reserved

    def claims(self, pool: PoolView, loads: Floats) -> tuple[float, float, Floats]:
        """GPUs that a pool asks for now, at most, and beside the former for each of some forecasts; see `left`."""
        return self.pending_gpus(pool), self.unused_quota(pool), loads

    def left(self) -> tuple[int, Sequence[int]]:
        """GPUs that are left for `claims`, and by width (0, 1, ...) how many of them a job takes that borrows."""
        return int(self.free), range(int(self.free) + 1)

    def roomy(self) -> Iterator[tuple[PoolView, float]]:
        """Pools whose unused quota exceeds what their pending jobs ask for, and the GPUs by which it does."""
        changed = self._changed()
        if not changed:
            yield from self._view.tally.roomy.values()
            return
        yield from (row for name, row in self._view.tally.roomy.items() if name not in changed)
        for pool in changed.values():
            room = self.unused_quota(pool) - self.pending_gpus(pool)
            if room > 0:
                yield pool, room

    def narrowest(self, max_lane: float) -> float:
        """Width that no pending job in lanes up to `max_lane` is below; infinite where there is none.

        Jobs started in this decision count as pending still: at least one pending job is that wide or was.
        """
        width = self._narrowest.get(max_lane)
        if width is None:
            width = self._narrowest[max_lane] = self._view.tally.narrowest(max_lane)
        return width

    def firsts(self, max_gpus: float, max_lane: float) -> Iterator[tuple[PoolView, Job]]:
        """First pending job, of each pool that has one, that is narrow enough, in lanes up to `max_lane`; any order."""
        for pool in self._view.tally.holders(max_gpus, max_lane).values():
            job = pool.pending.first(max_gpus, max_lane, self._started)
            if job is not None:
                yield pool, job

    def anybody(self, max_gpus: float, max_lane: float) -> bool:
        """Whether any pending job is narrow enough, in lanes up to `max_lane`."""
        if not self._started:
            return self.narrowest(max_lane) <= max_gpus
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

    @property
    def room(self) -> float:
        """Width of the widest job that there is room for."""
        return self.free

    def own_room(self, pool: PoolView) -> float:
        """Width of the widest job that there is room for in a pool's quota: others may hold its GPUs on lease."""
        unused, free = self.unused_quota(pool), self.free
        return unused if unused < free else free

    def first_in_quota(self, pool: PoolView) -> Job | None:
        """The first job that fits what is idle of its pool's quota."""
        return self.first(pool, self.own_room(pool), inf)

    def dedicate(self, job: Job) -> bool:
        """Start a pending job in its pool's quota if there is room; whether there was."""
        there = job.gpus <= self.own_room(self._view.pools[job.pool])
        if there:
            self._begin(job, Grant(job.gpus))
        return there

    def dedicate_heads(self, pool: PoolView) -> None:
        """Start a pool's first jobs, one after the other, while there is room for them in its quota."""
        room = self.own_room(pool)
        while (job := pool.pending.head(self._started)) is not None and job.gpus <= room:
            self._begin(job, Grant(job.gpus))
            room -= job.gpus

    def lend(self, job: Job, windows: Iterable[Loads] = ()) -> bool:
        """Start a pending job on spare GPUs, anybody's, if there is room; whether there was.

        `windows`: what others may need, the worst first; where jobs are placed, this one keeps out of the way of the
        first that leaves it room, and has none if none does. Without, it is that of which `usable` was asked last.
        """
        return self.start(job, dedicated=False)

    def start(self, job: Job, dedicated: bool = True) -> bool:
        """Start a pending job on any idle GPUs if there is room; whether there was."""
        there = job.gpus <= self.free
        if there:
            self._begin(job, Grant(job.gpus, (), dedicated))
        return there

    def start_heads(
        self, start: Callable[[Job], bool], strict: bool = False, rank: Callable[[PoolView], float] | None = None
    ) -> None:
        """Start heads while any can be, the pool with the smallest rank first, its share by default; ties by name.

        `strict`: the first pool whose head cannot be started blocks the others.
        """
        rank = rank or self.share
        # A heap: after a start only one pool's rank has changed.
        heads = [(rank(pool), pool.name, pool) for pool in self.waiting()]
        heapify(heads)
        while heads and self.free > 0:
            _, name, pool = heads[0]
            job = self.head(pool)
            if job is not None and job.gpus <= self.free and start(job):
                heapreplace(heads, (rank(pool), name, pool))
            # A pool whose head does not fit is dropped for good: idle GPUs only shrink within a decision.
            elif job is not None and strict:
                return
            else:
                heappop(heads)

    def _begin(self, job: Job, grant: Grant) -> None:
        self._changes[job.seq] = grant
        self._started.add(job.seq)
        self.free -= job.gpus
        pool = job.pool
        self._allocated[pool] = self._allocated.get(pool, 0.0) + job.gpus
        left = self._pending[pool] = self._pending.get(pool, 0.0) - job.gpus
        if grant.dedicated:
            self._dedicated[pool] = self._dedicated.get(pool, 0.0) + job.gpus
        # Kept up to date where it was asked for once, instead of gone through again.
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


class Placer:
    """What makes drafts, and so says which GPUs jobs are given; here they are all alike, and jobs lie anywhere."""

    def submitted(self, job: Job) -> None:
        """A job joins its pool's queue; told by policies that lend."""

    def draft(self, view: View) -> TentativeAllocation:
        """The scratch of one decision."""
        return TentativeAllocation(view)


class Placed:
    """A policy over pools that starts gangs where its placer finds room."""

    placer: Placer = Placer()
