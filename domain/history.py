"""What has happened so far, as forecasts may read it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jobcast.domain.arrays import Floats
from jobcast.domain.jobs import Job


@dataclass(frozen=True, slots=True)
class PoolHistory:
    """Events of one pool as columns. Times in seconds from the epoch, UTC; float64 throughout.

    The arrays may hold events after the instant that is asked about (a whole trace, for training):
    every function that takes a history takes the instant too and must not use what comes after it. An end stands
    where it was known, which may be later than it was: until then the job runs, as far as anybody can tell.

    Attributes
    ----------
    arrival_s, arrival_gpus : (n_arrivals,) ascending submit times, and the widths of those jobs
    start_s, end_s : (n_starts,) ascending start times, and when those jobs' ends were known (inf while running)
    completion_s, completion_duration_s : (n_completions,) ascending times from which ends were known, and the run
        times of those jobs
    """

    arrival_s: Floats
    arrival_gpus: Floats
    start_s: Floats
    end_s: Floats
    completion_s: Floats
    completion_duration_s: Floats


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that is known to have ended, `end_s` being from when; a predictor of durations may learn from it."""

    job: Job
    end_s: float
    duration_s: float


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A job that has started, for the first time or after it was stopped."""

    job: Job
    start_s: float


class History(Protocol):
    """A run's own past, growing with the run; holds nothing after `now_s`."""

    @property
    def now_s(self) -> float:
        """The instant that the history reaches to, seconds from the epoch."""

    @property
    def pools(self) -> Sequence[str]:
        """Names of the pools, ascending."""

    def pool(self, name: str) -> PoolHistory:
        """Events of one pool up to now."""

    def finished_since(self, count: int) -> Sequence[FinishedJob]:
        """Jobs in the order in which their ends were known, without the first `count`, which a reader has seen."""

    def started_since(self, count: int) -> Sequence[StartedJob]:
        """Starts in order of time, without the first `count`."""
