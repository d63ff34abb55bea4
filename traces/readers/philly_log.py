"""Philly's own job log: a JSON array, one object a job, each run of it an attempt with the GPUs that it held.

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
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place
from jobcast.traces.files import FileBytes
from jobcast.traces.readers.attempts import Runs, run_times
from jobcast.traces.readers.reading import NO_DURATION, NO_GPUS, Unfit, leave_out, merged_notes, without_contradictions
from jobcast.traces.table import Source, Trace
from jobcast.traces.times import Clock
from jobcast.traces.typed import MISSING, lean_times

_BLANKS = re.compile(r"[ \t\r\n]*")


def values_of(file: FileBytes) -> Iterator[Any]:
    """The values of a JSON array, one after another.

    Raises
    ------
    TraceError
        The file is no UTF-8 text or no JSON array; the line names the line of the file.
    """
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
        except RecursionError:
            raise _malformed(text, at, "nested too deeply", file.path) from None
        except json.JSONDecodeError as error:
            raise _malformed(text, error.pos, error.msg, file.path) from None
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


def read_job_log(file: FileBytes, clock: Clock, strict: bool, notes: tuple[str, ...] = ()) -> Trace:
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
    lives = run_times(_times(columns.submit), runs, place, clock)
    frame = lives.jobs.with_columns(
        pl.Series("job_id", columns.job_id, dtype=pl.String),
        pl.Series("pool", columns.pool, dtype=pl.String),
        pl.Series("gpus", columns.gpus, dtype=pl.Int64),
        pl.Series("user", columns.user, dtype=pl.String),
        pl.Series("state", columns.state, dtype=pl.String),
    )
    kept = leave_out(frame, _unfit(frame), place, strict)
    jobs, more = without_contradictions(kept.frame.drop(FLAGS), kept.place, strict)
    differing = (f"gpus: attempts differ in {columns.differing} jobs, the widest counts",) if columns.differing else ()
    return Trace.from_frame(
        jobs,
        name=file.name,
        source=Source(file.path, file.sha256, frame.height),
        notes=(*merged_notes(lives.notes), *notes, *differing, *more),
        dropped=kept.dropped,
        place=kept.place,
    )


def _unfit(frame: pl.DataFrame) -> list[Unfit]:
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
    if value is None or (type(value) is str and value.isascii()):
        return value
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
    text = ascii(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
