"""Forecasts of epoch times for schedulers, and as MLflow serves them.

Seconds an epoch that a model forecasts, looked at before a policy is told them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.answer_checks import failed, floats_of
from jobcast.domain.arrays import Floats
from jobcast.domain.bad_answers import EPOCHS, BadAnswers, Reason
from jobcast.domain.errors import RegistryError, TraceError
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.models.epoch_time.jobs import MOST_POINTS, jobs_of, pick_points, rows_of_jobs
from jobcast.models.predictor import ServedModel
from jobcast.traces.profiles import KEY, PROFILE_COLUMNS, PROFILE_SCHEMA, ProfileTable, profile_table

if TYPE_CHECKING:
    import pandas as pd

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

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """Answers, one row for each row, in that order. RegistryError names what cannot be answered."""
        import pandas as pd

        if not len(frame):
            return pd.DataFrame(columns=list(self.outputs), index=frame.index, dtype=np.float64)
        try:
            columns = {name: pl.Series(frame[name].tolist(), dtype=kind) for name, kind in PROFILE_SCHEMA.items()}
            rows = pl.DataFrame(columns)
            seconds = rows["epoch_s"].fill_null(np.nan)
            known = profile_table(rows.filter(seconds.is_not_nan()), "rows")
            answers = self.predictor.forecast(known, rows.drop("epoch_s"))
        except (TraceError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise RegistryError(f"{self.predictor.name}: rows cannot be read ({error}); see the example") from error
        return pd.DataFrame(dict(zip(self.outputs, answers, strict=True)), index=frame.index)
