"""The round mechanism of the published simulator, oddities included: an option for comparing with published results.

Gavel (OSDI 2020) as extended for Shockwave (NSDI 2023). The engine with `schedulers/rounds.py` is the clean way.
"""

from collections.abc import Callable, Sequence
from typing import cast

from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.domain.jobs import Job
from jobcast.domain.rounds import RoundPolicy, RoundState, SharePolicy
from jobcast.simulator.gavel_jobs import SHORT_BY_S, GavelJob, Slice, StepRates, arrive
from jobcast.simulator.gavel_record import Record
from jobcast.simulator.gavel_shares import FollowShares
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload

__all__ = ["StepRates", "gavel_rounds"]

ROUND_S = 120.0
RESTART_S = 20.0
IDLE_ROUNDS = 1_000
"""Rounds in a row in which nobody runs while jobs are there, before we give up."""
Progress = Callable[[int, int], None]


def gavel_rounds(
    workload: Workload,
    policy: SharePolicy | RoundPolicy,
    rates: Sequence[StepRates],
    *,
    round_s: float = ROUND_S,
    restart_s: float = RESTART_S,
    progress: Progress | None = None,
) -> RunLog:
    """Replay training jobs by the published rules, on all GPUs of the workload as one cluster.

    A round ends with the slowest of its slices, `round_s` after it began at most; a job's GPUs are free again only
    then. A slice is int(steps a second x `round_s`) steps or what remains; a job that did not run in the last round
    loses `restart_s` of it unless the slice is short. Batch sizes change late; see `gavel_jobs`. Where GPUs lie makes
    no difference, since moving costs nothing.

    Parameters
    ----------
    workload : training jobs, with their executed regimes as outcomes, and pools
    policy : says shares, which are followed as in `gavel_shares`, or else chooses the jobs of each round
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
        self._policy, self._jobs = policy, jobs
        self._round_s, self._restart_s = lengths_s
        self._total_gpus = workload.total_gpus
        self._name: str = getattr(policy, "name", type(policy).__name__)
        self._origin_s = workload.jobs[0].submit_s if jobs else 0.0
        shares = hasattr(policy, "shares")
        self._follow = FollowShares(cast(SharePolicy, policy), self._round_s) if shares else None
        self._record = Record(workload, self._origin_s)
        self._now_s, self._round, self._arrived, self._idle = 0.0, 0, 0, 0
        self._active: dict[int, GavelJob] = {}  # by seq, in order of arrival
        self._changed = self._adapted = False

    def run(self, progress: Progress | None) -> RunLog:
        ended, total = 0, len(self._jobs)
        while ended < total:
            if not self._active:
                self._record.hold(set(), self._now_s)
                self._now_s = max(self._now_s, self._submit_s())
            self._admit()
            ended += self._run_round(self._decide())
            if progress is not None:
                progress(ended, total)
        self._record.hold(set(), self._now_s)
        return self._record.log(self._name)

    def _submit_s(self) -> float:
        """When the next job arrives."""
        return self._jobs[self._arrived].job.submit_s - self._origin_s

    def _admit(self) -> None:
        while self._arrived < len(self._jobs) and self._submit_s() <= self._now_s:
            job = self._jobs[self._arrived]
            self._active[job.job.seq] = job
            if self._follow is not None:
                self._follow.arrive(job.job)
            self._record.count()
            self._arrived, self._changed = self._arrived + 1, True

    def _decide(self) -> list[GavelJob]:
        """Ask the policy who runs in the round that begins, and check what it says."""
        state = RoundState(
            now_s=self._now_s + self._origin_s,
            index=self._round,
            round_s=self._round_s,
            restart_s=self._restart_s,
            total_gpus=self._total_gpus,
            active=[job.active(seq in self._record.holding) for seq, job in self._active.items()],
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
        begin_s, before = self._now_s, set(self._record.holding)
        self._record.hold({job.job.seq for job in running}, begin_s)
        parts = []
        for job in running:
            absent = self._round > 0 and job.job.seq not in before
            parts.append(job.part(begin_s, self._round_s, self._restart_s if absent else 0.0))
        self._now_s = max((part.end_s for part in parts), default=begin_s + self._round_s)
        ended = sum(self._finish(job, part, begin_s) for job, part in zip(running, parts, strict=True))
        self._round += 1
        self._record.count(1 + ended)
        return ended

    def _finish(self, job: GavelJob, part: Slice, begin_s: float) -> bool:
        """Take a job's slice into account at the end of the round; whether the job ends."""
        seq = job.job.seq
        job.held_s += self._now_s - begin_s
        if self._follow is not None:
            self._follow.ran(job.job, part.run_s)
        if job.ran(part):
            self._record.end(seq, part.end_s)
            del self._active[seq]
            if self._follow is not None:
                self._follow.leave(job.job)
            self._changed = True
            return True
        if job.adapt():
            self._changed = self._adapted = True
        return False
