"""When jobs arrive in a replay: as the trace has them, or a think time after those that their people waited for."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import islice
from math import inf
from typing import NamedTuple

from jobcast.domain.jobs import Job, Outcome, Succession
from jobcast.simulator.workload import Workload

NOBODY: tuple[int, ...] = ()


class OpenArrivals:
    """Jobs arrive when the trace says, whatever the scheduler does. SIA, section 6.1.

    Parameters
    ----------
    workload : what is replayed

    Attributes
    ----------
    jobs, outcomes : by `seq`; those that have arrived at least, the list of another stream may grow
    next_s : instant of the next arrival, infinite without any
    waits_for_ends : whether `completed` must be told of every completion
    """

    __slots__ = ("_taken", "jobs", "next_s", "outcomes", "waits_for_ends")

    def __init__(self, workload: Workload) -> None:
        self.jobs, self.outcomes = workload.jobs, workload.outcomes
        self.waits_for_ends = False
        self._taken = 0
        self.next_s = self.jobs[0].submit_s if self.jobs else inf

    def due(self, now_s: float, most: int | None = None) -> Sequence[Job]:
        """Jobs that arrive by an instant and have not been taken yet, in order of `seq`; the first `most` alone."""
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


class Later(NamedTuple):
    """A job that is known, and may not start before others have ended, or an instant.

    Attributes
    ----------
    job : which keeps the submission that it had
    from_s : seconds from the epoch
    after : ids of the others
    ends : how many of them must have ended
    """

    job: Job
    from_s: float
    after: frozenset[str] = frozenset()
    ends: int = 0


class ForeseenArrivals:
    """The jobs of a run that have arrived, then such as somebody believes to come, numbered as they do.

    Parameters
    ----------
    stream : of the run
    coming : jobs and their run times, by submission; read no further than time goes
    most : how many of them at most
    later : known jobs and their run times, numbered before those: they arrive when they may start
    """

    def __init__(
        self,
        stream: "AnyArrivals",
        coming: Iterable[tuple[Job, float]],
        most: int,
        later: Sequence[tuple[Later, float]] = (),
    ) -> None:
        count = stream.arrived
        self.jobs: list[Job] = [
            *stream.jobs[:count],
            *(replace(one.job, seq=count + place) for place, (one, _) in enumerate(later)),
        ]
        self.outcomes: list[Outcome] = [*stream.outcomes[:count], *(Outcome(run_s) for _, run_s in later)]
        self._later = [one for one, _ in later]
        # By set of ids, which thousands of tasks of an array share: how many have ended, and who waits for how many.
        self._ended: dict[int, int] = {}
        self._sets: dict[str, list[int]] = {}
        self._waiting: dict[tuple[int, int], list[int]] = {}
        for place, one in enumerate(self._later):
            mine = id(one.after)
            for name in one.after if mine not in self._ended else ():
                self._sets.setdefault(name, []).append(mine)
            self._ended.setdefault(mine, 0)
            self._waiting.setdefault((mine, one.ends), []).append(place)
        self._ready = [(one.from_s, count + place) for place, one in enumerate(self._later) if not one.ends]
        heapify(self._ready)
        self.waits_for_ends = bool(later)
        self.first = len(self.jobs)
        self._coming = islice(coming, most)
        self._pull()

    def _pull(self) -> None:
        """Look at the next one."""
        self._next = next(self._coming, None)
        self._look()

    def _look(self) -> None:
        """Who is next: of those who come, or may start later."""
        self._next_s = inf if self._next is None else self._next[0].submit_s
        self.next_s = min(self._next_s, self._ready[0][0] if self._ready else inf)

    def due(self, now_s: float, most: int | None = None) -> Sequence[Job]:
        """Jobs that arrive by an instant and have not been taken yet."""
        found: list[Job] = []
        while self.next_s <= now_s and (most is None or len(found) < most):
            if self._next is None or self.next_s < self._next_s:
                found.append(self.jobs[heappop(self._ready)[1]])
                self._look()
            else:
                job, run_s = self._next
                found.append(replace(job, seq=len(self.jobs)))
                self.jobs.append(found[-1])
                self.outcomes.append(Outcome(run_s))
                self._pull()
        return found

    def completed(self, job: Job, now_s: float) -> None:
        """A job ends now: who waited for it alone may start."""
        # Who is only believed to come may be called like one that is there.
        for mine in self._sets.get(job.job_id, NOBODY) if job.seq < self.first else NOBODY:
            self._ended[mine] += 1
            for place in self._waiting.get((mine, self._ended[mine]), NOBODY):
                heappush(self._ready, (max(now_s, self._later[place].from_s), self.first - len(self._later) + place))
        self._look()

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
"""Arrivals as the engine takes them; all answer what `OpenArrivals` does."""


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
