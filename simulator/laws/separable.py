"""Progress of jobs that do not slow one another: each has work done, a rate, and the next point that it will reach.

Progress is anchored: work at the last change + rate x time since, never a sum of small steps. What sharing did to jobs
is counted beside it. PCS, section 5.1.
"""

from collections.abc import Mapping
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Grant, Service
from jobcast.domain.training import Progress
from jobcast.simulator.law import Milestone, by_start

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation

PATIENCE = 100_000
"""Decisions that may pass with jobs pending, nothing running and nothing to arrive, before a run is given up."""
OVERDUE = 1e-3
"""Work left that is assumed of a job that has done all that was believed of it: it may end any time."""
COLUMNS = ("work", "rate", "goal", "since_s", "lost_s", "at_s")
COUNTS = ("begun", "starts", "stops", "moves")


def column(count: int, value: float = 0.0) -> list[float]:
    """(count,) numbers; lists are reached one by one faster than arrays."""
    return [value] * count


class Separable:
    """What such laws share; each says its milestones, its rates and its costs.

    Attributes
    ----------
    work : done at the last change, in the law's units
    rate : a second from `since_s` + `lost_s` on, 0 while the job holds nothing
    goal : work at the next milestone, which is reached at `at_s` if nothing changes
    since_s, lost_s : instant of the last change, and the seconds after it that get the job nowhere
    begun : number of its latest start, by which ties of milestones go
    starts, stops, moves : times that it was given GPUs, gave them back unfinished, went on with others
    """

    name = ""
    patience = PATIENCE

    def bind(self, run: "Simulation") -> None:
        """Make room for a run's jobs."""
        count = len(run.workload.jobs)
        self.work, self.rate, self.goal, self.since_s, self.lost_s = (column(count) for _ in range(5))
        self.begun, self.starts, self.stops, self.moves = ([0] * count for _ in COUNTS)
        self.at_s = column(count, inf)
        self.heap: list[Milestone] = []
        self.begins = 0

    def next_s(self) -> float:
        """Instant of the next milestone that still holds; those of past starts are thrown away."""
        heap, at_s = self.heap, self.at_s
        while heap:
            when_s, _, seq = heap[0]
            # An entry holds while the job still expects that very instant; old ones are left to be thrown away.
            if at_s[seq] == when_s:
                return when_s
            heappop(heap)
        return inf

    def due(self, limit_s: float, most: int | None = None) -> list[Milestone]:
        """Milestones up to an instant, taken out; the `most` of them whose jobs started first alone."""
        heap, at_s = self.heap, self.at_s
        found: list[Milestone] = []
        while heap and heap[0][0] <= limit_s:
            one = heappop(heap)
            if at_s[one[2]] == one[0]:
                # Taken: the same entry must not come up twice.
                at_s[one[2]] = inf
                found.append(one)
        if most is None:
            return found
        # By start, not by instant: within dust all are at once.
        found.sort(key=by_start)
        for one in found[most:]:
            at_s[one[2]] = one[0]
            heappush(heap, one)
        return found[:most]

    def done(self, seq: int, now_s: float) -> float:
        """Work done by now, in the law's units."""
        ran_s = now_s - self.since_s[seq] - self.lost_s[seq]
        # By hand: policies ask this of each job, and `max` costs a call.
        return self.work[seq] + self.rate[seq] * (ran_s if ran_s > 0.0 else 0.0)

    def go_on(self, seq: int, now_s: float, rate: float, lost_s: float = 0.0) -> None:
        """A job gets on at a rate from now on, once `lost_s` have passed."""
        self.since_s[seq], self.lost_s[seq], self.rate[seq] = now_s, lost_s, rate
        self.expect(seq)

    def expect(self, seq: int) -> None:
        """File the instant at which a job will reach its goal."""
        left, rate = self.goal[seq] - self.work[seq], self.rate[seq]
        if rate <= 0.0:
            self.at_s[seq] = inf
            return
        # From the last change, not from now: asking twice must give the same instant.
        when_s = self.since_s[seq] + self.lost_s[seq] + max(left, 0.0) / rate
        self.at_s[seq] = when_s
        heappush(self.heap, (when_s, self.begun[seq], seq))

    def halt(self, seq: int, now_s: float) -> None:
        """A job holds nothing from now on."""
        self.work[seq] = self.done(seq, now_s)
        self.rate[seq], self.at_s[seq] = 0.0, inf

    def begin(self, seq: int) -> None:
        """A job is given GPUs while it had none."""
        self.begun[seq] = self.begins
        self.begins += 1
        self.starts[seq] += 1

    def stand(self, run: "Simulation", job: Job, done: float) -> None:
        """A job has done so much where the run begins, and what it holds it has held before."""
        seq = job.seq
        # Milestones that lie behind it are reached in passing.
        while self.goal[seq] <= done and not self.reach(run, job):
            pass
        self.work[seq] = done
        if seq in run.cluster.running:
            self.go_on(seq, run.now_s, self.rate[seq])
        # Who has done something and holds nothing was stopped once at least.
        elif done > 0.0:
            self.starts[seq] = self.stops[seq] = 1

    def reach(self, run: "Simulation", job: Job) -> bool:
        """A job is at its milestone; each law says what comes then."""
        raise NotImplementedError

    def leave(self, run: "Simulation", job: Job, held: Grant | None) -> None:
        """A job is over."""
        self.halt(job.seq, run.now_s)

    def got_on(self, run: "Simulation") -> bool:
        """Whether any job is on its way to a milestone."""
        return self.next_s() < inf

    def service(self, run: "Simulation", job: Job) -> Service:
        """What an active job has received by now."""
        seq = job.seq
        done = self.done(seq, run.now_s)
        return Service(run.held_s(seq), done, self.progress(job, done), done, done, self.starts[seq], self.stops[seq])

    def progress(self, job: Job, done: float) -> Progress | None:
        """What a training job reports after so much work."""
        return None

    def facts(self, run: "Simulation", kind: type[Any]) -> Any:
        """None beyond what every job tells."""
        raise LookupError(f"a world of {self.name} knows no {kind.__name__}")

    def report(self, run: "Simulation") -> Mapping[str, Any]:
        """How often jobs were stopped."""
        return {"preemptions": np.array(self.stops, dtype=np.int64)}

    def overdue(self, run: "Simulation", seq: int, goal: float) -> None:
        """A job's work ends there from now on, or any moment where it has done more."""
        # Who has done more than is believed may end any time.
        self.goal[seq] = max(goal, self.done(seq, run.now_s) + OVERDUE)
        if self.rate[seq]:
            self.expect(seq)

    def make_room(self, most: int) -> None:
        """So many more jobs may come than the workload has."""
        empty = {"at_s": inf}
        for name in (*COLUMNS, *COUNTS):
            getattr(self, name).extend([empty.get(name, 0)] * most)

    def fork(self) -> Self:
        """A copy that goes its own way."""
        # Without `__init__`: parameters are shared, columns are copied below.
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        for name in (*COLUMNS, *COUNTS):
            setattr(copy, name, getattr(self, name)[:])
        copy.heap = self.heap[:]
        return copy


CONTENTION = ("met", "first", "before", "since", "held", "held_from_s")


class Contention:
    """Counted as events come.

    Parameters
    ----------
    count : jobs of the run
    """

    def __init__(self, count: int) -> None:
        self.events = self.active = 0  # events so far, and the sum over them of the jobs active before each
        self.met, self.first, self.before, self.since, self.held, self.held_from_s = (column(count) for _ in CONTENTION)

    def count(self, run: "Simulation") -> None:
        """An event: those who were active before it count."""
        self.active += len(run.cluster.active)
        self.events += 1

    def arrive(self, run: "Simulation", seq: int) -> None:
        """A job is there from now on."""
        self.first[seq], self.before[seq], self.since[seq] = len(run.cluster.active), self.active, self.events

    def change(self, run: "Simulation", seq: int, old: Grant | None) -> None:
        """It holds something else from now on."""
        if old is not None:
            self.held[seq] += old.gpus * (run.now_s - self.held_from_s[seq])
        self.held_from_s[seq] = run.now_s

    def leave(self, run: "Simulation", seq: int, held: Grant | None) -> None:
        """It is over: what it met stays as it is."""
        self.change(run, seq, held)
        self.met[seq] = self.of(seq)

    def gpu_s(self, run: "Simulation", seq: int) -> float:
        """GPU-seconds that a job has held by now."""
        held = run.cluster.running.get(seq)
        return self.held[seq] + (held.grant.gpus * (run.now_s - self.held_from_s[seq]) if held is not None else 0.0)

    def of(self, seq: int) -> float:
        """Mean number of active jobs: those at an active job's submission, and before each event since."""
        met = self.active - self.before[seq]
        return (self.first[seq] + met) / (1.0 + self.events - self.since[seq])

    def fork(self) -> Self:
        """A copy that goes its own way."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        for name in CONTENTION:
            setattr(copy, name, getattr(self, name)[:])
        return copy
