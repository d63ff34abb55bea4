"""`jobcast simulate` of elastic jobs: figures, tables, forecasts at submission, clusters of types, mistakes."""

import json
from pathlib import Path

import polars as pl
import pytest

HEADER = "job_id,pool,submit_time,duration,gpus,min_gpus,model"
TABLE = "model,gpus,speedup"
HEAD_TO_TAIL = ("1,vc,0,100,1,0,a", "2,vc,10,50,1,0,a")
"""On one GPU the first runs in [0, 100), the second in [100, 150)."""


@pytest.fixture
def two(csv):
    """Two jobs for one GPU."""
    return ("simulate", "--trace", csv(*HEAD_TO_TAIL, header=HEADER), "--gpus", "1")


def test_figures_by_hand(shell, two):
    """Fair shares: the first saw 1, 1, 2 active jobs at its events, the second 2, 2, 1; over time 1.9 and 230 / 140."""
    figures = shell.json(*two, "--policy", "elastic_fifo", "--predict", "--out", "done.csv")
    done = pl.read_csv("done.csv")
    assert done["end_time"].to_list() == [100.0, 150.0]
    assert done["predicted_jct_s"].to_list() == [100.0, 140.0]
    assert done["fair_finish_s"].to_list() == pytest.approx([100 * 4 / 3, 50 * 5 / 3])
    assert done["fair_finish_over_time_s"].to_list() == pytest.approx([190.0, 50 * 230 / 140])
    assert figures["makespan_s"] == 150.0
    assert figures["mean_jct_s"] == 120.0
    assert figures["utilization"] == pytest.approx(1.0)
    assert figures["pred_err_mean_pct"] == figures["pred_err_p99_pct"] == 0.0
    assert figures["unfairness_mean_pct"] == pytest.approx(100 * (140 / (250 / 3) - 1) / 2)
    assert figures["unfairness_mean_pct_over_time"] == pytest.approx(100 * (140 / (50 * 230 / 140) - 1) / 2)
    assert figures["baseline"] is None
    assert figures["configuration"]["predict"] is True


def test_tables_of_speedups_and_configurations(shell, csv, tmp_path):
    """Two GPUs serve as 1.5: 100 s of work take 100 / 1.5 s alone, 100 s where the efficiency must be at least 0.8."""
    trace = csv("1,vc,0,100,2,0,a", "2,vc,0,100,2,0,a", header=HEADER)
    table = csv("a,1,1.0", "a,2,1.5", name="speedups.csv", header=TABLE)
    config = tmp_path / "config.json"
    told = {"num_classes": 1, "class_thresholds": ["inf"], "class_rates": [{"frac": "1/1"}]}
    config.write_text(json.dumps({**told, "clip_demand_factor": 0.8, "delta": 0.1, "_note": "kept"}))
    words = ("simulate", "--trace", trace, "--gpus", "2", "--set", f"speedups={table}")
    assert shell.json(*words, "--policy", "elastic_fifo")["makespan_s"] == pytest.approx(2 * 100 / 1.5)
    capped = shell.json(*words, "--policy", "pcs", "--set", f"config={config}")
    assert capped["makespan_s"] == pytest.approx(100.0)


def test_types_of_gpus_and_nodes(shell, csv, tmp_path):
    """The second type is twice as fast: the first job takes it, 100 s of work in 50."""
    trace = csv("1,vc,0,100,1,0,a", "2,vc,0,100,1,0,a", header=HEADER)
    table = csv("a,1,1.0,slow", "a,1,2.0,fast", name="speedups.csv", header=f"{TABLE},gpu_type")
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("nodes: [{count: 1, gpus: 1, gpu_type: slow}, {count: 1, gpus: 1, gpu_type: fast}]")
    words = ("simulate", "--trace", trace, "--cluster", cluster, "--set", f"speedups={table}")
    shell.works(*words, "--policy", "elastic_fifo", "--out", "done.csv")
    # The second job starts on the slow one and moves over when the fast one is free: 50 + 50 / 2.
    assert pl.read_csv("done.csv")["end_time"].to_list() == pytest.approx([50.0, 75.0])


def test_a_baseline_of_another_law_is_replayed_and_no_gains_are_told(shell, two):
    answer = shell.works(*two, "--policy", "elastic_fifo", "--baseline", "fcfs", "--json", "told.json")
    told = json.loads(Path("told.json").read_text())
    assert (told["law"], told["baseline"]) == ("speedup", "fcfs")
    assert "speedup_mean" not in told
    assert "baseline fcfs: its jobs ran under another law (runtime); no gains are told" in answer.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--policy", "elastic_fifo", "--set", "speedups=none.csv"), "none.csv: "),
        (("--policy", "pcs", "--set", "config=none.json"), "config none.json: cannot be read"),
        (
            ("--policy", "srsf", "--forecasts", "random"),
            "--forecasts random: elastic policies go by declared",
        ),
        (("--policy", "elastic_fifo", "--baseline", "sai"), "--baseline sai: unknown policy sai; did you mean sia"),
        (
            ("--policy", "sia_vc", "--predict", "--forecasts", "oracle"),
            "policy sia_vc: plans with each job's future, so that nothing is left to forecast",
        ),
    ],
)
def test_one_line_for_each_mistake(shell, two, words, told):
    assert told in shell.refuses(*two, *words)


def test_jobs_must_name_models_that_the_table_knows(shell, csv):
    table = csv("a,1,1.0", name="speedups.csv", header=TABLE)
    for row, told in (("1,vc,0,100,1,0,b", "no row of model 'b'"), ("1,vc,0,100,1,0,", "job 1 names no model")):
        trace = csv(row, header=HEADER)
        assert told in shell.refuses(
            *("simulate", "--trace", trace, "--gpus", "1", "--policy", "elastic_fifo", "--set", f"speedups={table}")
        )
