"""Runs of the engine that somebody else decides, choice by choice, in place of a policy.

Courses of gangs in pools: which of the pending jobs that fit starts next, or none for now.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from math import inf, isinf, isnan
from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.jobs import Job
from jobcast.domain.policy import EVENTS, NOTHING, Decision, Grant, Trigger, View
from jobcast.schedulers.tasks.features import log_minutes
from jobcast.simulator.engine import Simulation
from jobcast.simulator.law import Law
from jobcast.simulator.workload import Workload


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What there is to pick from, two things or more.

    Attributes
    ----------
    head : of what kind they are
    rows : (n, n_features) what is read of each
    taught : which one a heuristic would pick, from 0
    """

    head: str
    rows: Floats
    taught: int


Picks = Generator[Choice, int, Decision]
"""A decision made pick by pick: choices are yielded, rows that were picked are sent, what was decided is returned."""


class Round(NamedTuple):
    """A decision and what came of it until the next.

    Attributes
    ----------
    time_s : when it was made, seconds from the epoch
    state : (n_numbers,) how things stood before it
    earned : (n_objectives,) what it added to each objective
    """

    time_s: float
    state: Floats
    earned: Floats


@dataclass(frozen=True, slots=True)
class Learning:
    """Stands for the policy in messages of the engine, and says when it is asked; whoever drives the course decides."""

    name: str = "learner"
    trigger: Trigger = EVENTS

    def decide(self, view: View) -> Decision:
        """Nothing."""
        return NOTHING


class Course(ABC):
    """A run, choice by choice, to the end of all jobs or beyond an instant.

    Parameters
    ----------
    run : what is run, under `Learning`
    until_s : nothing is decided later than this, seconds from the epoch

    Attributes
    ----------
    rounds : decisions that were carried out
    """

    def __init__(self, run: Simulation, until_s: float = inf) -> None:
        self.rounds: list[Round] = []
        self._run, self._until_s = run, until_s
        self._picks: Picks | None = None
        self._picked: Any = None
        self._view: View | None = run.look()

    @property
    def over(self) -> bool:
        """Whether all jobs have ended."""
        return self._view is None

    def next(self) -> Choice | None:
        """The next choice, of this decision or a later one; None at the end."""
        while self._view is not None and self._view.now_s <= self._until_s:
            if self._picks is None:
                # A generator that has not begun takes nothing but None.
                self._picks, self._picked = self.open(self._view), None
            try:
                return self._picks.send(self._picked)
            except StopIteration as decided:
                self._run.carry_out(decided.value)
            # The round is closed after the engine has gone on to the next decision: what it earned is known then.
            self._picks, self._view = None, self._run.look()
            self.rounds.append(self.close(self._view))
        return None

    def take(self, picked: int) -> None:
        """Answer the latest choice."""
        self._picked = picked

    @abstractmethod
    def open(self, view: View) -> Picks:
        """A decision is due."""

    @abstractmethod
    def close(self, view: View | None) -> Round:
        """It was carried out; this is what is seen when the next one is due, None where all jobs have ended."""


QUEUE = "queue"
QUEUE_FEATURES = ("waited", "gpus", "time_limit", "free", "pending", "free_of_all", "hold")
"""Columns of a pending job's row: time since its submission and time limit (0 for none), as logarithms; its GPUs and
those free in its pool as shares of the pool's; logarithm of how many are pending there; share of all GPUs that is free.
`hold` is 1 in the row of the choice to start nothing more for now, in which all else is 0."""
HOLD_ROW = [*(0.0 for _ in QUEUE_FEATURES[1:]), 1.0]

Drawn = tuple[Workload, Law | None]


class Queue:
    """Pending jobs within the quotas of their pools, oldest first, one after another.

    Parameters
    ----------
    view : the cluster
    most : rows of a choice; of more jobs, the oldest are shown
    """

    def __init__(self, view: View, most: int) -> None:
        self._view, self._most = view, most
        # Only GPUs that count against the quota: spare ones that jobs hold are another pool's.
        self._free = {name: pool.quota - pool.dedicated for name, pool in view.pools.items()}
        self._free_of_all = view.free_gpus
        self._pending = [job for seq, job in view.active.items() if seq not in view.running]
        self._change: dict[int, Grant] = {}

    def picks(self) -> Picks:
        """See `courses.Picks`; the decision is who starts."""
        while fits := [job for job in self._pending if self._fits(job)][: self._most - 1]:
            hold = [HOLD_ROW] if self._view.running or self._change else []  # else nothing might ever happen
            picked = 0
            if len(fits) + len(hold) > 1:
                picked = yield Choice(QUEUE, np.array([self._row(job) for job in fits] + hold), 0)
            if picked == len(fits):
                break
            self._start(fits[picked])
        return Decision(self._change)

    def _fits(self, job: Job) -> bool:
        return job.gpus <= min(self._free[job.pool], self._free_of_all)

    def _start(self, job: Job) -> None:
        self._pending.remove(job)
        self._change[job.seq] = Grant(job.gpus)
        self._free[job.pool] -= job.gpus
        self._free_of_all -= job.gpus

    def _row(self, job: Job) -> list[float]:
        view, pool = self._view, self._view.pools[job.pool]
        # 0 stands for no limit, which is common in traces.
        limit_s = job.requirements.time_limit_s if job.requirements else np.inf
        return [
            log_minutes(view.now_s - job.submit_s),
            job.gpus / pool.quota,
            0.0 if isinf(limit_s) else log_minutes(limit_s),
            self._free[job.pool] / pool.quota,
            float(np.log1p(len(pool.pending))),
            self._free_of_all / view.total_gpus,
            0.0,
        ]


class QueueCourse(Course):
    """A run of gangs. What is earned adds up to minus their mean completion time over their mean run time alone.

    Parameters
    ----------
    workload, law : as of `simulator.engine.Simulation`
    most : rows of a choice
    """

    def __init__(self, workload: Workload, law: Law | None = None, most: int = 65) -> None:
        self._most = most
        # Of all jobs: the mean over the mean is the sum over the sum.
        self._unit_s = sum(outcome.duration_s for outcome in workload.outcomes)
        super().__init__(Simulation(workload, Learning(), law=law))

    def open(self, view: View) -> Picks:
        """See `Course`."""
        self._now_s, self._before, self._running = view.now_s, list(view.active.values()), len(view.running)
        return Queue(view, self._most).picks()

    def close(self, view: View | None) -> Round:
        """See `Course`."""
        # Jobs that ended within the round cost only up to their end.
        ends_s = (self._run.end_s(job.seq) for job in self._before)
        passed_s = sum((self._run.now_s if isnan(end_s) else end_s) - self._now_s for end_s in ends_s)
        state = np.array([len(self._before), self._running], dtype=float)
        return Round(self._now_s, state, np.array([-passed_s / self._unit_s]))
