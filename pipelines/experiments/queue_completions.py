"""Watchers that ask of more than one job as it is: of the whole queue in the same futures, or of other widths."""

from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job
from jobcast.live.completion_forecasts import Believed, Completion, believed_now, completions
from jobcast.pipelines.experiments.completion_meters import AtInstant
from jobcast.pipelines.experiments.explain.what_if import Change, with_change
from jobcast.schedulers.policies import PolicySpec
from jobcast.simulator.engine import Simulation
from jobcast.traces.facts import facts_beside
from jobcast.traces.speedups import read_speedups
from jobcast.traces.table import Trace

NEVER_S = 10 * 365 * 86400.0
"""Run time of a job whose end nobody may come to know."""


@dataclass(eq=False)
class QueueAtInstant(AtInstant):
    """Asks of all active jobs at once, those that never had GPUs first, each in order of submission.

    Attributes
    ----------
    limit : of the first so many; None for all
    found : where each stands, its point, and what came of it in each future
    """

    limit: int | None = None
    found: list[tuple[dict[str, Any], Completion, list[Completion]]] = field(default_factory=list)
    _asked_once: bool = False

    def watch(self, run: Simulation) -> None:
        """Ask where nothing more happens up to the instant."""
        if self._asked_once or run.peek() <= self.at_s:
            return
        self._asked_once = True
        run.wait(self.at_s)
        active = sorted(run.cluster.active.values(), key=lambda job: (not isnan(self.started_s(run, job)), job.seq))
        jobs = active[: self.limit]
        if not jobs:
            return
        seqs = [job.seq for job in jobs]
        point = completions(run, seqs, believed_now(run))
        # One copy a future, from which the ends of all are read.
        drawn = [completions(run, seqs, one) for one in (self.draws(run, seqs[0]) if self.draws else ())]
        self.found = [(self._stands(run, job), point[job.seq], [future[job.seq] for future in drawn]) for job in jobs]


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

    def _asked(self, run: Simulation, job: Job, believed_s: Believed) -> Completion:
        if self.factor is None:
            self.runs_s.append(believed_s(job))
        else:
            # The point and the futures come in the order in which they were noted.
            self.work_s = self.factor * self.runs_s[self._count]
            self._count += 1
        return super()._asked(run, job, believed_s)


def at_width(trace: Trace, job_id: str, gpus: int, rule: PolicySpec) -> tuple[Trace, float]:
    """The trace as if a whole job had asked for other GPUs, and its run time there over that on its own.

    How long it really took is not in that trace: it runs on for ever, unless somebody believes otherwise.

    Raises ConfigError where no table beside the trace declares how the job scales.
    """
    found = facts_beside(trace.source.path, ("speedups",))
    if not found:
        raise ConfigError(
            f"--ask-gpus {gpus}: how job {job_id} scales is not declared; enrich the trace (`jobcast trace enrich "
            "--facts speedups`), or ask about an elastic one"
        )
    row = trace.jobs.row(by_predicate=pl.col("job_id") == job_id, named=True)
    table = read_speedups(Path(found["speedups"]))
    curve = table.speedup[table.row_of(row["model"]), 0]
    own, other = (float(curve[min(width, len(curve) - 1)]) for width in (row["gpus"], gpus))
    changed = with_change(trace, job_id, Change("", gpus=gpus), rule)
    never = pl.when(pl.col("job_id") == job_id).then(NEVER_S).otherwise("duration").alias("duration")
    return replace(changed, jobs=changed.jobs.with_columns(never)), own / other
