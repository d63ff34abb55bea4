"""Snapshots of a queue: a table of jobs that were pending at some instant, what was ahead of them, and when they began.

Popa and Alain, "Slurm queue time prediction", Mila 2023, publish one of Compute Canada's cluster Graham. The converted
trace holds the jobs under canonical names and the columns of the snapshot beside them, under the table's own.
"""

from collections.abc import Sequence

import polars as pl

from jobcast.traces.check import Place
from jobcast.traces.column_types import Clock, numbers_of, typed_columns
from jobcast.traces.columns import UTC_TIME
from jobcast.traces.csv_table import header_of
from jobcast.traces.files import PathLike
from jobcast.traces.readers.reading import Reading, Unfit, leave_out, merged_notes, only_source
from jobcast.traces.readers.sacct_jobs import NOT_ENDED, in_one_word
from jobcast.traces.table import MICROSECONDS
from jobcast.traces.table_files import is_parquet, parquet_columns, read_plain

SNAPSHOT = "snapshot_time"
AHEAD = tuple(
    f"{state}_{whose}{what}_above"
    for state in ("q", "r")
    for whose in ("", "p_", "a_", "p_a_")
    for what in ("jobs", "cores", "mem", "core_hours", "gpus", "gpu_hours")
)
"""Pending (q) and running (r) jobs of a higher priority, all, of the partition (p), of the account (a) and of both: how
many, their cores, memory (MB) and GPUs, and hours by time limit."""
COUNTS = tuple(name for name in AHEAD if not (name.startswith("r_") and name.endswith("_hours_above")))
"""Those of them that are at least 0; hours that running jobs have left fall below where one outlives its limit."""
SHARES = ("level_fs_poll",)
"""Slurm's level fair-share of the account, where it is told; its raw shares and uses name an account like its id."""
RENAMED = {"req_cpus": "cores", "req_mem_total": "mem_gb"}
JOB = ("job_id", "pool", "account", "submit_time", SNAPSHOT, "start_time", *RENAMED, "gpus", "time_limit_s", "priority")
NEEDS = (*JOB, *AHEAD)
MB_PER_GB = 1024.0
SHORTEST_S = 1.0
"""What ends in the second in which it began ran for no time that accounting shows."""
NO_SNAPSHOT = "without snapshot_time"
NOT_PENDING = "not pending at its snapshot"
AGAIN = "later snapshot of the same job"
NEVER_STARTED = "cancelled while it waited"
FOREIGN = "columns that jobcast does not know are kept and not read: "
OUTCOMES = ("wait_s", "submit_wait_s", "eligible_wait_s")
"""What followed, told a second time: start and submission tell it."""
MAY_TELL = ("eligible_time", "end_time", "state")
KNOWN = {*NEEDS, *SHARES, *OUTCOMES, *MAY_TELL, "duration"}


class QueueSnapshotsReader:
    """Reads one table, Parquet or CSV, one row a job and snapshot; of each job the first snapshot is kept.

    A job without `start_time` still waits where the table ends, unless an end or a state tells that it was over without
    a start: such jobs are left out, as they are of accounting. The run time is that from start to end, where both are
    told, a second at least.
    """

    name = "queue-snapshots"
    needs = NEEDS

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` is such a table under its own names."""
        return set(NEEDS) <= set(parquet_columns(path) if is_parquet(head) else header_of(head))

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read the table.

        Parameters
        ----------
        sources : the one file
        timezone : IANA zone of times without an offset; None reads them as UTC, and a note says so
        strict : make rows that would be left out an error

        Raises
        ------
        TraceError
            The file cannot be read, a column is missing, or a row of it cannot be used.
        ConfigError
            The zone is not known, or there are several files.
        """
        frame, place, file = read_plain(only_source(sources, self.name), NEEDS)
        typed = typed_columns(_canonical(frame, place), place, Clock(timezone, strict))
        table = _run(typed.frame).with_columns(_beside(frame, place))
        foreign = [name for name in frame.columns if name not in KNOWN]
        notes = merged_notes((*typed.notes, *([FOREIGN + ", ".join(foreign)] if foreign else [])))
        unfit = [*_unfit(table), Unfit(NEVER_STARTED, _never_started(typed.frame), "start_time", "must be told")]
        return leave_out(table, unfit, place, strict).reading([file], frame.height, notes)


def _canonical(frame: pl.DataFrame, place: Place) -> pl.DataFrame:
    """Jobs under canonical names; run times are yet to come."""
    mem_gb = numbers_of(frame["req_mem_total"], place) / MB_PER_GB
    rows = [name for name in MAY_TELL if name in frame.columns]
    empty = {name: pl.lit(None, UTC_TIME) for name in ("end_time", "eligible_time") if name not in rows}
    return frame.select(*JOB, *rows).rename(RENAMED).with_columns(mem_gb.alias("mem_gb"), duration=None, **empty)


def _run(jobs: pl.DataFrame) -> pl.DataFrame:
    """Jobs with the run times of those that ended."""
    run_s = (pl.col("end_time") - pl.col("start_time")).dt.total_microseconds() / MICROSECONDS
    ended = pl.col("end_time") >= pl.col("start_time")
    return jobs.with_columns(
        pl.when(ended).then(run_s.clip(SHORTEST_S)).alias("duration"), pl.when(ended).then("end_time").alias("end_time")
    )


def _never_started(jobs: pl.DataFrame) -> pl.Series:
    """Rows of jobs that were over without a start, which Slurm tells by no start, or by that of their cancellation."""
    state = in_one_word(jobs["state"]) if "state" in jobs.columns else pl.lit(None, pl.String)
    over = pl.col("end_time").is_not_null() | ~state.is_in(NOT_ENDED)
    at_once = (state == "CANCELLED") & (pl.col("end_time") <= pl.col("start_time"))
    return jobs.select(
        pl.when(pl.col("start_time").is_null()).then(over).otherwise(at_once).fill_null(False).alias("never")
    )["never"]


def _beside(frame: pl.DataFrame, place: Place) -> list[pl.Series]:
    """Columns of the snapshot as numbers, and those that are kept as they are."""
    read = {*AHEAD, *SHARES}
    kept = [name for name in frame.columns if name not in {*JOB, *MAY_TELL, "duration"}]
    numbers = {name: numbers_of(frame[name], place) for name in kept if name in read}
    for name in COUNTS:
        place.refuse(numbers[name] < 0.0, frame[name], "must be >= 0", "correct the table")
    return [numbers.get(name, frame[name]) for name in kept]


def _unfit(table: pl.DataFrame) -> list[Unfit]:
    at, job = table[SNAPSHOT], table["job_id"]
    pending = (at >= table["submit_time"]) & (at < table["start_time"]).fill_null(True)
    first = table.select((pl.col(SNAPSHOT) == pl.col(SNAPSHOT).min().over("job_id")).alias("first"))["first"]
    again = ~first | table.select("job_id", SNAPSHOT).is_duplicated() & ~job.is_first_distinct()
    return [
        Unfit(NO_SNAPSHOT, at.is_null(), SNAPSHOT, "a value is needed"),
        Unfit(NOT_PENDING, ~pending, SNAPSHOT, "must lie from submit_time on and before start_time"),
        Unfit(AGAIN, again, SNAPSHOT, "must be the first of its job"),
    ]
