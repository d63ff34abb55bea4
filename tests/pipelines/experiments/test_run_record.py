"""The record beside a table of jobs: whole or not there, and of that table alone."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.pipelines.experiments import run_record
from jobcast.pipelines.experiments.explain.run_table import read_run_table
from jobcast.pipelines.experiments.run_record import pool_record_of, read_run_record, record_folder, write_run_record
from jobcast.pipelines.report.job_table import job_table, listed, write_table
from jobcast.simulator.log import flat_spans
from jobcast.simulator.workload import Workload
from tests.scenarios import log_of
from tests.shared import refused


@pytest.fixture
def two_pools(csv):
    """b borrows a's GPUs: b2 runs for 10 minutes, forecast so, and a2 comes after 20."""
    trace = csv("b1,b,0,36000,2", "b2,b,60,600,1", "a1,a,1200,600,2", "b3,b,1300,60000,1")
    pools = csv("a,2", "b,2", name="pools.csv", header="pool,gpus")
    return ("simulate", "--trace", trace, "--pools", pools, "--forecasts", "oracle", "--policy")


def test_a_run_with_forecasts_leaves_its_answers_and_the_bins(shell, two_pools):
    shell.works(*two_pools, "sia", "--seed", 4, "--set", "tick_s=600", "--out", "log.csv")
    told = json.loads(Path("log.csv.run/run.json").read_text())
    assert (told["policy"], told["forecasts"], told["seed"]) == ("sia", "oracle", 4)
    set_up = {"settings": {"tick_s": "600"}, "limit": None, "warmup_days": 0.0, "predict": False}
    assert told["configuration"] == set_up
    assert (told["pools"], told["horizons_min"], told["mechanism"]) == ({"a": 2, "b": 2}, [5, 60, 720], "pools")
    assert told["inputs"]["trace"]["rows"] == 4
    rows = pl.read_csv("log.csv", infer_schema=False)
    assert rows.columns[8:] == ["dedicated", "duration_bin", "waited_s", "slowed", "baseline_end_time"]
    bins = {"b1": "60-720min", "b2": "5-60min", "a1": "5-60min", "b3": ">720min"}
    assert dict(rows.select("job_id", "duration_bin").iter_rows()) == bins
    answers = pl.read_parquet("log.csv.run/forecasts.parquet")
    assert answers.columns == ["at_s", "question", "pool", "horizon_min", "level", "answer"]
    first = answers.filter((pl.col("pool") == "a") & (pl.col("horizon_min") == 60)).rows()[:2]
    assert first == [(60.0, "arrives", "a", 60.0, 0.0, 1.0), (60.0, "load", "a", 60.0, 0.0, 2.0)]
    spans = pl.read_parquet("log.csv.run/spans.parquet")
    assert spans.columns == ["seq", "start_s", "end_s", "gpus", "node"]
    assert spans["gpus"].to_list() == [2.0, 1.0, 2.0, 1.0]  # by their ends: a1, b2, b1, b3


def test_switches_are_kept(shell, two_pools, csv):
    switches = csv("a,60,,off", name="switches.csv", header="pool,horizon_min,from,sharing")
    shell.works(*two_pools, "sia", "--set", f"switches={switches}", "--out", "log.csv")
    (row,) = read_run_record(Path("log.csv")).switches.rows
    assert (row.pool, row.horizon_min, row.sharing) == ("a", 60, False)
    assert row.from_s < 0
    assert math.isfinite(row.from_s)
    told = shell.json("explain", "--out", "log.csv", "--job", "b2")
    assert [owner["sharing_off"] for owner in told["waits"][0]["details"]["windows"][0]["pools"]] == [True]


def test_a_record_is_of_one_table_alone(shell, two_pools):
    shell.works(*two_pools, "sia", "--out", "log.csv")
    shutil.copy("log.csv", "other.csv")
    shutil.copytree("log.csv.run", "other.csv.run")
    assert read_run_record(Path("other.csv")) is not None
    Path("other.csv").write_text(Path("other.csv").read_text().replace("b3", "b4"))
    assert read_run_record(Path("other.csv")) is None
    assert read_run_record(Path("none.csv")) is None


def test_a_folder_that_is_no_record_is_never_replaced(shell, two_pools):
    Path("log.csv.run").mkdir()
    Path("log.csv.run/mine.txt").write_text("mine")
    assert "log.csv.run is there and no record of a run" in shell.refuses(*two_pools, "sia", "--out", "log.csv")
    assert Path("log.csv.run/mine.txt").read_text() == "mine"


def test_an_interruption_leaves_the_old_record_and_nothing_half(shell, two_pools, monkeypatch):
    shell.works(*two_pools, "fcfs", "--out", "log.csv")
    before = Path("log.csv.run/run.json").read_text()

    def interrupt(recording):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_record, "answer_table", interrupt)
    assert shell(*two_pools, "sia", "--out", "log.csv").code == 130
    assert Path("log.csv.run/run.json").read_text() == before
    assert [path.name for path in Path().glob(".*")] == []
    assert read_run_record(Path("log.csv")) is None


def test_a_broken_record_is_refused_in_one_line(shell, two_pools):
    shell.works(*two_pools, "sia", "--out", "log.csv")
    place = record_folder(Path("log.csv"))
    (place / "forecasts.parquet").write_text("broken")
    with pytest.raises(TraceError, match=r"forecasts\.parquet: not a Parquet file that can be read .* simulate again"):
        read_run_record(Path("log.csv"))
    (place / "run.json").write_text("{}")
    refused(ConfigError, "is no record of a run of this version", read_run_record, Path("log.csv"))
    (place / "run.json").write_text("{")
    assert "cannot be read as JSON" in shell.refuses("explain", "--out", "log.csv", "--job", "b2")


def test_runs_by_rounds_are_told_apart(shell, two_pools, csv):
    trace = csv("1,a,0,100,1", "2,a,10,50,1", name="rounds.csv")
    words = ("simulate", "--trace", trace, "--gpus", 1, "--policy", "srpt", "--forecasts", "oracle", "--out", "log.csv")
    shell.works(*words)
    assert json.loads(Path("log.csv.run/run.json").read_text())["mechanism"] == "other"
    told = shell.json("explain", "--out", "log.csv", "--job", "1")
    assert list(told) == ["job", "summary", "held", "while_waiting", "forecast", "run", "notes"]
    assert [(each["from_s"], each["until_s"], each["gpus"]) for each in told["held"]] == [(0.0, 120.0, 1.0)]  # a round
    shell.works("explain", "--out", "log.csv", "--job", "2")


def test_explain_tells_the_story_in_words_and_as_data(shell, two_pools):
    shell.works(*two_pools, "sia", "--out", "log.csv")
    text = shell.works("explain", "--out", "log.csv", "--job", "b2").out
    assert text.startswith(
        "Job b2 of pool b: 1 GPU for 10.0 min (forecast 5-60min); sia with exact coarse forecasts\n"
        "  submitted 1970-01-01T00:01:00Z, started 1970-01-01T00:30:00Z"
    )
    assert "a 2 (0 pending, forecast: 2 come, 1 job with 2 GPUs came)" in text
    told = shell.json("explain", "--out", "log.csv", "--job", "b2")
    assert list(told) == [
        *("job", "summary", "held", "while_waiting", "forecast"),
        *("waits", "wait_by_reason", "helped", "slowed", "run", "notes"),
    ]
    shell.works("--quiet", "explain", "--out", "log.csv", "--job", "b2", "--json", "why.json")
    assert json.loads(Path("why.json").read_text()) == told


def test_what_cannot_be_explained_is_refused_in_one_line(shell, two_pools):
    shell.works(*two_pools, "sia", "--out", "log.csv")
    line = shell.refuses("explain", "--out", "log.csv", "--job", "b7")
    assert "--job b7: no such job among the 4 of log.csv; near: b" in line
    assert "is an input too" in shell.refuses("explain", "--out", "log.csv", "--job", "b2", "--json", "log.csv")


def test_a_job_that_is_not_there_may_be_among_the_rows_left_out(shell):
    """Of four jobs of a log the second has no run time and the third no processors."""
    jobs = [(1, 0, 60, 1), (2, 10, 0, 1), (3, 20, 60, 0), (4, 30, 60, 1)]
    lines = [f"{job} {at} 0 {run} {cores} -1 -1 {cores} -1 -1 1 1 1 -1 1 1 -1 -1\n" for job, at, run, cores in jobs]
    Path("log.swf").write_text("".join(lines))
    shell.works("simulate", "--trace", "log.swf", "--policy", "fcfs", "--out", "log.csv")
    line = shell.refuses("explain", "--out", "log.csv", "--job", "2")
    assert "--job 2: no such job among the 2 of log.csv; near: 1, 4; it may be among what was left out" in line
    assert "1 run time missing or <= 0; 1 no processors" in line


def test_without_a_record_what_is_missing_is_said_and_quotas_may_be_given(shell, two_pools):
    shell.works(*two_pools, "sia", "--out", "log.csv")
    shutil.rmtree("log.csv.run")
    words = ("explain", "--out", "log.csv", "--job", "b2")
    assert "without sharing (fcfs) it would have started" in shell.works(*words, "--pools", two_pools[4]).out
    assert "log.csv.run is not there" in shell.works(*words).err
    assert shell.works("--quiet", *words).err == ""


def test_spans_are_of_the_rows_of_the_table_whatever_the_order_of_arrival(tmp_path):
    """A closed loop: j1 comes first in the trace and last in the run; j2 is stopped from 1 to 4."""
    jobs = [Job(seq, name, "p", at_s, 1) for seq, (name, at_s) in enumerate([("j1", 0.0), ("j2", 1.0)])]
    workload = Workload(jobs, [Outcome(3.0), Outcome(2.0)], [Pool("p", 1)])
    held = flat_spans(np.array([1, 1, 0]), np.array([0.0, 4.0, 9.0]), np.array([1.0, 5.0, 12.0]), np.ones(3))
    told = {"duration_s": np.array([3.0, 2.0]), "preemptions": np.array([0, 1]), "spans": held}
    come_s = {"trace_submit_s": np.array([0.0, 1.0]), "pools": tuple(workload.pools)}
    log = log_of([9.0, 0.0], [9.0, 0.0], [12.0, 5.0], **told, **come_s)
    path = tmp_path / "log.csv"
    write_table(job_table(log, listed(workload)), path)
    write_run_record(path, pool_record_of(log, workload, "sia_preempt", {}, {}, None), log)
    table = read_run_table(path)
    held = zip(table.held.job, table.held.from_s, table.held.until_s, strict=True)
    spans = [(table.job_ids[job], begin, end) for job, begin, end in held]
    assert spans == [("j2", 0.0, 1.0), ("j2", 4.0, 5.0), ("j1", 9.0, 12.0)]
