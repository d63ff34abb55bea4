"""Lives of the predictors of work and of completion times, which learn from jobs that ended."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import numpy as np
import polars as pl

from jobcast.domain.errors import TrainingError
from jobcast.models.completion.completion_time import CompletionTime
from jobcast.models.completion.job_size import JobSize
from jobcast.models.completion.known_jobs import KnownJobs, keys_of
from jobcast.models.evaluation.sizes import LogErrors, log_figures, run_time_errors, size_errors
from jobcast.models.predictor import Known
from jobcast.pipelines.lifecycle.predictors.life import EVALUATE, M, Told, told_by
from jobcast.pipelines.lifecycle.predictors.traces import WITHOUT_DRAWS, Scoring, TraceLife
from jobcast.pipelines.lifecycle.recipes.common import TrainingData
from jobcast.pipelines.lifecycle.recipes.durations import over
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.splits import check_training, gpu_jobs
from jobcast.traces.table import Trace


class _OfEndedJobs(TraceLife[M]):
    """What both share: they learn from all pools together, and are scored by logarithms."""

    says: ClassVar[Mapping[str, str]] = told_by("report.figure_lines")
    reads: ClassVar[Mapping[str, Collection[str]]] = {**TraceLife.reads, EVALUATE: WITHOUT_DRAWS}

    def data(self, known: Known) -> TrainingData:
        """The jobs of the window, of all pools. Raises TrainingError where they are too short."""
        # Unlike the trio they need no busy pools: all jobs teach one distribution.
        trace = gpu_jobs(known.jobs)
        check_training(trace, known.from_s, known.until_s)
        seen = trace.between(None, known.until_s)
        begin = float(seen.submit_s[0]) if known.from_s is None else known.from_s
        end = float(seen.submit_s[-1]) + 1.0 if known.until_s is None else known.until_s
        return TrainingData(seen, begin, end, tuple(seen.between(begin, end).pools))

    def measured(self, trace: Trace, from_s: float, until_s: float, pools: tuple[str, ...]) -> Told:
        """Of the jobs of the window that were over at its end. Raises TrainingError where there are none."""
        jobs = over(trace.as_of(until_s).between(from_s, until_s)).of_pools(pools)
        if not len(jobs):
            raise TrainingError(f"{trace.name}: no job of the window ended in it; widen --from and --until")
        return dict(log_figures(self.errors(jobs)))

    @abstractmethod
    def errors(self, jobs: Trace) -> LogErrors:
        """Of the model, on jobs that were over."""

    def figures(self, data: Scoring) -> tuple[Told, CurvePoints]:
        """See `TraceLife`."""
        return self.measured(data.trace, data.from_s, data.until_s, data.pools), CurvePoints()

    def report(self, rows: pl.DataFrame) -> Told:
        """`jobs`: id -> pool and seconds."""
        return {"jobs": {row.pop("job_id"): row for row in rows.iter_rows(named=True)}}


class Sizes(_OfEndedJobs[JobSize]):
    """How much work is in a job?"""

    def errors(self, jobs: Trace) -> LogErrors:
        """Of work."""
        return size_errors(self.model_, jobs)

    def rows(self, known: Trace, at_s: float) -> pl.DataFrame:
        """Work of the jobs that have not ended, seconds on one GPU, given what each has done."""
        left = known.without(known.ended, "ended")
        # Jobs that wait have no start, which is infinite or NaN here: nothing is done of them.
        begun_s = np.clip(at_s - left.start_s, 0.0, None)
        done_s = np.where(np.isfinite(begun_s), begun_s, 0.0) * left.duration_gpus
        result = self.model_.forecast(keys_of(left), done_s)
        # The forecast has low, median, high.
        return _frame(left, zip(("size_s", "low_s", "high_s"), (result[:, 1], result[:, 0], result[:, 2]), strict=True))


class Completions(_OfEndedJobs[CompletionTime]):
    """When will a job start and finish? Without a policy: how long jobs that run will go on."""

    def errors(self, jobs: Trace) -> LogErrors:
        """Of run times."""
        return run_time_errors(self.model_, jobs)

    def rows(self, known: Trace, at_s: float) -> pl.DataFrame:
        """Seconds that are left of the jobs that run, with intervals; from what had ended by the instant."""
        runs = (known.start_s <= at_s) & ~known.ended
        left, model = known.without(~runs, "not running"), self.model_
        # An end at the very instant counts as known: the bound is exclusive.
        past = KnownJobs.of(known, float(known.submit_s[0]), float(np.nextafter(at_s, np.inf)))
        # Nothing has ended yet: what the version learnt must do.
        sample = model.settings_.sample(past.run_s, past.ended, past.most) if past.ended.any() else model.sample()
        asked_s = np.full(len(left), at_s)
        result = model.running(sample, left.gpus, at_s - left.start_s, asked_s, self.settings.seed)
        columns: dict[str, list[float]] = {"left_s": [median for median, _ in result]}
        for place, level in enumerate(model.tracker().levels):
            name = f"{100 * level:g}"
            columns |= {f"low_{name}_s": [ends[place].low_s for _, ends in result]}
            columns |= {f"high_{name}_s": [ends[place].high_s for _, ends in result]}
        return _frame(left, columns.items())


def _frame(jobs: Trace, columns: Any) -> pl.DataFrame:
    keys = {"job_id": jobs.jobs["job_id"], "pool": jobs.jobs["pool"]}
    return pl.DataFrame({**keys, **{name: pl.Series(name, values, dtype=pl.Float64) for name, values in columns}})
