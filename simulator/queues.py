"""Pending jobs of a pool, indexed so that a policy's question costs the same with 10 jobs as with 30,000.

Beside them what a policy would else sum up over all pools at every event, kept up pool by pool.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence, Set
from operator import attrgetter

from jobcast.domain.jobs import Job
from jobcast.domain.policy import PoolView

Entry = tuple[float, int, Job]
"""(key, seq, job): ordered by the first two, since no two jobs share a `seq`."""

Shelves = dict[tuple[int, int], dict[str, PoolView]]
"""(lane, width) -> pools, by name, with a pending job of that lane and width."""

NOTHING: frozenset[int] = frozenset()


class Run:
    """Entries in ascending order: O(1) at its head and its end, a binary search and one move of memory elsewhere."""

    __slots__ = ("_entries", "_head")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._head = 0

    def __len__(self) -> int:
        return len(self._entries) - self._head

    def add(self, entry: Entry) -> None:
        """File an entry; at the end where it belongs there, as all of a queue in submission order do."""
        entries = self._entries
        # Seq is unique, so that comparison never gets to the jobs.
        if not entries or entries[-1] < entry:
            entries.append(entry)
        else:
            insort(entries, entry, lo=self._head)

    def remove(self, entry: Entry) -> None:
        """Take out an entry that is in."""
        entries, head = self._entries, self._head
        # Identity: the entry that was filed is the one that is taken out.
        if entries[head] is not entry:
            del entries[bisect_left(entries, entry, lo=head)]
            return
        self._head = head = head + 1
        # Cut once more have left than are there, amortised O(1); at every head a queue of n jobs would cost n squared.
        if head > len(entries) - head:
            del entries[:head]
            self._head = 0

    def fork(self) -> "Run":
        """A copy that goes its own way."""
        copy = Run()
        # A fork need not carry what has left.
        copy._entries = self._entries[self._head :]
        return copy

    def first(self, skip: Set[int]) -> Entry | None:
        """First entry whose `seq` is not to be skipped."""
        entries, head = self._entries, self._head
        if not skip:
            return entries[head] if head < len(entries) else None
        for index in range(head, len(entries)):
            if entries[index][1] not in skip:
                return entries[index]
        return None


class PendingQueue:
    """Pending jobs of one pool; implements `domain.policy.PendingJobs`.

    All jobs lie in one run by (key, seq), and each in a second run of its lane and width. A job found by `head` or
    `first` is always the first of its own run, so that taking it out is cheap.

    Parameters
    ----------
    pool : whose queue it is
    shelves : kept up here for that pool; those of a cluster are shared by all of its queues
    """

    __slots__ = ("_all", "_filed", "_gpus", "_pool", "_runs", "_shelves")

    def __init__(self, pool: PoolView, shelves: Shelves) -> None:
        self._pool = pool
        self._shelves = shelves
        self._all = Run()
        self._runs: dict[tuple[int, int], Run] = {}
        self._filed: dict[int, tuple[int, Entry]] = {}
        self._gpus = 0

    def __len__(self) -> int:
        return len(self._filed)

    def __contains__(self, job: Job) -> bool:
        return job.seq in self._filed

    @property
    def gpus(self) -> int:
        """Sum of the widths of the pending jobs."""
        return self._gpus

    def head(self, skip: Set[int] = NOTHING) -> Job | None:
        """First job by (key, seq), lanes aside; `skip` holds the `seq` of jobs to pass over."""
        entry = self._all.first(skip)
        return None if entry is None else entry[2]

    def first(self, max_gpus: float, max_lane: float, skip: Set[int] = NOTHING) -> Job | None:
        """First job by (key, seq) among those at most `max_gpus` wide in lanes up to `max_lane`."""
        best: Entry | None = None
        # Few lanes and widths, however many jobs.
        for (lane, width), run in self._runs.items():
            if width <= max_gpus and lane <= max_lane:
                entry = run._entries[run._head] if not skip else run.first(skip)  # a run that is filed has a head
                if entry is not None and (best is None or entry < best):
                    best = entry
        return None if best is None else best[2]

    def key(self, job: Job) -> tuple[float, int]:
        """The (key, seq) that a pending job is filed under."""
        return self._filed[job.seq][1][:2]

    def add(self, job: Job, lane: int, key: float) -> None:
        """File a job that is not pending."""
        entry = (key, job.seq, job)
        self._filed[job.seq] = (lane, entry)
        self._gpus += job.gpus
        self._all.add(entry)
        run = self._runs.get((lane, job.gpus))
        if run is None:
            run = self._runs[lane, job.gpus] = Run()
            self._shelves.setdefault((lane, job.gpus), {})[self._pool.name] = self._pool
        run.add(entry)

    def remove(self, job: Job) -> tuple[int, float]:
        """Take out a pending job; its lane and key come back, to file it again if it is stopped."""
        lane, entry = self._filed.pop(job.seq)
        self._gpus -= job.gpus
        self._all.remove(entry)
        run = self._runs[lane, job.gpus]
        run.remove(entry)
        if not run:
            del self._runs[lane, job.gpus]
            shelf = self._shelves[lane, job.gpus]
            del shelf[self._pool.name]
            if not shelf:
                del self._shelves[lane, job.gpus]
        return lane, entry[0]

    def fork(self, pool: PoolView, shelves: Shelves) -> "PendingQueue":
        """A copy that goes its own way, for a pool of another cluster."""
        copy = PendingQueue(pool, shelves)
        copy._all, copy._filed, copy._gpus = self._all.fork(), dict(self._filed), self._gpus
        copy._runs = {shelf: run.fork() for shelf, run in self._runs.items()}
        for shelf in copy._runs:
            shelves.setdefault(shelf, {})[pool.name] = pool
        return copy


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
            # Differences, so that one pool's change does not cost a sum over all.
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
            # Sorted by name all the time: policies walk it at every event.
            if head is None and name in self._waits:
                self._waits.remove(name)
                del self._waiting[bisect_left(self._waiting, name, key=by_name)]
            elif head is not None and name not in self._waits:
                self._waits.add(name)
                insort(self._waiting, pool, key=by_name)
        self._changed.clear()
