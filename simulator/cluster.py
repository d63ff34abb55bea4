"""The cluster at an instant: kept up change by change, and shown to policies as a read-only view."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from jobcast.domain.cells import Cell
from jobcast.domain.cluster import PoolView, RunningJob, Service
from jobcast.domain.jobs import Job, Pool
from jobcast.simulator.placements import Placements
from jobcast.simulator.progress import Ledger
from jobcast.simulator.queues import PendingQueue, Shelves
from jobcast.simulator.tally import Tally


class PoolState:
    """One pool; implements `domain.cluster.PoolView`. Changed by `ClusterState` alone."""

    __slots__ = ("_allocated", "_changed", "_dedicated", "_name", "_pending", "_quota")

    def __init__(self, pool: Pool, shelves: Shelves, changed: dict[str, PoolView]) -> None:
        self._changed = changed
        self._name = pool.name
        self._quota = pool.quota
        self._allocated = 0.0
        self._dedicated = 0.0
        self._pending = PendingQueue(self, shelves)

    @property
    def name(self) -> str:
        """Name of the pool."""
        return self._name

    @property
    def quota(self) -> int:
        """GPUs that its owners pay for."""
        return self._quota

    @property
    def allocated(self) -> float:
        """GPUs that its running jobs hold, wherever they came from."""
        return self._allocated

    @property
    def dedicated(self) -> float:
        """GPUs of `allocated` that count against its quota."""
        return self._dedicated

    @property
    def pending(self) -> PendingQueue:
        """Its pending jobs."""
        return self._pending

    def _hold(self, gpus: float, dedicated: bool) -> None:
        self._allocated += gpus
        if dedicated:
            self._dedicated += gpus
        self._changed[self._name] = self

    def _promote(self, gpus: float) -> None:
        self._dedicated += gpus
        self._changed[self._name] = self

    def _queue(self, job: Job, lane: int, key: float) -> None:
        self._pending.add(job, lane, key)
        self._changed[self._name] = self


class ClusterState:
    """The cluster; implements `domain.cluster.ClusterView`. It knows no duration, so that no policy can find one.

    Parameters
    ----------
    pools : with their quotas
    ledger : what jobs have received; kept up here, read by the engine
    servers : GPUs of each, where jobs are given certain ones
    """

    __slots__ = (
        "_active",
        "_filed",
        "_free_gpus",
        "_ledger",
        "_now_s",
        "_placements",
        "_pools",
        "_running",
        "_tally",
        "_total_gpus",
        "_touched",
        "active",
        "pools",
        "running",
        "servers",
    )

    def __init__(self, pools: Sequence[Pool], ledger: Ledger | None = None, servers: Sequence[int] = ()) -> None:
        self._ledger = ledger if ledger is not None else Ledger()
        self.servers: Sequence[int] = tuple(servers)
        self._placements = Placements(servers)
        self._active: dict[int, Job] = {}
        self.active: Mapping[int, Job] = MappingProxyType(self._active)
        shelves: Shelves = {}
        changed: dict[str, PoolView] = {}
        ordered = sorted(pools, key=lambda pool: pool.name)
        self._pools = {pool.name: PoolState(pool, shelves, changed) for pool in ordered}
        changed.update(self._pools)
        self._tally = Tally(changed, shelves)
        self._total_gpus = sum(pool.quota for pool in pools)
        self._free_gpus = float(self._total_gpus)
        self._now_s = -float("inf")
        self._running: dict[int, RunningJob] = {}
        self._filed: dict[int, tuple[int, float]] = {}
        self._touched: dict[str, PoolState] = {}
        self.pools: Mapping[str, PoolState] = MappingProxyType(self._pools)
        self.running: Mapping[int, RunningJob] = MappingProxyType(self._running)

    @property
    def now_s(self) -> float:
        """Seconds from the epoch."""
        return self._now_s

    @property
    def total_gpus(self) -> int:
        """GPUs of the cluster, busy or not."""
        return self._total_gpus

    @property
    def free_gpus(self) -> float:
        """GPUs that run nothing."""
        return self._free_gpus

    @property
    def touched(self) -> Sequence[PoolView]:
        """Pools with an arrival or a completion since the last decision."""
        return tuple(self._touched.values())

    @property
    def tally(self) -> Tally:
        """What policies would else sum up over all pools."""
        return self._tally

    def service(self, job: Job) -> Service:
        """What an active job has received by now."""
        return self._ledger.service(job, self._now_s)

    def advance(self, now_s: float) -> None:
        """Move to an instant."""
        self._now_s = now_s

    def settle(self) -> None:
        """Forget which pools were touched: a decision has been made on them."""
        self._touched.clear()

    def submit(self, job: Job, lane: int, key: float) -> None:
        """A job arrives."""
        pool = self._pools[job.pool]
        pool._queue(job, lane, key)
        self._active[job.seq] = job
        self._ledger.open(job)
        self._touched[job.pool] = pool

    def why_not_on(self, job: Job, cells: Sequence[Cell]) -> str | None:
        """What is wrong with giving a job these cells, None where nothing is."""
        return self._placements.why_not(job, cells)

    def start(self, job: Job, dedicated: bool, lost_s: float = 0.0, cells: tuple[Cell, ...] = ()) -> None:
        """Give a pending job its GPUs; it makes no progress in the first `lost_s` seconds."""
        pool = self._pools[job.pool]
        self._filed[job.seq] = pool._pending.remove(job)
        pool._hold(job.gpus, dedicated)
        self._free_gpus -= job.gpus
        self._running[job.seq] = RunningJob(job, self._now_s, dedicated, cells)
        if cells:
            self._placements.give(job, cells)
        self._ledger.start(job, self._now_s, lost_s)

    def promote(self, job: Job) -> None:
        """Count a job that runs on spare GPUs against its pool's quota from now on."""
        self._running[job.seq] = replace(self._running[job.seq], dedicated=True)
        self._pools[job.pool]._promote(job.gpus)

    def finish(self, job: Job) -> RunningJob:
        """Take a running job out for good."""
        run = self._release(job)
        del self._active[job.seq]
        self._ledger.close(job)
        return run

    def _release(self, job: Job) -> RunningJob:
        pool = self._pools[job.pool]
        run = self._running.pop(job.seq)
        self._ledger.stop(job, self._now_s)
        del self._filed[job.seq]
        pool._hold(-job.gpus, run.dedicated)
        self._free_gpus += job.gpus
        if run.cells:
            self._placements.take(run.cells)
        self._touched[job.pool] = pool
        return run

    def stop(self, job: Job) -> RunningJob:
        """Put a running job back into its queue, where it was."""
        lane, key = self._filed[job.seq]
        touched = job.pool in self._touched
        run = self._release(job)
        if not touched:
            del self._touched[job.pool]
        self._pools[job.pool]._queue(job, lane, key)
        return run
