"""The main job: its files, its receipts, and the same stages one by one."""

import json
import re
import shutil

import polars as pl
import pytest

from jobcast.models.registry import open_registry
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.stages.config import load_params
from jobcast.pipelines.stages.plan import check_run, steps
from tests.pipelines.stages.dvc_stages import DVC

RUN_DEPENDENT = re.compile(rb'"(?:run_id|wall_s|cpu_s|train_s|registered|home|root|path)":')


def files(out) -> set[str]:
    return {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}


def contents(out, names) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in names}


def test_a_run_writes_what_the_plan_says_and_nothing_else(run):
    expected = set().union(*(stage.made() for stage in DVC))
    found = files(run.out)
    assert {path for path in expected if (run.out / path).is_file()} <= found
    assert all((run.out / path).exists() for path in expected)
    folders = tuple(f"{path}/" for path in expected if (run.out / path).is_dir())
    # How a person ran it, which no stage depends on.
    expected |= {"command.json"}
    assert [path for path in found - expected if not path.startswith((*folders, "processed/receipts/"))] == []


def test_figures_that_differ_from_run_to_run_are_in_receipts_alone(run):
    for name in files(run.out):
        if name.endswith(".json") and "receipts" not in name and "enriched" not in name:  # whose path is a name
            assert not RUN_DEPENDENT.search((run.out / name).read_bytes()), name
    assert json.loads((run.out / "interim/enriched/assumptions.json").read_text())["trace"]["path"] == "week"
    receipt = json.loads((run.out / "processed/receipts/backtest.json").read_text())
    assert {"stage", "jobcast", "home", "root", "models", "input", "runs"} <= set(receipt)
    assert {"cpu_s", "wall_s", "models"} <= set(receipt["runs"][0])
    assert len(receipt["input"]["sha256"]) == 64
    assert [model["name"] for model in receipt["models"]] == ["will-jobs-arrive", "new-load", "job-duration"]


def test_metrics_are_the_headlines(run):
    evaluate = json.loads((run.out / "processed/metrics/evaluate.json").read_text())
    assert set(evaluate) == {"will-jobs-arrive", "new-load", "job-duration"}
    assert set(evaluate["will-jobs-arrive"]) == {"f1_5min", "f1_60min"}
    assert set(evaluate["job-duration"]) == {"accuracy", "ece"}
    backtest = json.loads((run.out / "processed/metrics/backtest.json").read_text())
    assert {policy: set(of) for policy, of in backtest.items()} == {"sia": {"speedup_gmean", "slowed_pct"}}
    cdf = pl.read_csv(run.out / "processed/plots/speedup_cdf.csv")
    assert cdf.columns == ["share", "fcfs", "sia oracle", "sia registry (lightgbm)"]


@pytest.mark.slow
def test_stages_one_by_one_write_the_same_and_register_nothing_twice(shell, run, store, tmp_path):
    """In another folder, with a registry that knows these models already: it keeps their versions."""
    params = tmp_path / "params.yaml"
    there = f"trace: {run.trace}\n  pools: {run.pools}\n  min_pool_jobs"
    params.write_text(run.params.read_text().replace("min_pool_jobs", there))
    out = tmp_path / "out"
    for stage, item in steps():
        answer = shell.works("stage", stage.name, *([item] if item else []), "--params", params, "--out", out)
        assert answer.out == ""
        assert answer.err.startswith("learn" if stage.name == "schedule" else stage.name)
    names = {name for name in files(run.out) if "receipts" not in name and not name.endswith("report.html")}
    # The command that made it all was `run`.
    names.remove("command.json")
    assert {name for name in files(out) if "receipts" not in name and not name.endswith("report.html")} == names
    assert contents(out, names) == contents(run.out, names)
    versions = [str(version) for version in open_registry(shell.home).list()]
    assert versions == ["job-duration:1", "new-load:1", "will-jobs-arrive:1"]


def test_the_report_is_written_again_from_the_files(shell, run, tmp_path):
    copy = tmp_path / "copy" / run.out.name  # which its commands name
    shutil.copytree(run.out, copy)
    page = copy / "processed/report.html"
    before = page.read_bytes()
    page.unlink()
    assert shell.works("report", copy).err == f"report: {page}\n"
    assert page.read_bytes() == before
    for piece in (b">CPU (s)</button>", b"registry (lightgbm) (will-jobs-arrive 1, new-load 1, job-duration 1)"):
        assert piece in before
    shutil.rmtree(copy / "processed/receipts")  # as a checkout of the results alone leaves it
    shell.works("report", copy)
    assert b">CPU (s)</button>" not in page.read_bytes()
    results = copy / "processed/backtest/results.json"
    told = json.loads(results.read_text())
    del told["baselines"]
    results.write_text(json.dumps(told))
    assert shell.refuses("report", copy) == f"{results}: was written by an older jobcast; run the backtest again"


@pytest.mark.parametrize("quota", ["derived", "given"])
def test_a_run_prepares_the_trace_with_quotas_and_split(shell, run, tmp_path, quota):
    params, out = tmp_path / "params.yaml", tmp_path / "out"
    pools = f"\n  pools: {run.pools}" if quota == "given" else ""
    params.write_text(f"prepare:\n  trace: {run.trace}\n  min_pool_jobs: 50{pools}\n")
    shell.works("stage", "prepare", "--params", params, "--out", out)
    split = json.loads((out / "interim/split.json").read_text())
    assert split["train_until"] == run.trained_until
    assert split["name"] == "week"
    assert split["pools_origin"].startswith("derived: " if quota == "derived" else "the pools file pools.csv")
    assert split["jobs"] == len(pl.read_parquet(out / "raw/jobs.parquet"))


def test_jobs_that_a_run_leaves_out_are_told(shell, tmp_path):
    params, trace = tmp_path / "params.yaml", tmp_path / "jobs.csv"
    rows = [f"{hour},p,{hour * 3600.5},60,{hour % 4}" for hour in range(400)] + ["a,q,7200.5,60,1"]
    trace.write_text("\n".join(["job_id,pool,submit_time,duration,gpus", *rows]))
    params.write_text(f"prepare:\n  trace: {trace}\n  min_pool_jobs: 2\n")
    answer = shell.works("stage", "prepare", "--params", params, "--out", tmp_path / "out")
    assert "300 jobs of 1 pools, 100 left out (no GPUs), 1 left out (jobs of other pools); " in answer.out + answer.err


def test_a_run_says_which_zone_it_reads_times_in_before_it_begins(run, tmp_path, capsys):
    naive = tmp_path / "naive.parquet"
    pl.read_parquet(run.trace).with_columns(pl.col("submit_time").dt.replace_time_zone(None)).write_parquet(naive)
    params = load_params(run.params)
    prepare = params.prepare.model_copy(update={"trace": str(naive), "pools": str(run.pools)})
    check_run(params.model_copy(update={"prepare": prepare}), tmp_path / "out", tmp_path / "home", Console())
    assert capsys.readouterr().err == f"{naive}: submit_time: times without an offset read as UTC\n"
    assert [path.name for path in tmp_path.iterdir()] == ["naive.parquet"]
