"""Life of the predictors of regimes of training jobs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

import polars as pl

from jobcast.domain.errors import TrainingError
from jobcast.domain.pairs import settings_of
from jobcast.models.predictor import Known
from jobcast.models.regimes import RegimePrior
from jobcast.models.regimes.prior import LEVEL
from jobcast.models.regimes.trajectories import progress_at, training_of
from jobcast.pipelines.lifecycle.predictors.life import EVALUATE, PREDICT, Fitted, Told, VersionAndData
from jobcast.pipelines.lifecycle.predictors.traces import WITHOUT_DRAWS, Scoring, TraceLife
from jobcast.pipelines.lifecycle.recipes.common import TrainingData
from jobcast.pipelines.lifecycle.recipes.regimes import Jobs, RegimeSettings, compared, train_regimes, training_jobs
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.formatting import iso
from jobcast.pipelines.report.model_tables import made_from
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.splits import finished_jobs, gpu_jobs
from jobcast.traces.table import Trace
from jobcast.traces.trainings import TrainingTables


class Regimes(TraceLife[RegimePrior]):
    """How will a training job's batch size change? After Shockwave, section 5."""

    needs: ClassVar[Sequence[str]] = ("trace", "training")
    reads: ClassVar[Mapping[str, Collection[str]]] = {
        EVALUATE: (*WITHOUT_DRAWS, "pairs"),
        PREDICT: ("at_s", "seed", "pairs"),
    }
    tables: TrainingTables | None = None
    reads_settings: ClassVar[bool] = True
    walks: ClassVar[bool] = False
    by_pools: ClassVar[bool] = False
    why: ClassVar[Mapping[str, str]] = {"retrain": "it does not walk through a trace"}

    def data(self, known: Known) -> TrainingData:
        """The jobs of a window that were over when it ended; by default the whole trace; pools tell nothing."""
        # Regimes of a running job are known up to now only; it would teach that jobs end early.
        over, begin_s, end_s = finished_jobs(gpu_jobs(known.jobs), known.from_s, known.until_s)
        return TrainingData(over, begin_s, end_s, tuple(over.pools))

    def fitted(self, known: Known, progress: Step | None) -> Fitted:
        """With the tables beside the trace."""
        return self.trained(known, partial(train_regimes, tables=known.tables.get("training")), progress)

    def rows(self, known: Trace, at_s: float) -> pl.DataFrame:
        """Batch sizes to come of the training jobs that run; of their regimes only what was over is read."""
        return self.running(known, at_s, self.settings.given)[0]

    def running(self, known: Trace, at_s: float, given: Mapping[str, str]) -> tuple[pl.DataFrame, list[str]]:
        """A row a job that runs, and those that run on beyond the time that their epochs take alone.

        Parameters
        ----------
        known : ends at the instant
        given : what `--set` told of the tables
        """
        rows: list[dict[str, Any]] = []
        beyond: list[str] = []
        # By the trace's own schedule: who runs at the instant.
        runs = (known.start_s <= at_s) & (known.end_s > at_s)
        jobs, truth = training_jobs(known, given, self.model_.seed, self.tables, needed=False)
        for job, regimes in zip(jobs, truth, strict=True):
            if not runs[job.seq]:
                continue
            training = training_of(job)
            epochs = training.epochs_in(regimes, at_s - float(known.start_s[job.seq]))
            # It should have ended by what its epochs take alone: contention, which no regime explains.
            if epochs >= training.epochs:
                beyond.append(job.job_id)
                continue
            progress = progress_at(regimes, epochs)
            left = self.model_.remaining_time(job, progress)
            rows.append(
                {
                    "job_id": job.job_id,
                    "pool": job.pool,
                    "model": training.model,
                    "batch_size": progress.batch_size,
                    "epochs": training.epochs,
                    "epochs_done": epochs,
                    "regimes": [asdict(one) for one in self.model_.regimes_ahead(job, progress)],
                    "remaining_s": left.mean_s,
                    "remaining_low_s": left.low_s,
                    "remaining_high_s": left.high_s,
                }
            )
        return pl.DataFrame(rows, infer_schema_length=None), beyond

    def predict(self, known: Known) -> pl.DataFrame:
        """See `TraceLife`; by the tables beside the trace."""
        # `rows` of the base class has no place for tables.
        self.tables = known.tables.get("training")
        return super().predict(known)

    def answered(self, case: VersionAndData, asked: Mapping[str, Any]) -> Told:
        """By job, with those that run on beyond the time that their epochs take alone."""
        at_s, source = case.known.until_s, case.known.jobs
        assert at_s is not None  # see `TraceLife.known`
        seen, given = self.seen(case.known), settings_of(asked.get("pairs", ()))
        rows, beyond = self.running(seen, at_s, given)
        jobs = {row.pop("job_id"): row for row in rows.iter_rows(named=True)}
        return {
            "at": iso(at_s),
            "level": LEVEL,
            "jobs": jobs,
            "beyond": beyond,
            "overlap": case.version.train_until_s > at_s,
            **made_from(source.source, source.notes, gpu_jobs(source).dropped),
        }

    def evaluate(self, known: Known) -> Told:
        """Of all jobs of the window that had ended, and whose batch sizes may change."""
        window, tables = gpu_jobs(known.jobs).between(known.from_s, known.until_s), known.tables.get("training")
        (jobs, truth), _ = _ended(window, self.settings.given, self.settings.seed, tables)
        return {"regimes": compared(self.model_, jobs, truth)}

    def figures(self, data: Scoring) -> tuple[Told, CurvePoints]:
        """The closed rules and the prior."""
        given, window = data.wishes.given, data.trace.between(data.from_s, data.until_s)
        (jobs, truth), unknown = _ended(window, given, data.wishes.seed)
        # Shockwave is told how often a job may change; without that the prior must learn it.
        k = "declared" if all(job.training.max_regimes for job in jobs if job.training is not None) else "not known"
        result = {
            "jitter": RegimeSettings.of(given).jitter,
            "k": k,
            "calibration": self.model_.calibration,
            "unknown": unknown,
        }
        return {"regimes": compared(self.model_, jobs, truth), "sample": result}, CurvePoints()


def _ended(
    window: Trace, given: Mapping[str, str], seed: int, tables: TrainingTables | None = None
) -> tuple[Jobs, int]:
    """The training jobs of a window that had ended, with their regimes, and how many more there were.

    Raises TrainingError where none had ended; else as `training_jobs`.
    """
    jobs, truth = training_jobs(window, given, seed, tables)
    # All are drawn, then those that ended are kept: the jitter of a job must not hang on who still runs.
    ended = window.ended
    kept = [(job, regimes) for job, regimes in zip(jobs, truth, strict=True) if ended[job.seq]]
    if not kept:
        raise TrainingError(f"{window.name}: none of the {len(jobs)} jobs to score had ended; widen the window")
    found, theirs = zip(*kept, strict=True)
    return (found, theirs), len(jobs) - len(kept)
