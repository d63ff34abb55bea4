"""Which rows of sacct are no jobs of a trace, and why."""

import polars as pl

from jobcast.traces.readers.reading import Unfit
from jobcast.traces.readers.sacct_ids import is_step, is_waiting_range

NOT_ENDED = frozenset({
    "RUNNING", "PENDING", "SUSPENDED", "CONFIGURING", "COMPLETING", "RESIZING", "REQUEUE_FED", "REQUEUE_HOLD",
    "RESV_DEL_HOLD", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED",
})  # fmt: skip
"""States of jobs that will run, or run on; slurm.schedmd.com/sacct.html, "Job State Codes" and flags."""
HEADER_AGAIN = "header line repeated"
STEP = "job step (the job has a row of its own)"
WAITING_TASKS = "array tasks still PENDING"
REPEATED = "repeats another row"
CPU_JOB = "CPU job (no GPUs)"
NEVER_RAN = "never ran (no time elapsed)"
END_UNKNOWN = "end unknown"


def unfit_rows(frame: pl.DataFrame) -> list[Unfit]:
    """Rows of `sacct_jobs.job_rows` that are left out, each under the first reason that holds."""
    ids, state = frame["job_id"], frame["state"]
    alive = sorted(NOT_ENDED & set(state.drop_nulls().unique().to_list()))
    return [
        Unfit(HEADER_AGAIN, frame["_header"], "job_id", "the header stands once"),
        Unfit(STEP, is_step(ids), "job_id", "is a job step (sacct --allocations leaves them out)"),
        Unfit(WAITING_TASKS, is_waiting_range(ids), "job_id", "has not ended"),
        *(Unfit(f"still {word}", state == word, "state", "has not ended") for word in alive),
        Unfit(REPEATED, frame["_same"], "job_id", "repeats another row"),
        Unfit(CPU_JOB, frame["gpus"].fill_null(0.0) <= 0.0, "gpus", "must hold GPUs"),
        Unfit(NEVER_RAN, frame["duration"].fill_null(0.0) <= 0.0, "duration", "must be > 0"),
        Unfit(END_UNKNOWN, _endless(frame), "end_time", "a job that ran has an end"),
    ]


def _endless(frame: pl.DataFrame) -> pl.Series:
    """Rows without an end in a table that tells ends: their time elapsed is not how long they ran."""
    return ~frame["_ended"] if frame["_ended"].any() else pl.repeat(False, frame.height, eager=True)
