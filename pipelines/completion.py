"""When jobs will be done: a copy of the run is played forward with what is believed in the place of the truth.

Run times are as the run's source of forecasts has them; epochs, iterations, sizes and samples are as jobs declare them.
Nobody else arrives in the copy. The compiled twin does the same for elastic jobs (`simulator.elastic`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.domain.jobs import Job
from jobcast.domain.law import RUNTIME
from jobcast.domain.policy import Grant
from jobcast.domain.rounds import ActiveJob
from jobcast.schedulers.run_times import RunTimes
from jobcast.simulator.engine import Simulation, Standing

Believed = Callable[[Job], float]
"""Run time alone of an active job, seconds."""


def declared(job: Job) -> float:
    """What is believed of run times where jobs declare their work: nothing, since the law goes by that."""
    return nan


def believed_now(run: Simulation) -> Believed:
    """Run times as the run's source of forecasts has them at its instant: what was done, and what is said to be left.

    Raises ConfigError for a source that tells none.
    """
    if run.law.name != RUNTIME:
        return declared
    source = None if run.source is None else Standing(run.source)
    if not hasattr(source, "duration_s"):
        raise ConfigError("the source of forecasts tells no run times of jobs; name another one by --forecasts")
    times = RunTimes(source)  # type: ignore[arg-type]

    def seconds(job: Job) -> float:
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
    while not fork.over and any(isnan(fork.end_s(seq)) for seq in seqs):
        fork.step()
    return {seq: Completion(fork.start_s(seq), fork.end_s(seq)) for seq in seqs}


@dataclass(eq=False)
class AtSubmission:
    """A meter that forecasts each job's completion when it was submitted.

    Attributes
    ----------
    end_s : by seq, as forecast
    failed : why there was none, one line a submission
    """

    end_s: dict[int, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    _last: int = -1

    def watch(self, run: Simulation) -> None:
        """Forecast who has come."""
        come = []
        for seq in reversed(run.cluster.active):  # type: ignore[call-overload]
            if seq <= self._last:
                break
            come.append(seq)
        if not come:
            return
        self._last = come[0]
        try:
            found = completions(run, come, believed_now(run))
        except DecisionError as error:  # in a world that may be believed wrongly: counted, and told with the first
            self.failed.append(str(error))
            return
        self.end_s.update((seq, one.end_s) for seq, one in found.items())

    def told(self, run: Simulation) -> Mapping[str, Any]:
        """The forecasts by job."""
        return {"columns": {"predicted_end_s": np.array([self.end_s.get(job.seq, nan) for job in run.jobs])}}

    def change(self, run: Simulation, job: Job, old: Grant | None, new: Grant | None) -> None:
        """Nothing is counted."""

    def fork(self) -> "AtSubmission":
        """A copy that goes its own way."""
        return AtSubmission(dict(self.end_s), self.failed[:], self._last)

    def notes(self) -> tuple[str, ...]:
        """How many jobs have no forecast, and why the first has none."""
        if not self.failed:
            return ()
        return (f"--predict: jobs of {len(self.failed):,} submissions have no forecast, first: {self.failed[0]}",)
