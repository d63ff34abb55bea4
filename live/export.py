"""What was seen of a running cluster, as the canonical table of a trace: what forecasts learn from later."""

from datetime import UTC, datetime
from math import isnan
from typing import Any

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.live.job_record import JobRecord
from jobcast.live.recorded_jobs import ClusterRecord
from jobcast.traces.columns import UTC_TIME

TIMES = ("submit_time", "start_time", "end_time", "known_time")


def exported(record: ClusterRecord) -> pl.DataFrame:
    """A row a job, by submission; `known_time` is from when its end was known.

    Jobs that ended without having run are left out, as in exports of accounting; those that wait or run have no end.
    Raises TraceError where there is no job.
    """
    jobs = record.recorded()
    named = zip(jobs.jobs, jobs.duration_s.tolist(), strict=True)
    rows = [_row(job.job_id, record.jobs[job.job_id], run_s) for job, run_s in named]
    kept = [row for row in rows if row is not None]
    if not kept:
        raise TraceError("nothing was seen of a cluster yet; start `jobcast serve --slurm` or `jobcast advise --slurm`")
    schema: dict[str, Any] = {"job_id": pl.String, "pool": pl.String, **dict.fromkeys(TIMES, UTC_TIME)}
    schema |= {
        "duration": pl.Float64,
        "gpus": pl.Int64,
        "user": pl.String,
        "tag": pl.String,
        "time_limit_s": pl.Float64,
    }
    return pl.DataFrame(kept, schema=schema)


def _row(name: str, known: JobRecord, run_s: float) -> dict[str, Any] | None:
    end = known.end if known.over else None
    if end is not None and not run_s > 0.0:
        return None
    return {
        "job_id": name,
        "pool": known.facts["pool"],
        "submit_time": _time(known.submit_s),
        "start_time": _time(known.start_s),
        "end_time": None if end is None else _time(max(end.at_s, known.submit_s)),
        "known_time": None if end is None else _time(max(end.known_s, known.submit_s)),
        "duration": None if end is None else run_s,
        "gpus": known.facts["gpus"],
        "user": known.facts.get("user") or None,
        "tag": known.facts.get("tag") or None,
        "time_limit_s": known.facts.get("time_limit_s"),
    }


def _time(at_s: float) -> datetime | None:
    return None if isnan(at_s) else datetime.fromtimestamp(at_s, UTC)
