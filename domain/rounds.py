"""Scheduling by rounds: what a policy sees when a round begins, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress

LEAST_WEIGHT = 1e-6
"""Of jobs that nobody gives any weight: policies divide by it, and such a job comes after all others."""


@dataclass(frozen=True, slots=True)
class ActiveJob:
    """A job that was submitted and has not finished.

    Attributes
    ----------
    job : what was known at submission
    held_s : seconds in which it held its GPUs so far, those lost to restarts included
    run_s : seconds of `held_s` in which it made progress
    running : whether it held its GPUs in the round that ends now
    progress : epochs and regimes, None where the job is no training job
    speeds : by numbers of GPUs that it may have, ascending, progress over that on the GPUs that it asks for; none where
        it keeps that number
    gpus : that it held in the round that ends now, 0 where it held none
    """

    job: Job
    held_s: float
    run_s: float
    running: bool
    progress: Progress | None = None
    speeds: Mapping[int, float] = field(default_factory=dict)
    gpus: int = 0

    @property
    def holds(self) -> int:
        """GPUs that it held in the round that ends now; where nobody told how many, those that it asks for."""
        return (self.gpus or self.job.gpus) if self.running else 0

    @property
    def weight(self) -> float:
        """Its priority against others, more than 0."""
        # A weight of 0 is allowed, and would be divided by.
        return max(self.job.weight, LEAST_WEIGHT)


@dataclass(frozen=True, slots=True)
class RoundState:
    """The cluster at the beginning of a round.

    Attributes
    ----------
    now_s : seconds from the epoch
    index : of the round, from 0; rounds in which nobody was active count too
    round_s : length of a round
    restart_s : what a job loses when it starts after a round in which it held nothing
    total_gpus : of the cluster, all free at the beginning of a round
    active : jobs in order of `seq`
    changed : whether a job arrived, finished or changed its batch size since the last round
    adapted : whether any changed its batch size
    """

    now_s: float
    index: int
    round_s: float
    restart_s: float
    total_gpus: int
    active: Sequence[ActiveJob]
    changed: bool = True
    adapted: bool = False


class RoundPolicy(Protocol):
    """A rule that chooses the jobs of a round."""

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Active jobs to run in this round; their widths must fit on the cluster together.

        A job with `speeds` may be answered with another of these numbers of GPUs: `job.on(gpus)`.
        """


class SharePolicy(Protocol):
    """A rule that says how much of the time each job ought to run; rounds then follow the shares."""

    def shares(self, state: RoundState) -> Sequence[float]:
        """Share of the time, 0 to 1, for each of `state.active`, (n_active,); widths x shares fit on the cluster."""
