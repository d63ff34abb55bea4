"""Stage report: the page of a run, or of a backtest, from the files that lie in its folder."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.domain.times import iso
from jobcast.pipelines.experiments.backtest_results import RESULTS, read_results, read_tables
from jobcast.pipelines.experiments.choice import MOST_SLOWED_PCT, choose, rows_of
from jobcast.pipelines.lifecycle.gate import outcome, verdict
from jobcast.pipelines.lifecycle.model_files import PROMOTION
from jobcast.pipelines.report.backtest_page import ReportInput, render_report
from jobcast.pipelines.report.files import read_json, write_text
from jobcast.pipelines.stages.context import Context, read_receipt
from jobcast.traces.pools import read_pools

RUN_PARTS = ("raw/pools.csv", "interim/split.json", "processed/evaluation.json", f"processed/backtest/{RESULTS}")
REPORT = "report.html"
Receipts = Mapping[str, Mapping[str, Any]]
"""By stage; empty where there are none."""


def work(context: Context, item: str = "", receipts: Receipts | None = None) -> None:
    """Write processed/report.html: of what is the same in every checkout, and of what receipts tell beside."""
    # Without receipts the page is the same in every checkout: DVC keeps it.
    page = report_run(context.root, receipts or {})
    context.write_receipt("report", {"page": str(page), "bytes": page.stat().st_size})
    context.console.note(f"report: {page}")


def report_folder(folder: Path) -> Path:
    """Write the page of the run or backtest in a folder; ConfigError when it holds neither."""
    # A run holds a backtest as well, so it is looked for first.
    if all((folder / part).is_file() for part in RUN_PARTS):
        return report_run(folder, receipts_of(folder))
    if (folder / RESULTS).is_file() and (folder / "inputs.json").is_file():
        return report_backtest(folder)
    raise ConfigError(f"{folder}: holds no finished run or backtest; name the --out folder of one")


def receipts_of(root: Path) -> Receipts:
    """What differs from run to run: versions and times of the backtest's simulations, and what became of the trio.

    Only receipts that were written with the files beside them count: a checkout or a pull brings other files.
    """
    return {name: read_receipt(root, name) for name in ("backtest", "promote")}


def report_run(root: Path, receipts: Receipts) -> Path:
    """The page of a run of the main job."""
    split = read_json(root / "interim/split.json")
    evaluation = read_json(root / "processed/evaluation.json")
    pools = read_pools(root / "raw/pools.csv").at(split["train_until_s"])
    page = root / "processed" / REPORT
    name = split["name"]
    folder = root / "processed/backtest"
    result = read_results(folder)
    timed, promoted = receipts.get("backtest"), receipts.get("promote")
    if timed:
        result["rows"] = _timed(result["rows"], timed["runs"])
    results = _input(
        folder,
        result,
        title=f"What forecasts are worth on {name}",
        trace={
            **split["source"],
            **{key: split[key] for key in ("name", "jobs", "pools_origin", "notes", "dropped")},
            **{"from": split["train_from_s"], "until": split["test_until_s"]},
        },
        split=split,
        pools=[{"name": pool.name, "gpus": pool.quota} for pool in pools],
        # The report compares a predictor's algorithms with its baselines; the first algorithm is the one in use.
        evaluation={predictor: next(iter(figures.values())) for predictor, figures in evaluation["figures"].items()},
        curves=evaluation["curves"],
        models=(promoted or timed or {"models": []})["models"],
        outcome=outcome(promoted) if promoted else verdict(read_json(root / PROMOTION)),
        where={row["policy"]: _where(root, split, result["baseline"]) for row in result["rows"]},
        commands=[f"jobcast run --trace {name}", "dvc repro    # the same stages, where dvc.yaml lies"],
    )
    write_text(page, render_report(results))
    return page


def _where(root: Path, split: Mapping[str, Any], now: str) -> str:
    """Trace, quotas and test window of a run as options, by names as they are beside its folder.

    Whole paths would differ between checkouts.
    """
    folder = shlex.quote(root.resolve().name)
    window = f"--from {iso(split['train_until_s'])} --until {iso(split['test_until_s'])}"
    files = f"--trace {folder}/raw/jobs.parquet --pools {folder}/raw/pools.csv"
    return f"{files} {window} --pools-only --baseline {now}"


def report_backtest(folder: Path) -> Path:
    """The page of a backtest from the command line."""
    result = read_json(folder / "inputs.json")
    page = folder / REPORT
    read_results(folder)
    results = _input(
        folder,
        read_json(folder / "figures.json"),
        title=f"Backtest on {result['trace']['name']}",
        trace=result["trace"],
        split={"train_until_s": result["from_s"], "test_until_s": result["until_s"]},
        pools=[{"name": name, "gpus": gpus} for name, gpus in result["pools"].items()],
        models=result["models"],
        where=result.get("closer", {}),
        commands=[result["command"]] if result["command"] else [],  # none was typed by whoever calls it in Python
        notes=result["notes"],
    )
    write_text(page, render_report(results))
    return page


def _timed(rows: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the versions and CPU times that a receipt keeps of them."""
    # Rows and runs may be in different orders.
    kept = {(run["label"], run["window"], run["seed"]): run for run in runs}
    found = []
    for row in map(dict, rows):
        run = kept[row["label"], row["window"], row["seed"]]
        found.append(row | {"versions": run["models"], "figures": {**row["figures"], "cpu_s": run["cpu_s"]}})
    return found


def _input(folder: Path, figures: Mapping[str, Any], **parts: Any) -> ReportInput:
    jobs, utilization = read_tables(folder)
    now = figures["baseline"]
    contenders, _ = rows_of(jobs, figures["rows"], now)
    # A baseline alone, or one of another law than all others, leaves nothing to choose.
    able = len(contenders) > 1 and any(one.label == now for one in contenders)
    # One seed a label: points of several draws would lie over one another.
    first = pl.col("seed") == pl.col("seed").min().over("label")
    return ReportInput(
        **{name: figures[name] for name in ("rows", "baselines", "gains", "skipped", "assumptions")},
        jobs=_columns(jobs.filter(first & pl.col("counted"))),
        baseline_label=now,
        choice=choose(contenders, now, MOST_SLOWED_PCT) if able else None,
        utilisation={
            str(label): (frame["time_s"].to_numpy(), frame["share"].to_numpy())
            for (label,), frame in utilization.filter(first).group_by("label", maintain_order=True)
        },
        **parts,
    )


def _columns(jobs: pl.DataFrame) -> Mapping[str, Mapping[str, Any]]:
    return {
        str(label): {
            "submit_s": frame["submit_s"].to_numpy(),
            "jct_s": (frame["end_s"] - frame["submit_s"]).to_numpy(),
            "wait_s": (frame["start_s"] - frame["submit_s"]).to_numpy(),
            "pool": frame["pool"].to_list(),
            "user": frame["user"].to_list(),
        }
        for (label,), frame in jobs.group_by("label", maintain_order=True)
    }
