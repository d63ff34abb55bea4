"""A finished run as explanations need it: its jobs as columns, and what its record tells beside them."""

import difflib
import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.errors import ConfigError, PoolsError, TraceError
from jobcast.pipelines.experiments.run_record import POOLS, SPAN_COLUMNS, RunRecord, read_run_record, record_folder
from jobcast.pipelines.report.formatting import iso
from jobcast.simulator.log import Spans, flat_spans
from jobcast.traces.files import read_file, reason
from jobcast.traces.pools import read_pools
from jobcast.traces.table_files import is_parquet, read_parquet

NEEDED = ("job_id", "pool", "submit_time", "start_time", "end_time", "gpus", "duration")
TIMES = NEEDED[2:5]
OTHER_LOGS = ("fair_finish_s", "energy_kwh", "bandwidth_mb", "nodes")
"""Columns of logs of policies that do not start whole jobs from pools' quotas, where no record tells."""
CLOSED_LOOP = "a closed-loop run: fcfs is worked out for the arrivals of this run, not for those of its own"
NO_QUOTAS = "quotas are not known: nothing is told of fcfs, of idle GPUs and of who was helped; pass --pools FILE"
NO_SPANS = "some jobs were stopped meanwhile: they are taken to hold their GPUs from first start to end"
AMID = "the run began at {} with recorded jobs: what jobs waited for until then is not known"
NEAR = 3
MICRO = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class RunTable:
    """Jobs by (submission, id), as columns; times in seconds from the epoch, to the microsecond.

    Attributes
    ----------
    path : of the table
    job_ids : unique
    pools : names ascending
    pool : (n_jobs,) index into `pools`
    submit_s, start_s, end_s : (n_jobs,) the last two infinite for a job that never ran
    gpus : (n_jobs,) widths
    duration_s : (n_jobs,) run times, with what starting cost
    dedicated : (n_jobs,) whether it ran against its pool's quota
    preemptions : (n_jobs,) how often it was stopped
    bins : (n_jobs,) labels of the duration bins that the policy was told, None where it asked none
    held : stretches in which jobs held GPUs, by their beginning; nodes are -1 where GPUs are known by number alone
    quotas : (n_pools,) GPUs, None where they are not known
    by_pools : whether whole jobs were started from pools' quotas
    begin_s : when the run began, with recorded jobs; less than all others where with an empty cluster
    rows : the table itself, in the same order
    record : what lies beside the table
    limits : `run_record.LIMIT_COLUMNS`, jobs by their place here; None where the run kept to none
    notes : what is missing for a full explanation
    """

    path: Path
    job_ids: list[str]
    pools: tuple[str, ...]
    pool: Ints
    submit_s: Floats
    start_s: Floats
    end_s: Floats
    gpus: Ints
    duration_s: Floats
    dedicated: Bools
    preemptions: Ints
    bins: list[str | None] | None
    held: Spans
    quotas: Ints | None
    by_pools: bool
    begin_s: float
    rows: pl.DataFrame
    record: RunRecord | None
    limits: pl.DataFrame | None
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.job_ids)

    @property
    def figures(self) -> Mapping[str, Any]:
        """What the record tells of the run, nothing without one."""
        return {} if self.record is None else self.record.figures

    @property
    def policy(self) -> str | None:
        """Name of the policy, where the record tells it."""
        return self.figures.get("policy")

    @property
    def known_s(self) -> Floats:
        """(n_jobs,) from when on it is known what a job waits for: its submission, or the beginning amid things."""
        return np.asarray(np.maximum(self.submit_s, self.begin_s))

    def bin_of(self, job: int) -> str | None:
        """Label of the duration bin that the policy was told of a job, None where it asked none."""
        return None if self.bins is None else self.bins[job]

    def seconds(self, column: str) -> Floats | None:
        """An optional column of instants, (n_jobs,) seconds from the epoch, infinite where empty; None without it."""
        if column not in self.rows.columns:
            return None
        result = self.rows[column]
        return _seconds(result if isinstance(result.dtype, pl.Datetime) else result.cast(pl.Float64, strict=False))

    def number(self, column: str, job: int) -> float | None:
        """An optional figure of a job, None where there is none."""
        if column not in self.rows.columns:
            return None
        value = self.rows[column].cast(pl.Float64, strict=False)[job]
        return None if value is None else float(value)

    def find(self, job_id: str) -> int:
        """Position of a job. Raises ConfigError that names those most like it, and what the run's trace left out."""
        if job_id in self.job_ids:
            return self.job_ids.index(job_id)
        # A slip of the pen is likelier than another log.
        near = difflib.get_close_matches(job_id, self.job_ids, NEAR, cutoff=0.5) or self.job_ids[:NEAR]
        raise ConfigError(
            f"--job {job_id}: no such job among the {len(self):,} of {self.path}; near: {', '.join(near)}"
            f"{self._rows_left_out()}"
        )

    def _rows_left_out(self) -> str:
        """How many rows of the trace were no jobs of the run, by reason: the record does not tell which."""
        dropped = self.figures.get("inputs", {}).get("dropped") or {}
        reasons = [f"{count:,} {reason}" for reason, count in dropped.items() if count]
        return f"; it may be among what was left out of the trace: {'; '.join(reasons)}" if reasons else ""


def read_run_table(path: Path, pools: Path | None = None) -> RunTable:
    """Read a log of `jobcast simulate --out` and the record beside it.

    Parameters
    ----------
    path : CSV or Parquet
    pools : a pools file, for logs without a record

    Raises
    ------
    TraceError
        The file is no such log.
    ConfigError
        Its record cannot be read.
    PoolsError
        The pools file cannot be used, or has no quota for a pool.
    """
    rows = _typed(_raw(path), path).with_row_index("row").sort("submit_time", "job_id")
    record = read_run_record(path)
    again = {} if record is None else record.figures.get("again") or {}
    begin_s = float(again["from_s"]) if again.get("recorded") else -np.inf
    by_pools = _by_pools(rows, record)
    given = _given(rows, record, pools) if by_pools else None
    names = tuple(sorted({*rows["pool"], *(given or ())}))
    submit_s, start_s, end_s = (_seconds(rows[name]) for name in TIMES)
    stopped = rows["preemptions"].to_numpy() if "preemptions" in rows.columns else np.zeros(len(rows), np.int64)
    quotas = None if given is None else _quotas(names, given, pools)
    limits = None if record is None else record.limits
    # Rows were sorted: records refer to them by their old place.
    places = np.argsort(rows["row"].to_numpy())
    return RunTable(
        path=path,
        job_ids=rows["job_id"].to_list(),
        pools=names,
        pool=np.searchsorted(np.array(names), rows["pool"].to_numpy().astype(str)).astype(np.int64),
        submit_s=submit_s,
        start_s=start_s,
        end_s=end_s,
        gpus=rows["gpus"].to_numpy(),
        duration_s=on_grid(rows["duration"].to_numpy() + (record.figures.get("restart_s", 0.0) if record else 0.0)),
        dedicated=_flags(rows),
        preemptions=stopped,
        bins=rows["duration_bin"].to_list() if "duration_bin" in rows.columns else None,
        held=_held(rows, record, places, start_s, end_s),
        quotas=quotas,
        by_pools=by_pools,
        begin_s=begin_s,
        rows=rows,
        record=record,
        limits=None if limits is None else limits.with_columns(seq=places[limits["seq"].to_numpy()]),
        notes=(
            *_missing(path, record, pools),
            *([NO_QUOTAS] if by_pools and quotas is None else []),
            *([NO_SPANS] if record is None and stopped.any() else []),
            *([AMID.format(iso(begin_s))] if again.get("recorded") else []),
            *([CLOSED_LOOP] if "trace_submit_time" in rows.columns else []),
        ),
    )


def _raw(path: Path) -> pl.DataFrame:
    file = read_file(path)
    if is_parquet(file.data):
        return read_parquet(file, "simulate again with --out")
    try:
        # All as text: ids that look like numbers keep their zeros.
        return pl.read_csv(io.BytesIO(file.data), infer_schema=False)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        why = reason(error)
    raise TraceError(f"{path}: cannot be read as CSV or Parquet ({why}); give what jobcast simulate --out wrote")


def _typed(rows: pl.DataFrame, path: Path) -> pl.DataFrame:
    missing = [name for name in NEEDED if name not in rows.columns]
    if missing or not len(rows):
        what = f"column {', '.join(missing)} missing" if missing else "no jobs"
        raise TraceError(f"{path}: is no log of a simulation ({what}); give what jobcast simulate --out wrote")
    wanted = {"gpus": pl.Int64, "duration": pl.Float64, "preemptions": pl.Int64, "job_id": pl.String, "pool": pl.String}
    wanted |= {name: pl.Float64 for name in TIMES if not isinstance(rows.schema[name], pl.Datetime)}
    for name, kind in wanted.items():
        if name not in rows.columns:
            continue
        typed = rows[name].cast(kind, strict=False)
        wrong = rows[name].is_not_null() & typed.is_null() if name in TIMES else typed.is_null()
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            raise TraceError(
                f"{path}, row {row + 1}, column {name}: {rows[name][row]!r} is no value of a log; "
                "give what jobcast simulate --out wrote"
            )
        rows = rows.with_columns(typed.alias(name))
    return rows


def _seconds(column: pl.Series) -> Floats:
    """Seconds on the grid of microseconds that CSV is written to; infinite where empty."""
    if isinstance(column.dtype, pl.Datetime):
        seconds = column.dt.epoch("us").cast(pl.Float64).fill_null(np.inf).to_numpy() / MICRO
    else:
        seconds = column.fill_null(np.inf).to_numpy()
    return on_grid(seconds)


def on_grid(seconds: Floats) -> Floats:
    """Seconds rounded to the microsecond, as tables tell them."""
    grid: Floats = np.rint(np.asarray(seconds, dtype=np.float64) * MICRO) / MICRO
    return grid


def _flags(rows: pl.DataFrame) -> Bools:
    if "dedicated" not in rows.columns:
        return np.ones(len(rows), dtype=np.bool_)
    column = rows["dedicated"]
    flags: Bools = (column == "true").to_numpy() if column.dtype == pl.String else column.cast(pl.Boolean).to_numpy()
    return flags


def _by_pools(rows: pl.DataFrame, record: RunRecord | None) -> bool:
    if record is not None:
        return bool(record.figures["mechanism"] == POOLS)
    return not any(name in rows.columns for name in OTHER_LOGS)


def _held(rows: pl.DataFrame, record: RunRecord | None, places: Ints, start_s: Floats, end_s: Floats) -> Spans:
    """Stretches in which jobs held GPUs, by their beginning; without a record each from its start to its end."""
    if record is None:
        job = np.flatnonzero(np.isfinite(start_s))
        held = flat_spans(job, start_s[job], end_s[job], rows["gpus"].to_numpy()[job])
    else:
        seq, begin_s, until_s, gpus, node = (record.spans[name].to_numpy() for name in SPAN_COLUMNS)
        held = Spans(places[seq], on_grid(begin_s), on_grid(until_s), gpus, node)
    # By beginning, then by job: lexsort takes its main key last.
    order = np.lexsort((held.job, held.from_s))
    return Spans(*(getattr(held, each.name)[order] for each in fields(held)))


def _given(rows: pl.DataFrame, record: RunRecord | None, pools: Path | None) -> Mapping[str, int] | None:
    """Quotas by pool, of pools without jobs too; None where nothing tells them."""
    if record is not None:
        return record.quotas
    if pools is None:
        return None
    return {pool.name: pool.quota for pool in read_pools(pools).at(float(_seconds(rows["submit_time"])[0]))}


def _quotas(names: tuple[str, ...], given: Mapping[str, int], pools: Path | None) -> Ints:
    lacking = [name for name in names if name not in given]
    if lacking:
        raise PoolsError(f"{pools}: no quota for pool {lacking[0]}, in which jobs of the log lie; add a row for it")
    return np.array([given[name] for name in names], dtype=np.int64)


def _missing(path: Path, record: RunRecord | None, pools: Path | None) -> list[str]:
    place = record_folder(path)
    if record is None:
        why = "is of another table" if place.exists() else "is not there"
        return [f"{place} {why}: policy, forecasts and reservations are not known; simulate again with --out"]
    return [] if pools is None else [f"--pools {pools}: not read, {place} tells the quotas"]
