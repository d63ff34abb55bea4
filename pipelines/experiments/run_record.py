"""What a table of jobs does not tell of its run, in a folder beside it: `jobs.csv.run` for `jobs.csv`.

`run.json` names policy, forecasts, seed, settings, quotas and inputs; `forecasts.parquet` holds what a policy was told
about pools, a row whenever an answer changed; `job_forecasts.parquet` what was forecast of jobs; `spans.parquet` which
jobs held how many GPUs of which node when; `replaced.parquet` since when answers that could not be trusted were
replaced, and good again, where any were; `limits.parquet` which limits of accounts, QOS and users jobs were kept to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.domain.horizons import bin_labels
from jobcast.domain.switches import Switch, Switches
from jobcast.pipelines.experiments.forecast_recording import Recording
from jobcast.pipelines.experiments.rigid_jobs import RESUME_S
from jobcast.pipelines.experiments.settings import loaded
from jobcast.pipelines.report.files import read_json, to_json
from jobcast.schedulers.accounting import Accounting
from jobcast.schedulers.backfill import CLUSTER, is_ranked
from jobcast.schedulers.pool_policies import BackfillSettings
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.guard import Replaced
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload
from jobcast.traces.files import replacing, sha256_of
from jobcast.traces.table_files import read_parquet, write_parquet

FORMAT = 2
AGAIN = "simulate again with --out"
RECORD, ANSWERS, SPANS, REPLACED = "run.json", "forecasts.parquet", "spans.parquet", "replaced.parquet"
OF_JOBS, LIMITS = "job_forecasts.parquet", "limits.parquet"
POOLS, OTHER = "pools", "other"
"""How a run schedules: whole jobs from pools' quotas, or in some other way (rounds, sizes, tasks, nodes)."""
COPIED = (
    "forecasts",
    "closed_loop",
    "seed",
    "configuration",
    "inputs",
    "models",
    "overlap_allowed",
    "jobcast",
    "bad_forecasts",
    "energy_kwh",
    "energy_eur",
)
"""What the record takes over from the figures of `simulate --json`."""
REPLACED_COLUMNS = {
    "at_s": pl.Float64,
    "kind": pl.String,
    "pool": pl.String,
    "horizon_s": pl.Float64,
    "job_id": pl.String,
    "reason": pl.String,
    "what": pl.String,
}
SPAN_COLUMNS = ("seq", "start_s", "end_s", "gpus", "node")
LIMIT_COLUMNS = {
    "seq": pl.Int64,
    "kind": pl.String,
    "name": pl.String,
    "user": pl.String,
    "gpus": pl.Float64,
    "jobs": pl.Float64,
}
ANSWER_COLUMNS = ("at_s", "question", "pool", "horizon_min", "level", "answer")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run, without its jobs.

    Attributes
    ----------
    figures : run.json: policy, forecasts, seed, settings, pools, horizons_min, inputs, ...
    answers : rows of `ANSWER_COLUMNS` by instant, None where nothing was asked
    spans : rows of seq (the job's row in the table), start_s, end_s, gpus, node (-1 where GPUs are known by number)
    replaced : rows of `simulator.guard.Replaced`, None where no answer was
    of_jobs : rows of `job_forecasts.COLUMNS`, None where nothing was forecast of jobs
    limits : rows of `LIMIT_COLUMNS`, None where nobody kept to any
    """

    figures: Mapping[str, Any]
    answers: pl.DataFrame | None
    spans: pl.DataFrame
    replaced: pl.DataFrame | None
    of_jobs: pl.DataFrame | None = None
    limits: pl.DataFrame | None = None

    @property
    def quotas(self) -> dict[str, int]:
        """GPUs by pool, names ascending."""
        return {name: int(gpus) for name, gpus in sorted(self.figures["pools"].items())}

    @property
    def switches(self) -> Switches:
        """Switches of sharing that the policy obeyed."""
        return Switches(tuple(Switch(pool, k, since, on) for pool, k, since, on in self.figures.get("switches") or ()))


def record_folder(table: Path) -> Path:
    """Where the record of a table of jobs lies.

    >>> record_folder(Path("out/jobs.csv")).as_posix()
    'out/jobs.csv.run'
    """
    return table.with_name(f"{table.name}.run")


def check_record(table: Path) -> None:
    """Refuse to replace something that is no record of a run. Raises ConfigError."""
    place = record_folder(table)
    if place.exists() and not (place / RECORD).is_file():
        raise ConfigError(f"--out {table}: {place} is there and no record of a run; move it or name another table")


def bin_names(recording: Recording | None, workload: Workload) -> list[str | None] | None:
    """Labels of the duration bins that were forecast, a job each; None where none was asked for."""
    bins = {} if recording is None else recording.bins()
    # No column at all, rather than an empty one.
    if recording is None or not bins:
        return None
    labels = bin_labels(recording.horizons_min)
    return [labels[bins[job.job_id]] if job.job_id in bins else None for job in workload.jobs]


def record_of(log: RunLog, policy: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """`run.json` of any run; `result` holds the figures of `simulate --json`."""
    return {
        "format": FORMAT,
        "mechanism": OTHER,
        "policy": policy,
        "law": log.law,
        "pools": {pool.name: pool.quota for pool in log.pools},
        **{key: result.get(key) for key in COPIED},
    }


def pool_record_of(
    log: RunLog,
    workload: Workload,
    policy: str,
    result: Mapping[str, Any],
    settings: Mapping[str, Any],
    recording: Recording | None,
) -> dict[str, Any]:
    """`run.json` of a run of whole jobs: where a policy starts them from pools' quotas, what it went by too."""
    found = record_of(log, policy, result)
    if find_policy(policy).kind != POOLS:
        return found
    switches = loaded(settings).get("switches")
    return {
        **found,
        "mechanism": POOLS,
        "servers": list(workload.servers),
        "restart_s": workload.restart_s,
        "resume_s": float(settings.get(RESUME_S, workload.resume_s)),
        "horizons_min": None if recording is None else list(recording.horizons_min),
        "switches": _switch_rows(switches) if isinstance(switches, Switches) else [],
        "ranked": _keeps_limits(policy) and is_ranked(settings.get("priority", CLUSTER), workload.rules),
    }


def limit_table(policy: str, workload: Workload) -> pl.DataFrame | None:
    """Limits of accounts, QOS and users that a run keeps its jobs to, a row a job and limit; None where it knows none.

    Infinite GPUs or jobs are not bounded.
    """
    books = Accounting(workload.rules, ranked=False)
    if not (_keeps_limits(policy) and books.limited):
        return None
    rows = [
        (seq, *bound.of[:2], bound.of[2] if bound.of[2:] else None, bound.gpus, bound.jobs)
        for seq, job in enumerate(workload.jobs)
        for bound in books.bounds(job)
        if min(bound.gpus, bound.jobs) < inf
    ]
    return pl.DataFrame(rows, schema=LIMIT_COLUMNS, orient="row")


def _keeps_limits(policy: str) -> bool:
    """Whether it goes by what the cluster file says of accounts and QOS."""
    return issubclass(find_policy(policy).settings, BackfillSettings)


def write_run_record(
    table: Path,
    figures: Mapping[str, Any],
    log: RunLog,
    recording: Recording | None = None,
    replaced: Sequence[Replaced] = (),
    of_jobs: pl.DataFrame | None = None,
    limits: pl.DataFrame | None = None,
) -> Path:
    """Write the record of a table that is there, whole or not at all; its folder comes back.

    `of_jobs`: what `job_forecasts.job_answer_table` tells; `limits`: what `limit_table` does.

    Raises ConfigError where it cannot be written.
    """
    place, spans = record_folder(table), log.spans
    # By content: a record must not be read beside a table that was written later.
    own = {"name": table.name, "sha256": sha256_of(table), "rows": len(log)}
    # All files or none: half a record would be taken for a whole one.
    with replacing(place) as draft:
        draft.mkdir()
        (draft / RECORD).write_text(to_json({**figures, "table": own}), encoding="utf-8")
        if recording is not None and recording.questions:
            write_parquet(answer_table(recording), draft / ANSWERS)
        # In the order of SPAN_COLUMNS, which `explain` reads them by.
        columns = (spans.job, spans.from_s, spans.until_s, spans.gpus, spans.node)
        write_parquet(pl.DataFrame(dict(zip(SPAN_COLUMNS, columns, strict=True))), draft / SPANS)
        if of_jobs is not None and len(of_jobs):
            write_parquet(of_jobs, draft / OF_JOBS)
        if limits is not None:
            write_parquet(limits, draft / LIMITS)
        if replaced:
            write_parquet(pl.DataFrame([asdict(row) for row in replaced], schema=REPLACED_COLUMNS), draft / REPLACED)
    return place


def answer_table(recording: Recording) -> pl.DataFrame:
    """What was answered about pools, a row whenever an answer changed, by instant."""
    at_s, positions, answers = recording.answers()
    asked = pl.DataFrame(
        [(question, pool, horizon_s / 60.0, level) for question, pool, horizon_s, level in recording.questions],
        schema={"question": pl.Categorical, "pool": pl.Categorical, "horizon_min": pl.Float64, "level": pl.Float64},
        orient="row",
    )
    # Where nothing was answered there are no positions to take.
    rows = asked[positions] if len(positions) else asked.clear()
    return rows.with_columns(at_s=pl.Series(at_s), answer=pl.Series(answers)).select(ANSWER_COLUMNS)


def read_run_record(table: Path) -> RunRecord | None:
    """The record beside a table of jobs, None where there is none or it is of another table.

    Raises ConfigError or TraceError where it is there and cannot be read.
    """
    place = record_folder(table)
    if not (place / RECORD).is_file():
        return None
    result = read_json(place / RECORD)
    if result.get("format") != FORMAT or "table" not in result:
        raise ConfigError(f"{place / RECORD}: is no record of a run of this version; simulate again with --out")
    # Not an error: the table is read without its record, and that is said.
    if result["table"]["sha256"] != sha256_of(table):
        return None
    spans = read_parquet(place / SPANS, AGAIN)
    answers, *others = (_parquet(place / name) for name in (ANSWERS, REPLACED, OF_JOBS, LIMITS))
    return RunRecord(result, answers, spans, *others)


def _parquet(path: Path) -> pl.DataFrame | None:
    return read_parquet(path, AGAIN) if path.is_file() else None


def _switch_rows(switches: Switches) -> list[list[object]]:
    least = -1e300  # JSON holds no infinity
    return [[row.pool, row.horizon_min, max(row.from_s, least), row.sharing] for row in switches.rows]
