"""When jobs will be done: a copy of the run is played forward with what is believed in the place of the truth.

Run times are as the run's source of forecasts has them; epochs, iterations, sizes and samples are as jobs declare them.
Nobody else arrives in the copy. The compiled twin does the same for elastic jobs (`simulator.elastic`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, Self

import numpy as np

from jobcast.domain.errors import ConfigError, DecisionError, TraceError
from jobcast.domain.jobs import Job
from jobcast.domain.law import RUNTIME
from jobcast.domain.policy import Grant
from jobcast.domain.rounds import ActiveJob
from jobcast.models.completion.completion_time import CompletionTime
from jobcast.models.completion.intervals import IntervalTracker
from jobcast.models.completion.job_completions import SizeDraws, SizeForecaster
from jobcast.pipelines.report.formatting import iso
from jobcast.schedulers.run_times import RunTimes
from jobcast.simulator.engine import Simulation, Standing
from jobcast.simulator.history import EarlierJobs

Believed = Callable[[Job], float]
"""Run time alone of an active job, seconds."""


def declared(job: Job) -> float:
    """What is believed of run times where jobs declare their work: nothing, since the law goes by that."""
    return nan


def believed_now(run: Simulation) -> Believed:
    """Run times as the run's source of forecasts has them at its instant: what was done, and what is said to be left.

    Raises ConfigError for a source that tells none.
    """
    # Other laws count in epochs or samples that jobs declare: there is no run time to believe.
    if run.law.name != RUNTIME:
        return declared
    source = None if run.source is None else Standing(run.source)
    if not hasattr(source, "duration_s"):
        raise ConfigError("the source of forecasts tells no run times of jobs; name another one by --forecasts")
    times = RunTimes(source)  # type: ignore[arg-type]

    def seconds(job: Job) -> float:
        if job.training is None:
            # A job that reports no epochs is told as a whole.
            return float(source.duration_s(job))  # type: ignore[union-attr]
        # What was done counts as it was; only what is left is believed.
        told = run.law.service(run, job)
        return times.total_s(ActiveJob(job, told.held_s, told.run_s, job.seq in run.cluster.running, told.progress))

    return seconds


@dataclass(frozen=True, slots=True)
class Completion:
    """When a job is forecast to be given GPUs first, and to end; seconds from the epoch, NaN where nothing tells."""

    start_s: float = nan
    end_s: float = nan


def completions(run: Simulation, seqs: list[int], believed_s: Believed) -> dict[int, Completion]:
    """Play a copy of a run forward until some of its active jobs have ended; raises as `Simulation.step`."""
    fork = run.fork(believed_s)
    # No further than needed: a copy is as dear as the run itself.
    while not fork.over and any(isnan(fork.end_s(seq)) for seq in seqs):
        fork.step()
    return {seq: Completion(fork.start_s(seq), fork.end_s(seq)) for seq in seqs}


class Watcher:
    """A meter that counts nothing, but asks copies of the run."""

    def change(self, run: Simulation, job: Job, old: Grant | None, new: Grant | None) -> None:
        """Nothing is counted."""

    def told(self, run: Simulation) -> Mapping[str, Any]:
        """Nothing that belongs into the log."""
        return {}

    def fork(self) -> Self:
        """A copy that goes its own way."""
        return deepcopy(self)

    def watch(self, run: Simulation) -> None:
        """All of an instant has happened."""
        raise NotImplementedError


Draws = Callable[[Simulation, int], Iterable[Believed]]
"""Of a run and an active job: what may be believed of run times in each of some futures."""


@dataclass(eq=False)
class RunTimeDraws:
    """Draws run times of active jobs from those of jobs that ended before.

    Attributes
    ----------
    earlier : jobs before the run, as the trace ran them
    futures, seed : how many draws of each job that is asked about; draws depend on (seed, job, number) alone
    learned : how jobs of the past count, and those where none has ended yet; None: as did best when first asked
    """

    earlier: EarlierJobs
    futures: int
    seed: int
    learned: CompletionTime | None = None
    _fitted: SizeForecaster | None = field(default=None, init=False)

    def __call__(self, run: Simulation, seq: int) -> Iterator[Believed]:
        """What may be believed of run times in each future. Raises TraceError where no job has ended."""
        active = list(run.cluster.active.values())
        done_s = np.array([run.law.service(run, job).run_s for job in active])
        width = np.array([job.gpus for job in active])
        known_s, ended, known_width = self._known(run, active, done_s, width)
        if self.learned is not None:
            self._fitted = self.learned.settings_
            if not ended.any():
                past, mine = self.learned.past_, self.learned.past_.ended
                known_s, known_width = np.append(past.run_s[mine], known_s), np.append(past.most[mine], known_width)
                # The version's jobs lie in front, and they all ended.
                ended = np.arange(len(known_s)) < mine.sum()
        if self._fitted is None:
            if not ended.any():
                raise TraceError(f"--sizes forecast at {iso(run.now_s)}: no job has ended; ask later")
            self._fitted = SizeForecaster().fit(known_s[ended], known_width[ended])
        sample = self._fitted.sample(known_s, ended, known_width)
        for number in range(self.futures):
            # A generator of its own for each future: asking for more of them changes none.
            draws = SizeDraws(sample, np.random.default_rng((self.seed, seq, number)))
            seconds = dict(zip((job.seq for job in active), draws.draw(width, done_s).tolist(), strict=True))
            # Bound as a default: the next future must not change what this one believes.
            yield lambda job, seconds=seconds: seconds[job.seq]  # type: ignore[misc]

    def _known(self, run: Simulation, active: Sequence[Any], done_s: Any, width: Any) -> tuple[Any, Any, Any]:
        """Run times of jobs that ended by now and of those that did not as far as they ran, and widths."""
        before = self.earlier
        # Only what has ended by now may be learnt from.
        gone = before.known_s <= run.now_s
        over = [job for job in run.jobs if not np.isnan(run.end_s(job.seq))]
        over_s = [run.stream.outcomes[job.seq].duration_s for job in over]
        known_s = np.concatenate([before.duration_s[gone], over_s, done_s])
        widths = np.array([one.gpus for one, is_gone in zip(before.jobs, gone, strict=True) if is_gone], dtype=np.int64)
        known_width = np.concatenate([widths, [job.gpus for job in over], width]).astype(np.int64)
        return known_s, np.arange(len(known_s)) < len(known_s) - len(active), known_width


@dataclass(eq=False)
class AtSubmission(Watcher):
    """Forecasts each job's completion when it was submitted.

    Attributes
    ----------
    chosen : seqs of the jobs that are forecast, None for all
    draws : of futures beside, None for none
    tracker : makes an interval of each job's futures, None for none
    end_s, futures_s : by seq, as forecast, and in each future
    failed : why there was none, one line a submission
    """

    chosen: frozenset[int] | None = None
    draws: Draws | None = None
    tracker: IntervalTracker | None = None
    end_s: dict[int, float] = field(default_factory=dict)
    futures_s: dict[int, list[float]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    _next: int = 0

    def watch(self, run: Simulation) -> None:
        """Forecast who has come."""
        arrived = self._arrived(run)
        if not arrived:
            return
        try:
            found = completions(run, arrived, believed_now(run))
        # A copy may come to what no run would: run times that contradict what was already seen.
        except DecisionError as error:  # in a world that may be believed wrongly: counted, and told with the first
            self.failed.append(str(error))
            return
        self.end_s.update((seq, one.end_s) for seq, one in found.items())
        for seq in arrived:
            futures = () if self.draws is None else self.draws(run, seq)
            self.futures_s[seq] = [completions(run, [seq], one)[seq].end_s for one in futures]

    def _arrived(self, run: Simulation) -> list[int]:
        """Who has come since and is asked about; jobs are numbered as they come."""
        arrived, count = [], len(run.workload.jobs)
        # Numbers go by arrival, so that whoever has not come yet ends the search.
        while self._next < count and (self._next in run.cluster.active or not isnan(run.end_s(self._next))):
            if self._next in run.cluster.active and (self.chosen is None or self._next in self.chosen):
                arrived.append(self._next)
            self._next += 1
        return arrived

    def told(self, run: Simulation) -> Mapping[str, Any]:
        """The forecasts by job."""
        ends_s = {"predicted_end_s": np.array([self.end_s.get(job.seq, nan) for job in run.jobs])}
        return {"columns": ends_s if self.tracker is None else {**ends_s, **self._intervals(run, self.tracker)}}

    def _intervals(self, run: Simulation, tracker: IntervalTracker) -> dict[str, Any]:
        """Ends of the widest interval of each job's completion time, seconds from its submission."""
        ends_s = np.full((len(run.jobs), 2), nan)
        for row, job in enumerate(run.jobs):
            if futures := self.futures_s.get(job.seq):
                # An interval needs a length: a job that would end at once is given a second.
                widest = tracker.intervals(np.maximum(np.array(futures) - job.submit_s, 1.0))[-1]
                ends_s[row] = widest.low_s, widest.high_s
        return {"predicted_jct_low_s": ends_s[:, 0], "predicted_jct_high_s": ends_s[:, 1]}

    def notes(self) -> tuple[str, ...]:
        """How many jobs have no forecast, and why the first has none."""
        if not self.failed:
            return ()
        return (f"--predict: jobs of {len(self.failed):,} submissions have no forecast, first: {self.failed[0]}",)


@dataclass(eq=False)
class AtInstant(Watcher):
    """Asks once, at an instant, when an active job will be given GPUs and end.

    Attributes
    ----------
    at_s : the instant, seconds from the epoch
    job_id : whose completion is asked
    draws : of futures beside, None for none
    work_s : run time that the job declares, NaN where it declares none
    point : with what is believed; None until it was asked
    futures : in each of them
    stands : where the job stands at the instant
    """

    at_s: float
    job_id: str
    draws: Draws | None = None
    work_s: float = nan
    point: Completion | None = None
    futures: list[Completion] = field(default_factory=list)
    stands: dict[str, Any] = field(default_factory=dict)

    def watch(self, run: Simulation) -> None:
        """Ask where nothing more happens up to the instant. Raises TraceError for a job that is over by then."""
        # Asked once, after the last event up to the instant.
        if self.point is not None or run.peek() <= self.at_s:
            return
        run.wait(self.at_s)
        job = next((one for one in run.cluster.active.values() if one.job_id == self.job_id), None)
        if job is None:
            ended_s = next((run.end_s(one.seq) for one in run.jobs if one.job_id == self.job_id), nan)
            raise TraceError(
                f"job {self.job_id}: has finished at {iso(ended_s)} under {run.name}, before {iso(self.at_s)}; ask "
                "earlier"
            )
        self.stands = self._stands(run, job)
        self.point = self._asked(run, job, believed_now(run))
        self.futures = [self._asked(run, job, one) for one in (self.draws(run, job.seq) if self.draws else ())]

    def _asked(self, run: Simulation, job: Job, believed_s: Believed) -> Completion:
        # A declared run time goes before what the source believes of that job alone.
        told = believed_s if isnan(self.work_s) else self._declaring(job, believed_s)
        return completions(run, [job.seq], told)[job.seq]

    def _declaring(self, job: Job, believed_s: Believed) -> Believed:
        return lambda one: self.work_s if one.seq == job.seq else believed_s(one)

    def _stands(self, run: Simulation, job: Job) -> dict[str, Any]:
        held, told = run.cluster.running.get(job.seq), run.law.service(run, job)
        return {
            "job_id": job.job_id,
            "at": iso(self.at_s),
            "submitted": iso(job.submit_s),
            "state": "queued" if held is None else "running",
            "held_gpus": 0.0 if held is None else float(held.grant.gpus),
            "done_s": told.run_s,
            "active_jobs": len(run.cluster.active),
            "gpus": job.gpus,
            "pool": job.pool,
        }
