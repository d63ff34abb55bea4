"""Meters that forecast when jobs of a replay will be done: at their submission, or at one instant.

At an instant of one job, of the whole queue in the same futures, or of a job at another width.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import Any, Self

import numpy as np

from jobcast.domain.errors import DecisionError, TraceError
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Grant
from jobcast.domain.times import iso
from jobcast.live.completion_forecasts import Believed, Completion, Draws, Future, believed_now, completions
from jobcast.models.completion.intervals import IntervalTracker
from jobcast.simulator.engine import Simulation


class Watcher:
    """A meter that counts nothing, but asks copies of the run."""

    def change(self, run: Simulation, job: Job, old: Grant | None, new: Grant | None) -> None:
        """Nothing is counted."""

    def report(self, run: Simulation) -> Mapping[str, Any]:
        """Nothing that belongs into the log."""
        return {}

    def fork(self) -> Self:
        """A copy that goes its own way."""
        return deepcopy(self)

    def watch(self, run: Simulation) -> None:
        """All of an instant has happened."""
        raise NotImplementedError


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

    def report(self, run: Simulation) -> Mapping[str, Any]:
        """The forecasts by job."""
        ends_s = {"predicted_end_s": np.array([self.end_s.get(job.seq, nan) for job in run.jobs])}
        return {"columns": ends_s if self.tracker is None else {**ends_s, **self._intervals(run, self.tracker)}}

    def _intervals(self, run: Simulation, tracker: IntervalTracker) -> dict[str, Any]:
        """Ends of the widest interval of each job's completion time, seconds, each from what was known by then."""
        ends_s = np.full((len(run.jobs), 2), nan)
        rows = [row for row, job in enumerate(run.jobs) if self.futures_s.get(job.seq)]
        submit_s = np.array([run.jobs[row].submit_s for row in rows])
        jct_s = np.array([run.end_s(run.jobs[row].seq) for row in rows]) - submit_s
        futures = [np.array(self.futures_s[run.jobs[row].seq]) - at_s for row, at_s in zip(rows, submit_s, strict=True)]
        # An interval needs a length: a job that would end at once is given a second.
        made = tracker.track(submit_s, jct_s, [np.maximum(one, 1.0) for one in futures])
        ends_s[rows] = [(one[-1].low_s, one[-1].high_s) for one in made] or np.empty((0, 2))
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
    found : of each job that was asked about: where it stands, what comes of it with what is believed and in each future
    """

    at_s: float
    job_id: str
    draws: Draws | None = None
    work_s: float = nan
    found: list[tuple[dict[str, Any], Completion, list[Completion]]] = field(default_factory=list)
    _asked_once: bool = False

    def watch(self, run: Simulation) -> None:
        """Ask where nothing more happens up to the instant. Raises TraceError for a job that is over by then."""
        # Asked once, after the last event up to the instant.
        if self._asked_once or run.peek() <= self.at_s:
            return
        self._asked_once = True
        run.wait(self.at_s)
        jobs = self._jobs(run)
        if not jobs:
            return
        point = self._asked(run, jobs, believed_now(run))
        # One copy a future, from which the ends of all are read.
        drawn = [self._asked(run, jobs, one) for one in (self.draws(run, jobs[0].seq) if self.draws else ())]
        self.found = [(self._stands(run, job), point[job.seq], [future[job.seq] for future in drawn]) for job in jobs]

    def _jobs(self, run: Simulation) -> list[Job]:
        """Who is asked about."""
        job = next((one for one in run.cluster.active.values() if one.job_id == self.job_id), None)
        if job is not None:
            return [job]
        ended_s = next((run.end_s(one.seq) for one in run.jobs if one.job_id == self.job_id), nan)
        if isnan(ended_s):
            raise TraceError(
                f"job {self.job_id}: is not among the jobs that {run.name} meets (without GPUs or run time, or "
                "wider than its pool); see notes of `jobcast simulate`"
            )
        raise TraceError(
            f"job {self.job_id}: has finished at {iso(ended_s)} under {run.name}, before {iso(self.at_s)}; ask earlier"
        )

    def _asked(self, run: Simulation, jobs: Sequence[Job], believed_s: Believed) -> dict[int, Completion]:
        # A declared run time goes before what the source believes of that job alone.
        result = believed_s if isnan(self.work_s) else self._declaring(jobs[0], believed_s)
        return completions(run, [job.seq for job in jobs], result)

    def _declaring(self, job: Job, believed_s: Believed) -> Believed:
        if isinstance(believed_s, Future):
            return replace(believed_s, seconds={**believed_s.seconds, job.seq: self.work_s})
        return lambda one: self.work_s if one.seq == job.seq else believed_s(one)

    def started_s(self, run: Simulation, job: Job) -> float:
        """When a job was first given GPUs, seconds from the epoch; NaN while it waits.

        Where a run takes over from the cluster at the instant, whom it starts at once still waits there.
        """
        begin = run.workload.begin
        if begin is not None and begin.at_s == self.at_s and job.job_id not in begin.running:
            return nan
        return run.start_s(job.seq)

    def _stands(self, run: Simulation, job: Job) -> dict[str, Any]:
        start_s, result = self.started_s(run, job), run.law.service(run, job)
        held = None if isnan(start_s) else run.cluster.running.get(job.seq)
        return {
            "job_id": job.job_id,
            "at": iso(self.at_s),
            "submitted": iso(job.submit_s),
            "state": "queued" if held is None else "running",
            "started": None if isnan(start_s) else iso(start_s),
            "held_gpus": 0.0 if held is None else float(held.grant.gpus),
            "done_s": result.run_s,
            "active_jobs": len(run.cluster.active),
            "user": job.user,
            "pool": job.pool,
            "gpus": job.gpus,
        }


@dataclass(eq=False)
class QueueAtInstant(AtInstant):
    """Asks of all active jobs at once, those that never had GPUs first, each in order of submission.

    Attributes
    ----------
    limit : of the first so many; None for all
    """

    limit: int | None = None

    def _jobs(self, run: Simulation) -> list[Job]:
        active = sorted(run.cluster.active.values(), key=lambda job: (not isnan(self.started_s(run, job)), job.seq))
        return active[: self.limit]


@dataclass(eq=False)
class WidthAtInstant(AtInstant):
    """Asks of a job that takes, at another width, a known multiple of what it was believed to take at its own.

    Attributes
    ----------
    runs_s : what was believed of it, with the point first; empty to have it noted
    factor : its run time over that
    """

    runs_s: list[float] = field(default_factory=list)
    factor: float | None = None
    _count: int = 0

    def _asked(self, run: Simulation, jobs: Sequence[Job], believed_s: Believed) -> dict[int, Completion]:
        if self.factor is None:
            self.runs_s.append(believed_s(jobs[0]))
        else:
            # The point and the futures come in the order in which they were noted.
            self.work_s = self.factor * self.runs_s[self._count]
            self._count += 1
        return super()._asked(run, jobs, believed_s)
