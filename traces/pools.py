"""Pools and their quotas: read, written, or derived from what a trace asks for.

Demand is the GPUs that jobs would hold if each began as it is submitted.
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import ConfigError, PoolsError, TraceError
from jobcast.domain.hardware import ALWAYS_S, PoolsTable, Quota
from jobcast.domain.jobs import Pool
from jobcast.traces.check import Place, shown_columns
from jobcast.traces.column_types import read_instant
from jobcast.traces.files import PathLike, reason, replacing
from jobcast.traces.history import rows_by_pool
from jobcast.traces.table import Trace

RETRY_S = 900.0
"""Whoever found no room comes back after a quarter of an hour on average, and again."""


def peak_demand(submit_s: Floats, duration_s: Floats, gpus: Ints) -> int:
    """Most GPUs held at an instant; who ends as another begins has left.

    >>> peak_demand(np.array([0.0, 5.0, 10.0]), np.array([10.0, 10.0, 5.0]), np.array([2, 3, 1]))
    5
    """
    at_s, change = np.concatenate((submit_s, submit_s + duration_s)), np.concatenate((gpus, -gpus))
    return int(np.cumsum(change[np.lexsort((change, at_s))]).max(initial=0))


def put_off(submit_s: Floats, duration_s: Floats, gpus: Ints, room: int, rng: np.random.Generator) -> Floats:
    """Submissions, (n_jobs,) seconds, put off so that the demand stays within `room` GPUs, or the widest job.

    A queue with retrials: who fits comes, who does not tries again after exponential times of mean `RETRY_S`.

    >>> put_off(np.array([0.0, 1.0]), np.array([10.0, 5.0]), np.array([2, 1]), 3, np.random.default_rng(0))
    array([0., 1.])
    """
    free = max(room, int(gpus.max(initial=0)))
    moved_s = submit_s.copy()
    ends: list[tuple[float, int]] = []
    tries = [(at_s, job) for job, at_s in enumerate(submit_s.tolist())]
    heapify(tries)
    while tries:
        at_s, job = heappop(tries)
        while ends and ends[0][0] <= at_s:
            free += heappop(ends)[1]
        width = int(gpus[job])
        if width > free:
            heappush(tries, (at_s + rng.exponential(RETRY_S), job))
            continue
        free -= width
        moved_s[job] = at_s
        heappush(ends, (at_s + float(duration_s[job]), width))
    return moved_s


DEFAULT_LOAD = 0.8
"""Share of the quotas that the jobs of a trace keep busy on average, where a trace brings no quotas."""
CLOCK_S = 1.0
"""Logs round to seconds: one job's end may seem to lie so much after the start of the next on the same GPUs."""
MOST_DIGITS = 12
"""Of a number of GPUs or cells: Python reads no number of 5,000 digits, and no pool has 10^12 GPUs."""
MOST_CELLS = 1_000_000
CELLS = re.compile(r"(?P<count>[0-9]{1,12})x(?P<gpus>[0-9]{1,12})", re.ASCII)
"""So many cells of so many GPUs each, in the column `cells`."""


def read_pools(path: PathLike) -> PoolsTable:
    """Read a pools file: CSV with the columns pool, gpus and, where quotas change, from.

    A row of 0 GPUs with a date ends a pool.

    A column `cells` tells what a quota is made of, such as `2x8+1x4`: two cells of 8 GPUs and one of 4. Where it is
    empty the quota is as many whole servers as it holds, and powers of two.

    Raises
    ------
    PoolsError
        The file cannot be read, or a row of it cannot be used; the line names the first such row.
    """
    try:
        # spreadsheets put a mark before the header
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _parsed(csv.DictReader(file), str(path))
    except FileNotFoundError:
        raise PoolsError(f"{path}: no such file; give a CSV with the columns pool,gpus[,from]") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PoolsError(f"{path}: not readable as CSV ({reason(error)}); give pool,gpus[,from]") from None


def write_pools(pools: Iterable[Pool] | PoolsTable, path: PathLike) -> None:
    """Write a pools file, names ascending, under a temporary name first."""
    quotas = (pools if isinstance(pools, PoolsTable) else PoolsTable.of(pools)).quotas
    names = ["pool", "gpus"]
    # optional columns only where something stands in them
    names += ["from"] if any(quota.from_s > ALWAYS_S for quota in quotas) else []
    names += ["cells"] if any(quota.cells for quota in quotas) else []
    text = io.StringIO()
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for quota in sorted(quotas, key=lambda quota: (quota.pool, quota.from_s)):
        result = {"from": from_text(quota.from_s), "cells": cells_text(quota.cells)}
        writer.writerow({"pool": quota.pool, "gpus": quota.gpus, **result})
    with replacing(path) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8", newline="")


def derive_pools(trace: Trace, load: float = DEFAULT_LOAD, span_s: float | None = None) -> list[Pool]:
    """Quotas that a trace would keep busy to a share of `load`.

    max(widest job, ceil(GPU-time / span / load)) GPUs a pool, names ascending; pools without GPUs are none.

    Parameters
    ----------
    trace : the jobs; GPU-time is the sum of width x duration
    load : share of the quota that is busy on average, in (0, 1]
    span_s : seconds over which the work comes; by default from the first to the last submission of the trace,
        or to its last end where all jobs are submitted at once

    Raises
    ------
    ConfigError
        `load` or `span_s` is out of range.
    TraceError
        The trace holds no jobs, or none that asks for GPUs.
    """
    if not 0.0 < load <= 1.0:
        raise ConfigError(f"load must be in (0, 1], got {load}; 0.8 keeps quotas 80 % busy")
    if not len(trace):
        raise TraceError(f"{trace.name}: no jobs, so no quotas can be derived; widen the window or give a pools file")
    span_s = _span_s(trace) if span_s is None else span_s
    if not 0.0 < span_s < math.inf:
        raise ConfigError(f"span_s must be a number of seconds > 0, got {span_s}; leave it out to use the trace's")
    gpus, gpu_time_s = trace.gpus, trace.gpu_time_s
    if not gpus.any():
        raise TraceError(f"{trace.name}: no job asks for GPUs, so no quotas can be derived; give a pools file")
    return [
        Pool(name, max(int(gpus[rows].max()), math.ceil(float(gpu_time_s[rows].sum()) / span_s / load)))
        for name, rows in rows_by_pool(trace).items()
        if gpus[rows].any()
    ]


def held_beyond(trace: Trace, pools: Iterable[Pool]) -> str:
    """A clause for what tells of derived quotas: the trace's own starts show that pools have more GPUs; else nothing.

    Averages do not show what a cluster of quiet weeks has, and replays on less than that queue where nobody waited.
    Elastic jobs, and those of whom no start or end is told, may have held less and do not count.
    """
    if "start_time" not in trace.jobs.columns:
        return ""
    told = trace.jobs["start_time"].is_not_null().to_numpy() & trace.ended & ~trace.elastic
    # of a job that was stopped in between only its run time is sure, and not when: it does not count
    between_s = np.subtract(trace.end_s, trace.start_s, out=np.full(len(trace), np.inf), where=told)
    told &= between_s <= trace.duration_s + CLOCK_S
    held_s = np.maximum(trace.duration_s - CLOCK_S, 0.0)
    rows = {name: its[told[its]] for name, its in rows_by_pool(trace).items()}
    held = {
        pool: peak_demand(trace.start_s[rows[pool.name]], held_s[rows[pool.name]], trace.gpus[rows[pool.name]])
        for pool in pools
    }
    beyond = {pool: most for pool, most in held.items() if most > pool.quota}
    if not beyond:
        return ""
    worst = max(beyond, key=lambda pool: beyond[pool] / pool.quota)
    return (
        f"; too few, unless some borrowed: by the trace's starts jobs of {len(beyond)} of {len(held)} pools held "
        f"more at once ({worst.name}: {beyond[worst]:,}, derived {worst.quota:,}), so that jobs of a replay wait, "
        "and policies gain, more than they would: give --pools a file of the GPUs that there are"
    )


def _span_s(trace: Trace) -> float:
    submit_s = trace.submit_s
    longest_s = (trace.end_s - submit_s[0])[trace.ended].max(initial=0.0)
    return float(submit_s[-1] - submit_s[0]) or float(longest_s) or 1.0


def _parsed(rows: "csv.DictReader[str]", path: str) -> PoolsTable:
    found = list(rows.fieldnames or [])
    missing = [name for name in ("pool", "gpus") if name not in found]
    if missing:
        raise PoolsError(
            f"{path}: column {' and '.join(missing)} missing, found {shown_columns(found)}; give pool,gpus[,from]"
        )
    quotas: dict[tuple[str, float], Quota] = {}
    for row in rows:
        where = f"{path}, row {rows.line_num}"
        quota = _quota(row, where)
        if (quota.pool, quota.from_s) in quotas:
            raise PoolsError(f"{where}, column pool: {quota.pool!r} is given twice; keep one row of it")
        quotas[quota.pool, quota.from_s] = quota
    if not quotas:
        raise PoolsError(f"{path}: no pools, only a header; give at least one row of pool,gpus")
    return PoolsTable(tuple(quotas[key] for key in sorted(quotas)))


def _quota(row: dict[str, str], where: str) -> Quota:
    if None in row:
        raise PoolsError(f"{where}: more fields than the header has; quote names that hold commas")
    pool, gpus, since = row["pool"] or "", (row["gpus"] or "").strip(), (row.get("from") or "").strip()
    if not pool.strip():
        raise PoolsError(f"{where}, column pool: must not be empty; fill it in or drop the row")
    # Without a date 0 would be a pool that never is: a slip.
    least = 0 if since else 1
    if not gpus.isascii() or not gpus.isdigit() or len(gpus) > MOST_DIGITS or int(gpus) < least:
        how = "correct or drop the row, or tell in the column from since when the pool has 0"
        raise PoolsError(f"{where}, column gpus: must be a whole number >= 1, got {gpus!r}; {how}")
    cells = parse_cells((row.get("cells") or "").strip(), int(gpus), f"{where}, column cells")
    return Quota(pool, int(gpus), parse_from_s(since, f"{where}, column from"), cells)


def parse_cells(text: str, gpus: int, where: str) -> tuple[int, ...]:
    """`2x8+1x4` as (8, 8, 4); nothing where nothing is told. Raises PoolsError."""
    if not text:
        return ()
    found = [CELLS.fullmatch(part) for part in text.split("+")]
    rows = [(int(part["count"]), int(part["gpus"])) for part in found if part]
    if not all(found) or 0 in [size for _, size in rows]:
        raise PoolsError(f"{where}: must be COUNTxGPUS, joined by +, such as 2x8+1x4, got {text!r}")
    if sum(count * size for count, size in rows) != gpus:
        raise PoolsError(f"{where}: {text} are not the {gpus} GPUs of the pool; make them agree")
    if sum(count for count, _ in rows) > MOST_CELLS:
        raise PoolsError(f"{where}: {text} are more than {MOST_CELLS:,} cells; correct it")
    return tuple(sorted((size for count, size in rows for _ in range(count)), reverse=True))


def cells_text(cells: tuple[int, ...]) -> str:
    """(8, 8, 4) as `2x8+1x4`."""
    return "+".join(f"{count}x{gpus}" for gpus, count in sorted(Counter(cells).items(), reverse=True))


def parse_from_s(text: str, where: str) -> float:
    """An instant, always where nothing is told. Raises PoolsError."""
    if not text:
        return ALWAYS_S
    try:
        return read_instant(text, Place(where))
    except TraceError:
        raise PoolsError(f"{where}: must be a time, got {text!r}; write ISO-8601 or seconds from the epoch") from None


def from_text(instant_s: float) -> str:
    """An instant as `parse_from_s` reads it back."""
    if instant_s == ALWAYS_S:
        return ""
    return datetime.fromtimestamp(instant_s, UTC).isoformat().replace("+00:00", "Z")
