"""Slurm's accounting: `sacct --parsable2 --allusers --format=JobID,...`, one row a job, fields between "|".

Also `sacct --json` and `squeue --json`, in any number and mixture: history and the queue as it is make one trace.

slurm.schedmd.com/sacct.html. Times are the cluster's wall clock without an offset, or seconds from the epoch where
`SLURM_TIME_FORMAT=%s` was set.
"""

import os
from collections.abc import Sequence

import polars as pl

from jobcast.domain.errors import ConfigError, NoJobsError
from jobcast.traces.column_types import Clock, typed_columns
from jobcast.traces.files import FileBytes, PathLike, read_file
from jobcast.traces.readers.reading import (
    Reading,
    leave_out,
    merged_notes,
    without_contradictions,
)
from jobcast.traces.readers.sacct_jobs import (
    BYTE_ORDER_MARK,
    SEPARATOR,
    PipeTable,
    header_names,
    job_rows,
    need_columns,
    numbered_runs,
    read_pipes,
    stacked_tables,
    unfit_rows,
    with_times,
    with_waiting_tasks,
)
from jobcast.traces.readers.sacct_pools import is_pools, read_quotas, with_quotas
from jobcast.traces.readers.slurm_json import is_json, read_json

FIXED_WIDTH = b"JobID "
HEAD_BYTES = 65536


class SacctReader:
    """Reads sacct's tables, and quotas from what sinfo or scontrol say of the partitions.

    A row is a job where it is an allocation: one that has ended, one that runs (no duration, no end) or one that waits
    (no start either). CPU jobs have 0 GPUs. The other rows are left out and counted: job steps (`123.batch`, `123.0`),
    jobs that never ran or do not tell GPUs, and rows that repeat another or tell less of the same run (exports that
    overlap, accounting beside the queue). Components of a heterogeneous job (`123+0`, `123+1`) and tasks of an array
    (`123_4`, those that wait as `123_[5-9%2]`) are jobs of their own, as Slurm schedules them. A requeued job
    (`sacct --duplicates`) is a job a run: `123`, `123/2`, ... by submission. So is each part of one whose width changed
    while it ran (RESIZING until the last): its GPU-time is that of all parts, and later ones wait for nothing.

    GPUs are those of AllocTRES, else AllocGRES, ReqTRES, ReqGRES (a count a node, times NNodes), whichever names GPUs
    first; cores and memory too. The pool is the partition, the account where there is none; of several partitions it is
    the first. The tag is the job's name. `duration` is ElapsedRaw, else Elapsed, else End - Start.
    """

    name = "sacct"
    needs = ("JobID", "Submit", "Partition", "State", "Start", "End", "ElapsedRaw", "AllocTRES")

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` is what sacct, sinfo or scontrol wrote."""
        return is_log(head) or is_pools(head) or is_json(head)

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read the tables.

        Parameters
        ----------
        sources : outputs of sacct and `squeue --json`, one or several, and of sinfo, `scontrol show partition` or
            `scontrol show node`
        timezone : IANA zone of the cluster's wall clock; None reads it as UTC, and a note says so
        strict : make rows that would be left out, or start and end that contradict, an error

        Raises
        ------
        TraceError
            A file cannot be read, or a row of it cannot be used; the line names the first such row.
        ConfigError
            The zone is not known, or no file is sacct's.
        """
        clock = Clock(timezone)
        # sorted, so that the trace and its hash do not hang on the order of the arguments
        files = [read_file(path) for path in sorted(sources, key=os.fspath)]
        # what is not recognised as pools counts as a log, whose errors tell what is expected
        logs = [file for file in files if not is_pools(file.data[:HEAD_BYTES])]
        if not logs:
            given = ", ".join(file.path for file in files) or "nothing"
            raise ConfigError(
                f"sacct needs the output of sacct --parsable2, or of sacct or squeue --json, got {given}; name it too"
            )
        quotas = read_quotas([file for file in files if file not in logs])
        reading = _reading(logs, clock, strict)
        return with_quotas(reading.trace, quotas) if quotas else reading


def is_log(head: bytes) -> bool:
    """Whether a table is of jobs, by its header; also one of fixed width, for the error that tells how to export.

    >>> is_log(b"JobID|Submit|State\\n"), is_log(b"a|b\\n"), is_log(b"       JobID    JobName\\n")
    (True, False, True)
    """
    return bool({"jobid", "jobidraw"} & set(header_names(head))) or head.lstrip().startswith(FIXED_WIDTH)


def _reading(logs: Sequence[FileBytes], clock: Clock, strict: bool) -> Reading:
    tables, result = _tables(logs, clock)
    told = sum(table.frame.height for table in tables)
    if not told:
        shown = " + ".join(file.path for file in logs)
        raise NoJobsError(f"{shown}: holds no jobs; export more of the past, or what squeue --json says")
    # tables are stacked before rows are judged: what repeats may stand in two exports
    rows = job_rows(*stacked_tables(tables))
    # steps and repetitions go before types are checked: their fields may hold anything
    kept = leave_out(rows.frame, unfit_rows(rows.frame), rows.place, strict)
    # jobs without GPUs tell so by an empty TRES, once untold ones are out
    typed = typed_columns(_without_empty(kept.frame.with_columns(pl.col("gpus").fill_null(0.0))), kept.place)
    mended, emptied = without_contradictions(typed.frame, kept.place, strict)
    # last, since a rank among runs needs the times
    jobs, runs = numbered_runs(mended)
    joined = sum(table.joined for table in tables)
    decided = (
        *_joined(joined, told),
        *result,
        *rows.notes,
        *_advice(result, clock),
        *typed.notes,
        *_listed(kept.frame),
        *_shards(kept.frame),
        *runs,
    )
    name = "+".join(file.name for file in logs)
    return kept.reading(logs, told, (*merged_notes(decided), *emptied), jobs=jobs, name=name)


def _tables(logs: Sequence[FileBytes], clock: Clock) -> tuple[list[PipeTable], list[str]]:
    """The tables, with times in UTC and a row a job, and notes on how they were read."""
    tables, notes = list[PipeTable](), list[str]()
    for file in logs:
        told_as_json = is_json(file.data[:HEAD_BYTES])
        table = read_json(file) if told_as_json else read_pipes(file)
        notes += [] if told_as_json else _unended(file)
        need_columns(table)
        table, result = with_times(table, clock)
        table, more = with_waiting_tasks(table)
        tables.append(table)
        notes += [*result, *more]
    return tables, notes


def _unended(file: FileBytes) -> list[str]:
    """A note on a table whose last line does not end.

    Slurm ends each. A line that was cut within its last field has all fields, and the rest of a count is a count.
    """
    # as the file writes it
    last = file.data.lstrip(BYTE_ORDER_MARK + b"\r\n").partition(b"\n")[0].rpartition(SEPARATOR)[2].decode().strip()
    # --parsable writes a separator after the last field, so that nothing of it can be missing
    if not last or file.data.endswith((b"\n", b"\r")):
        return []
    line = file.data.count(b"\n") + 1
    return [f"{file.path}, row {line}: the last line does not end; if it was cut, its {last} is wrong: write it again"]


def _without_empty(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns without helpers, and without those that no row fills but the times of jobs."""
    # these mean something when empty: the job waits or runs
    keep = {"start_time", "end_time", "duration"}
    return frame.select(
        values.name
        for values in frame.get_columns()
        if not values.name.startswith("_") and (values.name in keep or values.null_count() < len(values))
    )


def _joined(rows: int, of: int) -> tuple[str, ...]:
    return (f"tag: job names that hold | put together in {rows} of {of} rows",) if rows else ()


def _listed(kept: pl.DataFrame) -> tuple[str, ...]:
    rows = int(kept["_listed"].sum())
    return (f"pool: the first of several partitions in {rows} of {len(kept)} jobs",) if rows else ()


def _shards(kept: pl.DataFrame) -> tuple[str, ...]:
    rows = int(kept["_shards"].sum())
    return (f"gpus: {rows} of {len(kept)} jobs hold shards of GPUs (gres/shard) alone; read as none",) if rows else ()


def _advice(notes: Sequence[str], clock: Clock) -> tuple[str, ...]:
    """What to do about times without an offset where no zone was given."""
    bare = clock.timezone is None and any("without an offset" in note for note in notes)
    text = "times are the cluster's wall clock: name its zone with --timezone, or export with SLURM_TIME_FORMAT=%s"
    return (text,) if bare else ()
