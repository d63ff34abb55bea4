"""Training jobs as the published round mechanism counts them: in whole steps, with batch sizes that change late.

Shockwave's published simulator, which extends Gavel's (OSDI 2020).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil

from jobcast.domain.errors import TraceError
from jobcast.domain.jobs import Job, Outcome
from jobcast.domain.rounds import ActiveJob
from jobcast.domain.training import Progress, Regime, Training
from jobcast.simulator.gavel_accordion import ACCORDION, wanted_after_end

GNS = "gns"
FAILURES = 5
"""A job without a step to run ends when it is scheduled so often in a row."""
OVERTIME = 1.5
"""A job ends when it has run longer than int(this x its nominal run time)."""
SHORT_BY_S = 5.0
"""A slice that is shorter than a round by this or more loses nothing to a restart."""


@dataclass(frozen=True, slots=True)
class StepRates:
    """How a training job is counted in steps.

    Attributes
    ----------
    steps : in all, at the batch size that it starts with
    dataset : samples an epoch
    steps_per_s : batch size -> steps a second on the GPUs that the job asks for
    nominal_s : its run time if the batch size never changed
    """

    steps: int
    dataset: int
    steps_per_s: Mapping[int, float]
    nominal_s: float

    def epoch_steps(self, batch_size: int) -> int:
        """Steps an epoch, the last one perhaps of fewer samples.

        >>> StepRates(100, 95, {10: 1.0}, 100.0).epoch_steps(10)
        10
        """
        return ceil(self.dataset / batch_size)


@dataclass(frozen=True, slots=True)
class Slice:
    """What a job does in a round.

    Attributes
    ----------
    steps : that it runs, 0 where none is left
    end_s : when it is done with them
    run_s : seconds of progress, without those lost to a restart
    """

    steps: int
    end_s: float
    run_s: float


@dataclass(slots=True)
class GavelJob:
    """A job that has arrived and not ended. Steps are at the batch size of the moment."""

    job: Job
    training: Training
    rates: StepRates
    starts: tuple[tuple[float, int], ...]  # (epoch, batch size from there on), the truth
    batch_size: int
    steps: int
    done: int = 0
    wanted: int | None = None  # batch size that was noticed and waits for the end of the next run
    run_s: float = 0.0
    held_s: float = 0.0
    failures: int = 0
    past: tuple[Regime, ...] = field(default=())

    def part(self, now_s: float, round_s: float, lost_s: float) -> Slice:
        """The job's part of a round that begins now; `lost_s` go into a restart if its slice is nearly a round."""
        rate = self.rates.steps_per_s[self.batch_size]
        steps = min(int(rate * round_s), self.steps - self.done)
        if steps <= 0:
            return Slice(0, now_s, 0.0)
        full_s = steps / rate
        end_s = now_s + full_s
        if full_s <= round_s - SHORT_BY_S:
            lost_s = 0.0
        elif lost_s:
            steps = int((full_s - lost_s) * rate)
        # A difference of instants, not full_s: the dust of the clock decides ties between jobs, as it did there.
        return Slice(steps, end_s, (end_s - now_s) - lost_s)

    def ran(self, part: Slice) -> bool:
        """Take a slice into account; whether the job ends with it."""
        if part.steps <= 0:
            self.failures += 1
            return self.failures >= FAILURES
        self.failures = 0
        self.done += part.steps
        self.run_s += part.run_s
        return self.done >= self.steps or self.run_s > int(OVERTIME * self.rates.nominal_s)

    def adapt(self) -> bool:
        """Apply the change that waits, then notice the next one, after a run; whether the batch size changed."""
        changed = self.wanted is not None
        if self.wanted is not None:
            self._rescale(self.wanted)
        self._notice()
        return changed

    def active(self, running: bool) -> ActiveJob:
        """What a policy may see. A job that rounding left without a step still seems to have one."""
        begun = self._begun()
        current = max(0.0, self._shown() - begun)
        progress = Progress(begun + current, (*self.past, Regime(self.batch_size, current)))
        return ActiveJob(self.job, self.held_s, self.run_s, running, progress)

    def _shown(self) -> float:
        return max(0, min(self.done, self.steps - 1)) / self.rates.epoch_steps(self.batch_size)

    def _begun(self) -> float:
        return sum(regime.epochs for regime in self.past)

    def _rescale(self, batch_size: int) -> None:
        """Count in steps of another batch size: whole epochs done, rounded up, and as many epochs in all as before."""
        epochs, before = self.training.epochs, self.batch_size
        old, new = self.rates.epoch_steps(before), self.rates.epoch_steps(batch_size)
        steps = ceil(self.steps * before / batch_size)
        self.steps = steps if ceil(steps / new) == epochs else epochs * new
        self.done = ceil(self.done / old) * new
        self.batch_size, self.wanted = batch_size, None
        self.past = (*self.past, Regime(before, max(0.0, self._shown() - self._begun())))

    def _notice(self) -> None:
        epoch = ceil(self.done / self.rates.epoch_steps(self.batch_size))
        if self.training.mode == GNS:
            due, doubled = self._due(epoch + 1), 2 * self.batch_size
            if due > self.batch_size:
                self.wanted = doubled if doubled in self.rates.steps_per_s else due
        else:
            due = self._due(epoch)
            self.wanted = due if due != self.batch_size else None

    def _due(self, epoch: int) -> int:
        """Batch size of an epoch by the truth; after the last one by Accordion's rule where that is the job's."""
        if epoch >= self.training.epochs and self.training.mode == ACCORDION:
            after = wanted_after_end(self.training)
            if after is not None and after in self.rates.steps_per_s:
                return after
        return max((start for start in self.starts if start[0] <= epoch), key=lambda start: start[0])[1]


def arrive(job: Job, outcome: Outcome, rates: StepRates, least_s: float) -> GavelJob:
    """A job at its arrival.

    Parameters
    ----------
    job, outcome, rates : the job, the truth about its regimes, how it is counted in steps
    least_s : seconds that a full slice has at least

    Raises
    ------
    TraceError
        It is no training job, or a batch size of its regimes has no throughput or is too slow for one step a slice.
    """
    if job.training is None:
        raise TraceError(f"job {job.job_id}: rounds counted in steps need training jobs; leave mechanism=gavel away")
    regimes = outcome.regimes or (Regime(job.training.batch_size, float(job.training.epochs)),)
    sizes = {regime.batch_size for regime in regimes} | {job.training.batch_size}
    for size in sorted(sizes):
        if not rates.steps_per_s.get(size, 0.0) * least_s >= 1.0:
            raise TraceError(
                f"job {job.job_id}: batch size {size} makes no step in {least_s:g} s "
                f"at {rates.steps_per_s.get(size, 0.0):g} steps/s; correct the table or take longer rounds"
            )
    ends = accumulate((regime.epochs for regime in regimes), initial=0.0)
    starts = tuple((begin, regime.batch_size) for begin, regime in zip(ends, regimes, strict=False))
    return GavelJob(job, job.training, rates, starts, job.training.batch_size, rates.steps)
