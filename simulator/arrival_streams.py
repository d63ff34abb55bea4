"""When jobs arrive in a replay: as the trace has them, or a think time after those that their people waited for."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import Protocol

from jobcast.domain.jobs import Job, Outcome, Succession
from jobcast.simulator.workload import Workload

NOBODY: tuple[int, ...] = ()


class ArrivalStream(Protocol):
    """Arrivals as the engine takes them.

    Attributes
    ----------
    jobs, outcomes : by `seq`; those that have arrived at least, the list may grow
    next_s : instant of the next arrival, infinite without any
    waits_for_ends : whether `completed` must be told of every completion
    """

    jobs: Sequence[Job]
    outcomes: Sequence[Outcome]
    next_s: float
    waits_for_ends: bool

    def due(self, now_s: float, most: int | None = None) -> Sequence[Job]:
        """Jobs that arrive by an instant and have not been taken yet, in order of `seq`; the first `most` alone."""
        ...

    def completed(self, job: Job, now_s: float) -> None:
        """A job ends now."""
        ...

    def row(self, job: Job) -> int:
        """Position of a job that has arrived in the workload."""
        ...

    @property
    def arrived(self) -> int:
        """How many jobs have been taken."""
        ...

    def fork(self) -> "ArrivalStream":
        """A copy that goes its own way."""
        ...


class OpenArrivals:
    """Jobs arrive when the trace says, whatever the scheduler does. SIA, section 6.1.

    Parameters
    ----------
    workload : what is replayed
    """

    __slots__ = ("_taken", "jobs", "next_s", "outcomes", "waits_for_ends")

    def __init__(self, workload: Workload) -> None:
        self.jobs, self.outcomes = workload.jobs, workload.outcomes
        self.waits_for_ends = False
        self._taken = 0
        self.next_s = self.jobs[0].submit_s if self.jobs else inf

    def due(self, now_s: float, most: int | None = None) -> Sequence[Job]:
        """Jobs that arrive by an instant and have not been taken yet."""
        jobs, begin, end = self.jobs, self._taken, self._taken
        count = len(jobs) if most is None else min(len(jobs), begin + most)
        # Few arrive at one instant, so that walking beats a binary search.
        while end < count and jobs[end].submit_s <= now_s:
            end += 1
        self._taken = end
        self.next_s = jobs[end].submit_s if end < len(jobs) else inf
        return jobs[begin:end]

    def completed(self, job: Job, now_s: float) -> None:
        """Nothing follows from it."""

    def row(self, job: Job) -> int:
        """Jobs are numbered as the workload has them."""
        return job.seq

    @property
    def arrived(self) -> int:
        """How many jobs have been taken."""
        return self._taken

    def fork(self) -> "OpenArrivals":
        """A copy that goes its own way."""
        return copy(self)


class ClosedArrivals:
    """A job arrives its think time after the last end, in this run, of those that it awaits; others as the trace says.

    Jobs are numbered as they arrive (at one instant by job id), and their `submit_s` is their arrival.

    Parameters
    ----------
    workload : what is replayed; its successions say who awaits whom

    Attributes
    ----------
    places : by `seq`, the position of each arrived job in the workload
    """

    __slots__ = (
        "_followers", "_heap", "_left", "_think_s", "_workload", "jobs", "next_s", "outcomes", "places",
        "waits_for_ends",
    )  # fmt: skip

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.jobs: list[Job] = []
        self.outcomes: list[Outcome] = []
        self.places: list[int] = []
        self.waits_for_ends = True
        successions = workload.successions or {}
        known = [successions.get(job.job_id) for job in workload.jobs]
        self._think_s = [inf if one is None else one.think_s for one in known]
        self._left = [0 if one is None else len(one.awaited) for one in known]
        self._followers = _followers(workload.jobs, known)
        # In the trace's order, which is a heap: (arrival, job id, position).
        self._heap = [
            (job.submit_s, job.job_id, place) for place, job in enumerate(workload.jobs) if not self._left[place]
        ]
        self.next_s = self._heap[0][0] if self._heap else inf

    def due(self, now_s: float, most: int | None = None) -> Sequence[Job]:
        """Jobs that arrive by an instant and have not been taken yet."""
        begin, heap = len(self.jobs), self._heap
        while heap and heap[0][0] <= now_s and (most is None or len(self.jobs) < begin + most):
            arrival_s, _, place = heappop(heap)
            job, seq = self._workload.jobs[place], len(self.jobs)
            # The trace's own object where it can be: most jobs of a loop follow nobody.
            alike = job.seq == seq and job.submit_s == arrival_s
            self.jobs.append(job if alike else replace(job, seq=seq, submit_s=arrival_s))
            self.outcomes.append(self._workload.outcomes[place])
            self.places.append(place)
        self.next_s = heap[0][0] if heap else inf
        return self.jobs[begin:]

    def row(self, job: Job) -> int:
        """Position of a job that has arrived in the workload."""
        return self.places[job.seq]

    @property
    def arrived(self) -> int:
        """How many jobs have been taken."""
        return len(self.jobs)

    def fork(self) -> "ClosedArrivals":
        """A copy that goes its own way."""
        forked = copy(self)
        forked.jobs, forked.outcomes, forked.places = self.jobs[:], self.outcomes[:], self.places[:]
        # Followers and think times never change: forks share them.
        forked._left, forked._heap = self._left[:], self._heap[:]
        return forked

    def completed(self, job: Job, now_s: float) -> None:
        """A job ends now: who awaited only that one more thinks, and submits."""
        for place in self._followers.get(self.places[job.seq], NOBODY):
            self._left[place] -= 1
            # Only the last of the ends awaited counts, whichever that is in this run.
            if not self._left[place]:
                arrival_s = now_s + self._think_s[place]
                heappush(self._heap, (arrival_s, self._workload.jobs[place].job_id, place))
        if self._heap:
            self.next_s = self._heap[0][0]


class ForeseenArrivals:
    """The jobs of a run that have arrived, then such as somebody believes to come, numbered as they do.

    Parameters
    ----------
    stream : of the run
    coming : jobs and their run times, by submission; read no further than time goes
    most : how many of them at most
    """

    def __init__(self, stream: "AnyArrivals", coming: Iterable[tuple[Job, float]], most: int) -> None:
        self.jobs: list[Job] = list(stream.jobs[: stream.arrived])
        self.outcomes: list[Outcome] = list(stream.outcomes[: stream.arrived])
        self.waits_for_ends = False
        self.first = len(self.jobs)
        self._coming = islice(coming, most)
        self._pull()

    def _pull(self) -> None:
        """Look at the next one."""
        self._next = next(self._coming, None)
        self.next_s = inf if self._next is None else self._next[0].submit_s

    def due(self, now_s: float, most: int | None = None) -> Sequence[Job]:
        """Jobs that arrive by an instant and have not been taken yet."""
        begin = len(self.jobs)
        while self._next is not None and self.next_s <= now_s and (most is None or len(self.jobs) < begin + most):
            job, run_s = self._next
            self.jobs.append(replace(job, seq=len(self.jobs)))
            self.outcomes.append(Outcome(run_s))
            self._pull()
        return self.jobs[begin:]

    def completed(self, job: Job, now_s: float) -> None:
        """Nothing follows from it."""

    def row(self, job: Job) -> int:
        """Jobs are numbered as they come."""
        return job.seq

    @property
    def arrived(self) -> int:
        """How many jobs have been taken."""
        return len(self.jobs)

    def fork(self) -> "ForeseenArrivals":
        """Futures have no futures of their own. Raises TypeError."""
        raise TypeError("a future of a run is played once, not copied")


AnyArrivals = OpenArrivals | ClosedArrivals | ForeseenArrivals


def arrivals_of(workload: Workload) -> OpenArrivals | ClosedArrivals:
    """The stream that a workload asks for: closed where it has successions, even none."""
    # An empty mapping is a closed loop in which nobody follows: its log must say so.
    return OpenArrivals(workload) if workload.successions is None else ClosedArrivals(workload)


def _followers(jobs: Sequence[Job], known: Sequence[Succession | None]) -> dict[int, list[int]]:
    """By position of a job, positions of those that await it, ascending."""
    place_of = {job.job_id: place for place, job in enumerate(jobs)}
    followers: dict[int, list[int]] = {}
    for place, one in enumerate(known):
        for awaited in () if one is None else one.awaited:
            followers.setdefault(place_of[awaited], []).append(place)
    return followers
