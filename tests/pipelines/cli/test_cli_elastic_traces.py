"""Elastic jobs on the command line: speedup tables, workloads, conversion and description."""

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from jobcast.traces.speedups import read_speedups

STEPS = "app,num_nodes,num_replicas,local_bsz,step_time,sync_time"


@pytest.fixture
def steps(tmp_path):
    """Two apps that synchronise fast and slowly, on nodes of 4 GPUs, measured with a little noise."""
    rows = []
    for app, sync_s in (("a", 0.02), ("b", 0.2)):
        for nodes, gpus in ((1, 1), (1, 2), (2, 2), (1, 4), (2, 4), (4, 4)):
            for local in (8, 16, 32, 64):
                noise = (0.97, 1.02, 1.0, 1.03, 0.99)[(gpus + local // 8 + nodes) % 5]
                step_s = noise * (0.1 + 0.01 * local + sync_s * (gpus > 1) + 0.1 * (nodes > 1))
                rows.append(f"{app},{nodes},{gpus},{local},{step_s},{sync_s}")
    path = tmp_path / "steps.csv"
    path.write_text("\n".join([STEPS, *rows]) + "\n")
    return path


@pytest.mark.parametrize("fit", ["best", "power"])
def test_a_table_is_made_of_step_times(shell, steps, fit):
    told = shell.json("trace", "speedups", steps, "--out", "s.csv", "--fit", fit, "--most", 8)
    table = read_speedups("s.csv")
    assert table.models == ("a", "b")
    assert table.speedup.shape == (2, 2, 9)
    for row, (app, its) in enumerate(told["apps"].items()):
        assert its["fit"] == fit or fit == "best"
        assert its["batch_size"] == 64
        assert its["speedup"]["packed"]["4"] == pytest.approx(table.speedup[row, 0, 4]), app
        assert set(its["left_out"]) == {"throughput", "amdahl", "power", "table"}
    assert told["apps"]["a"]["speedup"]["packed"]["4"] > told["apps"]["b"]["speedup"]["packed"]["4"]


def test_a_table_is_shown_and_the_batch_size_chosen(shell, steps):
    answer = shell.works("trace", "speedups", steps, "--out", "s.parquet", "--batch-size", "b=128", "--most", 4)
    assert answer.err == "s.parquet: 2 models, 1 to 4 GPUs\n"
    assert "128" in answer.out
    assert "errors are those of speedups on configurations that the fit did not see" in answer.out
    assert read_speedups("s.parquet").speedup.shape == (2, 2, 5)


def test_options_that_cannot_be_used_are_said(shell, steps):
    words = ("trace", "speedups", steps, "--out", "s.csv")
    assert shell.refuses(*words, "--fit", "spline").startswith(
        "--fit spline: is not known; choose from best, throughput"
    )
    assert shell.refuses(*words, "--batch-size", "c=4") == f"--batch-size c: {steps} has no such app; it has a, b"
    assert "must be a whole number >= 1" in shell.refuses(*words, "--batch-size", "a=0")
    assert "write --batch-size APP=N" in shell.refuses(*words, "--batch-size", "4")
    assert "--most must be 2 to" in shell.refuses(*words, "--most", "1")
    assert shell.refuses(*words, "--batch-size", "a=4").startswith("a: batch size 4 was measured on 0 configurations")
    assert "no such file" in shell.refuses("trace", "speedups", "nowhere.csv", "--out", "s.csv").lower()
    assert "the suffix must be .csv or .parquet" in shell.refuses(*words[:4], "s.txt")


@pytest.mark.parametrize("kind", ["automl", "gavel-elastic"])
def test_workloads_are_generated_and_described(shell, kind):
    shell.works("trace", "generate", kind, "--out", "jobs.parquet", "--pools-out", "pools.csv", "--set", "load=0.5")
    told = shell.json("trace", "describe", "jobs.parquet", "--pools", "pools.csv")
    quota = told["total"]["quota"]
    assert told["total"]["load_gpus"] == pytest.approx(0.5 * quota, rel=1e-3)
    assert told["total"]["utilization_mean"] == pytest.approx(0.5, abs=0.06)  # what runs beyond the last submission
    assert told["notes"] == [
        "jobs are elastic: their widths are the most that they can use, their run times those on one GPU"
    ]
    assert told["total"]["widths"].keys() <= {str(width) for width in range(1, 21)}


def test_a_trace_of_elastic_and_rigid_jobs_is_described(shell):
    Path("jobs.csv").write_text(
        "job_id,pool,submit_time,duration,gpus,min_gpus\n1,a,0,7200,2,0\n2,a,1800,1800,4,\n3,a,7200,60,1,\n"
    )
    Path("pools.csv").write_text("pool,gpus\na,4\n")
    told = shell.json("trace", "describe", "jobs.csv", "--pools", "pools.csv")
    assert told["notes"][-1].startswith("1 of 3 jobs are elastic: ")
    # The elastic job holds 2 GPUs for an hour, the rigid one 4 for half an hour: 4 of 8 GPU-hours.
    assert told["total"]["utilization_mean"] == pytest.approx(0.5)


def test_a_converted_trace_keeps_instants_models_and_ids(shell):
    rows = ["9,3.000105,10.5,1,0,m", "10,3.000105,5.25,4,0,n", "11,3.000106,1,2,1e-6,m"]
    Path("trace_x.csv").write_text("\n".join(["app_id,submit_time,service,num_jobs,sleep_time,model_name", *rows]))
    answer = shell.works("trace", "convert", "pcs", "trace_x.csv", "--out", "x.parquet")
    assert answer.err.splitlines()[0] == "x.parquet: 3 of 3 rows"
    table = pl.read_parquet("x.parquet").sort(pl.col("job_id").cast(pl.Int64))
    assert table["job_id"].to_list() == ["9", "10", "11"]
    assert table["submit_time"].dt.timestamp("us").to_list() == [3_000_105, 3_000_105, 3_000_106]
    assert table["submit_time"][0] == datetime(1970, 1, 1, 0, 0, 3, 105, tzinfo=UTC)
    assert table["duration"].to_list() == [10.5, 5.25, 1.0]
    assert table["model"].to_list() == ["m", "n", "m"]
    assert table["min_gpus"].to_list() == [0, 0, 0]
    assert table["gpus"].to_list() == [1, 4, 2]
    assert json.loads(shell.works("trace", "describe", "x.parquet", "--json", "-").out)["total"]["gpu_hours"] == (
        pytest.approx(16.75 / 3600)
    )
