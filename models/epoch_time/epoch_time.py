"""EpochTime: seconds an epoch on any (GPU type, number of GPUs, batch size), from at most three points a type.

For schedulers too, whose forecasts are looked at before a policy is told them, and as MLflow serves them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.answer_checks import failed, floats_of
from jobcast.domain.arrays import Floats
from jobcast.domain.bad_answers import EPOCHS, BadAnswers, Reason
from jobcast.domain.errors import ConfigError, RegistryError, TraceError, TrainingError
from jobcast.domain.forecasts import Question
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
from jobcast.models.epoch_time.jobs import (
    DEFAULT_PLAN,
    MOST_POINTS,
    SPREADS,
    ProfiledJob,
    Residual,
    StepPrior,
    jobs_of,
    pick_points,
    places_of,
    rows_of_jobs,
)
from jobcast.models.metadata import JsonModel
from jobcast.models.predictor import Frame, ServedModel
from jobcast.traces.profiles import KEY, PROFILE_COLUMNS, PROFILE_SCHEMA, ProfileTable, profile_table

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


MOST_FASTER, MOST_SLOWER = 1e6, 1e3
"""Than a job's slowest profile. More GPUs are not always faster (see docs/profiles.md), so no order is asked for; but
between the slowest GPU alone and all GPUs of the fastest node lie some thousands, not millions."""


def slowest_s(profiled_s: Floats) -> Floats:
    """What is believed where nothing is: every configuration takes as long as the job's slowest.

    Parameters
    ----------
    profiled_s : (n_jobs, n_kinds, most_gpus) seconds an epoch, infinite where a job cannot run

    >>> slowest_s(np.array([[[9.0, 6.0], [20.0, np.inf]]])).tolist()
    [[[20.0, 20.0], [20.0, inf]]]
    """
    runs = np.isfinite(profiled_s)
    slowest: Floats = np.where(runs, profiled_s, -np.inf).max(axis=(1, 2), keepdims=True)
    return np.where(runs, slowest, np.inf)


def guarded_epoch_s(
    forecast: Callable[[], object], profiled_s: Floats, tally: BadAnswers, job_ids: Sequence[str]
) -> Floats:
    """(n_jobs, n_kinds, most_gpus) what is forecast, the job's slowest profile where that cannot be.

    Times must be finite, above 0, and within `MOST_FASTER` and `MOST_SLOWER`. Where a job cannot run nothing is
    forecast: they are infinite there.

    Parameters
    ----------
    forecast : asked once, for an array of the shape of `profiled_s`
    profiled_s : true seconds an epoch, infinite where a job cannot run
    tally : where bad answers are counted, one a job and configuration
    job_ids : (n_jobs,)
    """
    runs, slowest = np.isfinite(profiled_s), slowest_s(profiled_s)
    # Counted before it is asked, so that an answer that raises counts too.
    tally.checked(EPOCHS, int(runs.sum()))
    try:
        epoch_s = floats_of(forecast(), profiled_s.shape)
    except Exception as error:  # whatever a model does wrong, the run goes on without it
        failed(tally, EPOCHS, error, answers=int(runs.sum()))
        return slowest
    # Where a job cannot run nothing was asked.
    bad = ~runs
    for reason, wrong in _faults(epoch_s, slowest):
        found = np.argwhere(wrong & ~bad)
        if len(found):
            job, kind, column = found[0].tolist()
            what = f"job {job_ids[job]} on {column + 1} GPUs of kind {kind}: {epoch_s[job, kind, column]:g} s"
            tally.bad(EPOCHS, reason, what, len(found))
        bad |= wrong
    return np.where(bad, slowest, epoch_s)


def _faults(epoch_s: Floats, slowest: Floats) -> tuple[tuple[Reason, NDArray[np.bool_]], ...]:
    """Reasons and the configurations, of the shape of `epoch_s`, that they hold for."""
    beyond = (epoch_s < slowest / MOST_FASTER) | (epoch_s > slowest * MOST_SLOWER)
    return (Reason.NOT_FINITE, ~np.isfinite(epoch_s)), (Reason.OUT_OF_RANGE, (epoch_s <= 0.0) | beyond)


def pick_profiles(table: ProfileTable, plan: str) -> ProfileTable:
    """The few points of a table that a plan profiles: so many a model and GPU type.

    Raises ConfigError for a plan that is not known.
    """
    jobs = zip(jobs_of(table), rows_of_jobs(table), strict=True)
    rows = [part[pick_points(job, plan, MOST_POINTS).tolist()] for job, part in jobs]
    note = f"{sum(map(len, rows))} of {len(table)} rows are known, by the plan {plan}; the others are forecast"
    return profile_table(pl.concat(rows), table.path, table.sha256, (*table.notes, note))


def believed_epoch_s(
    model: EpochTime,
    known: ProfileTable,
    models: Sequence[str],
    batch_sizes: Sequence[int | None],
    gpu_types: Sequence[str],
    most_gpus: int,
) -> Floats:
    """(n_jobs, n_types, most_gpus) seconds an epoch, as `ProfileTable.epoch_s` gives them.

    Points are as they were profiled, all else is forecast. Nothing is infinite: whether a job can run somewhere at all
    is not forecast.

    Parameters
    ----------
    model : trained
    known : the few points of each model that is asked for
    models, batch_sizes : (n_jobs,); the same pair may come several times
    gpu_types : wanted; those without a point are forecast by how much slower other jobs were there
    most_gpus : 1, 2, ... up to these

    Raises TraceError for a model without a point.
    """
    pairs = list(dict.fromkeys(zip(models, batch_sizes, strict=True)))
    wide = range(1, most_gpus + 1)
    keys = [(one, size, kind, gpus) for one, size in pairs for kind in dict.fromkeys(gpu_types) for gpus in wide]
    asked = pl.DataFrame(keys, schema={name: PROFILE_SCHEMA[name] for name in KEY}, orient="row")
    forecast = model.forecast(known, asked)
    made = asked.with_columns(pl.Series("epoch_s", forecast.epoch_s)).select(PROFILE_COLUMNS)
    # What was profiled stays as it was measured.
    rest = made.join(known.frame, on=KEY, how="anti", nulls_equal=True, maintain_order="left")
    whole = profile_table(pl.concat([known.frame, rest]), known.path, known.sha256, known.notes)
    return whole.epoch_s(models, batch_sizes, gpu_types, most_gpus)


class ServedEpochTime(ServedModel):
    """Columns as in a table of profiles: `model`, `batch_size`, `gpu_type`, `gpus`, `epoch_s`. Rows with an `epoch_s`
    are the known points, rows without (not a number) are asked for.

    Answers every row: the median of seconds an epoch as they would be measured, and an interval that holds 90 %.
    """

    inputs: Mapping[str, str] = {
        "model": "string",
        "batch_size": "long",
        "gpu_type": "string",
        "gpus": "long",
        "epoch_s": "double",
    }
    outputs: Mapping[str, str] = {"epoch_s": "double", "low_s": "double", "high_s": "double"}

    # Three points of a job, and a fourth configuration that is asked for.
    shown: Mapping[str, Sequence[Any]] = {
        "model": ["A"] * 4,
        "batch_size": [16, 64, 256, 64],
        "gpu_type": ["v100"] * 4,
        "gpus": [4, 1, 1, 2],
        "epoch_s": [30.0, 80.0, 70.0, np.nan],
    }
    predictor: EpochTime

    def answer(self, frame: Frame, params: Mapping[str, Any]) -> Iterable[Any]:
        """Answers, one row for each row, in that order. RegistryError names what cannot be answered."""
        if not len(frame):
            return np.empty((len(self.outputs), 0))
        try:
            columns = {name: pl.Series(frame[name].tolist(), dtype=kind) for name, kind in PROFILE_SCHEMA.items()}
            rows = pl.DataFrame(columns)
            seconds = rows["epoch_s"].fill_null(np.nan)
            known = profile_table(rows.filter(seconds.is_not_nan()), "rows")
            return self.predictor.forecast(known, rows.drop("epoch_s"))
        except (TraceError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise RegistryError(f"{self.predictor.name}: rows cannot be read ({error}); see the example") from error
