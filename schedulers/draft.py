"""A policy's scratch: starts so far in this decision, laid over a view that does not change meanwhile."""

from jobcast.domain.cluster import ClusterView, Decision, PoolView, Start
from jobcast.domain.jobs import Job

NOTHING = Decision()


class Draft:
    """What the cluster would look like after the starts decided on so far.

    Attributes
    ----------
    free : idle GPUs left
    """

    __slots__ = ("_allocated", "_dedicated", "_pending", "_started", "_starts", "_view", "_waiting", "free")

    def __init__(self, view: ClusterView) -> None:
        self.free = view.free_gpus
        self._view = view
        self._starts: list[Start] = []
        self._started: set[int] = set()
        self._allocated: dict[str, float] = {}  # changes by pool
        self._dedicated: dict[str, float] = {}
        self._pending: dict[str, float] = {}
        self._waiting: list[PoolView] | None = None

    def waiting(self) -> list[PoolView]:
        """Pools with jobs pending, names ascending."""
        if self._waiting is None:
            self._waiting = [pool for pool in self._view.pools.values() if len(pool.pending)]
        return self._waiting

    def head(self, pool: PoolView) -> Job | None:
        """First pending job of a pool."""
        return pool.pending.head(self._started)

    def first(self, pool: PoolView, max_gpus: float, max_lane: float) -> Job | None:
        """First pending job of a pool that is narrow enough, in lanes up to `max_lane`."""
        return pool.pending.first(max_gpus, max_lane, self._started)

    def allocated(self, pool: PoolView) -> float:
        """GPUs that the pool's jobs hold."""
        return pool.allocated + self._allocated.get(pool.name, 0.0)

    def dedicated(self, pool: PoolView) -> float:
        """GPUs that count against the pool's quota."""
        return pool.dedicated + self._dedicated.get(pool.name, 0.0)

    def pending_gpus(self, pool: PoolView) -> float:
        """Widths of the pool's pending jobs, summed up."""
        return pool.pending.gpus + self._pending.get(pool.name, 0.0)

    def unused_quota(self, pool: PoolView) -> float:
        """Quota less what counts against it. SIA, Figure 8, line 3 of ReserveResourcesForFuture."""
        return pool.quota - self.dedicated(pool)

    def share(self, pool: PoolView) -> float:
        """Allocation / quota, by which pools are visited: max-min fairness."""
        return self.allocated(pool) / pool.quota

    def start(self, job: Job, dedicated: bool = True) -> None:
        """Start a pending job."""
        self._starts.append(Start(job, dedicated))
        self._started.add(job.seq)
        self.free -= job.gpus
        pool = job.pool
        self._allocated[pool] = self._allocated.get(pool, 0.0) + job.gpus
        self._pending[pool] = self._pending.get(pool, 0.0) - job.gpus
        if dedicated:
            self._dedicated[pool] = self._dedicated.get(pool, 0.0) + job.gpus
        if self._waiting is not None and self._view.pools[pool].pending.gpus + self._pending[pool] <= 0:
            self._waiting = [other for other in self._waiting if other.name != pool]

    def decision(self, wake_at: float | None = None) -> Decision:
        """The starts, in the order in which they were made."""
        return Decision(start=tuple(self._starts), wake_at=wake_at) if self._starts or wake_at is not None else NOTHING
