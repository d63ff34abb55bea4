"""A finished backtest as files: figures, jobs, utilisation, gains; and read again for the report."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.backtest import Cell, CellResult
from jobcast.pipelines.report.files import read_json, write_json
from jobcast.pipelines.report.formatting import counted, listed
from jobcast.pipelines.report.gains import paired_gains
from jobcast.simulator.metrics import times_as_fast, utilization_over_time
from jobcast.traces.files import replacing
from jobcast.traces.table_files import read_parquet, write_parquet

RESULTS, JOBS, UTILIZATION = "results.json", "jobs.parquet", "utilization.parquet"
"""Files of a backtest: figures by simulation and gains; who ran when; shares of all GPUs in use by hour."""
UTILIZATION_STEP_S = 3600.0
CDF_POINTS = 201
BOOTSTRAP_SEED = 0
AGAIN = "run the backtest again"


def results_of(
    results: Sequence[CellResult],
    *,
    bases: Mapping[str, Cell],
    draws: int,
    against: Sequence[str] = (),
    skipped: Sequence[Mapping[str, str]] = (),
    assumptions: Sequence[str] = (),
) -> dict[str, Any]:
    """Content of results.json: the same whenever the backtest is run again.

    Parameters
    ----------
    bases : what rows of each law are compared with; the first is the baseline
    against : labels of rows that they are compared with too
    draws : of the bootstrap
    skipped : `policy` and, in words, what it `lacks`, of those that cannot run
    assumptions : what the trace rests on, in sentences
    """
    # The baseline's law comes first: the report and the page read its label off the first place.
    named = {law: _label(base, results) for law, base in bases.items()}
    there = {one.cell.label for one in results}
    return {
        "baseline": next(iter(named.values())),
        # A baseline that could not run compares with nobody.
        "baselines": {law: label for law, label in named.items() if label in there},
        "rows": [result.row() for result in results],
        "gains": gains_between(results, [*named.values(), *against], draws=draws),
        "skipped": list(skipped),
        "assumptions": list(assumptions),
    }


def _label(base: Cell, results: Sequence[CellResult]) -> str:
    """What a baseline is called among the rows."""
    return next((one.cell.label for one in results if one.cell.identity == base.identity), base.label)


def remarks(figures: Mapping[str, Any]) -> list[str]:
    """What one should know of the gains in results.json: what was not compared, what has no interval."""
    laws = {row["label"]: row["law"] for row in figures["rows"]}
    home = laws.get(figures["baseline"])
    others = {law: label for law, label in figures["baselines"].items() if law != home and law in laws.values()}
    strangers = [f"{label} ({law})" for label, law in laws.items() if home and law != home and law not in others]
    jobs = max((gain["left_out"] for gain in figures["gains"]), default=0)
    # Line -> whether it is told.
    lines = {
        f"compared within each way that jobs progress: by {home} with {figures['baseline']}, "
        + listed([f"by {law} with {label}" for law, label in others.items()]): others,
        f"not compared with {figures['baseline']}, under which jobs progress by {home}: {listed(strangers)}": strangers,
        "no intervals: all jobs came on one day (UTC), and days are what intervals are drawn from": any(
            gain["jobs"] and gain["low"] is None for gain in figures["gains"]
        ),
        f"left out of gains: up to {counted(jobs, 'job')} that never ran under one of the two": jobs,
    }
    return [line for line, holds in lines.items() if holds]


def is_backtest(folder: Path) -> bool:
    """Whether a folder is one that `write_results` wrote, or an empty one."""
    return (folder / RESULTS).is_file() or not any(folder.iterdir())


def write_results(folder: Path, figures: Mapping[str, Any], results: Sequence[CellResult]) -> None:
    """Write the files of a backtest; `told` is what `results_of` gave."""
    with replacing(folder) as draft:
        draft.mkdir()
        write_json(draft / RESULTS, figures)
        write_parquet(jobs_of(results), draft / JOBS)
        write_parquet(_utilization(results), draft / UTILIZATION)


def jobs_of(results: Sequence[CellResult]) -> pl.DataFrame:
    """A row a job and simulation; see `_jobs`."""
    return pl.concat(_jobs(result) for result in results)


def _jobs(result: CellResult) -> pl.DataFrame:
    """A row a job; user and tag empty where the trace does not say, start and end where it never ran."""
    cell, log, jobs = result.cell, result.log, result.run.jobs
    assert jobs is not None, "runs of a backtest list their jobs"
    text = {name: jobs[name] if name in jobs.columns else pl.Series([None] * len(jobs)) for name in ("user", "tag")}
    return pl.DataFrame(
        {
            "label": pl.Series([cell.label]).new_from_index(0, len(log)),
            "window": np.full(len(log), cell.window, dtype=np.int32),
            "seed": np.full(len(log), cell.seed, dtype=np.int32),
            "job": np.arange(len(log), dtype=np.int32),
            "job_id": jobs["job_id"],
            "pool": jobs["pool"],
            **{name: column.cast(pl.String).replace("", None) for name, column in text.items()},
            "submit_s": log.submit_s,
            "start_s": log.start_s,
            "end_s": log.end_s,
            "gpus": log.gpus,
            "counted": result.counted,
        },
        schema_overrides={"user": pl.String, "tag": pl.String},
        nan_to_null=True,
    )


def _utilization(results: Sequence[CellResult]) -> pl.DataFrame:
    parts = []
    for result in results:
        times_s, shares = utilization_over_time(result.log, UTILIZATION_STEP_S)
        parts.append(
            pl.DataFrame({"time_s": times_s, "share": shares}).with_columns(
                label=pl.lit(result.cell.label),
                window=pl.lit(result.cell.window, pl.Int32),
                seed=pl.lit(result.cell.seed, pl.Int32),
            )
        )
    return pl.concat(parts)


@dataclass(frozen=True, slots=True)
class Contender:
    """A row that can be compared with others: its label, its policy, the kind of its forecasts, its law."""

    label: str
    policy: str
    source: str
    law: str


def gain_pairs(rows: Sequence[Contender], against: Sequence[str]) -> list[tuple[str, str]]:
    """Which rows are compared, each pair once: all with each of `against`, and those of one policy with one another.

    Laws are not mixed: a job is not the same under two. Of one policy's rows registered versions come first, whatever
    was asked for first.

    >>> rows = [Contender("fcfs", "fcfs", "", "runtime"), Contender("sia oracle", "sia", "oracle", "runtime")]
    >>> rows += [Contender("sia registry", "sia", "registry", "runtime"), Contender("pcs", "pcs", "", "speedup")]
    >>> gain_pairs(rows, ["fcfs"])
    [('sia oracle', 'fcfs'), ('sia registry', 'fcfs'), ('sia registry', 'sia oracle')]
    """
    # In the order of `against`, so that the order of the rows changes no gain.
    others = [other for label in against for other in rows if other.label == label]
    asked = [(one, other) for other in others for one in rows]
    # A stable sort: a registered version is always the first of a pair, all else stays as asked.
    ranked = sorted(rows, key=lambda one: one.source != "registry")
    within = [(one, other) for one, other in combinations(ranked, 2) if one.policy == other.policy]
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for one, other in (*asked, *within):
        if one.label != other.label and one.law == other.law:
            # By the set of both: a pair that was asked for is not told the other way round as well.
            pairs.setdefault(frozenset((one.label, other.label)), (one.label, other.label))
    return list(pairs.values())


def gains_between(results: Sequence[CellResult], against: Sequence[str], *, draws: int) -> list[dict[str, Any]]:
    """Paired comparisons of rows, see `gain_pairs`; each is read as: it is `ratio` times as fast as `against`."""
    rows: dict[str, list[CellResult]] = {}
    for result in results:
        rows.setdefault(result.cell.label, []).append(result)
    firsts = [group[0] for group in rows.values()]
    known = [Contender(one.cell.label, one.cell.policy, one.cell.spec.kind, one.log.law) for one in firsts]
    return [
        {"label": a, "policy": rows[a][0].cell.policy, "forecasts": rows[a][0].forecasts, "against": b}
        | _gain(rows[a], rows[b], draws)
        for a, b in gain_pairs(known, against)
    ]


def _gain(a: Sequence[CellResult], b: Sequence[CellResult], draws: int) -> dict[str, Any]:
    """All windows and seeds: where one row draws and the other does not, each draw meets the same run, and a job counts
    once a draw. Jobs that never ran under one of the two, or the baseline, are left out."""
    columns = [
        # By the trace's submissions, which are the same under both even in a closed loop.
        np.stack([one.log.jct_s, other.log.jct_s, one.base_jct_s, one.log.told_submit_s])[:, one.counted]
        for one, other in _paired(a, b)
    ]
    jct_a, jct_b, base, submit_s = np.concatenate(columns, axis=1)
    # Slowed against the baseline is told only where that is of the same law.
    measured = bool(np.isfinite(base).any())  # not where the baseline has another law
    ran = np.isfinite(jct_a) & np.isfinite(jct_b) & (np.isfinite(base) | (not measured))
    result: dict[str, Any] = {"metric": "speedup", "ratio": None, "low": None, "high": None, "jobs": 0, "days": 0}
    if ran.any():
        slowed_from = base[ran] if measured else None
        times = (jct_a[ran], jct_b[ran], submit_s[ran])
        gains = paired_gains(*times, seed=BOOTSTRAP_SEED, draws=draws, jct_baseline=slowed_from)
        # Told as ratio, low and high; the figure is named by `metric`, so that another may come.
        result |= {
            name: gains.pop(f"speedup{end}") for name, end in (("ratio", ""), ("low", "_low"), ("high", "_high"))
        }
        result |= gains
    return {**result, "left_out": int((~ran).sum())}


def _paired(a: Sequence[CellResult], b: Sequence[CellResult]) -> Iterator[tuple[CellResult, CellResult]]:
    """Runs of the same window and, where both draw, the same seed."""
    mine, theirs = ({(one.cell.window, one.cell.seed): one for one in group} for group in (a, b))
    # Where one row does not draw, its only seed meets each draw of the other.
    first = min(seed for _, seed in mine), min(seed for _, seed in theirs)
    for window, seed in sorted({*mine, *theirs}):
        one, other = mine.get((window, seed)), theirs.get((window, seed))
        yield one or mine[window, first[0]], other or theirs[window, first[1]]


def speedup_table(results: Sequence[CellResult]) -> str:
    """CSV for `dvc plots`: at each share of jobs the speedup over the baseline, a column a configuration."""
    shares = np.linspace(0.0, 1.0, CDF_POINTS)
    columns: dict[str, Any] = {"share": shares.round(4)}
    for result in results:
        speedups = times_as_fast(result.log.jct_s, result.base_jct_s)[result.counted]
        # Jobs that never ran under one of both have no speedup.
        known = speedups[np.isfinite(speedups)]
        if len(known):
            columns.setdefault(result.cell.label, np.quantile(known, shares))
    return pl.DataFrame(columns).write_csv()


def read_results(folder: Path) -> dict[str, Any]:
    """Content of results.json. Raises ConfigError for one of an older jobcast."""
    result: dict[str, Any] = read_json(folder / RESULTS)
    if "baselines" not in result or any("days" not in row for row in result["rows"]):
        raise ConfigError(f"{folder / RESULTS}: was written by an older jobcast; {AGAIN}")
    return result


def read_tables(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The jobs, the utilisation."""
    return read_parquet(folder / JOBS, AGAIN), read_parquet(folder / UTILIZATION, AGAIN)
