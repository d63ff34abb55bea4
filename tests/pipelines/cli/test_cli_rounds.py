"""`jobcast simulate` by rounds: training jobs from tables, nodes, the published mechanism, mistakes."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from jobcast.schedulers.policies import ROUNDS
from jobcast.schedulers.registry import names_of
from tests.pipelines.conftest import COURSE, FASTER, RATES

pytestmark = pytest.mark.usefixtures("untrained")
STEPS = "job_id,pool,submit_time,duration,gpus,model,batch_size,steps,adaptation"
EPOCH_STEPS = 5968  # of LM's 59,675 samples, ten a step
PER_S = EPOCH_STEPS / 100.0
# Two jobs a node of two GPUs; one on each ends within the first round, and the fifth wants a node for itself.
HALVES = ("01,a,0,50,1", "02,a,0,300,1", "03,a,0,50,1", "04,a,0,300,1", "05,a,10,100,2")
TWO = "nodes: [{count: 2, gpus: 2, gpu_type: v100}]\n"


@pytest.mark.parametrize("forecasts", ["restatement", "bayes", "greedy", "oracle"])
def test_every_source_of_regimes_answers(shell, training, forecasts):
    figures = shell.json(*training, "--policy", "srpt", "--forecasts", forecasts)
    assert (figures["forecasts"], figures["baseline"]) == (forecasts, None)


def test_jobs_without_training_run_by_rounds_too(shell, csv):
    trace = csv("01,a,0,200,1", "02,a,0,100,1")
    figures = shell.json(
        "simulate", "--trace", trace, "--gpus", "1", "--policy", "srpt", "--forecasts", "oracle", "--set", "restart_s=0"
    )
    # The second in [0, 100), the first from the next round on, in [120, 320).
    assert (figures["forecasts"], figures["baseline"]) == ("oracle", "fcfs")
    assert figures["mean_jct_s"] == pytest.approx((100 + 320) / 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "srpt", "--forecasts", "random"), "random: says nothing of regimes"),
        (("--policy", "sia", "--forecasts", "restatement"), "restatement: forecasts regimes, which only training jobs"),
        (("--policy", "srpt", "--set", "mechanism=stage"), "mechanism must be rounds or gavel, got stage"),
        (("--policy", "las", "--set", "noise=0.1"), "setting noise: not known"),
    ],
)
def test_mistakes_get_one_line(shell, training, words, message):
    assert message in shell.refuses(*training, *words)


def test_steps_are_needed_by_the_published_mechanism(shell, csv):
    trace = csv("01,a,0,200,1")
    words = ("simulate", "--trace", trace, "--gpus", "1", "--policy", "gandiva_fair", "--set", "mechanism=gavel")
    assert "counts steps; add --set throughputs=FILE" in shell.refuses(*words)


@pytest.fixture
def cluster(tmp_path):
    """Writes a cluster file."""

    def write(text):
        (tmp_path / "cluster.yaml").write_text(text, encoding="utf-8")
        return tmp_path / "cluster.yaml"

    return write


@pytest.fixture
def on_nodes(csv):
    """A line that lacks its cluster and policy."""
    return ("simulate", "--trace", csv(*HALVES), "--forecasts", "oracle", "--baseline", "none")


@pytest.mark.parametrize("policy", names_of(ROUNDS))
def test_one_job_is_moved_so_that_another_gets_a_node(shell, on_nodes, cluster, policy):
    """Every policy runs them all; the second, seated beside the first, makes room at 120 s and starts anew."""
    found = shell.json(*on_nodes, "--cluster", cluster(TWO), "--policy", policy, "--out", "done.csv")
    assert (found["moves"], found["spread_pct"], found["inputs"]["pools"]) == (1.0, 0.0, {"all": 4})
    jobs = pl.read_csv("done.csv", schema_overrides={"nodes": pl.String})
    assert jobs["end_time"].to_list() == [70.0, 340.0, 70.0, 320.0, 240.0]
    assert jobs["preemptions"].to_list() == [0, 1, 0, 0, 0]
    assert jobs["nodes"].to_list() == ["0", "1", "1", "1", "0"]


def test_a_flat_cluster_knows_no_nodes(shell, on_nodes):
    found = shell.json(*on_nodes, "--gpus", "4", "--policy", "srpt", "--out", "done.csv")
    assert not {"moves", "spread_pct"} & found.keys()
    jobs = pl.read_csv("done.csv")
    assert "nodes" not in jobs.columns
    assert jobs["end_time"].to_list() == [70.0, 320.0, 70.0, 320.0, 240.0]


def test_nodes_that_are_too_many_get_one_line(shell, on_nodes, cluster):
    for text, message in {
        "nodes: [{count: 200000, gpus: 4}]": "200000 nodes, rounds place jobs on 100000 at most",
        "nodes: [{count: 900000000, gpus: 8}]": "its nodes have more than 1,000,000 GPUs together",
    }.items():
        assert message in shell.refuses(*on_nodes, "--policy", "shockwave", "--cluster", cluster(text))


def test_fairness_is_measured_by_planned_run_times_where_they_are_given(shell, csv):
    """Two jobs of 200 s share a GPU. As planned the first runs for 100 + 40 s; the second has no course."""
    trace = csv(*(f"{name},a,0,200,1,LM,10,{2 * EPOCH_STEPS},accordion" for name in ("01", "02")), header=STEPS)
    rates = csv(f"v100,LM,10,1,{PER_S!r}", f"v100,LM,20,1,{FASTER!r}", name="rates.csv", header=RATES)
    planned = csv("01,0,10", "01,1,20", name="planned.csv", header=COURSE)
    words = ("simulate", "--trace", trace, "--gpus", "1", "--policy", "gandiva_fair", "--out", "done.csv")
    tables = ("--set", f"throughputs={rates}", "--set", f"planned={planned}", "--set", "mechanism=gavel")
    figures = shell.json(*words, *tables)
    assert figures["worst_ftf"] == pytest.approx(420 / 280, abs=1e-3)
    assert figures["mean_ftf"] == pytest.approx((420 / 280 + 340 / 400) / 2, abs=1e-3)
    assert pl.read_csv("done.csv")["duration"].to_list() == pytest.approx([200.0, 200.0], abs=0.1)


@pytest.fixture
def published(shell):
    """The 120 jobs on 32 GPUs with the regimes that the published simulator executed."""
    if "JOBCAST_DATA" not in os.environ:
        pytest.skip("JOBCAST_DATA is not set: no published trace")
    folder = Path(os.environ["JOBCAST_DATA"]) / "shockwave"
    shell.works("trace", "convert", "shockwave", folder / "120_jobs.trace", "--out", "120.parquet")
    files = {
        "throughputs": "throughputs_tacc.csv",
        "regimes": "regimes_120_executed.csv",
        "planned": "regimes_120_planned.csv",
    }
    tables = [word for name, file in files.items() for word in ("--set", f"{name}={folder / file}")]
    words = ("simulate", "--trace", "120.parquet", "--gpus", "32", "--set", "mechanism=gavel", *tables)
    return words, folder


def _jct_s(path):
    jobs = pl.read_csv(path)
    return (jobs["end_time"] - jobs["submit_time"]).to_numpy()


def test_gandiva_fair_is_reproduced_job_by_job(shell, published):
    """Shockwave's own figures: makespan 32,367 s, mean JCT 12,574 s, worst finish-time fairness 1.85."""
    words, folder = published
    figures = shell.json(*words, "--policy", "gandiva_fair", "--out", "jobs.csv")
    there = pl.read_csv(folder / "published_gandiva_fair.csv")
    assert _jct_s("jobs.csv") == pytest.approx(there["jct_s"].to_numpy(), abs=1e-5)
    assert figures["worst_ftf"] == pytest.approx(there["ftf"].max(), abs=1e-4)
    assert figures["unfair_pct_100"] == pytest.approx(100.0 * (there["ftf"] > 1.0).mean())
    assert figures["rounds"] == 270


@pytest.mark.parametrize("fill", ["centre", "water"])
def test_max_min_fairness_agrees_within_two_per_cent(shell, published, fill):
    words, folder = published
    figures = shell.json(*words, "--policy", "gavel", "--set", f"fill={fill}", "--out", "jobs.csv")
    there = pl.read_csv(folder / "published_max_min_fairness.csv")
    assert figures["makespan_s"] == pytest.approx(33_208, rel=0.02)
    assert figures["mean_jct_s"] == pytest.approx(there["jct_s"].mean(), rel=0.02)
    assert figures["worst_ftf"] == pytest.approx(there["ftf"].max(), rel=0.02)
    if fill == "centre":  # as the published simulator's solver, which stops near it
        assert (np.abs(_jct_s("jobs.csv") - there["jct_s"].to_numpy()) <= 1.0).mean() >= 0.9
