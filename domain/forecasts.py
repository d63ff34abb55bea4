"""Forecasts as policies ask for them, and the questions that predictors answer.

A policy never learns which source answers.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime


class Question(StrEnum):
    """A question by its name. Every predictor answers one; schedulers ask questions, not predictors."""

    ARRIVALS = "arrivals"
    """Will jobs arrive in a pool within a horizon?"""
    LOADS = "loads"
    """How many GPUs will they ask for?"""
    DURATIONS = "durations"
    """How long will a job run?"""
    REGIMES = "regimes"
    """How will a training job's batch size change?"""
    ACCURACIES = "accuracies"
    """How far will its metric get?"""
    EPOCH_TIMES = "epoch-times"
    """How long does an epoch take on other GPUs?"""
    COMPLETIONS = "completions"
    """When will a job start and finish?"""
    SIZES = "sizes"
    """How much work is in a job?"""
    WAITS = "waits"
    """How long will a pending job wait?"""
    GOODPUT = "goodput"
    """How much progress do more GPUs bring?"""
    TASK_ORDER = "task-order"
    """Which task first, and where?"""
    DEVICE_ORDER = "device-order"
    """The same, by completion times alone."""


class Forecasts(Protocol):
    """Answers about the future, at the instant of the view that the policy decides on. SIA, section 5.2."""

    @property
    def horizons_min(self) -> Sequence[float]:
        """Horizons in minutes, ascending: those that may be asked about, and the inner edges of the duration bins."""

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """Whether any job will arrive in the pool in (now, now + horizon_s]."""

    def new_load(self, pool: str, horizon_s: float) -> float:
        """GPUs (sum of widths) of the jobs that will arrive in the pool in (now, now + horizon_s]."""

    def duration_bin(self, job: Job) -> int:
        """Index of the duration bin of a submitted job; see `horizons.duration_bin`."""

    def duration_s(self, job: Job) -> float:
        """Run time of a submitted job in seconds, for policies that rank by it."""


class JobForecasts(Forecasts, Protocol):
    """What policies ask that need every single job's future, which nobody but the oracle knows. SIA, section 5.1."""

    @property
    def jobs(self) -> Sequence[Job]:
        """All jobs of the run, those to come as well, in order of `seq`."""

    def recorded_start_s(self, job: Job) -> float:
        """When the trace says that a job started, seconds from the epoch; NaN where it says nothing."""


class UncertainForecasts(Forecasts, Protocol):
    """Answers with their uncertainty, for policies that weigh risks."""

    def duration_probabilities(self, job: Job) -> Sequence[float]:
        """Probability of each duration bin of a submitted job; they add up to 1."""

    def arrival_probability(self, pool: str, horizon_s: float) -> float:
        """Probability that any job will arrive in the pool in (now, now + horizon_s]."""

    def load_quantile(self, pool: str, horizon_s: float, level: float) -> float:
        """GPUs that the load of (now, now + horizon_s] stays within with a probability of `level` in (0, 1).

        Jobs that may not arrive at all are counted in: it is 0 where they do not with that probability.
        """

    def load_quantiles(self, pool: str, horizon_s: float, levels: tuple[float, ...]) -> tuple[float, ...]:
        """`load_quantile` at several levels, in one question: never falling where levels ascend.

        The same object comes back as long as a source holds its answer.
        """


class ForecastSource(Forecasts, Protocol):
    """Forecasts as the engine drives them."""

    def advance(self, now_s: float) -> None:
        """Move to an instant; the engine calls it before every question, with ascending instants."""


class RegimeForecasts(Protocol):
    """Answers about the batch sizes that training jobs will run at. Shockwave, section 5."""

    def regimes(self, job: Job, progress: Progress) -> tuple[Regime, ...]:
        """What is left of a training job: the rest of the running regime first (it may be of 0 epochs), then others.

        Their epochs add up to `job.training.epochs - progress.epochs`, and all their batch sizes are in
        `job.training.epoch_s`.
        """


class WorkForecasts(RegimeForecasts, Protocol):
    """How much work jobs have left, for policies that schedule by rounds."""

    def duration_s(self, job: Job) -> float:
        """Run time in seconds of a job that reports no epochs, on the GPUs that it asks for."""
