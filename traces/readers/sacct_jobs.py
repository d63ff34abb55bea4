"""Rows of sacct brought to the canonical columns.

Slurm's names of jobs: steps, array tasks, components of heterogeneous jobs, runs of requeued jobs.

Times and lengths of time as Slurm writes them.

Which rows of sacct are no jobs of a trace, and why.

Tables of Slurm's commands whose fields are separated by "|", as `sacct --parsable2` and `--parsable` write them.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

import polars as pl

from jobcast.domain.clock import DAY_S, HOUR_S, MINUTE_S
from jobcast.domain.errors import TraceError
from jobcast.traces.check import REMEDY, Place, shown_columns, stacked_place
from jobcast.traces.column_types import Clock, Read, later_instants, read_times
from jobcast.traces.columns import UTC_TIME
from jobcast.traces.csv_table import stacked
from jobcast.traces.files import FileBytes
from jobcast.traces.readers.reading import Unfit
from jobcast.traces.readers.sacct_pools import parse_gres, parse_tres, resource_columns

SEPARATOR = b"|"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
AFTER_LAST = "_after_last"
"""Stands for the empty field that --parsable writes after the last one."""
STAND_IN = "\x1f"
"""Stands for a separator in a job's name while a table is read."""
FREE_TEXT = "jobname"
"""The one column whose text users choose freely: it may hold separators, which Slurm does not escape."""
EXPORT = "export with sacct --parsable2"


@dataclass(frozen=True, slots=True)
class PipeTable:
    """Rows as text under lower-case column names; empty fields are null.

    Attributes
    ----------
    frame : the rows, repeated header lines included
    place : names rows by their lines, columns as the file writes them
    joined : rows whose job name held separators, put together again
    """

    frame: pl.DataFrame
    place: Place
    joined: int


def header_names(head: bytes) -> list[str]:
    """Columns, lower case, of a table that begins with `head`; none where its first line has no separator.

    >>> header_names(b"JobID|Submit|\\n1|2|\\n")
    ['jobid', 'submit', '']
    """
    # lstrip takes the mark's bytes in any number: some exports have it twice
    line = head.lstrip(BYTE_ORDER_MARK).lstrip(b"\r\n").partition(b"\n")[0].rstrip(b"\r")
    if SEPARATOR not in line or not line.isascii():
        return []
    return [name.strip().lower() for name in line.decode("ascii").split("|")]


def read_pipes(file: FileBytes) -> PipeTable:
    """Read a table.

    Raises
    ------
    TraceError
        The file is no UTF-8 text, has no header, a column is given twice, or a row has too few or too many fields.
    """
    # editors on Windows leave CRLF, which would end up in the last field
    data = file.data.lstrip(BYTE_ORDER_MARK).replace(b"\r\n", b"\n")
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise TraceError(f"{file.path}, row {line}: holds binary data; {EXPORT}")
    body = data.lstrip(b"\n" + BYTE_ORDER_MARK)
    before = data[: len(data) - len(body)].count(b"\n")
    names = header_names(body)
    _check_header(names, file.path)
    shown = body.partition(b"\n")[0].decode("ascii").split("|")
    # --parsable ends every line, header too, with a separator
    names = [*names[:-1], names[-1] or AFTER_LAST]
    columns = {name: written.strip() for name, written in zip(names, shown, strict=True)}
    # the header is a line, and people count from 1
    lines: Sequence[int] = range(before + 2, before + 2 + body.count(b"\n"))
    frame, joined = _frame(body, names), 0
    # slow path only where a row does not fit: job names may hold the separator
    if frame is None:
        rows, lines, joined = _mended(body, names, before, file.path)
        frame = _frame(rows, names)
    if frame is None:
        raise TraceError(f"{file.path}: its rows cannot be read as fields between |; {EXPORT}")
    if joined:
        frame = frame.with_columns(pl.col(FREE_TEXT).str.replace_all(STAND_IN, "|", literal=True))
    place = Place(file.path, lambda index: f"row {lines[index]}", columns)
    if names[-1] == AFTER_LAST:
        last = frame[AFTER_LAST]
        place.refuse(last.is_not_null(), last, "the row has more fields than the header", "correct the line")
        frame = frame.drop(AFTER_LAST)
    return PipeTable(frame, place, joined)


def _check_header(names: list[str], path: str) -> None:
    if not names:
        raise TraceError(f"{path}, row 1: no header of names between |; {EXPORT} and keep the header")
    given = names[:-1] if names[-1] == "" else names
    repeated = sorted({name for name in given if given.count(name) > 1})
    # a job may be submitted and started in one second, which is no name given twice
    if repeated and not set(IDS) & set(names):
        shown = shown_columns(given)
        raise TraceError(f"{path}, row 1: no header with JobID, found {shown}; {EXPORT} and keep the header")
    if repeated or "" in given:
        what = f"column {repeated[0]} is given twice" if repeated and repeated[0] else "a column has no name"
        raise TraceError(f"{path}, row 1: {what}; {EXPORT}")


def _frame(body: bytes, names: list[str]) -> pl.DataFrame | None:
    """All rows, where each is a line of as many fields as the header; None where that does not hold."""
    lines = body.count(b"\n") + (not body.endswith(b"\n"))
    # the counts of separators and lines together prove that each line fits
    if b"\n\n" in body or body.count(SEPARATOR) != lines * (len(names) - 1):
        return None
    try:
        frame = pl.read_csv(
            io.BytesIO(body), separator="|", quote_char=None, infer_schema=False, has_header=False, skip_rows=1,
            new_columns=names,
        ) if lines > 1 else pl.DataFrame(schema=dict.fromkeys(names, pl.String))  # fmt: skip
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    return frame if (frame.height, frame.width) == (lines - 1, len(names)) else None


def _mended(body: bytes, names: list[str], before: int, path: str) -> tuple[bytes, Sequence[int], int]:
    """The table without blank lines and with stand-ins for separators in job names; its rows' lines; how many."""
    header, *lines = body.split(b"\n")
    free = names.index(FREE_TEXT) if FREE_TEXT in names else None
    separators, joined = len(names) - 1, 0
    rows: list[bytes] = [header]
    numbers: list[int] = []
    for line, row in _logical_rows(lines, names, before + 2):
        surplus = row.count(SEPARATOR) - separators
        if surplus > 0 and free is not None:
            fields = row.split(SEPARATOR)
            end = free + surplus + 1
            row = SEPARATOR.join([*fields[:free], STAND_IN.encode().join(fields[free:end]), *fields[end:]])
            joined += 1
        elif surplus:
            counts = f"{row.count(SEPARATOR) + 1} fields where the header has {separators + 1}"
            cut = surplus < 0 and lines[-1] and line == before + 1 + len(lines)
            remedy = "the file ends within it: export it whole, or delete the line" if cut else "correct the line"
            raise TraceError(f"{path}, row {line}: {counts}; {remedy}")
        _check_text(row, path, line)
        rows.append(row)
        numbers.append(line)
    return b"\n".join(rows), numbers, joined


def _logical_rows(lines: Sequence[bytes], names: list[str], first: int) -> Iterator[tuple[int, bytes]]:
    """Rows and the lines that they begin at: a job's name may hold line breaks, and bars before and after them.

    A row goes on where it lacks fields, or has more than are due, and the next line is no whole row by itself.
    """
    separators = len(names) - 1
    column = next((names.index(name) for name in IDS if name in names), None) if FREE_TEXT in names else None
    row, at = b"", first
    for line, piece in enumerate(lines, first):
        # a stand-in of the user's own would pass for a bar
        piece = piece.replace(STAND_IN.encode(), b" ")
        more = row.count(SEPARATOR) - separators
        begins = column is None or _begins_row(piece, column)
        whole = begins and piece.count(SEPARATOR) >= separators
        goes_on = not whole if more < 0 else more > 0 and not begins and piece.count(SEPARATOR) < separators
        if row and column is not None and goes_on:
            row += b" " + piece
            continue
        if row:
            yield at, row
        row, at = (piece, line) if piece.strip() else (b"", line)
    if row.strip():
        yield at, row.rstrip(b" ")


def _begins_row(line: bytes, column: int) -> bool:
    """Whether a line holds the name of a job, or of its column, where rows hold it."""
    fields = line.split(SEPARATOR, column + 1)
    return len(fields) > column + 1 and ROW_ID.fullmatch(fields[column]) is not None


def _check_text(row: bytes, path: str, line: int) -> None:
    try:
        row.decode("utf-8")
    except UnicodeDecodeError:
        raise TraceError(f"{path}, row {line}: not UTF-8 text; convert the file to UTF-8") from None


Text = TypeVar("Text", pl.Series, pl.Expr)
JOB_ID = r"^\d+(?:_\d+|_\[[^\]]*\]|\+\d+)?(?:\.[A-Za-z0-9_+]+)?$"
"""123, 123_4, 123_[5-9%2], 123+0, each with .step where it is one."""
ROW_ID = re.compile(rb"\s*(?:\d[\w+.\[\],%:-]*|jobid(?:raw)?)\s*", re.IGNORECASE)
"""The same, or the header again, to tell where a row begins."""


def is_job_id(ids: pl.Series) -> pl.Series:
    """Whether texts are names of jobs or steps."""
    return ids.str.contains(JOB_ID)


def is_step(ids: pl.Series) -> pl.Series:
    """Whether names are of steps: 123.batch, 123.extern, 123.0.

    >>> is_step(pl.Series(["123", "123.batch", "123_4", "123+1.0"])).to_list()
    [False, True, False, True]
    """
    # a range that Slurm cut off ends in dots, too: 123_[1,2,...]
    return ids.str.contains(".", literal=True) & ~ids.str.ends_with("]")


def is_waiting_range(ids: Text) -> Text:
    """Whether names are of array tasks that have not been started yet: 123_[5-9%2].

    >>> is_waiting_range(pl.Series(["123_[5-9%2]", "123_5"])).to_list()
    [True, False]
    """
    return ids.str.contains("[", literal=True)


WAITING_TASK = re.compile(r"(\d+)_\[([^\]%]*)(?:%\d+)?\]")
TASK_RANGE = re.compile(r"(\d{1,8})(?:-(\d{1,8})(?::([1-9]\d{0,7}))?)?")
MOST_TASKS = 100_000
"""Beyond it a range is taken for a slip. Slurm's default is 1,001 tasks an array."""


def task_names(name: str) -> list[str]:
    """Array tasks that a name stands for; where Slurm cut it off, the name stands for those that are not told.

    >>> task_names("7_[1-2,5,10-20:5%3]")
    ['7_1', '7_2', '7_5', '7_10', '7_15', '7_20']
    >>> task_names("7_[1,3,...]")
    ['7_1', '7_3', '7_[1,3,...]']
    """
    found = WAITING_TASK.fullmatch(name)
    ranges = [TASK_RANGE.fullmatch(part) for part in found[2].split(",")] if found else []
    tasks = [range(int(one[1]), int(one[2] or one[1]) + 1, int(one[3] or 1)) for one in ranges if one]
    if not found or sum(map(len, tasks)) > MOST_TASKS:
        return [name]
    rows = [f"{found[1]}_{task}" for numbers in tasks for task in numbers]
    return rows if all(ranges) else [*rows, name]


def with_waiting_tasks(table: PipeTable) -> tuple[PipeTable, tuple[str, ...]]:
    """The table with a row for each array task that still waits, where Slurm writes one for all of an array."""
    name = next(name for name in IDS if name in table.frame.columns)
    waiting = table.frame.filter(is_waiting_range(pl.col(name)))[name]
    if waiting.is_empty():
        return table, ()
    arrays = waiting.unique().to_list()
    tasks = pl.DataFrame({name: arrays, "_tasks": [task_names(array) for array in arrays]})
    rows = table.frame.with_row_index("_row").join(tasks, on=name, how="left", maintain_order="left")
    rows = rows.with_columns(pl.coalesce("_tasks", pl.concat_list(name)).alias(name)).explode(name)
    lines, height = rows["_row"], table.frame.height
    place = replace(table.place, row=lambda index: table.place.row(int(lines[index])))
    jobs = rows.height - height + len(waiting)
    note = f"job_id: waiting array tasks in {len(waiting)} of {height} rows stand for jobs of their own: {jobs}"
    return PipeTable(rows.drop("_row", "_tasks"), place, table.joined), (note,)


def numbered_runs(jobs: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Jobs whose names are unique: of several runs under one name, the second is name/2, by submission and start.

    >>> jobs = pl.DataFrame({"job_id": ["7", "7"], "submit_time": [20, 10], "start_time": [21, 11]})
    >>> numbered_runs(jobs)[0]["job_id"].to_list()
    ['7/2', '7']
    """
    # only requeued and resized jobs still share an id here: repeated rows went before
    again = int((~jobs["job_id"].is_first_distinct()).sum())
    if not again:
        return jobs, ()
    # ordinal, so that runs of equal times still get names of their own
    rank = pl.struct("submit_time", "start_time").rank("ordinal").over("job_id")
    ids = pl.when(rank > 1).then(pl.col("job_id") + "/" + rank.cast(pl.String)).otherwise(pl.col("job_id"))
    resized = (jobs["state"] == RESIZING).any() if "state" in jobs.columns else False
    who, each = ("requeued and resized jobs", "run, and each width,") if resized else ("requeued jobs", "run")
    note = f"job_id: repeated by {who} in {again} of {len(jobs)} jobs; each {each} is a job: id, id/2, ..."
    return jobs.with_columns(ids.alias("job_id")), (note,)


UNKNOWN = ("unknown", "none", "n/a", "invalid", "(null)", "none assigned", "")
"""How Slurm writes that a time, a name or a length is not there."""
WALL_CLOCK = "%Y-%m-%dT%H:%M:%S"
ELAPSED = r"^(?:(?:(?P<d>\d{1,6})-)?(?P<h>\d{1,6}):)?(?P<m>\d{1,6}):(?P<s>\d{1,6}(?:\.\d{1,9})?)$"
FORM = "write [days-]hours:minutes:seconds"
HOW = f"{FORM}, or use ElapsedRaw"


def known(values: pl.Series) -> pl.Series:
    """Text without the words for what is unknown.

    >>> known(pl.Series(["a", "Unknown", " "])).to_list()
    ['a', None, None]
    """
    bare = values.str.strip_chars()
    return bare.set(bare.str.to_lowercase().is_in(UNKNOWN), None)


def times(values: pl.Series, place: Place, clock: Clock) -> Read:
    """Times of the cluster's wall clock, or seconds from the epoch, brought to UTC; unknown ones are null."""
    if values.dtype != pl.String:
        return read_times(values, place, clock)
    # the usual form in one go; words for unknown times are looked for only where it fails
    wall = values.str.strptime(pl.Datetime("us"), WALL_CLOCK, strict=False)
    given = values if wall.null_count() == values.null_count() else known(values)
    return read_times(wall if wall.null_count() == given.null_count() else given, place, clock)


def elapsed_s(values: pl.Series, place: Place, how: str = HOW) -> pl.Series:
    """Seconds, from a number of them or from [days-]hours:minutes:seconds; `how` to write what cannot be read.

    >>> elapsed_s(pl.Series(["90", "1-02:00:01", "00:05", None]), Place("example")).to_list()
    [90.0, 93601.0, 5.0, None]
    """
    given = known(values)
    # ElapsedRaw is seconds; only Elapsed needs the pattern
    numbers = given.cast(pl.Float64, strict=False)
    if numbers.null_count() == given.null_count():
        return numbers
    parts = given.str.extract_groups(ELAPSED).struct.unnest().cast(pl.Float64)
    days, hours = parts["d"].fill_null(0.0), parts["h"].fill_null(0.0)
    clock = days * DAY_S + hours * HOUR_S + parts["m"] * MINUTE_S + parts["s"]
    # a column may hold both, where exports of two versions are stacked
    seconds = numbers.zip_with(numbers.is_not_null(), clock)
    place.refuse(seconds.is_null() & given.is_not_null(), values, "must be a length of time", how)
    return seconds


PENDING = "PENDING"
WAITING = frozenset({PENDING, "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
"""States of jobs that will run; slurm.schedmd.com/sacct.html, "Job State Codes" and flags."""
RESIZING = "RESIZING"
"""Of a row with an end: of the part of a job that ended with a change of its width; else the job runs on."""
NOT_ENDED = WAITING | {
    "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", RESIZING, "SIGNALING", "STAGE_OUT", "STOPPED",
}  # fmt: skip
"""States of jobs that will run, or run on."""
HEADER_AGAIN = "header line repeated"
STEP = "job step (the job has a row of its own)"
WAITING_TASKS = "array tasks that wait, cut off by Slurm"
REPEATED = "repeats another row"
TOLD_LATER = "the same run at an earlier stage"
UNTOLD = "GPUs not told (export ReqTRES too)"
NEVER_RAN = "never ran (no time elapsed)"
END_UNKNOWN = "end unknown"


def unfit_rows(frame: pl.DataFrame) -> list[Unfit]:
    """Rows of `job_rows` that are left out, each under the first reason that holds."""
    # an unknown state counts as ended: only what Slurm calls open is open
    ids, ended = frame["job_id"], ~frame["_open"]
    # the order matters: each row is counted under the first reason that holds
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
    """Rows of runs that another row, of an export made later, tells more of: they ended, started, or still wait.

    An end that accounting and queue tell is one, of which the first row is kept.
    """
    run = ["job_id", "submit_time"]
    # of rows of one run the most advanced one is kept, the last of equal ones
    stage = pl.when(ended).then(2).when(pl.col("start_time").is_not_null()).then(1).otherwise(0)
    # a copy is left out as one, and must not take the row that it repeats with it
    stages = frame.select(*run, "_same", stage=stage)
    behind = stages.select(pl.col("stage") < pl.col("stage").max().over(run)).to_series()
    again = ~frame.select(pl.struct(*run, "start_time", "end_time").is_first_distinct()).to_series()
    return (ended & again) | (~ended & (behind | ~stages.select(pl.struct(pl.all()).is_last_distinct()).to_series()))


def _endless(frame: pl.DataFrame) -> pl.Series:
    """Rows without an end in a table that tells ends: their time elapsed is not how long they ran."""
    # without a column End, a missing end says nothing
    return ~frame["_ended"] if frame["_ended"].any() else pl.repeat(False, frame.height, eager=True)


RESOURCES = {"alloctres": parse_tres, "allocgres": parse_gres, "reqtres": parse_tres, "reqgres": parse_gres}
"""Columns that tell GPUs, the first that names some counts."""
PER_NODE = "reqgres"
"""The one of them that counts GPUs a node, as `--gres` asks for them."""
IDS = ("jobid", "jobidraw")
NODES = ("nnodes", "allocnodes", "reqnodes")
CORES = ("alloccpus", "ncpus", "reqcpus")
ONE_OF = (IDS, ("submit",), ("elapsedraw", "elapsed", "end"), tuple(RESOURCES), ("partition", "account"))
"""Of each of these, a table needs a column."""
TIMES = {"submit_time": "submit", "eligible_time": "eligible", "start_time": "start", "end_time": "end"}
"""Canonical columns of times, and what sacct calls them."""
NAMES = {
    "user": "user", "tag": "jobname", "account": "account", "qos": "qos", "partition": "partition", "nodes": "nodelist",
}  # fmt: skip
"""Canonical columns of names, and what sacct calls them."""
FORMAT = (
    "sacct --parsable2 --format=JobID,User,Account,QOS,Partition,JobName,State,Submit,Eligible,Start,End,ElapsedRaw,"
    "Timelimit,NodeList,Priority,AllocTRES,ReqTRES"
)


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows under canonical names.

    Attributes
    ----------
    frame : canonical columns, times in UTC, those that a job has not come to empty; helpers begin with "_": _header
        (the header again), _ended (an end is known), _listed (names several partitions), _same (repeats a row above),
        _shards (holds shards of GPUs alone), _untold (nothing says whether it asks for GPUs)
    place : names canonical columns as the files do
    notes : what was decided
    """

    frame: pl.DataFrame
    place: Place
    notes: tuple[str, ...]


def need_columns(table: PipeTable) -> None:
    """Raise a TraceError unless a table has what makes jobs."""
    for names in ONE_OF:
        if not any(name in table.frame.columns for name in names):
            shown = shown_columns([table.place.columns[name] for name in table.frame.columns])
            raise TraceError(
                f"{table.place.path}, row 1: no column {' or '.join(names)} (any case), found {shown}; write {FORMAT}"
            )


def with_times(table: PipeTable, clock: Clock) -> tuple[PipeTable, tuple[str, ...]]:
    """The table with times in UTC, and notes on how they were read; `_header` marks rows that repeat the header.

    Table by table: one may tell seconds from the epoch, another the cluster's wall clock. Raises TraceError for what
    is no time.
    """
    frame, place, notes = table.frame, table.place, list[str]()
    # concatenated exports repeat the header as a row
    header = frame[next(name for name in IDS if name in frame.columns)].fill_null("").str.to_lowercase().is_in(IDS)
    # such rows are emptied, or their words would be refused as times and counts
    frame = frame.with_columns(pl.when(~header).then(pl.all()).name.keep()) if header.any() else frame
    named = replace(place, columns={ours: place.columns.get(theirs, theirs) for ours, theirs in TIMES.items()})
    instants, later = dict[str, pl.Series](), dict[str, pl.Series]()
    for ours, theirs in TIMES.items():
        if theirs in frame.columns:
            values = frame[theirs].alias(ours)
            instants[ours], said = times(values, named, clock)
            later[ours] = later_instants(_wall_clock(values), instants[ours], clock)
            notes += said
    if any(values.is_not_null().any() for values in later.values()):
        moved = _in_order_of_life(instants, later, _durations(frame, instants, _canonical_names(frame, place)))
        notes += [f"{ours}: {count} of those read as {LATER}" for ours, count in moved.items() if count]
    frame = frame.with_columns(values.alias(TIMES[ours]) for ours, values in instants.items())
    return PipeTable(frame.with_columns(header.alias("_header")), place, table.joined), tuple(notes)


LATER = "the later instant, as submission, start and time elapsed tell"


def _wall_clock(values: pl.Series) -> pl.Series:
    return values.str.strptime(pl.Datetime("us"), WALL_CLOCK, strict=False) if values.dtype == pl.String else values


def _in_order_of_life(
    instants: dict[str, pl.Series], later: Mapping[str, pl.Series], elapsed_s: pl.Series
) -> dict[str, int]:
    """Change to the later instant where the earlier one contradicts the others; how many were changed, by column.

    A job may run for less than lies between its start and end, for it may have been suspended, but never for longer;
    where just the later start makes both the same, it is that.
    """
    before, moved = instants["submit_time"], dict[str, int]()
    # a time elapsed that is no time is refused with its row later on
    ran = (elapsed_s * 1e6).cast(pl.Duration("us"), strict=False)
    for name in ("eligible_time", "start_time", "end_time"):
        if name not in instants:
            continue
        now, other = instants[name], later[name]
        least = before + ran.fill_null(timedelta(0)) if name == "end_time" and "start_time" in instants else before
        wrong = (now < least) & (other >= least)
        if name == "start_time" and "end_time" in instants:
            end = instants["end_time"]
            wrong |= (end - now != ran) & (end - other == ran)
        rows = wrong.fill_null(False).arg_true()
        instants[name], moved[name] = now.scatter(rows, other.gather(rows)), len(rows)
        before = instants[name] if name == "start_time" else before
    return moved


def stacked_tables(tables: Sequence[PipeTable]) -> tuple[pl.DataFrame, Place]:
    """Rows of several tables one below another, and where each stands."""
    frames = [table.frame for table in tables]
    return stacked(frames), stacked_place([table.place for table in tables], [frame.height for frame in frames])


def job_rows(frame: pl.DataFrame, place: Place) -> Rows:
    """Canonical columns of all rows of tables `with_times`.

    Raises
    ------
    TraceError
        A name of a job, a length of time or a count of GPUs cannot be read; the line names the first such row.
    """
    ids, header = frame[next(name for name in IDS if name in frame.columns)], frame["_header"]
    place.refuse(~is_job_id(ids).fill_null(False) & ~header, ids, "must be a job of Slurm", REMEDY)
    names = _canonical_names(frame, place)
    empty = pl.Series([None] * frame.height, dtype=UTC_TIME)
    columns = {ours: frame[theirs] if theirs in frame.columns else empty for ours, theirs in TIMES.items()}
    columns |= {"job_id": ids, "state": _states(frame), "duration": _durations(frame, columns, names), **_pools(frame)}
    columns |= _resources(frame, names, is_step(ids).fill_null(True))
    columns |= {ours: known(frame[theirs]) for ours, theirs in NAMES.items() if theirs in frame.columns}
    columns |= _limits(frame, names)
    if "priority" in frame.columns:
        columns["priority"] = known(frame["priority"]).cast(pl.Float64, strict=False)
    open_, waits = (columns["state"].is_in(states).fill_null(False) for states in (NOT_ENDED, WAITING))
    # accounting ends a job's row where its width changes, and begins another, submitted at that instant
    open_ &= ~((columns["state"] == RESIZING).fill_null(False) & columns["end_time"].is_not_null())
    # Start of a waiting job is Slurm's own forecast
    columns["start_time"] = columns["start_time"].set(waits, None)
    written = _written(columns, open_)
    # Slurm shows the time so far of jobs that run on, which is no duration
    columns |= {name: columns[name].set(open_, None) for name in ("duration", "end_time")}
    columns |= {
        "_header": header,
        "_open": open_,
        "_ended": columns["end_time"].is_not_null(),
        "_untold": _untold(frame, waits),
    }
    columns["_shards"] = _shards(frame) & (columns["gpus"].fill_null(0.0) == 0.0)
    # the whole row compares, so that two runs of a requeued job are not the same
    columns["_same"] = ~pl.DataFrame({"all": frame.select(pl.struct(pl.all())).to_series()})["all"].is_first_distinct()
    made = pl.DataFrame([values.alias(name) for name, values in columns.items()])
    made, more = _of_clusters(made, frame)
    return Rows(made, names, (*more, *written))


def _written(columns: Mapping[str, pl.Series], runs: pl.Series) -> list[str]:
    """A note on when the export was made, where jobs that run tell of a later instant than any that stands in it."""
    far = [columns[name].max() for name in ("submit_time", "start_time", "end_time")]
    so_far = (columns["duration"] * 1e6).cast(pl.Duration("us"), strict=False)
    at = (columns["start_time"] + so_far).filter(runs.fill_null(False)).max()
    if not isinstance(at, datetime) or not all(at > one for one in far if isinstance(one, datetime)):
        return []
    return [f"by the time elapsed of jobs that run the export is of {at:%Y-%m-%dT%H:%M:%SZ}: name it by --at"]


def _canonical_names(frame: pl.DataFrame, place: Place) -> Place:
    """The place under which canonical columns are named as the file names them."""
    theirs = {"job_id": next(name for name in IDS if name in frame.columns), "tag": "jobname", **TIMES}
    theirs["duration"] = next((name for name in ("elapsedraw", "elapsed") if name in frame.columns), "end")
    theirs["gpus"] = next(name for name in RESOURCES if name in frame.columns)
    theirs["pool"] = "partition" if "partition" in frame.columns else "account"
    theirs |= {"nodes": "nodelist", "time_limit_s": "timelimit" if "timelimit" in frame.columns else "timelimitraw"}
    columns = {ours: place.columns.get(name, name) for ours, name in theirs.items()}
    return Place(place.path, place.row, {**place.columns, **columns})


def _states(frame: pl.DataFrame) -> pl.Series:
    if "state" not in frame.columns:
        return pl.Series([None] * frame.height, dtype=pl.String)
    return in_one_word(known(frame["state"]))


def in_one_word(states: pl.Series) -> pl.Series:
    """States without who brought them about: CANCELLED by 1000 -> CANCELLED."""
    return states.str.extract(r"^\s*([^\s+]+)").str.to_uppercase()


def _durations(frame: pl.DataFrame, columns: dict[str, pl.Series], place: Place) -> pl.Series:
    # ElapsedRaw first: it needs no parsing
    for name in ("elapsedraw", "elapsed"):
        if name in frame.columns:
            return elapsed_s(frame[name].alias("duration"), place)
    return (columns["end_time"] - columns["start_time"]).dt.total_microseconds() / 1e6


def _limits(frame: pl.DataFrame, place: Place) -> dict[str, pl.Series]:
    """Time limits; UNLIMITED, the partition's, and none at all are not known."""
    forms = (("timelimit", 1.0, f"{FORM}, or use TimelimitRaw"), ("timelimitraw", MINUTE_S, "write minutes"))
    for name, unit, how in forms:
        if name in frame.columns:
            given = known(frame[name])
            # UNLIMITED, Partition_Limit and the like are words
            given = given.set(~given.str.contains(r"^\d"), None).alias("time_limit_s")
            limit_s = elapsed_s(given, place, how) * unit
            return {"time_limit_s": limit_s.set(limit_s <= 0.0, None)}
    return {}


def _pools(frame: pl.DataFrame) -> dict[str, pl.Series]:
    """The partition, the first of several, else the account."""
    given = [known(frame[name]) for name in ("partition", "account") if name in frame.columns]
    listed = given[0].str.contains(",", literal=True).fill_null(False)
    first = given[0].str.split(",").list.first() if listed.any() else given[0]
    pool = first if len(given) == 1 else first.zip_with(first.is_not_null(), given[1])
    return {"pool": pool, "_listed": listed & ("partition" in frame.columns)}


def _resources(frame: pl.DataFrame, place: Place, steps: pl.Series) -> dict[str, pl.Series]:
    """GPUs, their kinds, cores and memory; of each the first column that tells it."""
    rows: dict[str, list[pl.Series]] = {"gpus": [], "gpu_type": [], "cores": [], "mem_gb": []}
    # rows whose GPUs an earlier column told, so that a type never comes from another column
    taken = pl.repeat(False, frame.height, dtype=pl.Boolean, eager=True)
    for name, parse in RESOURCES.items():
        if name not in frame.columns:
            continue
        read = resource_columns(frame[name], parse)
        # steps are left out later, whatever they hold
        place.refuse(~read["valid"] & ~steps, frame[name], "counts of GPUs cannot be read", REMEDY)
        gpus = read["gpus"] * _nodes(frame) if name == PER_NODE else read["gpus"]
        rows["gpus"].append(gpus)
        rows["gpu_type"].append(read["gpu_type"].set(taken, None))
        taken = taken | gpus.is_not_null()
        rows["cores"].append(read["cores"])
        rows["mem_gb"].append(read["mem_gb"])
    # plain counts last: TRES is what was allocated
    rows["cores"] += [_number(frame[name]) for name in CORES if name in frame.columns]
    columns = {name: pl.select(pl.coalesce(parts)).to_series() for name, parts in rows.items()}
    return {name: values for name, values in columns.items() if name == "gpus" or values.null_count() < len(values)}


def _shards(frame: pl.DataFrame) -> pl.Series:
    """Rows that name shards of GPUs; how many make a GPU is told by gres.conf alone."""
    found = pl.repeat(False, frame.height, dtype=pl.Boolean, eager=True)
    for name in (name for name in RESOURCES if name in frame.columns):
        found |= frame[name].str.contains(r"\bshard\b").fill_null(False)
    return found


def _untold(frame: pl.DataFrame, waits: pl.Series) -> pl.Series:
    """Rows that do not say whether they ask for GPUs.

    A TRES text lists all that a job has, so that one without GPUs tells of none. So does an empty GRES, but what is
    allocated to a job that waits is empty whatever it asks for.
    """
    result = pl.repeat(False, frame.height, dtype=pl.Boolean, eager=True)
    for name in (name for name in RESOURCES if name in frame.columns):
        result |= known(frame[name]).is_not_null()
        if name == PER_NODE:
            # an empty request for GRES asks for none
            result |= True
        elif name == "allocgres":
            # a waiting job has nothing allocated yet, so that empty tells nothing of it
            result |= ~waits
    return ~result


def _nodes(frame: pl.DataFrame) -> pl.Series:
    nodes = [_number(frame[name]) for name in NODES if name in frame.columns]
    # --gres counts per node, and a job without a number of nodes has one
    return pl.select(pl.coalesce([*nodes, pl.repeat(1.0, frame.height, eager=True)])).to_series()


def _number(values: pl.Series) -> pl.Series:
    # beyond 1e9 it is no count but a word that happens to be digits
    numbers = values.cast(pl.Float64, strict=False)
    return numbers.set(~numbers.is_between(1.0, 1e9), None)


def _of_clusters(made: pl.DataFrame, frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Of several clusters, whose ids start anew in each, names are cluster/name."""
    clusters = known(frame["cluster"]) if "cluster" in frame.columns else pl.Series([], dtype=pl.String)
    if clusters.drop_nulls().n_unique() < 2:
        return made, ()
    prefix = clusters.fill_null("unknown") + "/"
    named = made.with_columns((prefix + made[name]).alias(name) for name in ("job_id", "pool"))
    told = (
        f"{clusters.n_unique()} clusters: job_id and pool read cluster/name; in a replay all pools share their GPUs, "
        "so convert each by itself (sacct --clusters NAME) to see what sharing within one gains"
    )
    return named, (told,)
