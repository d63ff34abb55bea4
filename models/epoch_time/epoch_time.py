"""EpochTime: seconds an epoch on any (GPU type, number of GPUs, batch size), from at most three points a type."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError, TraceError, TrainingError
from jobcast.domain.questions import Question
from jobcast.models.epoch_time.fitting import (
    NORMAL_90,
    Fit,
    Tick,
    fit_points,
    forecast_log,
    learn_prior,
    likelier,
    mape,
    trials,
    widening,
)
from jobcast.models.epoch_time.jobs import DEFAULT_PLAN, SPREADS, ProfiledJob, Residual, StepPrior, jobs_of, places_of
from jobcast.models.metadata import JsonModel
from jobcast.traces.profiles import PROFILE_COLUMNS, PROFILE_SCHEMA, ProfileTable, profile_table

MOST_ROWS = 120
"""Of a job that its prior is learned from; evenly chosen where there are more."""


class EpochForecast(NamedTuple):
    """Seconds an epoch, (n,) each: the median, and the ends of an interval that holds 90 % of measurements."""

    epoch_s: Floats
    low_s: Floats
    high_s: Floats


class EpochTime(JsonModel):
    """A model of steps whose prior is learned from other jobs, conditioned on the few points of the job asked about.

    Parameters
    ----------
    residual : what steps do beside the model

    Attributes
    ----------
    prior_ : of the parameters of `shape`
    counts_ : spread of batch sizes (`jobs.SPREADS`) -> jobs that have it
    plan_ : which points to profile, of `plans.PLANS`
    widening_ : of standard deviations, so that intervals hold what they promise
    validation_ : plan -> mean absolute share by which applications were missed that had been left out
    trained_ : the profiles that it has seen
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch; profiles have no times
    """

    name: ClassVar[str] = "epoch-time"
    answers: ClassVar[Question] = Question.EPOCH_TIMES
    algorithm: ClassVar[str] = "steps"
    algorithms: ClassVar[Sequence[str]] = (algorithm,)

    def __init__(self, residual: Residual | None = None) -> None:
        self.residual = residual or Residual()

    def fit(self, table: ProfileTable, tick: Tick = lambda done, total: None) -> Self:
        """Learn from the profiles of several applications. Raises TrainingError where there are fewer than two."""
        if len(table.models) < 2:
            raise TrainingError(f"{table.path}: profiles of one model only; {self.name} learns from two or more")
        jobs = [_thinned(job) for job in jobs_of(table)]
        self.prior_, self.counts_ = learn_prior(jobs, self.residual)
        # Each application forecast by the others: what intervals miss is not hidden by having seen it.
        tried = trials(jobs, self.residual, tick)
        self.validation_ = {plan: mape(found) for plan, found in tried.items()}
        self.plan_ = DEFAULT_PLAN
        self.widening_ = widening(tried[self.plan_])
        self.trained_, self.trained_from_s_, self.trained_until_s_ = table.frame, table.from_s, table.until_s
        return self

    @classmethod
    def untrained(cls) -> Self:
        """A model of our own guess, before any job is seen."""
        model = cls()
        model.prior_, model.counts_ = StepPrior(), dict.fromkeys(SPREADS, 0)
        model.plan_, model.widening_, model.validation_ = DEFAULT_PLAN, 1.0, {}
        model.trained_, model.trained_from_s_, model.trained_until_s_ = pl.DataFrame(schema=PROFILE_SCHEMA), 0.0, 0.0
        return model

    @property
    def models_(self) -> tuple[str, ...]:
        """Applications that it has learned from."""
        return tuple(self.trained_["model"].unique(maintain_order=True).to_list())

    def twin_without(self, model: str) -> "EpochTime":
        """A model that was trained alike, but for one application; itself where it has not seen that.

        Raises TrainingError where fewer than two are left.
        """
        if model not in self.models_:
            return self
        rest = profile_table(self.trained_.filter(pl.col("model") != model), f"{self.name} without {model}")
        return EpochTime(self.residual).fit(rest)

    def fit_job(self, job: ProfiledJob, gpu_types: tuple[str, ...] | None = None, spread: str | None = None) -> Fit:
        """The shape behind a job's points; `spread` of its batch sizes where that is known, see `jobs.SPREADS`.

        Raises ConfigError for a spread that is not known.
        """
        if spread is None:
            return likelier(job, self.prior_, self.residual, self.counts_, gpu_types)
        if spread not in SPREADS:
            raise ConfigError(f"batch={spread}: must be {' or '.join(SPREADS)}, or be left out")
        return fit_points(job, spread, self.prior_, self.residual, gpu_types)

    def forecast(self, known: ProfileTable, asked: pl.DataFrame, spread: str | None = None) -> EpochForecast:
        """Seconds an epoch of configurations.

        Parameters
        ----------
        known : the few points of each model
        asked : (n,) model, batch_size, gpu_type, gpus; no batch size: the smallest known one
        spread : whether batch sizes are a GPU's or the job's; None: what the points make likelier

        Raises
        ------
        TraceError
            A model has no point.
        """
        rows = asked.with_row_index("row")
        answers = np.empty((3, len(rows)))
        points = {job.model: job for job in jobs_of(known)}
        for (model,), part in rows.partition_by("model", as_dict=True).items():
            if model not in points:
                raise TraceError(f"{known.path}: model {model} has no profile; give at least one point of it")
            job = points[str(model)]
            mine = part.with_columns(_sizes(job, part["batch_size"]))
            # The job's own first, as its points number them; then those that are only asked about.
            types = tuple(dict.fromkeys([*job.gpu_types, *mine["gpu_type"].to_list()]))
            mean, sd = forecast_log(self.fit_job(job, types, spread), places_of(mine, types))
            off = self.widening_ * NORMAL_90 * sd
            # In the order asked, whatever the order of the models.
            answers[:, part["row"].to_numpy()] = np.exp([mean, mean - off, mean + off])
        return EpochForecast(*answers)

    def as_dict(self) -> dict[str, Any]:
        """See `JsonModel`."""
        return {
            "residual": asdict(self.residual),
            "prior": self.prior_.as_dict(),
            "counts": self.counts_,
            "plan": self.plan_,
            "widening": self.widening_,
            "validation": self.validation_,
            "trained": [list(row) for row in self.trained_.select(PROFILE_COLUMNS).iter_rows()],
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """See `JsonModel`."""
        model = cls(Residual(**saved["residual"]))
        model.prior_, model.counts_ = StepPrior.read(saved["prior"]), dict(saved["counts"])
        model.plan_, model.widening_, model.validation_ = saved["plan"], saved["widening"], dict(saved["validation"])
        model.trained_ = pl.DataFrame(saved["trained"], schema=PROFILE_SCHEMA, orient="row")
        return model


def _thinned(job: ProfiledJob) -> ProfiledJob:
    rows = np.unique(np.linspace(0, len(job.epoch_s) - 1, MOST_ROWS).round().astype(np.intp))
    return job if len(job.epoch_s) <= MOST_ROWS else job.at(rows)


def _sizes(job: ProfiledJob, asked: pl.Series) -> pl.Series:
    """Batch sizes that are asked about: the smallest known one where none is named, none where points have none."""
    sizes = job.places.batch_size
    return asked.fill_null(int(sizes.min())) if job.sized else pl.Series("batch_size", [None] * len(asked), pl.Int64)
