"""How the published round mechanism follows shares of time: priorities, deficits, and allocations that come late.

Gavel (OSDI 2020), section 5, as its simulator has it.
"""

from collections.abc import Sequence
from math import inf
from typing import Protocol

from jobcast.domain.jobs import Job
from jobcast.domain.rounds import RoundPolicy, RoundState, SharePolicy

RESET_S = 1000.0
"""Least time between two computations of allocations."""


class Chooser(Protocol):
    """Chooses the jobs of each round. Instants count from the beginning of the replay."""

    def choose(self, state: RoundState, now_s: float) -> Sequence[Job]:
        """The jobs that run."""
        ...

    def ran(self, seq: int, run_s: float) -> None:
        """A job has run."""
        ...

    def outdated(self) -> None:
        """Allocations have to be computed anew."""
        ...

    def wake_s(self) -> float:
        """When to ask again after nobody was chosen; infinite = at the next arrival."""
        ...


class AsChosen:
    """The jobs that a policy chooses, as they are."""

    def __init__(self, policy: RoundPolicy) -> None:
        self._policy = policy

    def choose(self, state: RoundState, now_s: float) -> Sequence[Job]:
        """What the policy says."""
        return self._policy.choose(state)

    def ran(self, seq: int, run_s: float) -> None:
        """Nothing is kept."""

    def outdated(self) -> None:
        """Nothing is kept."""

    def wake_s(self) -> float:
        """At the next arrival."""
        return inf


class ByPriority:
    """Jobs in order of allocation / fraction of the job-seconds since the last reset, as far as they fit.

    A reset computes allocations and begins to count anew; it waits until the last one is 1,000 s ago, except while
    that was at the very beginning. Every job begins with the seconds of half a round. Ties go to the larger deficit
    (time promised less time received, over all resets), then to the earlier arrival. A job that came since the last
    reset has no allocation and comes last; it takes its GPUs away from others, yet does not run.

    Parameters
    ----------
    policy : says the shares
    round_s : length of a round
    """

    def __init__(self, policy: SharePolicy, round_s: float) -> None:
        self._policy, self._start_s = policy, round_s / 2.0
        self._allocation: dict[int, float] = {}
        self._received_s: dict[int, float] = {}  # since the last reset, by seq
        self._deficit_s: dict[int, float] = {}
        self._reset_s, self._outdated = 0.0, False

    def choose(self, state: RoundState, now_s: float) -> Sequence[Job]:
        """The first ones that fit, without those that have no allocation."""
        jobs = [one.job for one in state.active]
        self._meet(jobs)
        if self._outdated and (now_s - self._reset_s >= RESET_S or self._reset_s == 0.0):
            self._reset(state, now_s)
        all_s = sum(self._received_s.values())
        ranked = sorted(jobs, key=lambda job: self._rank(job.seq, all_s), reverse=True)  # keeps the order of ties
        free, fitting = state.total_gpus, []
        for job in ranked:
            if job.gpus <= free:
                free -= job.gpus
                fitting.append(job)
        return [job for job in fitting if job.seq in self._allocation]

    def ran(self, seq: int, run_s: float) -> None:
        """Count what a job has received."""
        self._received_s[seq] += run_s

    def outdated(self) -> None:
        """Compute allocations anew as soon as a reset is due."""
        self._outdated = True

    def wake_s(self) -> float:
        """When a reset is due."""
        return self._reset_s + RESET_S

    def _meet(self, jobs: Sequence[Job]) -> None:
        """Forget who has left, and begin with those who are new."""
        self._received_s = {job.seq: self._received_s.get(job.seq, self._start_s) for job in jobs}
        self._deficit_s = {job.seq: self._deficit_s.get(job.seq, 0.0) for job in jobs}

    def _reset(self, state: RoundState, now_s: float) -> None:
        elapsed_s = now_s - self._reset_s
        for seq, received_s in self._received_s.items():
            promised_s = self._allocation.get(seq, 0.0) * elapsed_s
            self._deficit_s[seq] += promised_s - (received_s - self._start_s)
            self._received_s[seq] = self._start_s
        shares = self._policy.shares(state)
        self._allocation = {one.job.seq: share for one, share in zip(state.active, shares, strict=True)}
        self._reset_s, self._outdated = now_s, False

    def _rank(self, seq: int, all_s: float) -> tuple[float, float, float]:
        if seq not in self._allocation:
            return 0.0, self._deficit_s[seq], 0.0
        allocation = self._allocation[seq]
        return allocation / (self._received_s[seq] / all_s), self._deficit_s[seq], allocation
