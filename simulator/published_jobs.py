"""Training jobs as the published round mechanism runs them: in whole steps, and with late changes of the batch size.

Gavel's simulator (OSDI 2020) as extended for Shockwave (NSDI 2023).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from jobcast.domain.errors import TraceError
from jobcast.domain.jobs import Job, Outcome
from jobcast.domain.rounds import ActiveJob
from jobcast.domain.training import Progress, Regime
from jobcast.simulator.published_course import Course

ATTEMPTS = 5
"""A job without a step left ends when it is scheduled for the last of so many times."""
OVERTIME = 1.5
"""A job ends when it has run for longer than int(this x its nominal run time)."""
SPARED_S = 5.0
"""A slice that is this much shorter than a round loses nothing to a restart."""


@dataclass(frozen=True, slots=True)
class StepRates:
    """A training job in steps.

    Attributes
    ----------
    steps : in all, at the batch size that it starts with
    dataset : samples an epoch
    steps_per_s : batch size -> steps a second on the GPUs that it asks for
    nominal_s : the run time that its trace declares
    """

    steps: int
    dataset: int
    steps_per_s: Mapping[int, float]
    nominal_s: float


@dataclass(frozen=True, slots=True)
class Slice:
    """What a job does in a round.

    Attributes
    ----------
    seq : the job
    steps : that it takes; none for a job that rounding left none
    end_s : when it has taken them
    run_s : seconds of progress, those lost to a restart left out
    """

    seq: int
    steps: int
    end_s: float
    run_s: float


class SteppedJob:
    """One job from its arrival to its end.

    Parameters
    ----------
    job : of training
    outcome : the truth about its batch sizes
    rates : the job in steps

    Raises
    ------
    TraceError
        It is no training job, or there is no throughput for the batch size that it starts with.
    """

    def __init__(self, job: Job, outcome: Outcome, rates: StepRates) -> None:
        if job.training is None:
            raise TraceError(
                f"job {job.job_id}: the published rounds replay training jobs only; leave --set mechanism=gavel away"
            )
        self.job, self.held_s, self.run_s, self.adapted = job, 0.0, 0.0, False
        self._course, self._rates, self._epochs = Course(job, outcome), rates, job.training.epochs
        self._size, self._total, self._done = job.training.batch_size, rates.steps, 0
        self._wanted: int | None = None  # the batch size from the end of the next run on
        self._past: tuple[Regime, ...] = ()
        self._begun = 0  # epochs done when the running regime began
        self._failures = 0
        self._rate(self._size)

    def slice(self, now_s: float, round_s: float, lost_s: float) -> Slice:
        """int(steps a second x round) steps or what remains; `lost_s` of it are lost where it takes nearly a round.

        Raises TraceError for a job too slow for a single step.
        """
        rate, left = self._rate(self._size), max(0, self._total - self._done)
        steps = min(int(rate * round_s), left)
        end_s = now_s + steps / rate
        run_s = end_s - now_s  # with the rounding of instants, which breaks ties between priorities
        if lost_s > 0 and run_s > round_s - SPARED_S:
            run_s -= lost_s
            steps = int(run_s * rate)
        if left and steps < 1:
            raise TraceError(
                f"job {self.job.job_id}: makes no step in a round at batch size {self._size} ({rate:g} steps a second); "
                "choose longer rounds"
            )
        return Slice(self.job.seq, steps, end_s, run_s)

    def take(self, ran: Slice) -> bool:
        """Run a slice; whether the job ends with it. `adapted` says whether its batch size changed after it."""
        self.adapted = False
        if ran.steps <= 0:
            self._failures += 1
            return self._failures >= ATTEMPTS
        self._failures = 0
        self._done += ran.steps
        self.run_s += ran.run_s
        if self._done >= self._total or self.run_s > int(OVERTIME * self._rates.nominal_s):
            return True
        if self._wanted is not None:
            self._change(self._wanted)
        self._wanted = self._course.wanted(self._size, ceil(self._done / self._epoch_steps(self._size)))
        return False

    def active(self, running: bool) -> ActiveJob:
        """What a policy may see of it."""
        epochs = min(self._done / self._epoch_steps(self._size), float(self._epochs))
        running_regime = Regime(self._size, max(0.0, epochs - self._begun))
        progress = Progress(self._begun + running_regime.epochs, (*self._past, running_regime))
        return ActiveJob(self.job, self.held_s, self.run_s, running, progress)

    def _change(self, size: int) -> None:
        """Count in steps of another batch size. What is done becomes whole epochs, rounded up.

        The whole job keeps its samples, unless these make another number of epochs: then it becomes whole epochs too.
        """
        old, new = self._epoch_steps(self._size), self._epoch_steps(size)
        epochs, done = ceil(self._total / old), ceil(self._done / old)
        total = ceil(self._total * self._size / size)
        self._total = total if ceil(total / new) == epochs else epochs * new
        self._done = done * new
        done = min(done, self._epochs)
        self._past = (*self._past, Regime(self._size, float(done - self._begun)))
        self._begun, self._size, self.adapted = done, size, True

    def _epoch_steps(self, size: int) -> int:
        return ceil(self._rates.dataset / size)

    def _rate(self, size: int) -> float:
        rate = self._rates.steps_per_s.get(size, 0.0)
        if not rate > 0:
            raise TraceError(
                f"job {self.job.job_id}: changes to batch size {size}, for which no throughput is known; add it"
            )
        return rate
