"""Jobs that run on any number of GPUs, replayed in rounds. Shockwave, section 8.7; Pollux (OSDI 2021)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from jobcast.domain.errors import DecisionError
from jobcast.domain.goodput import GoodputPolicy, Phase, ScalableJob
from jobcast.domain.jobs import Pool
from jobcast.simulator.log import GOODPUT, RunLog, flat_spans

ROUND_S = 60.0  # Pollux: the interval of its scheduler
RESTART_S = 30.0  # Pollux: time that a job stands still when its GPUs change
DONE = 1e-9  # share of a job's work that is dust of adding floats up


@dataclass(frozen=True, slots=True)
class ScalableWork:
    """A job and the truth about it.

    Attributes
    ----------
    submit_s : seconds from the epoch
    gpus : that its user asked for, what its exclusive run time counts with
    phases : its work, `until` ascending
    """

    submit_s: float
    gpus: int
    phases: tuple[Phase, ...]

    def phase_at(self, work: float) -> Phase:
        """The phase in which a job is that has done so much."""
        return next((phase for phase in self.phases if work < phase.until * (1 - DONE)), self.phases[-1])

    def exclusive_s(self) -> float:
        """Run time on the GPUs that it asked for, at the best batch sizes, seconds."""
        begins = (0.0, *(phase.until for phase in self.phases))
        return sum(
            (phase.until - begin) / phase.goodput[self.gpus - 1]
            for begin, phase in zip(begins[:-1], self.phases, strict=True)
        )

    def lasting(self, run_s: float) -> "ScalableWork":
        """As much work as takes so long on the GPUs that were asked for."""
        factor = run_s / self.exclusive_s()
        return replace(self, phases=tuple(replace(phase, until=phase.until * factor) for phase in self.phases))


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a job ran unchanged: from, until (seconds), GPUs, batch size, work done."""

    begin_s: float
    end_s: float
    gpus: int
    batch_size: int
    work: float


@dataclass(slots=True)
class _Account:
    """What a job did; `holds` are (from, until, GPUs) at work or standing still."""

    work: float = 0.0
    gpus: int = 0
    restarts: int = 0
    ready_s: float = -inf
    end_s: float = inf
    stretches: list[Stretch] = field(default_factory=list)
    holds: list[tuple[float, float, int]] = field(default_factory=list)


def replay_goodput(
    works: Sequence[ScalableWork],
    policy: GoodputPolicy,
    pool: Pool,
    round_s: float = ROUND_S,
    restart_s: float = RESTART_S,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[RunLog, list[list[Stretch]]]:
    """Run all jobs to completion; the log, and what each job ran.

    The policy is asked at every round's begin; a job whose GPUs change stands still for `restart_s`, its first start
    included. GPUs of a job that completes idle until the next round.

    Parameters
    ----------
    works : in order of submission
    policy : shares the GPUs out
    pool : whose GPUs they are
    round_s, restart_s : seconds
    progress : called with (completed, all) after each round in which a job ran

    Raises
    ------
    DecisionError
        The policy gives more GPUs than there are, or than a job can use, or leaves all of them idle.
    """
    accounts, total_gpus = [_Account() for _ in works], pool.quota
    now_s = works[0].submit_s if works else 0.0
    active: list[int] = []
    arrived = 0
    while active or arrived < len(works):
        while arrived < len(works) and works[arrived].submit_s <= now_s:
            active.append(arrived)
            arrived += 1
        if active:
            jobs = [_seen(seq, works[seq], accounts[seq], now_s) for seq in active]
            gpus = policy.allocate(jobs, total_gpus)
            _check(gpus, jobs, total_gpus, now_s)
            for seq, count in zip(active, gpus, strict=True):
                _apply(accounts[seq], count, now_s, restart_s)
                _run(accounts[seq], works[seq], now_s, now_s + round_s)
            active = [seq for seq in active if accounts[seq].end_s == inf]
            if progress is not None:
                progress(arrived - len(active), len(accounts))
        now_s += round_s
    return _log(pool, works, accounts), [account.stretches for account in accounts]


def _log(pool: Pool, works: Sequence[ScalableWork], accounts: Sequence[_Account]) -> RunLog:
    """The accounts as columns; run times alone are those on the GPUs asked for."""
    by_job = enumerate(account.holds for account in accounts)
    holds = sorted((end_s, seq, begin_s, gpus) for seq, held in by_job for begin_s, end_s, gpus in held)
    until_s, job, from_s, gpus = np.array(holds, dtype=np.float64).reshape(-1, 4).T
    restarts = np.array([account.restarts for account in accounts], dtype=np.int64)
    return RunLog(
        policy="",  # whoever asked knows how it is called
        pools=(pool,),
        submit_s=np.array([work.submit_s for work in works]),
        start_s=np.array([account.holds[0][0] for account in accounts]),
        end_s=np.array([account.end_s for account in accounts]),
        duration_s=np.array([work.exclusive_s() for work in works]),
        gpus=np.array([work.gpus for work in works], dtype=np.int64),
        pool=np.zeros(len(works), dtype=np.int64),
        preemptions=restarts,
        dedicated=np.zeros(len(works), dtype=np.bool_),
        spans=flat_spans(job.astype(np.int64), from_s, until_s, gpus),
        law=GOODPUT,
        events=len(works) * 2 + int(restarts.sum()),
    )


def _seen(seq: int, work: ScalableWork, account: _Account, now_s: float) -> ScalableJob:
    goodput = work.phase_at(account.work).goodput
    return ScalableJob(seq, now_s - work.submit_s, account.gpus, account.restarts, goodput)


def _check(gpus: Sequence[int], jobs: Sequence[ScalableJob], total_gpus: int, now_s: float) -> None:
    for count, job in zip(gpus, jobs, strict=True):
        if not 0 <= count <= len(job.goodput):
            raise DecisionError(f"at {now_s} s job {job.seq} was given {count} GPUs; it can use {len(job.goodput)}")
    if not 0 < sum(gpus) <= total_gpus:
        raise DecisionError(f"at {now_s} s {sum(gpus)} GPUs were given out of {total_gpus}")


def _apply(account: _Account, gpus: int, now_s: float, restart_s: float) -> None:
    if gpus == account.gpus:
        return
    if account.gpus > 0:
        account.restarts += 1
    account.gpus, account.ready_s = gpus, now_s + restart_s


def _run(account: _Account, work: ScalableWork, begin_s: float, end_s: float) -> None:
    """Advance a job through its phases until the round or its work ends."""
    if account.gpus == 0:
        return
    now_s, total = min(max(begin_s, account.ready_s), end_s), work.phases[-1].until
    while now_s < end_s and account.work < total * (1 - DONE):
        phase = work.phase_at(account.work)
        rate = phase.goodput[account.gpus - 1]
        left = phase.until - account.work
        through = now_s + left / rate <= end_s  # then all of it is done: instants may be too coarse to tell how long
        until_s = now_s + left / rate if through else end_s
        gained = left if through else min(left, rate * (end_s - now_s))
        batch_size = phase.batch_size[account.gpus - 1]
        account.stretches.append(Stretch(now_s, until_s, account.gpus, batch_size, gained))
        account.work, now_s = phase.until if through else account.work + gained, until_s
    done = account.work >= total * (1 - DONE)
    _hold(account, begin_s, now_s if done else end_s)
    if done:
        account.end_s, account.gpus = now_s, 0


def _hold(account: _Account, begin_s: float, end_s: float) -> None:
    """Note that a job held its GPUs; rounds in a row with as many are one hold."""
    last_s, until_s, gpus = account.holds[-1] if account.holds else (begin_s, -inf, 0)
    if (until_s, gpus) == (begin_s, account.gpus):
        account.holds[-1] = (last_s, end_s, gpus)
    else:
        account.holds.append((begin_s, end_s, account.gpus))
