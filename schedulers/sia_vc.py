"""SIA_VC: jobs start as early as leaves all others their virtual starts. SIA, section 5.1, Figure 6.

The virtual clock, the logical plan of the cluster over time, and one pass of the scheduler over it, compiled.

In the plan jobs are known by their rank in the order of virtual start time, then submission. Where a rank's job
starts virtually is an instant of the plan; use of the cluster only rises at such instants, so that the plan need not
know others.

The plan is a tree over ranks. Leaf r holds the GPUs in use at virtual start r by the running jobs and the reservations
of ranks up to r. `peak[node]` is the largest of its leaves but for what its ancestors add, `added[node]` what it adds
to all of its leaves; node 1 is the root, nodes 2i and 2i + 1 are the children of i, leaf r is node len(peak) / 2 + r.
"""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from types import MappingProxyType

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, I1, njit, types
from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import JobForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import NOTHING, Decision, Grant, View

# GPUs in use at the leaves of the plan that no job stands for: less than any job leaves.
EMPTY = np.iinfo(np.int32).min
NOBODY: Mapping[int, float] = MappingProxyType({})


def virtual_starts_s(
    jobs: Sequence[Job],
    durations_s: Sequence[float],
    quotas: Mapping[str, int],
    begin_s: float = -inf,
    running_s: Mapping[int, float] = NOBODY,
) -> Floats:
    """Starts of jobs if each pool runs its own in order of submission on its quota alone, (n_jobs,) seconds.

    Worked out once over the whole trace. If it were worked out anew at each event from the pools as they then are, jobs
    could be slowed.

    Parameters
    ----------
    jobs : in order of `seq`, none wider than its pool's quota
    durations_s : (n_jobs,) run times
    quotas : GPUs by pool
    begin_s : before which nobody else starts
    running_s : by `seq`, starts of the jobs that run when the clock begins
    """
    free = dict(quotas)
    earliest_s = dict.fromkeys(quotas, begin_s)
    running: dict[str, list[tuple[float, int]]] = {pool: [] for pool in quotas}  # heaps of (end, gpus)
    starts_s = np.empty(len(jobs))
    for index, start_s in running_s.items():
        job = jobs[index]
        starts_s[index] = start_s
        free[job.pool] -= job.gpus
        heappush(running[job.pool], (start_s + durations_s[index], job.gpus))
    for index, (job, duration_s) in enumerate(zip(jobs, durations_s, strict=True)):
        if index in running_s:
            continue
        pool, heap = job.pool, running[job.pool]
        now_s = max(job.submit_s, earliest_s[pool])
        # Ends are asked for only until the head fits: those up to now are free of charge, later ones waited for.
        while heap and free[pool] < job.gpus:
            end_s, gpus = heappop(heap)
            now_s = max(now_s, end_s)
            free[pool] += gpus
        # Strict order: nobody of the pool starts before who came earlier.
        starts_s[index] = earliest_s[pool] = now_s
        free[pool] -= job.gpus
        heappush(heap, (now_s + duration_s, job.gpus))
    return starts_s


class ResourceTimePlan:
    """GPUs that running jobs hold until they end, and that jobs not started yet have reserved from their virtual start.

    It reserves for all jobs of the run, those to come as well. An end is as early as the virtual start that it is next
    to, so that no decision turns on how start + duration rounds off.

    Parameters
    ----------
    starts_s : (n_jobs,) virtual starts by `seq`, seconds
    durations_s : (n_jobs,) run times by `seq`, seconds
    gpus : (n_jobs,) widths by `seq`
    total_gpus : of the cluster
    """

    def __init__(self, starts_s: Floats, durations_s: Floats, gpus: Ints, total_gpus: int) -> None:
        order = np.argsort(starts_s, kind="stable")
        self._seq = order.astype(np.int64)  # by rank
        self._rank = np.empty_like(self._seq)
        self._rank[order] = np.arange(len(order))
        self._starts_s, self._durations_s = starts_s[order], durations_s[order]
        self._gpus = gpus[order].astype(np.int64)
        self._kind: Ints = np.unique(self._gpus, return_inverse=True)[1].astype(np.int64)
        self._total = total_gpus
        self._peak, self._added = _tree(self._in_use())
        self._pending, self._count = np.empty(len(order), dtype=np.int64), 0
        self._started = np.empty(len(order), dtype=np.int64)

    def start(self, arrived: Sequence[int], now_s: float, free: int) -> list[int]:
        """Start what is schedulable now; `seq` of those jobs, in the order of the pass.

        Parameters
        ----------
        arrived : `seq` of the jobs that have arrived since the last call
        now_s : the instant
        free : idle GPUs
        """
        fresh = self._rank[np.array(arrived, dtype=np.int64)]
        done = run_pass(
            self._starts_s, self._durations_s, self._gpus, self._kind, self._peak, self._added,
            self._pending, self._count, fresh, now_s, free, self._total, self._started,
        )  # fmt: skip
        self._count += len(fresh) - done
        started: list[int] = self._seq[self._started[:done]].tolist()
        return started

    def next_start_s(self, now_s: float) -> float:
        """First virtual start after an instant, infinite where there is none."""
        place = np.searchsorted(self._starts_s, now_s + tolerance.INSTANT_S, side="right")
        return float(self._starts_s[place]) if place < len(self._starts_s) else inf

    def _in_use(self) -> Ints:
        """GPUs of the reservations of ranks up to r at virtual start r, (n_jobs,): nothing runs yet."""
        # Ends an instant early, so that who starts at that very instant finds the GPUs free.
        ends_s = np.maximum(self._starts_s + self._durations_s - tolerance.INSTANT_S, np.nextafter(self._starts_s, inf))
        by_end = np.argsort(ends_s, kind="stable")
        ended = np.concatenate([[0], np.cumsum(self._gpus[by_end])])
        in_use: Ints = np.cumsum(self._gpus) - ended[np.searchsorted(ends_s[by_end], self._starts_s, side="right")]
        return in_use


def _tree(leaves: Ints) -> tuple[Ints, Ints]:
    """A plan's `peak` and `added`, both (2 x n_leaves,); see the module."""
    size = 1 << (len(leaves) - 1).bit_length()  # the next power of two
    # Leaves beyond the jobs must never be the largest.
    peak = np.full(2 * size, EMPTY, dtype=np.int64)
    peak[size : size + len(leaves)] = leaves
    level = size
    while level > 1:
        peak[level // 2 : level] = np.maximum(peak[level : 2 * level : 2], peak[level + 1 : 2 * level : 2])
        level //= 2
    return peak, np.zeros_like(peak)


@njit(types.int64(I1, I1, types.int64, types.int64), cache=True)
def first_above(peak: Ints, added: Ints, begin: int, most: int) -> int:
    """First leaf from `begin` on that holds more than `most`; the number of leaves if there is none."""
    leaves = len(peak) // 2
    if begin >= leaves:
        return leaves
    node = leaves + begin
    above = 0  # what the node's ancestors add
    parent = node // 2
    while parent >= 1:
        above += added[parent]
        parent //= 2
    while peak[node] + above <= most:
        while node % 2 == 1:  # nothing to the right of it below its parent
            if node == 1:
                return leaves
            node //= 2
            above -= added[node]
        node += 1
    # Down again: the left child first, since the first leaf is wanted.
    while node < leaves:
        above += added[node]
        node *= 2
        if peak[node] + above <= most:
            node += 1
    return node - leaves


@njit(types.void(I1, I1, types.int64), cache=True)
def _renew(peak: Ints, added: Ints, node: int) -> None:
    """Work out the ancestors of a node anew."""
    node //= 2
    while node >= 1:
        peak[node] = max(peak[2 * node], peak[2 * node + 1]) + added[node]
        node //= 2


@njit(types.void(I1, I1, types.int64, types.int64, types.int64), cache=True)
def add(peak: Ints, added: Ints, begin: int, end: int, gpus: int) -> None:
    """Add GPUs to the leaves from `begin` up to `end`, that one left out."""
    if begin >= end:
        return
    leaves = len(peak) // 2
    low, high = begin + leaves, end + leaves
    while low < high:
        if low % 2 == 1:
            peak[low] += gpus
            added[low] += gpus
            low += 1
        if high % 2 == 1:
            high -= 1
            peak[high] += gpus
            added[high] += gpus
        low //= 2
        high //= 2
    _renew(peak, added, begin + leaves)
    _renew(peak, added, end - 1 + leaves)


@njit(types.float64(types.float64, types.float64), cache=True)
def _end_s(begin_s: float, duration_s: float) -> float:
    """From when on a job is over for others, later than its begin however short it is: it needs its GPUs to begin."""
    return float(max(begin_s + duration_s - tolerance.INSTANT_S, np.nextafter(begin_s, np.inf)))


@njit(types.void(F1, F1, I1, I1, types.int64, types.int64, types.float64, types.int64), cache=True)
def move(
    start_s: Floats, duration_s: Floats, peak: Ints, added: Ints, rank: int, first: int, now_s: float, gpus: int
) -> None:
    """A job starts now: it runs in [now, now + duration), and is no longer reserved for from its virtual start on.

    `first` is the first rank with a virtual start after now. Where both overlap, nothing changes.
    """
    ends = np.searchsorted(start_s, _end_s(now_s, duration_s[rank]))
    released = np.searchsorted(start_s, _end_s(start_s[rank], duration_s[rank]))
    # Between now and its own virtual start it is new; beyond, it was reserved already.
    add(peak, added, first, min(rank, ends), gpus)
    add(peak, added, max(rank, ends), released, -gpus)


@njit(types.void(I1, types.int64, types.int64), cache=True)
def _file(pending: Ints, count: int, rank: int) -> None:
    place = count
    while place > 0 and pending[place - 1] > rank:
        pending[place] = pending[place - 1]
        place -= 1
    pending[place] = rank


_PASS = types.int64(F1, F1, I1, I1, I1, I1, I1, types.int64, I1, types.float64, types.int64, types.int64, I1)


@njit(_PASS, cache=True)
def run_pass(
    start_s: Floats,
    duration_s: Floats,
    gpus: Ints,
    kind: Ints,
    peak: Ints,
    added: Ints,
    pending: Ints,
    count: int,
    arrived: Ints,
    now_s: float,
    free: int,
    total: int,
    started: Ints,
) -> int:
    """File what has arrived, visit the pending jobs by rank, start those that are schedulable; how many started.

    Figure 6 begins its pass again after each start. That comes to the same: a start adds to the running jobs and takes
    away a reservation that no job before it looks at, so that those stay unschedulable.

    A job of rank r is schedulable if it fits the idle GPUs, and no instant before now + duration that is a virtual
    start of a rank below r has more GPUs in use than it leaves. The first instant of that kind is the same for all jobs
    of a width, whatever r, so that it is looked for once a width and start.

    Parameters
    ----------
    start_s : (n,) virtual starts by rank, ascending
    duration_s, gpus : (n,) of the jobs
    kind : (n,) number of the width, from 0
    peak, added : the plan; changes
    pending : ranks of pending jobs, ascending, in its first `count` places; changes
    arrived : ranks of those that have arrived since the last pass
    now_s : the instant
    free, total : GPUs of the cluster, idle and all
    started : filled with the ranks to start, in order
    """
    for rank in arrived:
        _file(pending, count, rank)
        count += 1
    soon_s = now_s + tolerance.INSTANT_S
    first = np.searchsorted(start_s, soon_s, side="right")
    kinds = kind.max() + 1
    known = np.zeros(kinds, dtype=np.bool_)
    barrier = np.empty(kinds, dtype=np.int64)  # by kind: first rank that leaves too little
    kept = done = 0
    for place in range(count):
        # Once somebody started, the rest are gone through all the same: the list is being closed up.
        if free <= 0 and done == 0:  # nothing can start, nothing is to be moved up
            break
        rank = pending[place]
        width = gpus[rank]
        if width <= free:
            of = kind[rank]
            if not known[of]:
                known[of] = True
                barrier[of] = first_above(peak, added, first, total - width)
            # The barrier binds only jobs behind it, and only if they still run when it comes.
            if rank <= barrier[of] or _end_s(now_s, duration_s[rank]) <= start_s[barrier[of]]:
                move(start_s, duration_s, peak, added, rank, first, now_s, width)
                free -= width
                # A start changes the use of the plan, and with it all barriers.
                known[:] = False
                started[done] = rank
                done += 1
                continue
        if start_s[rank] <= soon_s:  # its reservation has begun
            free -= width
        pending[kept] = rank
        kept += 1
    return done


class SiaVc:
    """Start a job if, until it ends, running jobs and the reservations of jobs before it leave it enough GPUs.

    Jobs are visited by virtual start, then submission: the start under `fcfs` on their pool's quota alone, worked out
    once for the whole trace. All that have not started, those to come as well, reserve their GPUs from their virtual
    start for their run time; pools do not matter otherwise. No job finishes later than under `fcfs` (Theorem 1), but
    for the microsecond within which instants are the same, as long as jobs run for the time that is forecast and
    starting costs nothing (`Workload.restart_s`).

    Parameters
    ----------
    forecasts : know every job of the run and its run time; only the oracle does

    Raises
    ------
    ConfigError
        The forecasts do not know the jobs to come.
    """

    name = "sia_vc"

    def __init__(self, forecasts: JobForecasts) -> None:
        if not hasattr(forecasts, "jobs"):
            raise ConfigError(f"policy {self.name} needs each single job's future; pass --forecasts oracle")
        self._forecasts = forecasts
        self._plan: ResourceTimePlan | None = None
        self._arrived = 0
        self._owed: list[int] = []  # `seq` of jobs that are started, as far as there is a place for all their GPUs

    def lane(self, job: Job) -> int:
        """One lane. Raises ConfigError when a job arrives otherwise than was known."""
        jobs = self._forecasts.jobs
        # A closed loop changes submissions, and the plan of all virtual starts would be wrong.
        if job.seq >= len(jobs) or jobs[job.seq] != job:
            raise ConfigError(
                f"policy {self.name}: job {job.job_id} arrives at {job.submit_s:.6f} s, which was not known before; "
                "replay in an open loop"
            )
        return 0

    def decide(self, view: View) -> Decision:
        """One pass of Figure 6."""
        if self._plan is None:
            self._plan = self._make_plan(view)
        arrived = self._arrivals(view)
        # Who was started by plan but found its GPUs not yet given back starts first now.
        owed = [seq for seq in self._owed if seq in view.active and seq not in view.running]
        free = int(view.free_gpus) - sum(view.active[seq].gpus for seq in owed)
        if free > 0 or arrived:
            owed += self._plan.start(arrived, view.now_s, max(free, 0))
        self._owed = owed
        if owed:
            return Decision({seq: Grant(view.active[seq].gpus) for seq in owed})
        # Where jobs took less time than planned the plan holds GPUs that idle, and no end will come to ask again.
        return NOTHING if view.running else Decision(wake_s=self._plan.next_start_s(view.now_s))

    def _make_plan(self, view: View) -> ResourceTimePlan:
        jobs = self._forecasts.jobs
        durations_s = [self._forecasts.duration_s(job) for job in jobs]
        quotas = {pool.name: pool.quota for pool in view.pools.values()}
        # A run may begin amid things: later than its first submission.
        running_s = {seq: run.start_s for seq, run in view.running.items()}
        amid = view.now_s > jobs[0].submit_s + 2.0 * tolerance.INSTANT_S
        starts_s = virtual_starts_s(jobs, durations_s, quotas, view.now_s if amid else -inf, running_s)
        gpus = np.array([job.gpus for job in jobs], dtype=np.int64)
        return ResourceTimePlan(starts_s, np.array(durations_s, dtype=np.float64), gpus, view.total_gpus)

    def _arrivals(self, view: View) -> list[int]:
        """`seq` of the jobs that have arrived since the last decision, and wait."""
        jobs, begin = self._forecasts.jobs, self._arrived
        while self._arrived < len(jobs) and jobs[self._arrived].submit_s <= view.now_s:
            self._arrived += 1
        return [seq for seq in range(begin, self._arrived) if seq not in view.running]
