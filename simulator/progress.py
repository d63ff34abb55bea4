"""How far jobs are: the time that each has received and the regimes that it has shown, and when its next one comes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from jobcast.domain.cluster import Service
from jobcast.domain.jobs import Job, Outcome
from jobcast.domain.training import Progress, Regime


@dataclass(slots=True)
class _Account:
    """One job's time, while it runs counted from `since_s`; `lost_s` of that goes into its start."""

    held_s: float = 0.0
    run_s: float = 0.0
    since_s: float | None = None  # None while it holds nothing
    lost_s: float = 0.0
    past: tuple[Regime, ...] = ()
    batch_size: int = 0
    begin_s: float = 0.0  # run time at which the running regime began

    def held_until(self, now_s: float) -> float:
        return self.held_s if self.since_s is None else self.held_s + now_s - self.since_s

    def run_until(self, now_s: float) -> float:
        return self.run_s if self.since_s is None else self.run_s + max(0.0, now_s - self.since_s - self.lost_s)


class Ledger:
    """Time received by jobs, and the regimes that they have shown. It holds nothing of what is to come."""

    def __init__(self) -> None:
        self._accounts: dict[int, _Account] = {}

    def open(self, job: Job) -> None:
        """A job arrives."""
        account = self._accounts[job.seq] = _Account()
        if job.training is not None:
            account.batch_size = job.training.batch_size

    def close(self, job: Job) -> None:
        """A job has finished."""
        del self._accounts[job.seq]

    def start(self, job: Job, now_s: float, lost_s: float) -> None:
        """A job is given its GPUs; the first `lost_s` seconds get it nowhere."""
        account = self._accounts[job.seq]
        account.since_s, account.lost_s = now_s, lost_s

    def stop(self, job: Job, now_s: float) -> None:
        """A job gives its GPUs back."""
        account = self._accounts[job.seq]
        account.run_s = account.run_until(now_s)
        account.held_s = account.held_until(now_s)
        account.since_s, account.lost_s = None, 0.0

    def adapt(self, job: Job, epochs: float, run_s: float, batch_size: int) -> None:
        """A job has run a regime of so many epochs to its end, after `run_s` in all, and goes on at a batch size."""
        account = self._accounts[job.seq]
        account.past = (*account.past, Regime(account.batch_size, epochs))
        account.batch_size, account.begin_s = batch_size, run_s

    def reaches_s(self, job: Job, run_s: float) -> float:
        """When a job will have run for so long if left alone, seconds from the epoch; infinite if it does not run."""
        account = self._accounts[job.seq]
        if account.since_s is None:
            return inf
        return account.since_s + account.lost_s + max(0.0, run_s - account.run_s)

    def service(self, job: Job, now_s: float) -> Service:
        """What a job has received by now, and how far that got it."""
        account = self._accounts[job.seq]
        held_s = account.held_until(now_s)
        run_s = account.run_until(now_s)
        if job.training is None:
            return Service(held_s, run_s)
        epochs = max(0.0, run_s - account.begin_s) / job.training.epoch_s[account.batch_size]
        done = sum(regime.epochs for regime in account.past) + epochs
        return Service(held_s, run_s, Progress(done, (*account.past, Regime(account.batch_size, epochs))))


class Milestones:
    """The truth about the regimes of jobs: when each ends, in seconds of run time.

    Parameters
    ----------
    jobs : in order of `seq`
    outcomes : (n_jobs,) the truth about each
    """

    def __init__(self, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
        self._regimes = [outcome.regimes if job.training else () for job, outcome in zip(jobs, outcomes, strict=True)]
        self._bounds_s = [_bounds_s(job, regimes) for job, regimes in zip(jobs, self._regimes, strict=True)]
        self._index = [0] * len(jobs)

    def next_s(self, job: Job) -> float:
        """Run time after which a job's batch size changes next; infinite if it does not."""
        bounds_s, index = self._bounds_s[job.seq], self._index[job.seq]
        return bounds_s[index] if index < len(bounds_s) - 1 else inf

    def reach(self, job: Job) -> tuple[float, float, int]:
        """A job gets there: epochs of the regime that ends, run time at its end, batch size of the next."""
        index = self._index[job.seq]
        self._index[job.seq] += 1
        regimes = self._regimes[job.seq]
        return regimes[index].epochs, self._bounds_s[job.seq][index], regimes[index + 1].batch_size


def _bounds_s(job: Job, regimes: Sequence[Regime]) -> tuple[float, ...]:
    epoch_s = job.training.epoch_s if job.training else {}
    return tuple(accumulate(regime.epochs * epoch_s[regime.batch_size] for regime in regimes))
