"""Alibaba PAI: jobs, their tasks and their groups, three tables without headers.

Weng et al., "MLaaS in the Wild", NSDI 2022; alibaba/clusterdata, cluster-trace-gpu-v2020. Times are seconds, shifted by
a constant; hour of the day and day of the week hold in UTC+8. `plan_gpu` is in percent of a GPU.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.traces.check import REMEDY, Place
from jobcast.traces.column_types import Clock, numbers_of, typed_columns
from jobcast.traces.files import FileBytes, PathLike, read_file
from jobcast.traces.readers.reading import (
    NO_DURATION,
    Reading,
    Unfit,
    leave_out,
    merged_notes,
    read_headless,
    without_contradictions,
)

TABLES: Mapping[str, tuple[str, ...]] = {
    "pai_job_table": ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    "pai_task_table": (
        "job_name",
        "task_name",
        "inst_num",
        "status",
        "start_time",
        "end_time",
        "plan_cpu",
        "plan_mem",
        "plan_gpu",
        "gpu_type",
    ),
    "pai_group_tag_table": ("inst_id", "user", "gpu_type_spec", "group", "workload"),
}
"""Columns of each table, in order: six, ten and five tell them apart."""
JOBS, TASKS, GROUPS = TABLES
PERCENT = 100.0
QUOTE = '"'
"""The published tables have none; what writes tables anew may put them around text."""
WIDTH = frozenset({"inst_num", "plan_gpu"})
"""What a job's GPUs are made of."""
CPU_JOB = "no task asks for GPUs"
NEVER_STARTED = "no task has started"
NOT_ENDED = "a task has not ended"
NO_SUBMISSION = "no start_time in the table of jobs"
UNKNOWN_POOL = "unspecified"
CLOCK_NOTE = "times are seconds shifted by a constant, kept as they are; hour and weekday hold in UTC+8"


class PaiReader:
    """Reads the tables of jobs and tasks and, where given, of groups, in any order.

    A job's GPUs are the sum over its tasks of instances x plan_gpu / 100, rounded up; a task without a number of
    instances has one. A job runs from the first start to the last end of its tasks that ask for GPUs. `group` is the
    tag: it marks jobs that repeat. There are no virtual clusters: the pool is the type of GPU that the job's tasks run
    on, the widest task's where they differ.
    """

    name = "pai"
    needs: Sequence[str] = ()

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether the first line is a header of one of the tables, or looks like a row of it."""
        named = next((name for name in TABLES if name in os.fspath(path)), None)
        # the table of groups looks like any five names, so its own name must back it up
        found = _table_of(head)
        return found is not None and (found != GROUPS or named == GROUPS or _has_header(head, GROUPS))

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read the tables.

        Parameters
        ----------
        sources : pai_job_table, pai_task_table and, if at hand, pai_group_tag_table, each with a header line or
            without; `.header` files may stand among them and are not needed
        timezone : not applied: the times hang on no calendar; a note says so
        strict : make rows that would be left out, or times that contradict, an error

        Raises
        ------
        TraceError
            A file cannot be read, or a row of it cannot be used; the line names the first such row.
        ConfigError
            The zone is not known, or a table is missing or given twice.
        """
        clock = Clock(timezone)
        files = _files(sources)
        jobs, place = _read(files[JOBS], JOBS)
        tasks = _tasks(*_read(files[TASKS], TASKS))
        table = _jobs(jobs, place).join(tasks, "job_id", "left", maintain_order="left")
        if GROUPS in files:
            groups, _ = _read(files[GROUPS], GROUPS)
            # an instance may be listed twice; a join would then double its job
            tags = groups.select("inst_id", pl.col("group").alias("tag"), "workload").unique("inst_id", keep="first")
            table = table.join(tags, "inst_id", "left", maintain_order="left")
        table = table.drop("inst_id")
        place = replace(place, columns={"job_id": "job_name", "submit_time": "start_time", "state": "status"})
        # before types: jobs of no GPU tasks have null where numbers are needed
        kept = leave_out(table, _unfit(table), place, strict)
        typed = typed_columns(kept.frame.drop("ended"), kept.place, clock)
        frame, mended = without_contradictions(typed.frame, kept.place, strict)
        used = [files[name] for name in TABLES if name in files]
        notes = (*merged_notes(typed.notes), CLOCK_NOTE, *_strangers(tasks, jobs), *mended)
        return kept.reading(used, jobs.height, notes, jobs=frame, name="pai")


def _files(sources: Sequence[PathLike]) -> dict[str, FileBytes]:
    """Files by the table that they hold; those with a header alone are left aside."""
    found: dict[str, FileBytes] = {}
    for path in sources:
        file = read_file(path)
        name = _table_of(file.data) or _by_width(file.data)
        if name is None:
            wanted = "; ".join(f"{table}: {len(columns)}" for table, columns in TABLES.items())
            raise ConfigError(f"{file.path}: is none of the tables of pai (fields a line: {wanted}); leave it out")
        # the archive's .header files hold names alone
        if not _without_header(file, name).data.strip():
            continue
        if name in found:
            raise ConfigError(f"{found[name].path} and {file.path} are both {name}; give it once")
        found[name] = file
    missing = [name for name in (JOBS, TASKS) if name not in found]
    if missing:
        raise ConfigError(f"pai needs {' and '.join(missing)} too; give the tables of jobs and of tasks")
    return found


def _table_of(head: bytes) -> str | None:
    """The table whose header or whose kind of line a file begins with."""
    fields = _first_fields(head)
    for name, columns in TABLES.items():
        if tuple(fields) == columns or (len(fields) == len(columns) and _looks_like[name](fields)):
            return name
    return None


def _first_fields(head: bytes) -> list[str]:
    """Fields of the first line, without quotes.

    >>> _first_fields(b'"inst_id",user\\n')
    ['inst_id', 'user']
    """
    # undecodable bytes must not stop the look at a format
    line = head.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace").strip()
    return [field.strip(QUOTE) for field in line.split(",")]


def _by_width(data: bytes) -> str | None:
    """The table that has as many fields as a file's first line, whose values are looked at later, by row."""
    fields = data.partition(b"\n")[0].count(b",") + 1
    return next((name for name, columns in TABLES.items() if len(columns) == fields), None)


def _is_time(text: str) -> bool:
    return text == "" or text.replace(".", "", 1).isdigit()


STATES = frozenset({"Terminated", "Failed", "Running", "Waiting", "Interrupted"})
_looks_like = {
    JOBS: lambda fields: fields[3] in STATES and _is_time(fields[4]) and _is_time(fields[5]),
    TASKS: lambda fields: fields[3] in STATES and all(_is_time(field) for field in (fields[2], *fields[4:9])),
    GROUPS: lambda fields: bool(fields[0]) and all(not _is_time(field) or not field for field in fields[2:]),
}


def _without_header(file: FileBytes, name: str) -> FileBytes:
    first, _, rest = file.data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    return FileBytes(file.path, rest) if _has_header(first, name) else file


def _has_header(head: bytes, name: str) -> bool:
    return tuple(_first_fields(head)) == TABLES[name]


def _read(file: FileBytes, name: str) -> tuple[pl.DataFrame, Place]:
    # a header that was cut off still counts as line 1 for whoever opens the file
    body = _without_header(file, name)
    return read_headless(body, TABLES[name], ",", first_line=1 if body is file else 2, quote=QUOTE)


def _jobs(frame: pl.DataFrame, place: Place) -> pl.DataFrame:
    submit_s = numbers_of(frame["start_time"], place).alias("submit_time")
    return frame.select(
        pl.col("job_name").alias("job_id"), "inst_id", "user", pl.col("status").alias("state"), submit_s
    )


def _tasks(frame: pl.DataFrame, place: Place) -> pl.DataFrame:
    """Tasks summed up by job; `ended`: whether all that ask for GPUs have."""
    names = ("inst_num", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu")
    columns = [frame["job_name"].alias("job_id"), frame["gpu_type"], *(numbers_of(frame[n], place) for n in names)]
    for values in columns[2:]:
        # times may be negative after the publisher's shift, widths may not
        bad = ~values.is_finite() | ((values < 0) & (values.name in WIDTH))
        place.refuse(bad, values, "must be a finite number >= 0", REMEDY)
    # the task table leaves it empty for single instances
    count = pl.col("inst_num").fill_null(1.0)
    tasks = pl.DataFrame(columns).with_columns((count * pl.col("plan_gpu") / PERCENT).alias("gpus"))
    of_gpus = pl.col("gpus").fill_null(0.0) > 0
    by_job = tasks.group_by("job_id", maintain_order=True).agg(
        # shares of GPUs in hundredths add up with float dust
        pl.col("gpus").sum().round(6),
        # tasks of cores alone may run long before and after
        pl.col("start_time").filter(of_gpus).min(),
        pl.col("end_time").filter(of_gpus).max(),
        pl.col("end_time").filter(of_gpus).is_not_null().all().alias("ended"),
        (count * pl.col("plan_cpu").fill_null(0.0) / PERCENT).sum().alias("cores"),
        (count * pl.col("plan_mem").fill_null(0.0)).sum().alias("mem_gb"),
        pl.col("gpu_type").filter(of_gpus).sort_by(pl.col("gpus").filter(of_gpus), descending=True).first(),
    )
    return by_job.with_columns(
        (pl.col("end_time") - pl.col("start_time")).alias("duration"),
        pl.col("gpu_type").fill_null(UNKNOWN_POOL).alias("pool"),
    )


def _strangers(tasks: pl.DataFrame, jobs: pl.DataFrame) -> tuple[str, ...]:
    """How many jobs have tasks and no line of their own, which leaves them without a submission."""
    count = tasks.join(jobs, left_on="job_id", right_on="job_name", how="anti").height
    return (f"jobs whose tasks alone are told, left aside: {count:,}",) if count else ()


def _unfit(table: pl.DataFrame) -> list[Unfit]:
    return [
        Unfit(NO_SUBMISSION, table["submit_time"].is_null(), "submit_time", "a value is needed"),
        Unfit(CPU_JOB, table["gpus"].fill_null(0.0) <= 0.0, "gpus", "must be > 0"),
        Unfit(NEVER_STARTED, table["start_time"].is_null(), "start_time", "a task must have started"),
        Unfit(NOT_ENDED, ~table["ended"].fill_null(False), "end_time", "every task must have ended"),
        Unfit(NO_DURATION, table["duration"].fill_null(0.0) <= 0.0, "duration", "must be > 0"),
    ]
