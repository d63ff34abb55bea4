"""What `sacct --json` and `squeue --json` say of jobs, as the rows of `sacct --parsable2`.

slurm.schedmd.com/rest_api.html: data parsers 0.0.37 to 0.0.38 write numbers, from 0.0.39 on a number may be
{"set": true, "infinite": false, "number": 5}, states and flags lists. Times are seconds from the epoch, time limits
minutes. Steps stand inside of their job; a job of squeue that has not started tells when Slurm plans to start it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import Any

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import MOST_SHOWN, Place, shown_value
from jobcast.traces.files import FileBytes
from jobcast.traces.readers.sacct_jobs import NOT_ENDED, PENDING, RESIZING, WAITING, PipeTable

FIRST_KEY = re.compile(rb'\s*\{\s*"(?:meta|jobs|errors|warnings|last_backfill|last_update)"\s*:')
ACCOUNTING = {
    "jobid": "job_id", "array": "array.job_id", "task": "array.task_id", "tasks": "array.task", "het": "het.job_id",
    "offset": "het.job_offset", "user": "user", "account": "account", "qos": "qos", "partition": "partition",
    "cluster": "cluster", "jobname": "name", "state": "state.current", "submit": "time.submission",
    "eligible": "time.eligible", "start": "time.start", "end": "time.end", "elapsedraw": "time.elapsed",
    "timelimit": "time.limit", "nodelist": "nodes", "priority": "priority", "alloctres": "tres.allocated",
    "reqtres": "tres.requested",
}  # fmt: skip
"""Columns of sacct's table, and where `sacct --json` has them."""
QUEUE = ACCOUNTING | {
    "array": "array_job_id", "task": "array_task_id", "tasks": "array_task_string", "het": "het_job_id",
    "offset": "het_job_offset", "user": "user_name", "state": "job_state", "submit": "submit_time",
    "eligible": "eligible_time", "start": "start_time", "end": "end_time", "elapsedraw": "end_time",
    "timelimit": "time_limit", "alloctres": "tres_alloc_str", "reqtres": "tres_req_str",
}  # fmt: skip
"""The same of `squeue --json`, which tells no time elapsed."""
NAMES = ("user", "account", "qos", "partition", "cluster", "jobname", "nodelist")
TIMES = ("submit", "eligible", "start", "end")
NUMBERS = ("jobid", "array", "task", "het", "offset", *TIMES, "elapsedraw", "timelimit", "priority")
NO_VALUE = {2**bits - 2 for bits in (16, 32, 64)}
INFINITE = {2**bits - 1 for bits in (16, 32, 64)}
"""How Slurm's C code writes that there is no number, or no limit (slurm.h)."""
AGAIN = "write it again with sacct --json or squeue --json"


def is_json(head: bytes) -> bool:
    """Whether a file that begins with `head` is what Slurm's commands write with --json.

    >>> is_json(b'{ "meta": { "plugin": {'), is_json(b'[{"jobs": 1}]'), is_json(b"JobID|State")
    (True, False, False)
    """
    return FIRST_KEY.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


def read_json(file: FileBytes) -> PipeTable:
    """Jobs of one file, a row each.

    Raises
    ------
    TraceError
        The file is no whole JSON document or an answer of Slurm that tells an error, or a field cannot be read.
    """
    jobs = listed_jobs(file)
    place = Place(file.path, lambda index: f"job {index + 1}", _shown(jobs))
    rows = [_row(job_figures(job, place, number), _fields(job) is QUEUE) for number, job in enumerate(jobs)]
    schema: dict[str, Any] = {"jobid": pl.String, "state": pl.String, **dict.fromkeys(NAMES, pl.String)}
    schema |= dict.fromkeys(("elapsedraw", "timelimit", "priority", "alloctres", "reqtres"), pl.String)
    frame = pl.DataFrame(rows, schema=schema | dict.fromkeys(TIMES, pl.Float64))
    return PipeTable(frame, place, 0)


def listed_jobs(file: FileBytes) -> list[Any]:
    """The jobs of a document, as Slurm wrote them. Raises TraceError where it has no list of them."""
    try:
        # names are the bytes that users gave, which need be no UTF-8: one such job must not hide all others
        said = json.loads(file.data.decode("utf-8-sig", "replace"))
    # deep nesting exhausts Python's stack, which is no bug of ours
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{file.path}: is no whole JSON document ({error}); {AGAIN}") from None
    jobs = said.get("jobs")
    if not isinstance(jobs, list):
        raise TraceError(f"{file.path}: holds no list of jobs{_errors(said)}; {AGAIN}")
    # An empty queue is no mistake beside a history.
    if not jobs and _errors(said):
        raise TraceError(f"{file.path}: holds no jobs{_errors(said)}; {AGAIN}")
    return jobs


def _errors(said: Mapping[str, Any]) -> str:
    """What Slurm says went wrong, after a comma; nothing where nothing did."""
    given = said.get("errors")
    rows = [
        str(one.get("description") or one.get("error") or one) if isinstance(one, dict) else str(one)
        for one in (given if isinstance(given, list) else ())
    ]
    return f", Slurm says: {'; '.join(rows)[:MOST_SHOWN]}" if rows else ""


def _fields(job: Any) -> Mapping[str, str]:
    return QUEUE if isinstance(job, dict) and "job_state" in job else ACCOUNTING


def _shown(jobs: Sequence[Any]) -> Mapping[str, str]:
    return _fields(jobs[0]) if jobs else ACCOUNTING


def job_figures(job: Any, place: Place, number: int) -> dict[str, Any]:
    """What a job tells, by the names of sacct's columns; numbers as `number_of` reads them."""
    if not isinstance(job, dict):
        raise TraceError(f"{place.path}, {place.row(number)}: must be an object, got {shown_value(job)}; {AGAIN}")
    result = {name: _at(job, path) for name, path in _fields(job).items()}
    for name in NUMBERS:
        value = number_of(result[name])
        if value is None:
            place.fail(number, name, "must be a number", result[name], AGAIN)
        result[name] = value
    return result


def _row(figures: Mapping[str, Any], queued: bool) -> dict[str, Any]:
    """The row of what `_told`; `queued`: by squeue."""
    row: dict[str, Any] = {name: plain_text(figures[name]) for name in NAMES}
    # 0 stands for an instant that has not come
    row |= {name: figures[name] if 0.0 < figures[name] < inf else None for name in TIMES}
    state, elapsed_s, priority = state_of(figures["state"]), figures["elapsedraw"], figures["priority"]
    if queued and state in NOT_ENDED:
        # its end is Slurm's plan
        elapsed_s, row["end"] = 0.0, None
    elif queued:
        elapsed_s = (row["end"] or 0.0) - (row["start"] or row["end"] or 0.0)
    return row | {
        "jobid": job_name([figures[name] for name in ("jobid", "array", "task", "het", "offset")], figures["tasks"]),
        "state": state,
        "elapsedraw": f"{elapsed_s:.0f}" if isfinite(elapsed_s) else None,
        "timelimit": _limit(figures["timelimit"]),
        "priority": f"{priority:.0f}" if isfinite(priority) else None,
        # what is allocated to a job that waits is of a run before
        "alloctres": None if state in WAITING else resources_text(figures["alloctres"]),
        "reqtres": resources_text(figures["reqtres"]),
    }


def _at(job: Mapping[str, Any], path: str) -> Any:
    """The value at a path of keys, None where there is none."""
    value: Any = job
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def number_of(value: Any) -> float | None:
    """A number as any of the parsers writes it, NaN where it is not set, infinite for no limit; None: it is none.

    >>> number_of(5), number_of({"set": True, "infinite": False, "number": 5}), number_of({"set": False, "number": 0})
    (5.0, 5.0, nan)
    >>> number_of(2**32 - 1), number_of({"set": False, "infinite": True, "number": 0}), number_of("five")
    (inf, inf, None)
    """
    if isinstance(value, dict):
        if value.get("infinite"):
            return inf
        return number_of(value.get("number")) if value.get("set") else float("nan")
    if value is None or value == "":
        return float("nan")
    if isinstance(value, str):
        return float(value) if value.isascii() and value.isdigit() else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value > 2.0**64:
        return None
    return float("nan") if value in NO_VALUE else inf if value in INFINITE else float(value)


def plain_text(value: Any) -> str | None:
    """
    >>> plain_text("gpu"), plain_text(""), plain_text(7)
    ('gpu', None, '7')
    """
    # JSON can write halves of characters, which no table holds
    return None if value is None or value == "" else str(value).encode("utf-8", "replace").decode()


def state_of(value: Any) -> str | None:
    """The state in one word: of a list the one that says that the job has not ended, else the first.

    >>> state_of("RUNNING"), state_of(["RUNNING", "COMPLETING"]), state_of(["TIMEOUT"]), state_of([])
    ('RUNNING', 'RUNNING', 'TIMEOUT', None)
    >>> state_of(["PENDING", "RESIZING"])
    'RESIZING'
    """
    states = [plain_text(one) for one in (value if isinstance(value, list) else [value])]
    # accounting keeps the flag alone, and no state reads as Slurm's first, which is PENDING
    if RESIZING in states and PENDING in states:
        return RESIZING
    return next((one for one in states if one in NOT_ENDED), states[0] if states else None)


def job_name(numbers: Sequence[float], tasks: Any) -> str | None:
    """A job's name as sacct's table writes it: 7, 7_3 of an array, 7_[4-9] of tasks that wait, 7+1 of several parts.

    `numbers`: of the job, its array, its task, the first part, its part.

    >>> nan = float("nan")
    >>> [job_name([9.0, *of], None) for of in ((0.0, nan, 0.0, nan), (7.0, 3.0, 0.0, nan), (0.0, nan, 7.0, 1.0))]
    ['9', '7_3', '7+1']
    >>> job_name([7.0, 7.0, nan, 0.0, 0.0], "4-9%2")
    '7_[4-9%2]'
    """
    job, array, task, het, offset = numbers
    if not isfinite(job):
        return None
    if array > 0 and isfinite(task):
        return f"{array:.0f}_{task:.0f}"
    if array > 0 and tasks:
        return f"{array:.0f}_[{tasks}]"
    return f"{het:.0f}+{offset:.0f}" if het > 0 and isfinite(offset) else f"{job:.0f}"


def _limit(minutes: float) -> str | None:
    """
    >>> _limit(90.0), _limit(float("inf")), _limit(float("nan"))
    ('0-01:30:00', 'UNLIMITED', None)
    """
    if not isfinite(minutes):
        return "UNLIMITED" if minutes == inf else None
    days, rest = divmod(int(minutes), 1440)
    return f"{days}-{rest // 60:02}:{rest % 60:02}:00"


def resources_text(tres: Any) -> str | None:
    """Resources as sacct's table writes them, from that text or from a list of them; memory is counted in MB.

    >>> resources_text([{"type": "cpu", "name": None, "count": 8}, {"type": "gres", "name": "gpu:a100", "count": 4}])
    'cpu=8,gres/gpu:a100=4'
    """
    if not isinstance(tres, list):
        return plain_text(tres)
    rows = []
    for one in tres:
        count = number_of(_at(one, "count"))
        if count is not None and isfinite(count):
            kind, name = _at(one, "type"), _at(one, "name")
            rows.append(f"{kind}{f'/{name}' if name else ''}={count:.0f}{'M' if kind == 'mem' else ''}")
    return ",".join(rows) or None
