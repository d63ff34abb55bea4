"""`jobcast trace`: generated, converted and described."""

import json
from pathlib import Path

import polars as pl

from jobcast.traces.pools import read_pools


def test_a_source_that_is_of_another_format_or_one_too_many_is_refused(shell, csv):
    one, out = csv("1,a,0,1,1"), ("--out", "x.csv")
    assert "columns vc, gpu_num, state" in shell.refuses("trace", "convert", "helios", one, *out)
    assert "takes one source, got 2" in shell.refuses("trace", "convert", "canonical", one, one, *out)


def test_a_conversion_says_what_it_decided_and_dropped(shell, csv):
    flat = csv(
        "2017-10-02 00:00:00,5,1,a", "2017-10-02 00:00:01,,1,a", "2017-10-02 00:00:02,5,0,a",
        header="timestamp,duration,num_gpus,cluster",
    )  # fmt: skip
    words = ("trace", "convert", "philly", flat, "--out", "jobs.parquet", "--pools-out", "pools.csv")
    answer = shell.works(*words, "--timezone", "America/Los_Angeles")
    assert answer.err.splitlines() == [
        "jobs.parquet: 1 of 3 rows",
        "  submit_time: times without an offset read as America/Los_Angeles",
        "  dropped 1: duration missing or <= 0",
        "  dropped 1: no GPUs",
        "pools.csv: quotas derived from the jobs: busy to 80% on average, at least the widest job",
    ]
    table = pl.read_parquet("jobs.parquet")
    assert table["submit_time"].dt.hour().to_list() == [7]
    assert read_pools("pools.csv").at(0.0)[0].name == "a"
    assert "row 3, column duration" in shell.refuses(*words[:5], "strict.parquet", "--strict")


FIXTURES = Path(__file__).parents[2] / "traces" / "fixtures"
EARTH, VENUS = (FIXTURES / "helios" / "clusters" / name for name in ("Earth", "Venus"))


def test_quotas_that_the_sources_tell_are_written_as_told(shell):
    sources = (EARTH / "cluster_gpu_number.csv", EARTH / "cluster_log.csv", VENUS / "cluster_log.csv")
    words = ("trace", "convert", "auto", *sources, "--out", "jobs.csv", "--pools-out", "pools.csv")
    answer = shell.works(*words, "--timezone", "Asia/Shanghai")
    assert answer.err.splitlines() == [
        "jobs.csv: 3 of 5 rows, read as helios",
        "  submit_time, start_time, end_time: times without an offset read as Asia/Shanghai",
        "  quotas of 3 pools told, 2 changes",
        "  dropped 2: CPU job (gpu_num 0)",
        "pools.csv: quotas of 3 pools as the sources tell them, none for 1 pool with jobs (Venus/vcA): add rows, "
        "or replay with --pools-only",
    ]
    assert Path("pools.csv").read_text().splitlines() == [
        "pool,gpus,from",
        "Earth/vcA,64,2020-03-31T16:00:00Z",
        "Earth/vcA,32,2020-04-02T16:00:00Z",
        "Earth/vcB,32,2020-04-01T16:00:00Z",
        "Earth/vcC,8,2020-03-31T16:00:00Z",
        "Earth/vcC,0,2020-04-02T16:00:00Z",
    ]


def test_a_description_is_a_table_json_and_a_page(shell, run, tmp_path):
    words = ("trace", "describe", run.trace, "--pools", run.pools)
    answer = shell.works(*words, "--json", "figures.json", "--html", "page.html")
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["total"]["jobs"] == len(pl.read_parquet(run.trace))
    quotas = {pool.name: pool.quota for pool in read_pools(run.pools).at(0.0)}
    assert {name: one["quota"] for name, one in figures["pools"].items()} == quotas
    for name in quotas:
        assert name in answer.out
    page = (tmp_path / "page.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert page.count("<figure data-chart") >= 5
    assert answer.err == "page: page.html\n"
    assert shell.json(*words) == figures


def test_a_dump_of_a_live_cluster_goes_through_all_commands_and_nothing_is_lost_in_silence(shell):
    sources = sorted((FIXTURES / "sacct" / "partitions").iterdir())
    answer = shell.works("trace", "convert", "auto", *sources, "--out", "jobs.csv", "--pools-out", "pools.csv")
    assert "  gpus: 0 in 1 of 17 jobs: forecasts of GPUs and replays leave them out" in answer.err.splitlines()
    total = shell.json("trace", "describe", "jobs.csv")["total"]
    assert [total[name] for name in ("jobs", "running", "waiting", "without_gpus")] == [17, 1, 8, 1]
    left_out = {"no GPUs": 1, "no run time (running or waiting)": 9}
    for place in (("--gpus", 16), ()):
        told = shell.json("simulate", "--trace", "jobs.csv", "--policy", "fcfs", *place)
        assert told["jobs"] == 7
        assert told["inputs"]["dropped"] == left_out
    few = shell.refuses("train", "job-duration", "--trace", "jobs.csv")
    assert "no pool has 100 jobs in the training time, the busiest has" in few or "24 h are needed" in few


def test_pools_by_account_or_partition(shell, csv):
    header = "job_id,pool,submit_time,duration,gpus,account,partition"
    jobs = csv('a,x,0,5,1,vision,"gpu,long"', "b,y,1,5,1,,long", header=header)
    told = shell.works("trace", "convert", "canonical", jobs, "--out", "out.csv", "--pool-by", "account").err
    assert "pool: the account; 1 of 2 jobs name none and keep theirs" in told
    assert pl.read_csv("out.csv")["pool"].to_list() == ["vision", "y"]
    shell.works("trace", "convert", "canonical", jobs, "--out", "out.csv", "--pool-by", "partition")
    assert pl.read_csv("out.csv")["pool"].to_list() == ["gpu", "long"]
    refused = shell.refuses("trace", "convert", "canonical", jobs, "--out", "none.csv", "--pool-by", "qos")
    assert "no job names its qos; leave --pool-by qos out" in refused
