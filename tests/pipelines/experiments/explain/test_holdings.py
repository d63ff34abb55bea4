"""What any run's log tells of a job: what it held, who held the GPUs meanwhile, what was forecast; by hand."""

import json
from pathlib import Path

import polars as pl
import pytest

from jobcast.pipelines.experiments.explain.holdings import tell_forecast


@pytest.fixture
def elastic(csv):
    """Two GPUs, shortest first: a of 20 s on both from 0 on, b of 6 s on both from 3 on; a is stopped from 3 to 6."""
    header = "job_id,pool,submit_time,duration,gpus,min_gpus,user,tag"
    trace = csv("a,p,0,20,2,0,ann,one", "b,q,3,6,2,0,bob,", header=header)
    return ("simulate", "--trace", trace, "--gpus", 2, "--policy", "srsf", "--predict", "--out", "log.csv")


def test_an_elastic_job_that_was_stopped(shell, elastic):
    shell.works(*elastic)
    told = shell.json("explain", "--out", "log.csv", "--job", "a")
    assert told["held"] == [
        {"from_s": 0.0, "until_s": 3.0, "gpus": 2.0, "nodes": []},
        {"from_s": 6.0, "until_s": 13.0, "gpus": 2.0, "nodes": []},
    ]
    assert told["while_waiting"] == {
        "seconds": 3.0,
        "gpus_held": 2.0,
        "jobs": [{"name": "b", "gpus": 2.0}],
        "users": [{"name": "bob", "gpus": 2.0}],
        "pools": [{"name": "q", "gpus": 2.0}],
    }
    assert (told["forecast"]["predicted_end_s"], told["forecast"]["later_than_predicted_s"]) == (10.0, 3.0)
    text = shell.works("explain", "--out", "log.csv", "--job", "a").out
    assert "by user: bob 2\n" in text
    assert "forecast at its submission to end 1970-01-01T00:00:10Z; it ended 3.00 s later" in text
    assert shell.json("explain", "--out", "log.csv", "--job", "b")["while_waiting"] is None


def test_the_table_of_an_elastic_run_against_a_baseline(shell, elastic):
    shell.works(*elastic, "--baseline", "fifo")
    rows = pl.read_csv("log.csv")
    assert rows["job_id"].to_list() == ["a", "b"]
    assert rows["user"].to_list() == ["ann", "bob"]
    assert rows["slowed"].to_list() == [True, False]
    assert rows["baseline_end_time"].to_list() == [10.0, 13.0]
    assert rows["waited_s"].to_list() == [3.0, 0.0]
    assert rows["predicted_jct_s"].to_list() == [10.0, 3.0]
    assert rows["duration"].to_list() == [20.0, 6.0]
    spans = pl.read_parquet("log.csv.run/spans.parquet")
    assert spans.rows() == [(0, 0.0, 3.0, 2.0, -1), (1, 3.0, 6.0, 2.0, -1), (0, 6.0, 13.0, 2.0, -1)]
    told = json.loads(Path("log.csv.run/run.json").read_text())
    assert (told["mechanism"], told["law"], told["policy"]) == ("other", "speedup", "srsf")


def test_a_job_of_a_pool_is_told_who_held_its_gpus(shell, csv):
    """Of the 30 s that c waits, a holds the GPU for 20 and b for 10."""
    trace = csv("a,p,0,20,1", "b,p,0,10,1", "c,p,0,5,1")
    shell.works("simulate", "--trace", trace, "--gpus", 1, "--policy", "fcfs", "--out", "log.csv")
    told = shell.json("explain", "--out", "log.csv", "--job", "c")["while_waiting"]
    assert told["jobs"] == [{"name": "a", "gpus": pytest.approx(2 / 3)}, {"name": "b", "gpus": pytest.approx(1 / 3)}]
    assert "by job: a 0.667, b 0.333" in shell.works("explain", "--out", "log.csv", "--job", "c").out


@pytest.mark.parametrize(
    ("last", "worth"),
    [
        ({"market_worth_last": 0.3}, "the last is worth 0.3 to it, of the next 0.1"),
        ({}, "the next is worth 0.1 to it"),  # who buys no round has no last one
    ],
)
def test_what_a_job_bought_of_the_market(last, worth):
    market = {"market_budget": 1.25, "market_price": 0.2, "market_rounds": 2.0 * len(last), "market_worth_next": 0.1}
    _, line, *_ = tell_forecast({"forecast": {**market, **last}, "run": {"policy": "shockwave"}})
    bought = f"its first plan: a budget of 1.25 buys {2 * len(last)} rounds at 0.2 a GPU-round"
    assert line.strip() == f"{bought}; a GPU-round of {worth}"
