"""What a policy would else sum up over all pools at every event, kept up pool by pool."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from operator import attrgetter

from jobcast.domain.policy import PoolView
from jobcast.simulator.queues import Shelves

by_name = attrgetter("name")


class PoolAggregates:
    """Pools with jobs pending, with a head to start, with quota to lend; brought up to date when it is asked.

    A policy that never asks pays for a mark at each change; one that asks pays for the pools that changed since.

    Parameters
    ----------
    changed : pools by name, all of them at first; whoever changes one puts it in, and it is taken out here
    shelves : which pools have jobs pending of which lane and width, kept up by their queues
    """

    __slots__ = ("_changed", "_pledged", "_pledges", "_ready", "_roomy", "_shelves", "_waiting", "_waits")

    def __init__(self, changed: dict[str, PoolView], shelves: Shelves) -> None:
        self._shelves = shelves
        self._changed = changed
        self._pledges: dict[str, float] = dict.fromkeys(changed, 0.0)
        self._pledged = 0.0
        self._ready: dict[str, PoolView] = {}
        self._roomy: dict[str, tuple[PoolView, float]] = {}
        self._waiting: list[PoolView] = []
        self._waits: set[str] = set()  # their names

    @property
    def waiting(self) -> Sequence[PoolView]:
        """Pools with jobs pending, names ascending."""
        if self._changed:
            self._catch_up()
        return self._waiting

    @property
    def ready(self) -> Mapping[str, PoolView]:
        """Pools whose first pending job fits their unused quota: quota less what counts against it."""
        if self._changed:
            self._catch_up()
        return self._ready

    @property
    def pledged(self) -> float:
        """GPUs of unused quota that pending jobs lay claim to: min(pending, unused), summed up over all pools."""
        if self._changed:
            self._catch_up()
        return self._pledged

    @property
    def roomy(self) -> Mapping[str, tuple[PoolView, float]]:
        """Pools whose unused quota exceeds what their pending jobs ask for, and the GPUs by which it does."""
        if self._changed:
            self._catch_up()
        return self._roomy

    def narrowest(self, max_lane: float) -> float:
        """Width of the narrowest pending job in lanes up to `max_lane`; infinite where there is none."""
        return min((width for lane, width in self._shelves if lane <= max_lane), default=float("inf"))

    def holders(self, max_gpus: float, max_lane: float) -> Mapping[str, PoolView]:
        """Pools with a pending job that is at most `max_gpus` wide, in lanes up to `max_lane`; in any order."""
        found: dict[str, PoolView] = {}
        for (lane, width), pools in self._shelves.items():
            if width <= max_gpus and lane <= max_lane:
                found.update(pools)
        return found

    def _catch_up(self) -> None:
        for name, pool in self._changed.items():
            head, unused = pool.pending.head(), pool.quota - pool.dedicated
            gpus = pool.pending.gpus if head is not None else 0
            pledge = min(gpus, unused)
            self._pledged += pledge - self._pledges[name]
            self._pledges[name] = pledge
            if unused > gpus:
                self._roomy[name] = (pool, unused - gpus)
            else:
                self._roomy.pop(name, None)
            if head is not None and head.gpus <= unused:
                self._ready[name] = pool
            else:
                self._ready.pop(name, None)
            if head is None and name in self._waits:
                self._waits.remove(name)
                del self._waiting[bisect_left(self._waiting, name, key=by_name)]
            elif head is not None and name not in self._waits:
                self._waits.add(name)
                insort(self._waiting, pool, key=by_name)
        self._changed.clear()
