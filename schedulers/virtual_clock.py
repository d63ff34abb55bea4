"""The virtual clock of SIA_VC, and its logical plan of the cluster over time. SIA, section 5.1."""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import inf

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.jobs import Job

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EMPTY = -(2**40)
"""GPUs in use at the leaves of the plan that no job stands for: less than any job leaves."""


def virtual_starts_s(jobs: Sequence[Job], durations_s: Sequence[float], quotas: Mapping[str, int]) -> Floats:
    """Starts of jobs if each pool runs its own in order of submission on its quota alone, (n_jobs,) seconds.

    Worked out once over the whole trace. If it were worked out anew at each event from the pools as they then are, jobs
    could be slowed.

    Parameters
    ----------
    jobs : in order of `seq`, none wider than its pool's quota
    durations_s : (n_jobs,) run times
    quotas : GPUs by pool
    """
    free = dict(quotas)
    earliest_s = dict.fromkeys(quotas, -inf)
    running: dict[str, list[tuple[float, int]]] = {pool: [] for pool in quotas}  # heaps of (end, gpus)
    starts_s = np.empty(len(jobs))
    for index, (job, duration_s) in enumerate(zip(jobs, durations_s, strict=True)):
        pool, heap = job.pool, running[job.pool]
        now_s = max(job.submit_s, earliest_s[pool])
        while heap and (heap[0][0] <= now_s or free[pool] < job.gpus):
            end_s, gpus = heappop(heap)
            now_s = max(now_s, end_s)
            free[pool] += gpus
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
        from jobcast.schedulers.virtual_clock_kernels import run_pass  # numba takes a second to import

        self._run_pass, self._same_s = run_pass, tolerance.INSTANT_S
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

    def start(self, arrived: range, now_s: float, free: int) -> list[int]:
        """Start what is schedulable now; `seq` of those jobs, in the order of the pass.

        Parameters
        ----------
        arrived : `seq` of the jobs that have arrived since the last call
        now_s : the instant
        free : idle GPUs
        """
        fresh = self._rank[arrived.start : arrived.stop]
        done = self._run_pass(
            self._starts_s, self._durations_s, self._gpus, self._kind, self._peak, self._added,
            self._pending, self._count, fresh, now_s, free, self._total, self._started,
        )  # fmt: skip
        self._count += len(fresh) - done
        started: list[int] = self._seq[self._started[:done]].tolist()
        return started

    def next_start_s(self, now_s: float) -> float:
        """First virtual start after an instant, infinite where there is none."""
        place = np.searchsorted(self._starts_s, now_s + self._same_s, side="right")
        return float(self._starts_s[place]) if place < len(self._starts_s) else inf

    def _in_use(self) -> Ints:
        """GPUs of the reservations of ranks up to r at virtual start r, (n_jobs,): nothing runs yet."""
        ends_s = np.maximum(self._starts_s + self._durations_s - self._same_s, np.nextafter(self._starts_s, inf))
        by_end = np.argsort(ends_s, kind="stable")
        ended = np.concatenate([[0], np.cumsum(self._gpus[by_end])])
        in_use: Ints = np.cumsum(self._gpus) - ended[np.searchsorted(ends_s[by_end], self._starts_s, side="right")]
        return in_use


def _tree(leaves: Ints) -> tuple[Ints, Ints]:
    """A plan's `peak` and `added`, both (2 x n_leaves,); see virtual_clock_kernels."""
    size = 1
    while size < len(leaves):
        size *= 2
    peak = np.full(2 * size, EMPTY, dtype=np.int64)
    peak[size : size + len(leaves)] = leaves
    level = size
    while level > 1:
        peak[level // 2 : level] = np.maximum(peak[level : 2 * level : 2], peak[level + 1 : 2 * level : 2])
        level //= 2
    return peak, np.zeros_like(peak)
