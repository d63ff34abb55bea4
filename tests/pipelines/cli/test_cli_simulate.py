"""`jobcast simulate`: its figures, its table of jobs, its options."""

import json
from pathlib import Path

import pytest

import jobcast

OWN = (
    "policy", "jobs", "makespan_s", "mean_jct_s", "p50_jct_s", "p99_jct_s", "mean_wait_s", "utilization", "events",
    "wall_s", "cpu_s",
)  # fmt: skip
AGAINST = (
    "speedup_mean", "speedup_gmean", "speedup_p5", "speedup_p95", "slowed_pct", "slowdown_total_min",
    "slowdown_max_min",
)  # fmt: skip
FAIRNESS = ("mean_start_wait_s", "worst_ftf", "worst_ftf_lifetime", "unfairness_mean_pct_over_time")


@pytest.fixture
def small(csv):
    """Three jobs on four GPUs: the second is long and waits, the third is short and submitted after it."""
    trace = csv("01,a,0,100,4", "02,a,10,50,4", "03,a,20,10,2")
    pools = csv("a,4", name="pools.csv", header="pool,gpus")
    return ("simulate", "--trace", trace, "--pools", pools, "--forecasts", "oracle", "--policy")


def test_figures_are_all_there(shell, small):
    figures = shell.json(*small, "fcfs", "--baseline", "none")
    assert {*OWN, *FAIRNESS} <= figures.keys()
    assert not {*AGAINST} & figures.keys()
    figures = shell.json(*small, "ssf", "--forecasts", "oracle")
    assert {*OWN, *AGAINST} <= figures.keys()
    assert (figures["policy"], figures["forecasts"], figures["baseline"]) == ("ssf", "oracle", "fcfs")


def test_results_name_what_they_come_from(shell, small):
    words = ("ssf", "--set", "backfill=yes", "--seed", 3, "--limit", 2, "--from", 5, "--warmup", 0.0001)
    figures = shell.json(*small, *words)
    assert figures["inputs"]["trace"]["rows"] == 3
    assert len(figures["inputs"]["trace"]["sha256"]) == 64
    assert figures["inputs"]["pools"] == {"a": 4}
    assert figures["inputs"]["window"]["from"] == "1970-01-01T00:00:05Z"
    assert figures["configuration"] == {
        "settings": {"backfill": "yes"}, "limit": 2, "warmup_days": 0.0001, "predict": False
    }  # fmt: skip
    assert (figures["seed"], figures["simulated"], figures["overlap_allowed"]) == (3, True, False)
    assert (figures["models"], figures["jobcast"]) == ({}, jobcast.__version__)


def test_jobs_come_as_csv_with_seconds_from_the_epoch(shell, small):
    shell.works(*small, "ssf", "--out", "jobs.out.csv")
    assert Path("jobs.out.csv").read_text() == (
        "job_id,pool,submit_time,start_time,end_time,gpus,duration,preemptions,dedicated,waited_s,forecast_duration_s,slowed,"
        "baseline_end_time\n"
        "01,a,0.000000,0.000000,100.000000,4,100.000000,0,true,0.000000,100.000000,false,100.000000\n"
        "02,a,10.000000,110.000000,160.000000,4,50.000000,0,true,100.000000,50.000000,true,150.000000\n"
        "03,a,20.000000,100.000000,110.000000,2,10.000000,0,true,80.000000,10.000000,false,160.000000\n"
    )


def test_a_baseline_that_asks_goes_by_the_policys_forecasts(shell, run):
    words = ("simulate", "--trace", run.trace, "--pools", run.pools, "--policy")
    for source in ("oracle", "noisy:1"):
        assert shell.json(*words, "ssf", "--baseline", "ssf", "--forecasts", source)["speedup_mean"] == 1.0
    by_noise, by_truth = (
        shell.json(*words, "mmfs", "--baseline", "ssf", "--forecasts", source)["speedup_mean"]
        for source in ("noisy:1", "oracle")
    )
    assert by_noise != by_truth


def test_who_asks_goes_by_the_registry_unless_another_source_is_named(shell, run, small):
    words = ("simulate", "--trace", run.trace, "--pools", run.pools, "--policy", "sia")
    assert shell.json(*words, "--from", run.trained_until)["forecasts"] == "registry"
    refused = shell.refuses(*words)
    assert "was trained on data until" in refused
    assert "or name another source: --forecasts oracle reads the future" in refused
    told = shell.json(*small, "ssf")
    assert (told["forecasts"], told["future"]) == ("oracle", True)
    assert shell.json(*small, "fcfs")["future"] is False


def test_a_table_for_people_goes_to_stdout_and_notes_to_stderr(shell, small):
    answer = shell.works(*small, "ssf", "--json", "figures.json", "--out", "out.csv")
    lines = dict(line.split(maxsplit=1) for line in answer.out.splitlines())
    assert lines["policy"] == "ssf"
    assert lines["mean_jct_s"] == "113.3"
    assert {*OWN, *AGAINST} <= set(lines)
    assert answer.err.splitlines()[0] == "jobs: out.csv"
    assert json.loads(Path("figures.json").read_text())["jobs"] == 3
    assert not shell.works(*small, "ssf", "--json", "-").out.startswith("policy")
