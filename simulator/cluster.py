"""The cluster at an instant: kept up change by change, shown to policies as a read-only view, down to single GPUs.

Where gangs lie that name no nodes, in worlds where that matters: the default, with no penalty for spreading.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import ANYWHERE, Cell, Grant, PoolView, RunningJob, Service
from jobcast.simulator.queues import PendingQueue, PoolAggregates, Shelves

Starts = Sequence[tuple[Job, Grant]]
Nodes = NDArray[np.int64]
Able = Callable[[Job, float], NDArray[np.bool_]]
"""(n_kinds,) whether a job runs on so many GPUs of nodes of a kind."""


class Placer:
    """Nodes that a job held last come first; then the single node that fits best, the first GPU type's before others';
    then the fewest nodes of one kind, ties by node.

    Parameters
    ----------
    kind_of : (n_nodes,) kind of each node
    reference : (n_kinds,) whether its GPUs are of the cluster's first type
    """

    def __init__(self, kind_of: Nodes, reference: NDArray[np.bool_]) -> None:
        self._kind_of, self._other = kind_of, ~reference[kind_of]

    def complete(self, starts: Starts, free: NDArray[np.float64], able: Able, last: Mapping[int, Nodes]) -> Starts:
        """The starts with their cells. What does not fit is left out, and so is what comes after it in its pool.

        Parameters
        ----------
        starts : in order; those that name cells, or no whole number of GPUs, stay as they are
        free : (n_nodes,) GPUs that nobody holds
        able : where jobs can run
        last : by seq, nodes that jobs held last
        """
        free, full, found = free.copy(), set(), []
        # Named cells first: what is chosen below must not take them.
        for _, grant in starts:
            _take(free, grant)
        for job, grant in starts:
            # Nobody overtakes who waits for room in the same pool.
            if job.pool in full:
                continue
            if not grant.cells and grant.gpus >= 1 and grant.gpus % 1 == 0:
                room = np.where(able(job, grant.gpus)[self._kind_of], free, 0.0)
                held = np.zeros_like(room)
                before = last.get(job.seq, ())
                # Its old nodes alone; all nodes are tried where these do not hold it.
                held[before] = room[before]
                grant = grant._replace(cells=self._cells(held, grant.gpus) or self._cells(room, grant.gpus))
                if not grant.cells:
                    full.add(job.pool)
                    continue
                _take(free, grant)
            found.append((job, grant))
        return found

    def _cells(self, room: NDArray[np.float64], gpus: float) -> tuple[Cell, ...]:
        """Cells where there is room, none where there is not enough."""
        single = np.flatnonzero(room >= gpus)
        if len(single):
            # The last key decides first: nodes of the reference type, then the tightest.
            best = np.lexsort((room[single], self._other[single]))[0]
            return (Cell(int(single[best]), ANYWHERE, int(gpus)),)
        spreads = [self._spread(np.where(self._kind_of == kind, room, 0.0), gpus) for kind in set(self._kind_of)]
        enough = [nodes for nodes in spreads if room[nodes].sum() >= gpus]
        if not enough:
            return ()
        # Lists compare node by node: ties go the same way on every machine.
        nodes = min(enough, key=lambda nodes: (len(nodes), nodes.tolist()))
        rest = gpus - np.cumsum(room[nodes]) + room[nodes]
        held = np.minimum(room[nodes], rest).astype(np.int64)
        return tuple(Cell(node, ANYWHERE, part) for node, part in zip(nodes.tolist(), held.tolist(), strict=True))

    def _spread(self, room: NDArray[np.float64], gpus: float) -> Nodes:
        """As few nodes as have so many GPUs together, or all that have any."""
        # The emptiest first: fewer nodes than any other choice.
        nodes = np.argsort(-room, kind="stable")[: int((room > 0.0).sum())]
        return nodes[: int(np.searchsorted(np.cumsum(room[nodes]), gpus)) + 1]


def _take(free: NDArray[np.float64], grant: Grant) -> None:
    for cell in grant.cells:
        if 0 <= cell.server < len(free):
            free[cell.server] -= cell.gpus


NOT_RUN = Service(0.0, 0.0)


class Placements:
    """GPUs of servers and who holds them; a cluster without servers holds nobody anywhere.

    Parameters
    ----------
    servers : GPUs of each server
    """

    __slots__ = ("_free", "_holders", "_sizes")

    def __init__(self, servers: Sequence[int] = ()) -> None:
        self._sizes = tuple(servers)
        self._free: list[float] = list(servers)
        self._holders: dict[tuple[int, int], Job] = {}  # of GPUs that were asked for by their places

    @property
    def free_gpus(self) -> Sequence[float]:
        """GPUs of each server that nobody holds."""
        return tuple(self._free)

    def why_not(self, job: Job, grant: Grant) -> str | None:
        """What is wrong with giving a job these cells, None where nothing is."""
        cells = grant.cells
        if not self._sizes:
            return f"the cluster has no servers, it is given {len(cells)} cells" if cells else None
        if abs(sum(cell.gpus for cell in cells) - grant.gpus) > tolerance.CAPACITY_GPUS:
            return f"it is given {grant.gpus:g} GPUs, its cells have {sum(cell.gpus for cell in cells):g}"
        asked: dict[int, float] = {}
        for cell in cells:
            there = 0 <= cell.server < len(self._sizes) and cell.gpus > 0 and cell.first >= ANYWHERE
            if not there or cell.first + cell.gpus > self._sizes[cell.server]:
                return f"there is no such cell: {cell}"
            asked[cell.server] = asked.get(cell.server, 0.0) + cell.gpus
        # Cells that name their GPUs are checked one by one; others by the sum of their server below.
        taken = [at for cell in cells for at in _gpus(cell)]
        for at in taken:
            if at in self._holders:
                return f"GPU {at[1]} of server {at[0]} is held by job {self._holders[at].job_id}"
        for server, gpus in asked.items():
            if gpus > self._free[server] + tolerance.CAPACITY_GPUS:
                return f"server {server} has {self._free[server]:g} GPUs free, it is given {gpus:g} of them"
        # Two cells of one grant may overlap each other, too.
        return None if len(set(taken)) == len(taken) else "its cells overlap"

    def give(self, job: Job, cells: Sequence[Cell]) -> None:
        """A job starts on free cells."""
        for cell in cells:
            self._free[cell.server] -= cell.gpus
            self._holders.update(dict.fromkeys(_gpus(cell), job))

    def take(self, cells: Sequence[Cell]) -> None:
        """A job gives its cells back."""
        for cell in cells:
            self._free[cell.server] += cell.gpus
            for at in _gpus(cell):
                del self._holders[at]

    def fork(self) -> "Placements":
        """A copy that goes its own way."""
        copy = Placements(self._sizes)
        copy._free, copy._holders = self._free[:], dict(self._holders)
        return copy


def _gpus(cell: Cell) -> list[tuple[int, int]]:
    """(server, GPU) of a cell's GPUs, none where any will do."""
    # No certain GPUs: only the server's number of free ones changes.
    if cell.first == ANYWHERE:
        return []
    return [(cell.server, gpu) for gpu in range(cell.first, cell.first + cell.gpus)]


class PoolState:
    """One pool; implements `domain.policy.PoolView`. Changed by `ClusterState` alone."""

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

    def fork(self, shelves: Shelves, changed: dict[str, PoolView]) -> "PoolState":
        """A copy that goes its own way, of another cluster."""
        copy = PoolState(Pool(self._name, self._quota), shelves, changed)
        copy._allocated, copy._dedicated = self._allocated, self._dedicated
        copy._pending = self._pending.fork(copy, shelves)
        return copy

    def _hold(self, gpus: float, dedicated: bool) -> None:
        self._allocated += gpus
        if dedicated:
            self._dedicated += gpus
        # Marked here and summed up only when a policy asks.
        self._changed[self._name] = self

    def _promote(self, gpus: float) -> None:
        self._dedicated += gpus
        self._changed[self._name] = self

    def _queue(self, job: Job, lane: int, key: float) -> None:
        self._pending.add(job, lane, key)
        self._changed[self._name] = self


class ClusterState:
    """The cluster; implements `domain.policy.View`. It knows no duration, so that no policy can find one.

    Parameters
    ----------
    pools : with their quotas
    servers : GPUs of each, where jobs are given certain ones
    service, facts : tell what a job has received, and what is known of all jobs; they hold what no policy may reach
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        servers: Sequence[int] = (),
        service: Callable[[Job], Service] = lambda job: NOT_RUN,
        facts: Callable[[type[Any]], Any] = lambda kind: None,
    ) -> None:
        self._now_s = -inf
        self.service, self.facts = service, facts
        self.servers: Sequence[int] = tuple(servers)
        self._placements = Placements(servers)
        self._active: dict[int, Job] = {}
        # Policies see the live mappings, which they cannot write to: nothing is copied at an event.
        self.active: Mapping[int, Job] = MappingProxyType(self._active)
        shelves: Shelves = {}
        changed: dict[str, PoolView] = {}
        # Policies walk the pools in this order: it must not depend on how they were given.
        ordered = sorted(pools, key=lambda pool: pool.name)
        self._pools = {pool.name: PoolState(pool, shelves, changed) for pool in ordered}
        # All pools are new to the sums at first.
        changed.update(self._pools)
        self.tally = PoolAggregates(changed, shelves)  # what policies would else sum up over all pools
        self._total_gpus = sum(pool.quota for pool in pools)
        self._free_gpus = float(self._total_gpus)
        self._running: dict[int, RunningJob] = {}
        self._filed: dict[int, tuple[int, float]] = {}
        self._touched: dict[str, PoolState] = {}
        self.pools: Mapping[str, PoolState] = MappingProxyType(self._pools)
        self.running: Mapping[int, RunningJob] = MappingProxyType(self._running)

    def fork(self, service: Callable[[Job], Service], facts: Callable[[type[Any]], Any]) -> "ClusterState":
        """A copy that goes its own way; for the parameters see the class."""
        # Queues and sums hold their pools: a fork needs pools of its own before anything else.
        copy = ClusterState((), self.servers, service, facts)
        shelves: Shelves = {}
        changed: dict[str, PoolView] = {}
        pools = {name: pool.fork(shelves, changed) for name, pool in self._pools.items()}
        changed.update(pools)
        copy._pools, copy.pools, copy.tally = pools, MappingProxyType(pools), PoolAggregates(changed, shelves)
        copy._total_gpus, copy._free_gpus, copy._now_s = self._total_gpus, self._free_gpus, self._now_s
        copy._placements = self._placements.fork()
        copy._active.update(self._active)
        copy._running.update(self._running)
        copy._filed.update(self._filed)
        copy._touched.update({name: pools[name] for name in self._touched})
        return copy

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
    def free_on(self) -> Sequence[float]:
        """GPUs of each server that nobody holds."""
        return self._placements.free_gpus

    @property
    def touched(self) -> Sequence[PoolView]:
        """Pools with an arrival or a completion since the last decision."""
        return tuple(self._touched.values())

    def advance(self, now_s: float) -> None:
        """Move to an instant."""
        self._now_s = now_s

    def settle(self) -> None:
        """Forget which pools were touched: a decision has been made on them."""
        self._touched.clear()

    def touch(self, job: Job) -> None:
        """A job's pool is to be looked at again."""
        self._touched[job.pool] = self._pools[job.pool]

    def submit(self, job: Job, lane: int, key: float) -> None:
        """A job arrives."""
        pool = self._pools[job.pool]
        pool._queue(job, lane, key)
        self._active[job.seq] = job
        self._touched[job.pool] = pool

    def why_not_on(self, job: Job, grant: Grant) -> str | None:
        """What is wrong with giving a job these GPUs, None where nothing is."""
        if grant.gpus > self._free_gpus + tolerance.CAPACITY_GPUS:
            return f"it needs {grant.gpus:g} GPUs, {self._free_gpus:g} are free"
        return self._placements.why_not(job, grant)

    def start(self, job: Job, grant: Grant) -> None:
        """Give a pending job its GPUs."""
        pool = self._pools[job.pool]
        # Kept: a job that is stopped goes back to where it was in its queue.
        self._filed[job.seq] = pool._pending.remove(job)
        pool._hold(grant.gpus, grant.dedicated)
        self._free_gpus -= grant.gpus
        self._running[job.seq] = RunningJob(job, self._now_s, grant)
        if grant.cells:
            self._placements.give(job, grant.cells)

    def since(self, job: Job, start_s: float) -> None:
        """A job has held what it holds since an instant."""
        self._running[job.seq] = self._running[job.seq]._replace(start_s=start_s)

    def promote(self, job: Job, grant: Grant) -> None:
        """Count a job that runs on spare GPUs against its pool's quota from now on."""
        self._running[job.seq] = self._running[job.seq]._replace(grant=grant)
        self._pools[job.pool]._promote(grant.gpus)

    def finish(self, job: Job) -> RunningJob | None:
        """Take a job out for good; what it held, None where it was pending."""
        del self._active[job.seq]
        pool = self._pools[job.pool]
        if job.seq in self._running:
            over = pool.dedicated > pool.quota
            run = self._release(job)
            # What it held of others' quotas is theirs again.
            if over or not run.grant.dedicated:
                self._touched.update(self._pools)
            return run
        pool._pending.remove(job)
        self._touched[job.pool] = pool
        return None

    def _release(self, job: Job) -> RunningJob:
        pool = self._pools[job.pool]
        run = self._running.pop(job.seq)
        del self._filed[job.seq]
        gpus, cells, dedicated = run.grant
        pool._hold(-gpus, dedicated)
        self._free_gpus += gpus
        if cells:
            self._placements.take(cells)
        self._touched[job.pool] = pool
        return run

    def stop(self, job: Job) -> RunningJob:
        """Put a running job back into its queue, where it was."""
        lane, key = self._filed[job.seq]
        # A stop is the policy's own doing, of which it need not be told as of an event.
        touched = job.pool in self._touched
        run = self._release(job)
        if not touched:
            del self._touched[job.pool]
        self._pools[job.pool]._queue(job, lane, key)
        return run
