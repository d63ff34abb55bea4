"""`--closed-loop` of `jobcast simulate` and `jobcast backtest`."""

import polars as pl
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.sources import Ask, Sources
from jobcast.simulator.forecast_sources import Conservative, KnownDurations, RunRandom
from jobcast.traces.pools import read_pools
from jobcast.traces.readers import read_trace
from tests.scenarios import pool_scenario
from tests.shared import refused

HEADER = "job_id,pool,user,submit_time,duration,gpus"
LOOP = ("closed_loop", "following_jobs", "mean_think_s", "mean_shift_s")


@pytest.fixture
def small(csv):
    """One GPU. The trace: x [0, 2000), a [10, 1010), b 90 s after a, c 100 s after b. Here a ends at 3000."""
    trace = csv("x,p,w,0,2000,1", "a,p,v,10,1000,1", "b,p,v,1100,100,1", "c,p,v,1300,50,1", header=HEADER)
    pools = csv("p,1", name="pools.csv", header="pool,gpus")
    return ("--trace", trace, "--pools", pools)


@pytest.fixture
def week(run):
    return ("--trace", run.trace, "--pools", run.pools, "--from", run.trained_until)


def test_figures_tell_of_the_loop(shell, small):
    figures = shell.json("simulate", *small, "--policy", "fcfs", "--closed-loop")
    # b arrives at 3090, c at 3290.
    assert [figures[key] for key in LOOP] == [True, 2, pytest.approx(95.0), pytest.approx(1990.0)]
    assert figures["mean_jct_s"] == pytest.approx((2000 + 2990 + 100 + 50) / 4)
    assert any(note.startswith("closed loop: 2 of 4 jobs follow others") for note in figures["inputs"]["notes"])
    assert (figures["ends_earlier_mean_s"], figures["ends_later_pct"]) == (0.0, 0.0)  # against itself
    assert not {*LOOP, "ends_later_pct"} & set(shell.json("simulate", *small, "--policy", "fcfs"))


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_the_table_holds_both_submissions(shell, small, tmp_path, name):
    out = tmp_path / name
    shell.works("simulate", *small, "--policy", "fcfs", "--closed-loop", "--out", out)
    table = pl.read_csv(out) if name.endswith("csv") else pl.read_parquet(out)
    if name.endswith("parquet"):
        assert table["trace_submit_time"].dtype == pl.Datetime("us", "UTC")
        table = table.with_columns(pl.col("submit_time", "trace_submit_time", "end_time").dt.epoch("us") / 1e6)
    assert table["job_id"].to_list() == ["x", "a", "b", "c"]
    assert table["submit_time"].to_list() == [0, 10, 3090, 3290]
    assert table["trace_submit_time"].to_list() == [0, 10, 1100, 1300]
    assert table["end_time"].to_list() == [2000, 3000, 3190, 3340]


def test_people_are_told_apart_by_the_traces_pools_even_on_a_flat_cluster(shell, csv):
    trace = csv("a,p,v,10,1000,1", "b,q,v,1100,100,1", "c,p,v,1400,50,1", header=HEADER)
    figures = shell.json("simulate", "--trace", trace, "--gpus", "2", "--policy", "fcfs", "--closed-loop")
    assert (figures["following_jobs"], figures["mean_think_s"]) == (1, pytest.approx(390.0))


@pytest.mark.parametrize("policy", ["srpt", "pollux", "mlfs", "andreas", "elastic_fifo"])
def test_policies_of_rounds_tasks_energy_and_elastic_jobs_are_refused(shell, small, policy):
    told = shell.refuses("simulate", *small, "--policy", policy, "--closed-loop")
    assert told.startswith(f"--closed-loop: {policy} schedules by rounds, tasks, energy or elastic jobs")
    assert "fcfs" in told
    assert policy not in told.partition("it goes with")[2].split(", ")


@pytest.mark.parametrize(
    ("forecasts", "why"),
    [("oracle", "no oracle knows"), ("noisy:0.2", "no noisy oracle knows"), ("mixed:arrivals=random", "no oracle")],
)
def test_sia_may_not_ask_who_will_arrive(shell, small, forecasts, why):
    told = shell.refuses("simulate", *small, "--policy", "sia", "--forecasts", forecasts, "--closed-loop")
    assert why in told
    assert "take --forecasts registry, random or conservative" in told
    assert why in shell.refuses("backtest", *small, "--policies", "fcfs,sia", "--forecasts", forecasts, "--closed-loop")


@pytest.mark.parametrize("forecasts", ["conservative", "mixed:arrivals=registry,loads=random,durations=oracle"])
def test_sources_that_are_left_replay_all_jobs(shell, week, forecasts):
    """Others are among the goldens."""
    figures = shell.json("simulate", *week, "--policy", "sia", "--forecasts", forecasts, "--closed-loop")
    if forecasts == "conservative":  # as without a loop
        assert (figures["speedup_gmean"], figures["slowed_pct"]) == (1.0, 0.0)
    assert figures["following_jobs"] > 0.2 * figures["jobs"]
    assert figures["mean_shift_s"] > 0  # no trace of the campus knows of queues


def test_sources_of_a_closed_scene_read_nothing_that_is_to_come(run, tmp_path):
    scenario = pool_scenario(
        read_trace(run.trace), read_pools(run.pools).at(0.0), from_s=1704412800.0, max_think_s=7200.0
    )
    sources = Sources(scenario, Ask(policy="sia", home=tmp_path))
    made = {kind: sources.make(parse_forecasts(kind)) for kind in ("oracle", "random")}
    assert isinstance(made["oracle"].source, KnownDurations)
    assert isinstance(made["random"].source, RunRandom)
    assert made["random"].history is not None
    assert isinstance(sources.make(parse_forecasts("conservative")).source, Conservative)
    refused(ConfigError, "no noisy oracle", sources.make, parse_forecasts("noisy:0.5"))


@pytest.mark.usefixtures("store")
def test_a_backtest_in_a_loop_says_so(shell, week, tmp_path):
    words = ("backtest", *week, "--policies", "mmfs,gssf", "--windows", "2", "--jobs", "1", "--closed-loop")
    told = shell.json(*words, "--out", tmp_path / "out")
    figures = [row["figures"] for row in told["rows"]]
    assert [one["closed_loop"] for one in figures] == [True] * 6
    assert [row["policy"] for row in told["rows"][:2]] == ["fcfs"] * 2  # the baseline of both windows
    assert all(one["speedup_gmean"] > 1 and one["ends_earlier_mean_s"] > 0 for one in figures[2:])
    assert "closed loop: " in (tmp_path / "out" / "inputs.json").read_text(encoding="utf-8")
    open_loop = shell.json(*[word for word in words if word != "--closed-loop"])
    assert not any("closed_loop" in row["figures"] for row in open_loop["rows"])
    assert figures[2]["speedup_gmean"] != open_loop["rows"][2]["figures"]["speedup_gmean"]


@pytest.mark.parametrize("policy", ["sia_vc", "milp", "as_recorded"])
def test_who_needs_every_single_job_cannot_be_replayed_in_a_closed_loop(shell, small, policy):
    line = shell.refuses("simulate", *small, "--policy", policy, "--closed-loop")
    assert line.startswith(f"--closed-loop: {policy} needs every single job's future, which nobody knows")
    line = shell.refuses("simulate", *small, "--policy", "fcfs", "--baseline", policy, "--closed-loop")
    assert line.startswith(f"--baseline {policy}: --closed-loop: {policy} needs")


def test_a_shorter_longest_think_time_leaves_jobs_where_the_trace_has_them(shell, small):
    figures = shell.json("simulate", *small, "--policy", "fcfs", "--closed-loop", "--max-think", "95")
    assert (figures["following_jobs"], figures["mean_think_s"]) == (1, pytest.approx(90.0))
