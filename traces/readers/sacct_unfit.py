"""Which rows of sacct are no jobs of a trace, and why."""

import polars as pl

from jobcast.traces.readers.reading import Unfit
from jobcast.traces.readers.sacct_ids import is_step, is_waiting_range

WAITING = frozenset({"PENDING", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
"""States of jobs that will run; slurm.schedmd.com/sacct.html, "Job State Codes" and flags."""
NOT_ENDED = WAITING | {
    "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED",
}  # fmt: skip
"""States of jobs that will run, or run on."""
HEADER_AGAIN = "header line repeated"
STEP = "job step (the job has a row of its own)"
WAITING_TASKS = "array tasks still PENDING"
REPEATED = "repeats another row"
TOLD_LATER = "the same run at an earlier stage"
UNTOLD = "GPUs not told (export ReqTRES too)"
NEVER_RAN = "never ran (no time elapsed)"
END_UNKNOWN = "end unknown"


def unfit_rows(frame: pl.DataFrame) -> list[Unfit]:
    """Rows of `sacct_jobs.job_rows` that are left out, each under the first reason that holds."""
    ids, ended = frame["job_id"], ~frame["state"].is_in(NOT_ENDED).fill_null(False)
    return [
        Unfit(HEADER_AGAIN, frame["_header"], "job_id", "the header stands once"),
        Unfit(STEP, is_step(ids), "job_id", "is a job step (sacct --allocations leaves them out)"),
        Unfit(WAITING_TASKS, is_waiting_range(ids), "job_id", "stands for several jobs"),
        Unfit(REPEATED, frame["_same"], "job_id", "repeats another row"),
        Unfit(TOLD_LATER, _told_later(frame, ended), "state", "another row tells more of the same run"),
        Unfit(NEVER_RAN, ended & (frame["duration"].fill_null(0.0) <= 0.0), "duration", "must be > 0"),
        Unfit(END_UNKNOWN, ended & _endless(frame), "end_time", "a job that ran has an end"),
        Unfit(UNTOLD, frame["_untold"], "gpus", "must be told"),
    ]


def _told_later(frame: pl.DataFrame, ended: pl.Series) -> pl.Series:
    """Rows of runs that another row, of an export made later, tells more of: they ended, started, or still wait."""
    run = ["job_id", "submit_time"]
    stage = pl.when(ended).then(2).when(pl.col("start_time").is_not_null()).then(1).otherwise(0)
    stages = frame.select(*run, stage=stage)
    behind = stages.select(pl.col("stage") < pl.col("stage").max().over(run)).to_series()
    return ~ended & (behind | ~stages.select(pl.struct(pl.all()).is_last_distinct()).to_series())


def _endless(frame: pl.DataFrame) -> pl.Series:
    """Rows without an end in a table that tells ends: their time elapsed is not how long they ran."""
    return ~frame["_ended"] if frame["_ended"].any() else pl.repeat(False, frame.height, eager=True)
