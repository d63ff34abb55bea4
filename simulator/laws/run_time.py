"""Jobs that run for so many seconds on the GPUs that they asked for, training jobs through regimes of batch sizes.

SIA, section 4; Shockwave, section 5.
"""

from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Self

from jobcast.domain.jobs import Job
from jobcast.domain.law import RUNTIME
from jobcast.domain.policy import Grant, Service
from jobcast.domain.training import Progress, Regime, Training
from jobcast.simulator.laws.separable import Separable

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation


class _Regimes(NamedTuple):
    """A training job: its regimes in truth, their ends in seconds of run time, and those that it has shown."""

    true: tuple[Regime, ...]
    ends_s: tuple[float, ...]
    shown: tuple[Regime, ...] = ()

    @property
    def begin_s(self) -> float:
        """Run time at which the running regime began."""
        return self.ends_s[len(self.shown) - 1] if self.shown else 0.0

    @property
    def end_s(self) -> float:
        """Run time at its end."""
        return self.ends_s[len(self.shown)]

    @property
    def last(self) -> bool:
        """Whether no other comes after it."""
        return len(self.shown) + 1 >= len(self.ends_s)

    def next(self) -> "_Regimes":
        """The next one begins."""
        return self._replace(shown=(*self.shown, self.true[len(self.shown)]))

    def progress(self, training: Training, run_s: float) -> Progress:
        """What the job reports after so many seconds of run time."""
        batch_size = self.true[len(self.shown)].batch_size if self.true else training.batch_size
        epochs = max(0.0, run_s - self.begin_s) / training.epoch_s[batch_size]
        return Progress(sum(one.epochs for one in self.shown) + epochs, (*self.shown, Regime(batch_size, epochs)))


class RunTime(Separable):
    """Work is seconds of run time.

    Parameters
    ----------
    restart_s : seconds that a job loses at every start, for loading its model and data
    resume_s : seconds more that it loses at a start after it was stopped
    """

    name = RUNTIME

    def __init__(self, restart_s: float = 0.0, resume_s: float = 0.0) -> None:
        self.restart_s, self.resume_s = restart_s, resume_s
        self.regimes: dict[int, _Regimes] = {}

    def arrive(self, run: "Simulation", job: Job) -> None:
        """Its run time, or its first change of batch size, comes next."""
        truth = run.stream.outcomes[job.seq]
        self.goal[job.seq] = truth.duration_s
        if job.training is not None:
            times_s = accumulate(one.epochs * job.training.epoch_s[one.batch_size] for one in truth.regimes)
            regimes = self.regimes[job.seq] = _Regimes(truth.regimes, tuple(times_s))
            if truth.regimes and not regimes.last:
                self.goal[job.seq] = regimes.end_s

    def reach(self, run: "Simulation", job: Job) -> bool:
        """Over, or at a batch size that is another."""
        seq = job.seq
        regimes = self.regimes.get(seq)
        if regimes is None or not regimes.true or regimes.last:
            return True
        self.regimes[seq] = regimes = regimes.next()
        self.goal[seq] = run.stream.outcomes[seq].duration_s if regimes.last else regimes.end_s
        self.expect(seq)
        return False

    def why_not(self, run: "Simulation", job: Job, grant: Grant) -> str | None:
        """A job runs on as many GPUs as it asked for, no more and no fewer."""
        return None if grant.gpus == job.gpus else f"it needs {job.gpus} GPUs, it is given {grant.gpus:g}"

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """A start costs its time; work done is kept."""
        seq, now_s = job.seq, run.now_s
        if old is not None:
            self.halt(seq, now_s)
            self.stops[seq] += 1.0
        if new is not None:
            self.begin(seq)
            lost_s = self.restart_s + self.resume_s if self.stops[seq] else self.restart_s
            self.since_s[seq], self.lost_s[seq], self.rate[seq] = now_s, lost_s, 1.0
            self.expect(seq)

    def leave(self, run: "Simulation", job: Job, held: Grant | None) -> None:
        """A job is over."""
        self.rate[job.seq], self.at_s[job.seq] = 0.0, inf
        if job.training is not None:
            del self.regimes[job.seq]

    def service(self, run: "Simulation", job: Job) -> Service:
        """What an active job has received by now, and how far that got it."""
        told = super().service(run, job)
        if job.training is None:
            return told
        return told._replace(progress=self.regimes[job.seq].progress(job.training, told.run_s))

    def fork(self) -> Self:
        """A copy that goes its own way."""
        copy = super().fork()
        copy.regimes = dict(self.regimes)
        return copy
