"""A finished backtest as files: figures, jobs, utilisation, gains; and read again for the report."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.pipelines.backtest import CellResult
from jobcast.pipelines.files import read_json, write_json
from jobcast.pipelines.gains import paired_gains
from jobcast.simulator.metrics import utilization_over_time
from jobcast.traces.files import replacing
from jobcast.traces.parquet import read_parquet, write_parquet

UTILIZATION_STEP_S = 3600.0
CDF_POINTS = 201
BOOTSTRAP_SEED = 0
AGAIN = "run the backtest again"


@dataclass(frozen=True, slots=True)
class BacktestFiles:
    """Names of the files of a backtest in its folder."""

    folder: Path

    @property
    def results(self) -> Path:
        """Figures by simulation, and gains: JSON."""
        return self.folder / "results.json"

    @property
    def jobs(self) -> Path:
        """When each job started and ended in each simulation: Parquet."""
        return self.folder / "jobs.parquet"

    @property
    def utilization(self) -> Path:
        """Share of all GPUs in use by hour in each simulation: Parquet."""
        return self.folder / "utilization.parquet"


def write_results(
    folder: Path, results: Sequence[CellResult], pools: Sequence[str], *, baseline: str, draws: int
) -> dict[str, Any]:
    """Write the files of a backtest; the content of results.json comes back."""
    told = {
        "baseline": baseline,
        "rows": [result.row() for result in results],
        "gains": gains_between(results, draws=draws),
    }
    with replacing(folder) as draft:
        draft.mkdir()
        files = BacktestFiles(draft)
        write_json(files.results, told)
        write_parquet(_jobs(results, pools), files.jobs)
        write_parquet(_utilization(results), files.utilization)
    return told


def _jobs(results: Sequence[CellResult], pools: Sequence[str]) -> pl.DataFrame:
    names = np.array(pools)
    return pl.concat(
        pl.DataFrame(
            {
                "label": pl.Series([result.cell.label]).new_from_index(0, len(result.log)),
                "window": np.full(len(result.log), result.cell.window, dtype=np.int32),
                "seed": np.full(len(result.log), result.cell.seed, dtype=np.int32),
                "job": np.arange(len(result.log), dtype=np.int32),
                "pool": names[result.log.pool],
                "submit_s": result.log.submit_s,
                "start_s": result.log.start_s,
                "end_s": result.log.end_s,
                "gpus": result.log.gpus,
            }
        )
        for result in results
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


def gains_between(results: Sequence[CellResult], *, draws: int) -> list[dict[str, Any]]:
    """Paired comparisons of the same policy with different forecasts, registry versions first; first seed, all windows.

    Each is read as: a is `speedup` times as fast as b.
    """
    by_label: dict[str, list[CellResult]] = {}
    for result in results:
        if result.cell.seed == results[0].cell.seed or not result.cell.spec.draws:
            by_label.setdefault(result.cell.label, []).append(result)
    registry = [label for label, group in by_label.items() if group[0].cell.spec.kind == "registry"]
    pairs = [
        (a, b)
        for a, b in [*combinations(registry, 2), *((a, b) for a in registry for b in by_label if b not in registry)]
        if by_label[a][0].cell.policy == by_label[b][0].cell.policy or by_label[b][0].cell.policy == "mmfs"
    ]
    return [{"a": a, "b": b, **_gain(by_label[a], by_label[b], draws)} for a, b in pairs]


def _gain(a: Sequence[CellResult], b: Sequence[CellResult], draws: int) -> dict[str, Any]:
    jct_a, jct_b = (np.concatenate([one.log.jct_s[one.counted] for one in group]) for group in (a, b))
    base = np.concatenate([one.base_jct_s[one.counted] for one in a])
    submit_s = np.concatenate([one.log.told_submit_s[one.counted] for one in a])
    gains = paired_gains(jct_a, jct_b, submit_s, seed=BOOTSTRAP_SEED, draws=draws, jct_baseline=base)
    return gains.to_dict()


def speedup_table(results: Sequence[CellResult]) -> str:
    """CSV for `dvc plots`: at each share of jobs the speedup over the baseline, a column a configuration."""
    shares = np.linspace(0.0, 1.0, CDF_POINTS)
    columns: dict[str, Any] = {"share": shares.round(4)}
    for result in results:
        speedups = (result.base_jct_s / result.log.jct_s)[result.counted]
        columns.setdefault(result.cell.label, np.quantile(speedups, shares))
    text = io.StringIO()
    pl.DataFrame(columns).write_csv(text)
    return text.getvalue()


def read_results(folder: Path) -> tuple[dict[str, Any], pl.DataFrame, pl.DataFrame]:
    """Content of results.json, the jobs, the utilisation."""
    files = BacktestFiles(folder)
    told = read_json(files.results)
    jobs, utilization = (read_parquet(path, AGAIN) for path in (files.jobs, files.utilization))
    return told, jobs, utilization
