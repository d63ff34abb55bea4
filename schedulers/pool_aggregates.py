"""What policies that share ask about all pools at once: of the view where it keeps that up, else worked out here."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Protocol

from jobcast.domain.policy import PoolView, View


class PoolAggregates(Protocol):
    """Sums and selections over all pools, at the instant of the view and before any start."""

    @property
    def waiting(self) -> Sequence[PoolView]:
        """Pools with jobs pending, names ascending."""
        ...

    @property
    def ready(self) -> Mapping[str, PoolView]:
        """Pools whose first pending job fits their unused quota: quota less what counts against it."""
        ...

    @property
    def pledged(self) -> float:
        """GPUs of unused quota that pending jobs lay claim to: min(pending, unused), summed up over all pools."""
        ...

    @property
    def roomy(self) -> Mapping[str, tuple[PoolView, float]]:
        """Pools whose unused quota exceeds what their pending jobs ask for, and the GPUs by which it does."""
        ...

    def narrowest(self, max_lane: float) -> float:
        """Width of the narrowest pending job in lanes up to `max_lane`; infinite where there is none."""
        ...

    def holders(self, max_gpus: float, max_lane: float) -> Mapping[str, PoolView]:
        """Pools with a pending job that is at most `max_gpus` wide, in lanes up to `max_lane`; in any order."""
        ...


def tally_of(view: View) -> PoolAggregates:
    """The tally that a view keeps up, or one that reads the view itself."""
    kept: PoolAggregates | None = getattr(view, "tally", None)
    return kept if kept is not None else ReadAggregates(view)


class ReadAggregates:
    """Works everything out when asked, from pools as any view shows them; implements `PoolAggregates`.

    Parameters
    ----------
    view : the cluster
    """

    def __init__(self, view: View) -> None:
        self._pools = view.pools

    @property
    def waiting(self) -> Sequence[PoolView]:
        """See `PoolAggregates`."""
        return [pool for pool in self._pools.values() if len(pool.pending)]

    @property
    def ready(self) -> Mapping[str, PoolView]:
        """See `PoolAggregates`."""
        heads = ((pool, pool.pending.head()) for pool in self._pools.values())
        return {pool.name: pool for pool, job in heads if job is not None and job.gpus <= _unused(pool)}

    @property
    def pledged(self) -> float:
        """See `PoolAggregates`."""
        return sum(min(pool.pending.gpus, _unused(pool)) for pool in self._pools.values())

    @property
    def roomy(self) -> Mapping[str, tuple[PoolView, float]]:
        """See `PoolAggregates`."""
        rooms = ((pool, _unused(pool) - pool.pending.gpus) for pool in self._pools.values())
        return {pool.name: (pool, room) for pool, room in rooms if room > 0}

    def narrowest(self, max_lane: float) -> float:
        """See `PoolAggregates`."""
        best = inf
        for pool in self._pools.values():
            # Each find must be narrower than the last, so that a pool is asked few times.
            while (job := pool.pending.first(best - 1, max_lane)) is not None:
                best = job.gpus
        return best

    def holders(self, max_gpus: float, max_lane: float) -> Mapping[str, PoolView]:
        """See `PoolAggregates`."""
        pools = self._pools.values()
        return {pool.name: pool for pool in pools if pool.pending.first(max_gpus, max_lane) is not None}


def _unused(pool: PoolView) -> float:
    return pool.quota - pool.dedicated
