"""The Philly trace: its own job log as JSON, or flattened to one CSV row a job.

Microsoft, 2017 (Jeon et al., USENIX ATC 2019). The flat file, timestamp, duration, num_gpus, cluster, is that of the
artifact of Pollux (OSDI 2021). In both, times are wall-clock times without an offset; durations are seconds.

Philly's list of machines: CSV, machineId, number of GPUs, single GPU mem ("m31,8, 24GB").

Philly's own job log: a JSON array, one object a job, each run of it an attempt with the GPUs that it held.

Microsoft, 2017 (Jeon et al., USENIX ATC 2019), msr-fiddle/philly-traces, `cluster_job_log`. Times are wall-clock times
of the US Pacific coast without an offset. What a job becomes:

- submit_time as logged, start_time = start of the first attempt, end_time = end of the last;
- duration = sum of the attempts' run times: between attempts the job holds no GPU, and to run again it needs none of
  that time;
- gpus = GPUs listed over all machines of an attempt, of the widest attempt where they differ (a note counts them);
- pool = vc, state = status, user; a further column `attempts` counts the runs.

Left out, each counted: jobs without a submission, without attempts, still running at the snapshot (the last attempt has
no end), with another start or end missing, with an attempt that ends before it starts, without GPUs, that ran for 0 s.

JSON arrays of any length, read value by value: the whole is never held as objects.

Jobs that ran several times: when they first started and last ended, and how long they ran in all.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.check import REMEDY, Place, require_columns
from jobcast.traces.column_types import MISSING, Clock, later_instants, lean_times, read_times, typed_columns
from jobcast.traces.csv_table import header_of, read_csv
from jobcast.traces.files import FileBytes, PathLike, read_file
from jobcast.traces.readers.reading import (
    NO_DURATION,
    NO_GPUS,
    Reading,
    Unfit,
    leave_out,
    merged_notes,
    without_contradictions,
    zone_note,
)

MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True)
class Runs:
    """Attempts, by job and in order: the job's index, start and end (wall-clock timestamps, or text) of each."""

    job: pl.Series
    start: pl.Series
    end: pl.Series


def run_times(submit: pl.Series, runs: Runs, place: Place, clock: Clock) -> tuple[pl.DataFrame, list[str]]:
    """Bring the times of jobs and their attempts to UTC, and sum up the attempts of each job.

    A wall-clock time that occurs twice is the earlier instant, unless that lies before the one that precedes it in
    the life of its job (submission, start, end, next start ...): then it is the later.

    Parameters
    ----------
    submit : one a job
    runs : attempts; those of a job follow one another
    place : where jobs stand, for errors
    clock : how to read times without an offset

    Returns
    -------
    jobs : one row a job: submit_time, start_time, end_time (UTC), duration (seconds over all attempts), attempts,
        and three flags: `running` (the last attempt has no end), `untimed` (another start or end is missing),
        `backwards` (an attempt ends before it starts)
    notes : what was decided about the times

    Raises
    ------
    TraceError
        A value is no time; the line names its job.
    """
    at_job = Place(place.path, lambda index: place.row(int(runs.job[index])), place.columns)
    columns = {"submit_time": (submit, place), "start_time": (runs.start, at_job), "end_time": (runs.end, at_job)}
    read = {name: read_times(values.alias(name), where, clock) for name, (values, where) in columns.items()}
    notes = [note for _, said in read.values() for note in said]
    instants = {name: times for name, (times, _) in read.items()}
    # only autumn's repeated hour has two readings
    later = {name: later_instants(values, instants[name], clock) for name, (values, _) in columns.items()}
    moved = _in_order_of_life(instants, later, runs.job)
    if moved:
        notes.append(f"{', '.join(instants)}: {moved} of those read as the later instant, as the job's own order tells")
    return _summed(instants, runs.job), notes


def _in_order_of_life(instants: dict[str, pl.Series], later: dict[str, pl.Series], job: pl.Series) -> int:
    """Change to the later instant where the earlier one precedes what came before; how many were changed."""
    # hardly any job is in that hour, so the slow loop sees few
    at_job = (later["start_time"].is_not_null() | later["end_time"].is_not_null()).arg_true()
    unsure = set(job.gather(at_job).to_list())
    if not unsure:
        return 0
    changed: dict[str, list[int]] = {"start_time": [], "end_time": []}
    lives = {number: instants["submit_time"][number] for number in unsure}
    for row in job.is_in(list(unsure)).arg_true().to_list():
        for name, rows in changed.items():
            now, other, before = instants[name][row], later[name][row], lives[job[row]]
            # the earlier reading stands unless it breaks the order of the job's life
            if now is not None and other is not None and before is not None and now < before:
                rows.append(row)
                now = other
            lives[job[row]] = now if now is not None else before
    for name, rows in changed.items():
        if rows:
            instants[name] = instants[name].scatter(rows, later[name].gather(rows))
    return sum(len(rows) for rows in changed.values())


def _summed(instants: dict[str, pl.Series], job: pl.Series) -> pl.DataFrame:
    start, end = pl.col("start_time"), pl.col("end_time")
    runs = pl.DataFrame({"job": job, "start_time": instants["start_time"], "end_time": instants["end_time"]})
    summed = runs.group_by("job", maintain_order=True).agg(
        start.min(),
        # attempts may overlap in the log; the last to end ends the job
        end.max(),
        ((end - start).dt.total_microseconds().sum() / MICROSECONDS).alias("duration"),
        pl.len().cast(pl.Int64).alias("attempts"),
        # an open last attempt is the snapshot's doing, an open earlier one is damage
        (end.last().is_null() & start.last().is_not_null()).alias("running"),
        (start.is_null() | end.is_null()).any().alias("untimed"),
        (end < start).any().alias("backwards"),
    )
    jobs = pl.DataFrame({"submit_time": instants["submit_time"]}).with_row_index("job")
    return (
        jobs.with_columns(pl.col("job").cast(pl.Int64))
        .join(summed, on="job", how="left", maintain_order="left")
        .with_columns(pl.col("attempts").fill_null(0))
        .drop("job")
    )


_BLANKS = re.compile(r"[ \t\r\n]*")


def values_of(file: FileBytes) -> Iterator[Any]:
    """The values of a JSON array, one after another.

    Raises
    ------
    TraceError
        The file is no UTF-8 text or no JSON array; the line names the line of the file.
    """
    # the text is held, the values are not: objects of Python take ten times as much
    text = file.text("copy the file again")
    decode = json.JSONDecoder().raw_decode
    at = _after_blanks(text, 0)
    _expect(text, at, "[", file.path)
    at = _after_blanks(text, at + 1)
    if text.startswith("]", at):
        return
    while True:
        try:
            value, at = decode(text, at)
        # deep nesting is no syntax error to the parser
        except RecursionError:
            raise _malformed(text, at, "nested too deeply", file.path) from None
        except json.JSONDecodeError as error:
            raise _malformed(text, error.pos, error.msg, file.path) from None
        # numbers of thousands of digits, which Python refuses to read
        except ValueError as error:
            raise _malformed(text, at, str(error).partition(";")[0], file.path) from None
        yield value
        at = _after_blanks(text, at)
        if text.startswith("]", at):
            break
        _expect(text, at, ",", file.path)
        at = _after_blanks(text, at + 1)
    if (end := _after_blanks(text, at + 1)) < len(text):
        raise _malformed(text, end, "more after the array's end", file.path)


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _expect(text: str, at: int, mark: str, path: str) -> None:
    if not text.startswith(mark, at):
        raise _malformed(text, at, f"expected {mark}", path)


def _malformed(text: str, at: int, what: str, path: str) -> TraceError:
    line = text.count("\n", 0, at) + 1
    return TraceError(f"{path}, row {line}: malformed JSON ({what}); copy the file again or correct the line")


NO_SUBMISSION = "no submission time"
NO_ATTEMPTS = "no attempts"
STILL_RUNNING = "last attempt has no end: running at the snapshot"
NO_TIMES = "an attempt's start or end missing"
BACKWARDS = "an attempt ends before it starts"
THEIRS = {"job_id": "jobid", "pool": "vc", "submit_time": "submitted_time", "state": "status"}
KEYS = ("jobid", "vc", "submitted_time", "attempts")
TELLING = 2
"""How many of the keys tell a log: the first job may be longer than what is looked at."""
FLAGS = ("running", "untimed", "backwards")
LONGEST_SHOWN = 60
_NO_TIME = frozenset((*MISSING, ""))
HOW = "correct the job or drop it from the array"


@dataclass(slots=True)
class _Columns:
    """Jobs and attempts as they are read, a list a column; `of` is the job's index of each attempt."""

    job_id: list[str] = field(default_factory=list)
    pool: list[str | None] = field(default_factory=list)
    user: list[str | None] = field(default_factory=list)
    state: list[str | None] = field(default_factory=list)
    submit: list[str | None] = field(default_factory=list)
    gpus: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    differing: int = 0
    of: list[int] = field(default_factory=list)
    start: list[str | None] = field(default_factory=list)
    end: list[str | None] = field(default_factory=list)


def is_job_log(head: bytes) -> bool:
    """Whether a file begins as a job log does.

    >>> is_job_log(b'[{"status": "Pass", "vc": "ee9e8c", "jobid": "application_1", "attempts": [')
    True
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"[") and sum(f'"{key}"'.encode() in text for key in KEYS) >= TELLING


def _read_log(file: FileBytes, clock: Clock, strict: bool, notes: tuple[str, ...]) -> Reading:
    """Jobs of a log.

    Raises
    ------
    TraceError
        The file is no JSON array of jobs, a job holds what it cannot, or one would be left out under `strict`.
    """
    columns = _Columns()
    for number, job in enumerate(values_of(file)):
        _add(columns, job, f"{file.path}, job {number}")
    place = Place(file.path, lambda index: f"job {index} ({columns.job_id[index]})", THEIRS)
    runs = Runs(pl.Series(columns.of, dtype=pl.Int64), _times(columns.start), _times(columns.end))
    lives, said = run_times(_times(columns.submit), runs, place, clock)
    frame = lives.with_columns(
        pl.Series("job_id", columns.job_id, dtype=pl.String),
        pl.Series("pool", columns.pool, dtype=pl.String),
        pl.Series("gpus", columns.gpus, dtype=pl.Int64),
        pl.Series("user", columns.user, dtype=pl.String),
        pl.Series("state", columns.state, dtype=pl.String),
    )
    kept = leave_out(frame, _unfit_of_log(frame), place, strict)
    jobs, more = without_contradictions(kept.frame.drop(FLAGS), kept.place, strict)
    differing = (f"gpus: attempts differ in {columns.differing} jobs, the widest counts",) if columns.differing else ()
    advice = zone_note(clock.timezone, ZONE, "wall-clock times of the US Pacific coast, summer and winter")
    told = (*merged_notes(said), *advice, *notes, *differing, *more)
    return kept.reading([file], frame.height, told, jobs=jobs)


def _unfit_of_log(frame: pl.DataFrame) -> list[Unfit]:
    given = "must be given"
    return [
        Unfit(NO_SUBMISSION, frame["submit_time"].is_null(), "submit_time", given),
        Unfit(NO_ATTEMPTS, frame["attempts"] == 0, "attempts", "must hold one"),
        Unfit(STILL_RUNNING, frame["running"], "end_time", "the last attempt must have ended"),
        Unfit(NO_TIMES, frame["untimed"], "attempts", "each must have a start and an end"),
        Unfit(BACKWARDS, frame["backwards"], "attempts", "none must end before it starts"),
        Unfit(NO_GPUS, frame["gpus"] < 1, "gpus", "must be >= 1"),
        Unfit(NO_DURATION, frame["duration"].fill_null(0.0) <= 0.0, "duration", "must be > 0"),
    ]


def _times(texts: list[str | None]) -> pl.Series:
    return lean_times(pl.Series("time", texts, dtype=pl.String))


def _add(columns: _Columns, job: Any, where: str) -> None:
    """Take a job and its attempts in."""
    job = _a(dict, job, where, "an object")
    index = len(columns.job_id)
    name = _text(job.get("jobid"), f"{where}, jobid")
    if name is None:
        raise TraceError(f"{where}: has no jobid; {HOW}")
    columns.job_id.append(name)
    columns.pool.append(_text(job.get("vc"), f"{where}, vc"))
    columns.user.append(_text(job.get("user"), f"{where}, user") or None)
    columns.state.append(_text(job.get("status"), f"{where}, status") or None)
    columns.submit.append(_time(job.get("submitted_time"), f"{where}, submitted_time"))
    widths = set()
    for attempt in _a(list, job.get("attempts") or [], f"{where}, attempts", "an array"):
        attempt = _a(dict, attempt, f"{where}, attempts", "an object")
        columns.of.append(index)
        columns.start.append(_time(attempt.get("start_time"), f"{where}, start_time"))
        columns.end.append(_time(attempt.get("end_time"), f"{where}, end_time"))
        widths.add(_width(attempt, where))
    # a job needs room for its widest attempt
    columns.gpus.append(max(widths, default=0))
    columns.differing += len(widths) > 1


def _width(attempt: dict[str, Any], where: str) -> int:
    """GPUs listed over all machines of an attempt."""
    machines = _a(list, attempt.get("detail") or [], f"{where}, detail", "an array")
    held = (_a(dict, machine, f"{where}, detail", "an object").get("gpus") or [] for machine in machines)
    return sum(len(_a(list, gpus, f"{where}, gpus", "an array")) for gpus in held)


def _a(kind: type, value: Any, where: str, what: str) -> Any:
    if not isinstance(value, kind):
        raise TraceError(f"{where}: must be {what}, got {_shown(value)}; {HOW}")
    return value


def _text(value: Any, where: str) -> str | None:
    """Text or a whole number; half a surrogate pair is neither."""
    # the common case first: this runs for every field of a million attempts
    if value is None or (type(value) is str and value.isascii()):
        return value
    # bool is a subclass of int, hence type() and not isinstance
    if type(value) is int:
        return str(value)
    if type(value) is not str or not value.isprintable():
        raise TraceError(f"{where}: must be text, got {_shown(value)}; {HOW}")
    return value


def _time(value: Any, where: str) -> str | None:
    if value is not None and type(value) is not str:
        raise TraceError(f"{where}: must be a time as text, got {_shown(value)}; {HOW}")
    return None if value is None or value in _NO_TIME else _text(value, where)


def _shown(value: Any) -> str:
    # ascii, so that no control character reaches a terminal
    text = ascii(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


MACHINE, GPUS = "machineId", "number of GPUs"


def is_machine_list(header: Sequence[str]) -> bool:
    """Whether a header is that of a list of machines.

    >>> is_machine_list(["machineId", "number of GPUs", "single GPU mem"])
    True
    """
    return {MACHINE, GPUS} <= set(header)


def machines_note(file: FileBytes) -> str:
    """What the list tells: how many machines and GPUs the cluster had in all.

    Raises
    ------
    TraceError
        The file is malformed, or holds what is no number of GPUs.
    """
    frame, place = read_csv(file)
    gpus = frame[GPUS].str.strip_chars().cast(pl.Int64, strict=False)
    place.refuse(gpus.is_null() | (gpus < 0), frame[GPUS], "must be a whole number of GPUs", REMEDY)
    return f"{len(gpus):,} machines with {int(gpus.sum()):,} GPUs in all; quotas of virtual clusters are not told"


RENAMED = {"timestamp": "submit_time", "duration": "duration", "num_gpus": "gpus", "cluster": "pool"}
"""The flat file's columns and their canonical names; a cluster here is one of Philly's virtual clusters."""
ZONE = "America/Los_Angeles"
HEAD_BYTES = 65536


class PhillyReader:
    """Reads the job log or the flat CSV. Jobs that never ran or asked for no GPU are left out and counted.

    The list of machines may be given too: a note tells the GPUs in all. The quotas of the virtual clusters were never
    published, so that none are told.
    """

    name = "philly"
    needs = tuple(RENAMED)

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` is a job log or has the flat file's columns."""
        return is_job_log(head) or set(RENAMED) <= set(header_of(head))

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read the log or the flat file.

        In the latter, job ids are its column `job_id`, else the row numbers from 0, zero-padded; further columns stay.

        Parameters
        ----------
        sources : the file, and cluster_machine_list where it is at hand
        timezone : IANA zone of the times; None reads the wall clock as UTC, and a note says so
        strict : make rows that would be left out an error

        Raises
        ------
        TraceError
            A file cannot be read, or a row of it cannot be used; the line names the first such row.
        ConfigError
            The zone is not known, or there is not exactly one file of jobs.
        """
        clock = Clock(timezone)
        files = [read_file(source) for source in sources]
        machines = [is_machine_list(header_of(file.data[:HEAD_BYTES])) for file in files]
        file = _only_jobs([file for file, is_list in zip(files, machines, strict=True) if not is_list])
        notes = tuple(machines_note(file) for file, is_list in zip(files, machines, strict=True) if is_list)
        # JSON begins with a bracket behind any mark and blanks
        read = _read_log if file.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") else _read_flat
        return read(file, clock, strict, notes)


def _only_jobs(files: Sequence[FileBytes]) -> FileBytes:
    if len(files) != 1:
        given = ", ".join(file.path for file in files) or "none"
        raise ConfigError(f"philly takes one file of jobs, got {len(files)} ({given}); convert them one by one")
    return files[0]


def _read_flat(file: FileBytes, clock: Clock, strict: bool, notes: tuple[str, ...]) -> Reading:
    frame, place = read_csv(file)
    require_columns(frame.columns, place, PhillyReader.needs)
    place = replace(place, columns={ours: theirs for theirs, ours in RENAMED.items()})
    typed = typed_columns(_canonical_names(frame), place, clock)
    kept = leave_out(typed.frame, _unfit(typed.frame), place, strict)
    return kept.reading([file], frame.height, (*typed.notes, *notes))


def _canonical_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns under their canonical names, row numbers as job ids where none are told, and all further columns."""
    # one that has the canonical name of another would take its place
    extra = [name for name in frame.columns if name not in RENAMED and name not in RENAMED.values()]
    table = frame.select(*RENAMED, *extra).rename(RENAMED)
    if "job_id" in extra:
        return table
    # the artifact's file has no ids; rows in order stand in for them
    digits = len(str(max(frame.height - 1, 0)))
    job_id = pl.Series("job_id", range(frame.height), dtype=pl.Int64).cast(pl.String).str.zfill(digits)
    return table.insert_column(0, job_id)


def _unfit(frame: pl.DataFrame) -> list[Unfit]:
    return [
        Unfit(NO_DURATION, frame["duration"].fill_null(0.0) <= 0.0, "duration", "must be > 0"),
        Unfit(NO_GPUS, frame["gpus"].fill_null(0) < 1, "gpus", "must be >= 1"),
    ]
