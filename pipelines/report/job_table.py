"""The result of a simulation as a table, one row a job, whatever the policy."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.simulator import metrics
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload
from jobcast.traces.files import replacing
from jobcast.traces.table_files import write_parquet

MICROSECOND_DIGITS = 6
TIMES = (
    *("submit_time", "start_time", "end_time", "trace_submit_time", "predicted_end_time", "baseline_end_time"),
    *("worst_case_end_time", "renewed_worst_case_end_time"),
    "recorded_start_time",
)
DURATION_BIN = "duration_bin"
"""Column of the duration bin that a policy was told of a job, such as 5-60min."""
LISTED = ("job_id", "pool", "user", "tag", "duration")
"""What a table takes from the trace."""


def _finite(times_s: np.ndarray) -> np.ndarray:
    """Instants, NaN in place of those that are never."""
    return np.where(np.isfinite(times_s), times_s, np.nan)


TOLD: Mapping[str, tuple[tuple[str, ...], Callable[[RunLog], np.ndarray]]] = {
    "fair_finish_s": (("contention_events",), metrics.fair_finish_s),
    "fair_finish_over_time_s": (("contention_events",), lambda log: metrics.fair_finish_s(log, over_time=True)),
    "fair_finish_by_sharing_s": (("shared_end_s",), lambda log: log.columns["shared_end_s"] - log.submit_s),
    "recorded_start_time": (("recorded_start_s",), lambda log: log.columns["recorded_start_s"]),
    "predicted_end_time": (("predicted_end_s",), lambda log: log.columns["predicted_end_s"]),
    "predicted_jct_s": (("predicted_end_s",), lambda log: log.columns["predicted_end_s"] - log.submit_s),
    "worst_case_end_time": (("worst_case_end_s",), lambda log: _finite(log.columns["worst_case_end_s"])),
    "renewed_worst_case_end_time": (("renewed_end_s",), lambda log: _finite(log.columns["renewed_end_s"])),
    "deadline": (("due_s",), lambda log: _finite(log.columns["due_s"])),
    "deadline_met": (("due_s",), metrics.in_time),
    "tardiness_s": (("due_s",), metrics.tardiness_s),
    "tardiness_eur": (("due_s", "weight", "energy_eur"), metrics.tardiness_eur),
    "accuracy_by_deadline": (("deadline_accuracy",), lambda log: log.columns["deadline_accuracy"]),
    "iterations_done": (("done", "iterations"), lambda log: log.columns["done"] / log.columns["iterations"]),
    "bandwidth_mb": (("edge_mb", "moved_mb"), lambda log: log.columns["edge_mb"] + log.columns["moved_mb"]),
    "migrations": (("migrations",), lambda log: log.columns["migrations"].astype(np.int64)),
}
"""Column of the table -> columns of the log that it needs, and how it comes from them."""
RENAMED = (
    *("recorded_start_s", "due_s", "predicted_end_s", "worst_case_end_s", "renewed_end_s"),
    *("deadline_accuracy", "done", "edge_mb", "bins_off", "shared_end_s"),
)
"""Columns of the log that are told in another way; all others under their own names."""


def check_job_table(path: Path, option: str = "--out ") -> None:
    """ConfigError unless the ending names a format."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ConfigError(f"{option}{path}: end the name in .csv or .parquet")


def listed(workload: Workload) -> pl.DataFrame:
    """`LISTED` of a workload's jobs."""
    jobs = workload.jobs
    rows = {name: [getattr(job, name) for job in jobs] for name in ("job_id", "pool", "user", "tag")}
    return pl.DataFrame(rows | {"duration": [outcome.duration_s for outcome in workload.outcomes]})


def job_table(
    log: RunLog,
    jobs: pl.DataFrame,
    base: RunLog | None = None,
    bins: Sequence[str | None] | None = None,
) -> pl.DataFrame:
    """One row a job in the trace's order; times in seconds from the epoch, empty where a job never ran.

    After what every run tells come the columns that its log has, by `TOLD` or under their own names. Of a closed-loop
    run `submit_time` is when a job arrived in it, and `trace_submit_time` when in the trace.

    Parameters
    ----------
    log : of the run
    jobs : `LISTED` of each, of which user and tag may be missing
    base : of a run of the same jobs under the baseline: with it `slowed` and `baseline_end_time`
    bins : labels of the duration bins that were forecast, a job each
    """
    columns: dict[str, object] = {
        "job_id": jobs["job_id"],
        "pool": jobs["pool"],
        "submit_time": log.submit_s,
        "start_time": log.start_s,
        "end_time": log.end_s,
        "gpus": log.gpus.astype(np.int64),
        "duration": jobs["duration"],
        "preemptions": log.preemptions.astype(np.int64),
        "dedicated": log.dedicated.astype(bool),
    }
    if bins is not None:
        columns[DURATION_BIN] = pl.Series(bins, dtype=pl.String)
    if log.trace_submit_s is not None:
        columns["trace_submit_time"] = log.trace_submit_s
    # Those of a job's last start: `3`, `0+3`.
    nodes = last_nodes(log)
    if nodes:
        named = ["+".join(map(str, nodes[job])) if job in nodes else None for job in range(len(log))]
        columns["nodes"] = pl.Series(named, dtype=pl.String)
    for name in ("user", "tag"):
        # A column that tells of nobody is left out.
        if name in jobs.columns and (jobs[name].fill_null("") != "").any():
            columns[name] = jobs[name]
    columns["waited_s"] = metrics.queued_s(log)
    result = {name: of(log) for name, (needed, of) in TOLD.items() if all(one in log.columns for one in needed)}
    own = {name: column for name, column in log.columns.items() if name not in RENAMED}
    table = pl.DataFrame(columns | result | {name: column for name, column in own.items() if name not in result})
    if base is not None:
        # Jobs that never ran under one of both are neither slowed nor not: the cell stays empty.
        known, slowed = pl.Series(metrics.same_jobs(log, base)), pl.Series(metrics.is_slowed(log.jct_s, base.jct_s))
        table = table.with_columns(slowed=pl.when(known).then(slowed), baseline_end_time=base.end_s)
    return table.with_columns(pl.col(pl.Float64).fill_nan(None))


def last_nodes(log: RunLog) -> dict[int, list[int]]:
    """Where jobs held GPUs at their end; nothing where GPUs are known by number alone."""
    spans = log.spans
    last_s = np.full(len(log), -np.inf)
    # A job has several spans: plain indexing would keep only the last one written.
    np.maximum.at(last_s, spans.job, spans.until_s)
    found: dict[int, list[int]] = {}
    for row in np.flatnonzero((spans.node >= 0) & (spans.until_s == last_s[spans.job])).tolist():
        found.setdefault(int(spans.job[row]), []).append(int(spans.node[row]))
    return {job: sorted(set(held)) for job, held in found.items()}


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table whose times are seconds from the epoch: CSV to the microsecond, Parquet with UTC timestamps."""
    check_job_table(path)
    times = [name for name in TIMES if name in table.columns]
    with replacing(path) as draft:
        if path.suffix.lower() == ".csv":
            table.write_csv(draft, float_precision=MICROSECOND_DIGITS, float_scientific=False)
        else:
            # Rounded before it is cut: 0.1 s must not become 99,999 microseconds.
            micro = [(pl.col(name) * 1e6).round().cast(pl.Int64) for name in times]
            stamps = [column.cast(pl.Datetime("us", "UTC")) for column in micro]
            write_parquet(table.with_columns(stamps), draft)
