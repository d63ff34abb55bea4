"""The round mechanism of the published simulator, oddities included: an option for comparing with published results.

Gavel (OSDI 2020) as extended for Shockwave (NSDI 2023); time is not continuous here. Rounds decide who runs; jobs count
in whole steps, with batch sizes that change late; shares of time are followed by priorities, deficits and allocations
that lag behind. The engine with `schedulers/rounds.py` is the clean way.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil, isnan, nan
from types import MappingProxyType
from typing import cast

import numpy as np

from jobcast.domain.errors import ConfigError, DecisionError, TraceError
from jobcast.domain.jobs import Job, Outcome
from jobcast.domain.rounds import ActiveJob, RoundPolicy, RoundState, SharePolicy
from jobcast.domain.training import Progress, Regime, Training
from jobcast.simulator.log import RunLog, facts_of, spans_of
from jobcast.simulator.workload import Workload

ROUND_S = 120.0
RESTART_S = 20.0
IDLE_ROUNDS = 1_000
"""Rounds in a row in which nobody runs while jobs are there, before we give up."""
FAILURES = 5
"""A job without a step to run ends when it is scheduled so often in a row."""
OVERTIME = 1.5
"""A job ends when it has run longer than int(this x its nominal run time)."""
SHORT_BY_S = 5.0
"""A slice that is shorter than a round by this or more loses nothing to a restart."""
RESET_S = 1_000.0
"""Allocations are computed anew at most so often."""
ACCORDION, GNS = "accordion", "gns"

# Accordion as executed: which epochs of a model are critical. What jobs were planned to do differs: their first 30 % of
# epochs are critical too, and Recommendation has later windows.

Critical = Callable[[int, int], bool]
"""(batch size that the job starts with, epoch) -> whether the epoch is critical."""


def _resnet18(batch_size: int, epoch: int) -> bool:
    return epoch < 10 or 150 <= epoch < 160 or 250 <= epoch < 260


def _resnet50(batch_size: int, epoch: int) -> bool:
    return epoch % 30 < 10


def _language_model(batch_size: int, epoch: int) -> bool:
    return epoch < 10


def _recommendation(batch_size: int, epoch: int) -> bool:
    # As executed; the published plan has other windows, see above.
    return epoch < _RECOMMENDATION_FIRST.get(batch_size, 10)


_RECOMMENDATION_FIRST: Mapping[int, int] = MappingProxyType({512: 30, 1024: 30, 2048: 40})
CRITICAL: Mapping[str, Critical] = MappingProxyType(
    {"ResNet-18": _resnet18, "ResNet-50": _resnet50, "LM": _language_model, "Recommendation": _recommendation}
)
"""Critical epochs by model. Others never change their batch size."""


def wanted_after_end(training: Training) -> int | None:
    """The batch size that Accordion asks for in the epoch after a job's last, None where nothing is known of it.

    The rule looks at the epoch that begins next, also when the last one is running: a job whose number of epochs is
    the edge of a critical window is told to change before it ends.

    >>> wanted_after_end(Training("ResNet-50", 32, 10, "accordion", {32: 500.0, 128: 400.0}))
    128
    """
    critical = CRITICAL.get(training.model)
    if training.mode != ACCORDION or critical is None:
        return None
    return training.batch_size if critical(training.batch_size, training.epochs) else max(training.epoch_s)


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
        # Rounding in `_rescale` may leave none, while the job still counts as there.
        steps = max(0, min(int(rate * round_s), self.steps - self.done))
        full_s = steps / rate
        end_s = now_s + full_s
        if full_s <= round_s - SHORT_BY_S:
            lost_s = 0.0
        # Cut down to what fits beside the restart, in whole steps.
        elif lost_s:
            steps = int((full_s - lost_s) * rate)
        # A difference of instants, not full_s: the dust of the clock decides ties between jobs, as it did there.
        return Slice(steps, end_s, (end_s - now_s) - lost_s)

    def ran(self, part: Slice) -> bool:
        """Take a slice into account; whether the job ends with it."""
        # The published loop ends such jobs by counting failures; so do we.
        if not part.steps:
            self.failures += 1
            return self.failures >= FAILURES
        self.failures = 0
        self.done += part.steps
        self.run_s += part.run_s
        # `int` as published: fractions of a second do not count.
        return self.done >= self.steps or self.run_s > int(OVERTIME * self.rates.nominal_s)

    def adapt(self) -> bool:
        """Apply the change that waits, then notice the next one, after a run; whether the batch size changed."""
        changed = self.wanted is not None
        if self.wanted is not None:
            # What was noticed after an earlier run: the published simulator is one run late.
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
        # A policy must not see a job as done that is still scheduled.
        return max(0, min(self.done, self.steps - 1)) / self.rates.epoch_steps(self.batch_size)

    def _begun(self) -> float:
        return sum(regime.epochs for regime in self.past)

    def _rescale(self, batch_size: int) -> None:
        """Count in steps of another batch size: whole epochs done, rounded up, and as many epochs in all as before."""
        epochs, before = self.training.epochs, self.batch_size
        old, new = self.rates.epoch_steps(before), self.rates.epoch_steps(batch_size)
        # Samples stay, steps are counted anew; rounding may lose an epoch, which the next line gives back.
        steps = ceil(self.steps * before / batch_size)
        self.steps = steps if ceil(steps / new) == epochs else epochs * new
        self.done = ceil(self.done / old) * new
        self.batch_size, self.wanted = batch_size, None
        self.past = (*self.past, Regime(before, max(0.0, self._shown() - self._begun())))

    def _notice(self) -> None:
        # The epoch that begins next, also when one is under way.
        epoch = ceil(self.done / self.rates.epoch_steps(self.batch_size))
        if self.training.mode == GNS:
            # GNS looks one epoch further than Accordion there.
            due, doubled = self._due(epoch + 1), 2 * self.batch_size
            if due > self.batch_size:
                self.wanted = doubled if doubled in self.rates.steps_per_s else due
        else:
            due = self._due(epoch)
            self.wanted = due if due != self.batch_size else None

    def _due(self, epoch: int) -> int:
        """Batch size of an epoch by the truth; after the last one by Accordion's rule where that is the job's."""
        # The truth has no regime after the end; the published rule is asked all the same.
        if epoch >= self.training.epochs and self.training.mode == ACCORDION:
            after = wanted_after_end(self.training)
            if after in self.rates.steps_per_s:
                return cast(int, after)
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
    # Before the run, in one clear line: amid it such a job would only fail round by round.
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


class FollowShares:
    """Chooses the jobs of each round by allocation / fraction of the job-seconds since the last reset.

    A reset computes the allocations anew, where jobs came or went since the last one and that is 1,000 s ago or was at
    the very beginning. A job that arrived since then has no allocation: it is chosen last, if it fits, yet does not
    run, and the GPUs that it was chosen for stay idle.

    Parameters
    ----------
    policy : says the shares
    round_s : length of a round; every job is taken to have run for half of one at a reset
    """

    def __init__(self, policy: SharePolicy, round_s: float) -> None:
        self._policy = policy
        self._head_start_s = 0.5 * round_s
        self._reset_s = 0.0
        self._received_s: dict[int, float] = {}  # by seq, since the last reset, the head start included
        self._deficits_s: dict[int, float] = {}
        self._shares: dict[int, float] = {}
        self._stale = False

    def arrive(self, job: Job) -> None:
        """A job is there."""
        # Half a round from the start, so that nobody is divided by 0.
        self._received_s[job.seq], self._deficits_s[job.seq] = self._head_start_s, 0.0
        self._stale = True

    def ran(self, job: Job, run_s: float) -> None:
        """A job has run for so many seconds."""
        self._received_s[job.seq] += run_s

    def leave(self, job: Job) -> None:
        """A job has ended."""
        del self._received_s[job.seq], self._deficits_s[job.seq]
        self._shares.pop(job.seq, None)
        self._stale = True

    def choose(self, state: RoundState, clock_s: float) -> Sequence[Job]:
        """Jobs that run in a round, which begins `clock_s` after the replay began."""
        since_s = clock_s - self._reset_s
        # Allocations lag behind arrivals by up to 1,000 s, as published.
        if self._stale and (since_s >= RESET_S or self._reset_s == 0.0):
            self._reset(state, since_s)
            self._reset_s = clock_s
        jobs = [active.job for active in state.active]
        ranked = sorted(jobs, key=lambda job: self._rank(job.seq), reverse=True)  # equals stay in order of arrival
        free, chosen = state.total_gpus, []
        for job in ranked:
            # A job that does not fit is passed over, narrower ones behind it may run.
            if job.gpus <= free:
                free -= job.gpus
                chosen.append(job)
        # Chosen without an allocation: its GPUs stay idle, an oddity that the figures depend on.
        return [job for job in chosen if job.seq in self._shares]

    def _reset(self, state: RoundState, since_s: float) -> None:
        for seq, received_s in self._received_s.items():
            # What was promised less what was received; the head start is no service.
            self._deficits_s[seq] += self._shares.get(seq, 0.0) * since_s - (received_s - self._head_start_s)
            self._received_s[seq] = self._head_start_s
        shares = self._policy.shares(state)
        self._shares = {active.job.seq: share for active, share in zip(state.active, shares, strict=True)}
        self._stale = False

    def _rank(self, seq: int) -> tuple[float, float, float]:
        """Priority, deficit, allocation. The job-seconds of all jobs divide every fraction alike, so they are left out.

        Without an allocation the priority is 0.
        """
        share = self._shares.get(seq, 0.0)
        return share / self._received_s[seq], self._deficits_s[seq], share


def gavel_rounds(
    workload: Workload,
    policy: SharePolicy | RoundPolicy,
    rates: Sequence[StepRates],
    *,
    round_s: float = ROUND_S,
    restart_s: float = RESTART_S,
    progress: Callable[[int, int], None] | None = None,
) -> RunLog:
    """Replay training jobs by the published rules, on all GPUs of the workload as one cluster.

    A round ends with the slowest of its slices, `round_s` after it began at most; a job's GPUs are free again only
    then. A slice is int(steps a second x `round_s`) steps or what remains; a job that did not run in the last round
    loses `restart_s` of it unless the slice is short. Batch sizes change late; see `GavelJob`. Where GPUs lie makes
    no difference, since moving costs nothing.

    Parameters
    ----------
    workload : training jobs, with their executed regimes as outcomes, and pools
    policy : says shares, which are followed as in `FollowShares`, or else chooses the jobs of each round
    rates : (n_jobs,) how the jobs are counted in steps, in order of `workload.jobs`
    round_s, restart_s : length of a round; what a start after an absence loses (never in the first round)
    progress : called with (completed, all) when jobs complete

    Raises
    ------
    ConfigError
        Restarts take a whole round, or rates are not one a job.
    TraceError, PoolsError
        A job is not one of training, has no throughput, is too slow for a step a round, or can never run.
    DecisionError
        The policy chooses more than fits or what is not there, or nobody for ever.
    """
    workload.check()
    if not 0 <= restart_s < round_s - SHORT_BY_S:
        raise ConfigError(f"restarts of {restart_s} s do not fit into rounds of {round_s} s; take shorter ones")
    if len(rates) != len(workload.jobs):
        raise ConfigError(f"{len(workload.jobs)} jobs but {len(rates)} step rates; give one a job")
    jobs = [
        arrive(job, outcome, rate, round_s - restart_s)
        for job, outcome, rate in zip(workload.jobs, workload.outcomes, rates, strict=True)
    ]
    return _Replay(workload, policy, jobs, (round_s, restart_s)).run(progress)


class _Replay:
    """One run: its clock, counted from the first submission, and the jobs that are there."""

    def __init__(
        self,
        workload: Workload,
        policy: SharePolicy | RoundPolicy,
        jobs: Sequence[GavelJob],
        lengths_s: tuple[float, float],
    ) -> None:
        self._workload, self._policy, self._jobs = workload, policy, jobs
        self._round_s, self._restart_s = lengths_s
        self._total_gpus = workload.total_gpus
        self._name: str = getattr(policy, "name", type(policy).__name__)
        self._origin_s = workload.jobs[0].submit_s if jobs else nan
        shares = hasattr(policy, "shares")
        self._follow = FollowShares(cast(SharePolicy, policy), self._round_s) if shares else None
        count = len(jobs)
        self._since_s: dict[int, float] = {}  # by seq, of those that hold GPUs
        self._spans = array("d")
        self._start_s, self._end_s, self._stops = [nan] * count, [nan] * count, [0] * count
        self._events = 0
        self._now_s, self._round, self._arrived, self._idle = 0.0, 0, 0, 0
        self._active: dict[int, GavelJob] = {}  # by seq, in order of arrival
        self._changed = self._adapted = False

    def run(self, progress: Callable[[int, int], None] | None) -> RunLog:
        ended, total = 0, len(self._jobs)
        while ended < total:
            # An idle cluster jumps to the next arrival; nobody holds anything meanwhile.
            if not self._active:
                self._hold(set())
                self._now_s = max(self._now_s, self._submit_s())
            self._admit()
            ended += self._run_round(self._decide())
            if progress is not None:
                progress(ended, total)
        self._hold(set())
        return self._log()

    def _hold(self, seqs: Set[int]) -> None:
        """These jobs and no others hold GPUs from now on, until this is called again."""
        # A list first: entries are taken out on the way.
        for seq in [seq for seq in self._since_s if seq not in seqs]:
            from_s, gpus = self._since_s.pop(seq) + self._origin_s, self._workload.jobs[seq].gpus
            self._spans.extend((seq, from_s, self._now_s + self._origin_s, gpus, -1))
            # Who has ended was not stopped.
            self._stops[seq] += isnan(self._end_s[seq])
        for seq in sorted(seqs - self._since_s.keys()):
            self._since_s[seq] = self._now_s
            if isnan(self._start_s[seq]):
                self._start_s[seq] = self._now_s

    def _log(self) -> RunLog:
        """The finished replay; all GPUs are taken for one cluster, every start for one against the quota."""
        starts_s, ends_s = np.array(self._start_s), np.array(self._end_s)
        return RunLog(
            policy=self._name,
            **facts_of(self._workload.jobs, self._workload.outcomes, self._workload.pools),
            start_s=starts_s + self._origin_s,
            end_s=ends_s + self._origin_s,
            preemptions=np.array(self._stops, dtype=np.int64),
            dedicated=np.ones(len(starts_s), dtype=np.bool_),
            spans=spans_of(self._spans),
            events=self._events,
        )

    def _submit_s(self) -> float:
        """When the next job arrives."""
        return self._jobs[self._arrived].job.submit_s - self._origin_s

    def _admit(self) -> None:
        while self._arrived < len(self._jobs) and self._submit_s() <= self._now_s:
            job = self._jobs[self._arrived]
            self._active[job.job.seq] = job
            if self._follow is not None:
                self._follow.arrive(job.job)
            self._events += 1
            self._arrived, self._changed = self._arrived + 1, True

    def _decide(self) -> list[GavelJob]:
        """Ask the policy who runs in the round that begins, and check what it says."""
        state = RoundState(
            now_s=self._now_s + self._origin_s,
            index=self._round,
            round_s=self._round_s,
            restart_s=self._restart_s,
            total_gpus=self._total_gpus,
            active=[job.active(seq in self._since_s) for seq, job in self._active.items()],
            changed=self._changed,
            adapted=self._adapted,
        )
        self._changed = self._adapted = False
        if self._follow is not None:
            chosen = self._follow.choose(state, self._now_s)
        else:
            chosen = cast(RoundPolicy, self._policy).choose(state)
        self._check(chosen)
        return [self._active[job.seq] for job in chosen]

    def _check(self, chosen: Sequence[Job]) -> None:
        where = f"policy {self._name} at {self._now_s + self._origin_s:.6f} s"
        if strange := [job for job in chosen if job.seq not in self._active]:
            raise DecisionError(f"{where}: job {strange[0].job_id} is not active; it must choose among those that are")
        if len({job.seq for job in chosen}) < len(chosen):
            raise DecisionError(f"{where}: it chose a job twice; it must choose each once")
        if (gpus := sum(job.gpus for job in chosen)) > self._total_gpus:
            raise DecisionError(f"{where}: its jobs take {gpus} GPUs of {self._total_gpus}; it must choose fewer")
        self._idle = 0 if chosen else self._idle + 1
        if self._idle > IDLE_ROUNDS:
            first = next(iter(self._active.values())).job.job_id
            raise DecisionError(f"{where}: job {first} waits while nobody runs for {self._idle} rounds; it must choose")

    def _run_round(self, running: Sequence[GavelJob]) -> int:
        """Run a round and go to its end; the number of jobs that ended in it."""
        begin_s, before = self._now_s, set(self._since_s)
        self._hold({job.job.seq for job in running})
        parts = []
        for job in running:
            # The very first round costs nobody a restart.
            absent = self._round > 0 and job.job.seq not in before
            parts.append(job.part(begin_s, self._round_s, self._restart_s if absent else 0.0))
        # The slowest slice ends the round; a round of nobody lasts its full length.
        self._now_s = max((part.end_s for part in parts), default=begin_s + self._round_s)
        ended = sum(self._finish(job, part, begin_s) for job, part in zip(running, parts, strict=True))
        self._round += 1
        self._events += 1 + ended
        return ended

    def _finish(self, job: GavelJob, part: Slice, begin_s: float) -> bool:
        """Take a job's slice into account at the end of the round; whether the job ends."""
        seq = job.job.seq
        job.held_s += self._now_s - begin_s
        if self._follow is not None:
            self._follow.ran(job.job, part.run_s)
        if job.ran(part):
            self._end_s[seq] = part.end_s
            del self._active[seq]
            if self._follow is not None:
                self._follow.leave(job.job)
            self._changed = True
            return True
        if job.adapt():
            self._changed = self._adapted = True
        return False
