"""When jobs arrive in each pool and how wide they are: what forecast sources of the simulator count in."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import inf

from jobcast.domain.jobs import Job


class Arrivals:
    """Arrivals of all pools; a question is a binary search a window. A pool without jobs counts nothing."""

    __slots__ = ("_gpus_until", "_times")

    def __init__(self, jobs: Sequence[Job]) -> None:
        widths: dict[str, list[int]] = {}
        self._times: dict[str, list[float]] = {}
        for job in sorted(jobs, key=lambda job: job.submit_s):
            self._times.setdefault(job.pool, []).append(job.submit_s)
            widths.setdefault(job.pool, []).append(job.gpus)
        self._gpus_until = {pool: list(accumulate(gpus, initial=0)) for pool, gpus in widths.items()}

    def largest_past_load(self, pool: str, now_s: float, window_s: float, windows: int) -> int:
        """Largest load of the last windows (now - (i+1) k, now - i k]: SIA's NewLoadEstimate, section 5.4.1.

        >>> Arrivals([Job(0, "a", "p", 10.0, 2), Job(1, "b", "p", 21.0, 3)]).largest_past_load("p", 20.0, 5.0, 3)
        2
        """
        times = self._times.get(pool)
        if times is None:
            return 0
        gpus_until, end, largest = self._gpus_until[pool], bisect_right(times, now_s), 0
        for window in range(1, windows + 1):
            if end == 0:
                break
            begin = bisect_right(times, now_s - window * window_s, 0, end)
            largest = max(largest, gpus_until[end] - gpus_until[begin])
            end = begin
        return largest


class UpcomingLoads:
    """Loads of all pools in (now, now + window], for instants that mostly ascend: amortised O(1) an arrival.

    Going back in time counts from the beginning again.

    Parameters
    ----------
    jobs : by submission, ascending
    window_s : length of the window, seconds

    >>> loads = UpcomingLoads([Job(0, "a", "p", 10.0, 2), Job(1, "b", "q", 20.0, 3)], 10.0)
    >>> loads.at(10.0), loads.at(0.0)
    ({'q': 3}, {'p': 2})
    """

    __slots__ = ("_first", "_jobs", "_loads", "_next", "_now_s", "_window_s")

    def __init__(self, jobs: Sequence[Job], window_s: float) -> None:
        self._jobs = jobs
        self._window_s = window_s
        self._restart(-inf)

    def at(self, now_s: float) -> Mapping[str, int]:
        """GPUs (sum of widths) of the jobs that arrive in (now, now + window] by pool; without those of no arrival."""
        if now_s != self._now_s:
            self._move(now_s)
        return self._loads

    def _restart(self, now_s: float) -> None:
        self._now_s = now_s
        self._first = self._next = 0  # the window holds the jobs between the two
        self._loads: dict[str, int] = {}

    def _move(self, now_s: float) -> None:
        if now_s < self._now_s:
            self._restart(now_s)
        self._now_s, until_s = now_s, now_s + self._window_s
        jobs, loads, count, following, first = self._jobs, self._loads, len(self._jobs), self._next, self._first
        while following < count and (job := jobs[following]).submit_s <= until_s:
            loads[job.pool] = loads.get(job.pool, 0) + job.gpus
            following += 1
        while first < following and (job := jobs[first]).submit_s <= now_s:
            left = loads[job.pool] - job.gpus
            if left:
                loads[job.pool] = left
            else:
                del loads[job.pool]
            first += 1
        self._next, self._first = following, first
