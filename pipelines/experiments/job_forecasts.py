"""What was forecast of jobs, laid beside the truth: columns that errors of forecasts are told by, and a table."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from jobcast.domain.tasks import AccuracyForecast, Ints
from jobcast.pipelines.experiments.forecast_recording import (
    ACCURACY,
    DURATION,
    EPOCH_TIME,
    LEFT,
    JobAnswer,
    JobAnswers,
)
from jobcast.simulator.log import Floats, RunLog

ROWS = {name: pl.String if name in ("job_id", "question", "of") else pl.Float64 for name in JobAnswer._fields}
COLUMNS = tuple(name for name in ROWS if name != "done_s")
"""Of a table of answers; see `JobAnswer`."""
PERCENT = 100.0


def forecast_columns(
    answers: JobAnswers,
    log: RunLog,
    job_ids: Sequence[str],
    *,
    horizons_min: Sequence[float] = (),
    final: Floats | None = None,
) -> dict[str, Floats]:
    """Columns of a log from the first answers of a run; those of what was not asked are left out.

    `horizons_min`: edges of duration bins; `final`: (n_jobs,) true accuracies after all epochs.
    """
    columns: dict[str, Floats] = {}
    # A training job is asked by what is left; that answer tells more than a bare run time.
    if run_times := {**answers.first(DURATION), **answers.first(LEFT)}:
        columns["forecast_duration_s"] = _column(run_times, job_ids)
    if bins := answers.bins():
        # Bins are numbered by how many horizons a run time passes.
        right = np.searchsorted(60.0 * np.asarray(horizons_min), log.duration_s)
        columns["bins_off"] = right - _column(bins, job_ids)
    if (accuracies := answers.first(ACCURACY)) and final is not None:
        columns |= {"forecast_accuracy": _column(accuracies, job_ids), "final_accuracy": final}
    return columns


def _column(known: Mapping[str, float], job_ids: Sequence[str]) -> Floats:
    return np.array([known.get(job_id, np.nan) for job_id in job_ids], dtype=np.float64)


def keep_sizes(answers: JobAnswers, job_ids: Sequence[str], submit_s: Floats, declared_s: Floats) -> None:
    """Run times alone by the sizes that jobs declare, at their submissions."""
    for job_id, at_s, alone_s in zip(job_ids, submit_s.tolist(), declared_s.tolist(), strict=True):
        answers.keep(JobAnswer(job_id, DURATION, at_s, "", alone_s))


def keeping_accuracies(
    answers: JobAnswers, forecast: AccuracyForecast, job_ids: Sequence[str], final: Floats
) -> AccuracyForecast:
    """A source that keeps what it forecasts; `final`: (n_jobs,) the true accuracies after all epochs."""

    def ask(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        mean, spread = forecast(jobs, seen, at, epochs)
        for job, epoch, answer, sd in zip(jobs.tolist(), at.tolist(), mean.tolist(), spread.tolist(), strict=True):
            if np.isfinite(answer):  # nothing is forecast where a model answered what cannot be
                answers.keep(
                    JobAnswer(job_ids[job], ACCURACY, np.nan, f"epoch {epoch}", answer, max(sd, 0.0), float(final[job]))
                )
        return mean, spread

    return ask


def epoch_time_columns(believed_s: Floats, true_s: Floats) -> dict[str, Floats]:
    """`epoch_time_err_pct` of a log, from seconds an epoch, (n_jobs, n_kinds, most_gpus), infinite where none run."""
    # Where no job can run there is nothing to err about.
    known = np.isfinite(true_s) & np.isfinite(believed_s)
    # Only where both are known: infinite over infinite would be NaN, and warn.
    error = np.abs(np.divide(believed_s, true_s, out=np.ones_like(true_s), where=known) - 1.0)
    cells = known.sum(axis=(1, 2))
    return {"epoch_time_err_pct": PERCENT * np.where(cells, error.sum(axis=(1, 2)) / np.maximum(cells, 1), np.nan)}


def keep_epoch_times(
    answers: JobAnswers,
    job_ids: Sequence[str],
    submit_s: Floats,
    gpu_types: Sequence[str],
    believed_s: Floats,
    true_s: Floats,
) -> None:
    """Seconds an epoch by GPU type and number, at the jobs' submissions; see `epoch_time_columns`."""
    for job, kind, gpus in np.argwhere(np.isfinite(believed_s) & np.isfinite(true_s)).tolist():
        answer, truth = float(believed_s[job, kind, gpus]), float(true_s[job, kind, gpus])
        of = f"{gpu_types[kind]} x {gpus + 1}"
        answers.keep(JobAnswer(job_ids[job], EPOCH_TIME, float(submit_s[job]), of, answer, truth=truth))


def job_answer_table(answers: JobAnswers, job_ids: Sequence[str], log: RunLog) -> pl.DataFrame:
    """Rows of `COLUMNS`, in the order in which answers were given; truths of run times are the log's."""
    rows = pl.DataFrame(answers.rows, schema=ROWS, orient="row")
    lasted = pl.DataFrame({"job_id": job_ids, "lasted_s": log.duration_s}, schema_overrides={"job_id": pl.String})
    truth = pl.when(pl.col("question").is_in([DURATION, LEFT])).then(pl.col("lasted_s") - pl.col("done_s"))
    # The order of the answers is the order of the run: it must survive the join.
    joined = rows.join(lasted, on="job_id", how="left", maintain_order="left")
    told_at_last = joined.with_columns(truth=truth.otherwise(pl.col("truth"))).select(COLUMNS)
    return told_at_last.with_columns(pl.col(pl.Float64).fill_nan(None))
