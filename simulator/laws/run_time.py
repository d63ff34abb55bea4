"""Jobs that run for so many seconds on the GPUs that they asked for, training jobs through regimes of batch sizes.

SIA, section 4; Shockwave, section 5.
"""

from collections.abc import Callable
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Self

from jobcast.domain.jobs import Job
from jobcast.domain.law import RUNTIME
from jobcast.domain.policy import Grant
from jobcast.domain.training import Progress, Regime, Training
from jobcast.simulator.laws.separable import Separable

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation

PATIENT_STARTS = 10.0
"""Times as long as a start in which all who run may be amid one, before decisions in vain are counted."""


class Regimes(NamedTuple):
    """A training job: its regimes in truth, the work done at their ends, and those that it has shown.

    `unit_s`: seconds of run time, on the GPUs that it asked for, of a unit of its law's work.
    """

    true: tuple[Regime, ...]
    ends: tuple[float, ...]
    unit_s: float
    shown: tuple[Regime, ...] = ()

    @property
    def end(self) -> float:
        """Work at the end of the running regime."""
        return self.ends[len(self.shown)]

    @property
    def last(self) -> bool:
        """Whether no other comes after it."""
        return len(self.shown) + 1 >= len(self.ends)

    def next(self) -> "Regimes":
        """The next one begins."""
        return self._replace(shown=(*self.shown, self.true[len(self.shown)]))

    def progress(self, training: Training, done: float) -> Progress:
        """What the job reports after so much work."""
        true, ends, unit_s, shown = self
        batch_size = true[len(shown)].batch_size if true else training.batch_size
        ran = done - ends[len(shown) - 1] if shown else done
        epochs = max(0.0, ran) * unit_s / training.epoch_s[batch_size]
        # A list is summed faster than a generator, and policies ask this of each job.
        return Progress(sum([one.epochs for one in shown]) + epochs, (*shown, Regime(batch_size, epochs)))


class Regimed(Separable):
    """What laws share in which training jobs show one regime after the other."""

    def bind(self, run: "Simulation") -> None:
        """Make room for a run's jobs."""
        super().bind(run)
        self.regimes: dict[int, Regimes] = {}

    def aim(self, run: "Simulation", job: Job, work: float, unit_s: float = 1.0) -> None:
        """So much work is all of a job's; the end of that, or of its first regime, comes next."""
        self.goal[job.seq] = work
        if job.training is not None:
            true, epoch_s = run.stream.outcomes[job.seq].regimes, job.training.epoch_s
            times_s = accumulate(one.epochs * epoch_s[one.batch_size] for one in true)
            # The last end is the work itself, so that rounding cannot part the two.
            ends = [time_s / unit_s for time_s in times_s][:-1]
            self.regimes[job.seq] = found = Regimes(true, (*ends, work), unit_s)
            self.goal[job.seq] = found.end

    def reach(self, run: "Simulation", job: Job) -> bool:
        """Over, or at a batch size that is another."""
        regimes = self.regimes.get(job.seq)
        # Jobs that do not train have one milestone, their end.
        if regimes is None or regimes.last:
            return True
        self.regimes[job.seq] = regimes = regimes.next()
        self.goal[job.seq] = regimes.end
        self.expect(job.seq)
        return False

    def leave(self, run: "Simulation", job: Job, held: Grant | None) -> None:
        """A job is over."""
        super().leave(run, job, held)
        if job.training is not None:
            del self.regimes[job.seq]

    def progress(self, job: Job, done: float) -> Progress | None:
        """What a training job reports after so much work."""
        return None if job.training is None else self.regimes[job.seq].progress(job.training, done)

    def end_at(self, run: "Simulation", seq: int, work: float) -> None:
        """So much work is believed to be all of a training job's, and no other batch size to come."""
        self.overdue(run, seq, work)
        regimes = self.regimes[seq]
        shown = len(regimes.shown)
        ends = (*regimes.ends[:shown], self.goal[seq])
        self.regimes[seq] = regimes._replace(true=regimes.true[: shown + 1], ends=ends)

    def fork(self) -> Self:
        """A copy that goes its own way."""
        copy = super().fork()
        copy.regimes = dict(self.regimes)
        return copy


class RunTime(Regimed):
    """Work is seconds of run time.

    Parameters
    ----------
    restart_s : seconds that a job loses at every start, for loading its model and data
    resume_s : seconds more that it loses at a start after it was stopped
    """

    name = RUNTIME

    def __init__(self, restart_s: float = 0.0, resume_s: float = 0.0) -> None:
        self.restart_s, self.resume_s = restart_s, resume_s
        self.on_s = -inf  # when a job last got on, or came

    def arrive(self, run: "Simulation", job: Job) -> None:
        """Its run time, or its first change of batch size, comes next."""
        self.on_s = run.now_s
        self.aim(run, job, run.stream.outcomes[job.seq].duration_s)

    def why_not(self, run: "Simulation", job: Job, grant: Grant) -> str | None:
        """A job runs on as many GPUs as it asked for, no more and no fewer."""
        return None if grant.gpus == job.gpus else f"it needs {job.gpus} GPUs, it is given {grant.gpus:g}"

    def got_on(self, run: "Simulation") -> bool:
        """Whether any job is on its way to a milestone; where all who run are amid a start, only for so long."""
        if any(run.now_s > self.since_s[seq] + self.lost_s[seq] for seq in run.cluster.running):
            self.on_s = run.now_s
        # A start that others cut short again and again leads nowhere.
        return super().got_on(run) and run.now_s - self.on_s <= PATIENT_STARTS * (self.restart_s + self.resume_s)

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """A start costs its time; work done is kept."""
        seq, now_s = job.seq, run.now_s
        if old is not None:
            self.halt(seq, now_s)
            self.stops[seq] += 1
        if new is not None:
            self.begin(seq)
            # Resuming costs more than a start, for a checkpoint is loaded.
            lost_s = self.restart_s + self.resume_s if self.stops[seq] else self.restart_s
            self.go_on(seq, now_s, 1.0, lost_s)

    def believe(self, run: "Simulation", believed_s: Callable[[Job], float]) -> None:
        """Run times as believed; training jobs go on at the batch sizes that they have."""
        for seq, job in run.cluster.active.items():
            if job.training is None:
                self.overdue(run, seq, believed_s(job))
            else:
                self.end_at(run, seq, believed_s(job))
