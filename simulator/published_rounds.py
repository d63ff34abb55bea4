"""The round mechanism of Shockwave's published simulator, with its oddities: to compare with published figures.

Gavel's simulator (OSDI 2020) as extended for Shockwave (NSDI 2023). The engine knows nothing of it.
"""

from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import cast

from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.domain.jobs import Job
from jobcast.domain.rounds import RoundPolicy, RoundState, SharePolicy
from jobcast.simulator.log import RunLog
from jobcast.simulator.published_jobs import SPARED_S, Slice, SteppedJob, StepRates
from jobcast.simulator.published_record import SliceRecord
from jobcast.simulator.published_shares import AsChosen, ByPriority, Chooser
from jobcast.simulator.workload import Workload

__all__ = ["PublishedRounds", "StepRates", "gavel_rounds"]

ROUND_S = 120.0
RESTART_S = 20.0
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
    """Replay training jobs by the published rules, all GPUs as one cluster; see `PublishedRounds`."""
    return PublishedRounds(workload, policy, rates, round_s=round_s, restart_s=restart_s).run(progress)


class PublishedRounds:
    """One replay.

    A round begins when the slowest job of the last one has ended its slice, and nobody uses GPUs that are freed
    before. A job that did not run in the last round loses `restart_s`, except in the very first. What a job is told
    of its batch size, and when it ends, is `SteppedJob`'s; how shares are followed, `ByPriority`'s. Large jobs are
    placed first, on the GPUs that they had: as moving costs nothing, that changes nothing.

    Where nobody can run, time moves on to the next arrival or to the next computation of allocations.

    Parameters
    ----------
    workload : training jobs, their executed regimes, pools
    policy : says the shares of time, or chooses the jobs of a round, which then run as they are
    rates : (n_jobs,) the jobs in steps, in the order of the workload's
    round_s : length of a round, seconds
    restart_s : what a start after an absence costs; shorter than a round by more than 5 s

    Raises
    ------
    ConfigError
        Rates are not one a job, or a restart leaves nothing of a round.
    TraceError, PoolsError
        The workload cannot be run; see `Workload.check` and `SteppedJob`.
    """

    def __init__(
        self,
        workload: Workload,
        policy: SharePolicy | RoundPolicy,
        rates: Sequence[StepRates],
        *,
        round_s: float = ROUND_S,
        restart_s: float = RESTART_S,
    ) -> None:
        workload.check()
        if len(rates) != len(workload.jobs):
            raise ConfigError(f"{len(rates)} rates for {len(workload.jobs)} jobs; give one a job")
        if not 0.0 <= restart_s < round_s - SPARED_S:
            raise ConfigError(f"restart_s={restart_s:g} leaves nothing of round_s={round_s:g}; choose longer rounds")
        self.rounds = 0
        self._workload, self._lengths_s = workload, (round_s, restart_s)
        self._name: str = getattr(policy, "name", type(policy).__name__)
        self._chooser = _chooser(policy, round_s)
        rows = zip(workload.jobs, workload.outcomes, rates, strict=True)
        self._coming = deque(SteppedJob(job, outcome, rate) for job, outcome, rate in rows)
        self._origin_s = workload.jobs[0].submit_s if workload.jobs else 0.0  # instants count from here
        self._active: dict[int, SteppedJob] = {}  # by seq, in order of arrival
        self._ran: frozenset[int] = frozenset()  # who ran in the last round
        self._changed = self._adapted = False
        self._record = SliceRecord(workload)

    def run(self, progress: Progress | None = None) -> RunLog:
        """Replay to completion, once. `progress` is called with (completed, all) after rounds in which a job ended.

        Raises DecisionError where a policy chooses what cannot run, or nobody though nothing will arrive.
        """
        now_s, count = 0.0, len(self._workload.jobs)
        while self._active or self._coming:
            self._arrivals(now_s)
            slices = self._begin(now_s) if self._active else []
            if not slices:
                now_s = self._wake_s(now_s)
                continue
            ends_s = max(one.end_s for one in slices)
            if self._end(slices, now_s, ends_s) and progress is not None:
                progress(count - len(self._active) - len(self._coming), count)
            now_s = ends_s
        return self._record.log(self._name, self._origin_s, self.rounds)

    def _arrivals(self, now_s: float) -> None:
        while self._coming and self._coming[0].job.submit_s - self._origin_s <= now_s:
            arrived = self._coming.popleft()
            self._active[arrived.job.seq] = arrived
            self._chooser.outdated()
            self._changed = True

    def _begin(self, now_s: float) -> list[Slice]:
        """What the jobs of a round do in it."""
        round_s, restart_s = self._lengths_s
        state = RoundState(
            now_s=self._origin_s + now_s,
            index=self.rounds,
            round_s=round_s,
            restart_s=restart_s,
            total_gpus=self._workload.total_gpus,
            active=[one.active(seq in self._ran) for seq, one in self._active.items()],
            changed=self._changed,
            adapted=self._adapted,
        )
        chosen = self._chooser.choose(state, now_s)
        self._check(chosen, state.now_s)
        self._changed = self._adapted = False
        lost_s = [restart_s if self.rounds and job.seq not in self._ran else 0.0 for job in chosen]
        self.rounds += 1
        self._ran = frozenset(job.seq for job in chosen)
        return [self._active[job.seq].slice(now_s, round_s, lost) for job, lost in zip(chosen, lost_s, strict=True)]

    def _end(self, slices: Sequence[Slice], begin_s: float, end_s: float) -> bool:
        """Take what was done into account; whether a job ended."""
        before = len(self._active)
        for one in slices:
            job = self._active[one.seq]
            job.held_s += end_s - begin_s
            self._chooser.ran(one.seq, one.run_s)
            ended = job.take(one)
            self._record.held(one.seq, begin_s, one.end_s if ended else end_s, ended)
            if ended:
                del self._active[one.seq]
            if ended or not one.steps:
                self._chooser.outdated()
            self._adapted = self._adapted or job.adapted
        self._changed = self._adapted or len(self._active) < before
        return len(self._active) < before

    def _wake_s(self, now_s: float) -> float:
        """When to go on after a round in which nobody can run."""
        submit_s = self._coming[0].job.submit_s - self._origin_s if self._coming else inf
        reset_s = self._chooser.wake_s() if self._active else inf
        if (wake_s := min(submit_s, reset_s)) == inf:
            raise DecisionError(
                f"policy {self._name} at {self._origin_s + now_s:.6f} s: {len(self._active)} jobs are pending, job "
                f"{next(iter(self._active.values())).job.job_id} first, while nothing will arrive; it must choose one"
            )
        return wake_s

    def _check(self, chosen: Sequence[Job], at_s: float) -> None:
        strange = [job.job_id for job in chosen if job.seq not in self._active]
        width, gpus = sum(job.gpus for job in chosen), self._workload.total_gpus
        if strange or len({job.seq for job in chosen}) < len(chosen) or width > gpus:
            what = f"job {strange[0]} is not active" if strange else f"{width} GPUs for {len(chosen)} jobs of {gpus}"
            raise DecisionError(f"policy {self._name} at {at_s:.6f} s: cannot run its choice: {what}")


def _chooser(policy: SharePolicy | RoundPolicy, round_s: float) -> Chooser:
    """Shares are followed where a policy says any; a policy that only chooses is taken at its word."""
    if hasattr(policy, "shares"):
        return ByPriority(cast(SharePolicy, policy), round_s)
    return AsChosen(cast(RoundPolicy, policy))
