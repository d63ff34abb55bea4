"""Slurm's names of jobs: steps, array tasks, components of heterogeneous jobs, runs of requeued jobs."""

import polars as pl

JOB_ID = r"^\d+(?:_\d+|_\[[^\]]*\]|\+\d+)?(?:\.[A-Za-z0-9_+]+)?$"
"""123, 123_4, 123_[5-9%2], 123+0, each with .step where it is one."""


def is_job_id(ids: pl.Series) -> pl.Series:
    """Whether texts are names of jobs or steps."""
    return ids.str.contains(JOB_ID)


def is_step(ids: pl.Series) -> pl.Series:
    """Whether names are of steps: 123.batch, 123.extern, 123.0.

    >>> is_step(pl.Series(["123", "123.batch", "123_4", "123+1.0"])).to_list()
    [False, True, False, True]
    """
    return ids.str.contains(".", literal=True)


def is_waiting_range(ids: pl.Series) -> pl.Series:
    """Whether names are of array tasks that have not been started yet: 123_[5-9%2].

    >>> is_waiting_range(pl.Series(["123_[5-9%2]", "123_5"])).to_list()
    [True, False]
    """
    return ids.str.contains("[", literal=True)


def numbered_runs(jobs: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Jobs whose names are unique: of several runs under one name, the second is name/2, by submission and start.

    >>> jobs = pl.DataFrame({"job_id": ["7", "7"], "submit_time": [20, 10], "start_time": [21, 11]})
    >>> numbered_runs(jobs)[0]["job_id"].to_list()
    ['7/2', '7']
    """
    again = int((~jobs["job_id"].is_first_distinct()).sum())
    if not again:
        return jobs, ()
    rank = pl.struct("submit_time", "start_time").rank("ordinal").over("job_id")
    ids = pl.when(rank > 1).then(pl.col("job_id") + "/" + rank.cast(pl.String)).otherwise(pl.col("job_id"))
    note = f"job_id: repeated by requeued jobs in {again} of {len(jobs)} jobs; each run is a job: id, id/2, ..."
    return jobs.with_columns(ids.alias("job_id")), (note,)
