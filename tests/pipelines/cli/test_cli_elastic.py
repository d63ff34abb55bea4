"""`jobcast simulate` of elastic jobs: figures, tables, forecasts at submission, clusters of types, mistakes."""

import json
from pathlib import Path

import polars as pl
import pytest

pytestmark = pytest.mark.usefixtures("untrained")
HEADER = "job_id,pool,submit_time,duration,gpus,min_gpus,model"
TABLE = "model,gpus,speedup"
HEAD_TO_TAIL = ("1,vc,0,100,1,0,a", "2,vc,10,50,1,0,a")
"""On one GPU the first runs in [0, 100), the second in [100, 150)."""


@pytest.fixture
def two(csv):
    """Two jobs for one GPU."""
    return ("simulate", "--trace", csv(*HEAD_TO_TAIL, header=HEADER), "--gpus", "1")


def test_figures_by_hand(shell, two):
    """Fair shares: the first saw 1, 1, 2 active jobs at its events, the second 2, 2, 1; over time 1.9 and 230 / 140.

    Had they shared the GPU from 10 s on, the second would have ended at 110 s, and the first at 150 s.
    """
    figures = shell.json(*two, "--policy", "elastic_fifo", "--predict", "--out", "done.csv")
    done = pl.read_csv("done.csv")
    assert done["end_time"].to_list() == [100.0, 150.0]
    assert done["predicted_jct_s"].to_list() == [100.0, 140.0]
    assert done["fair_finish_s"].to_list() == pytest.approx([100 * 4 / 3, 50 * 5 / 3])
    assert done["fair_finish_over_time_s"].to_list() == pytest.approx([190.0, 50 * 230 / 140])
    assert done["fair_finish_by_sharing_s"].to_list() == pytest.approx([150.0, 100.0])
    assert figures["unfairness_mean_pct"] == pytest.approx(100 * (140 / (250 / 3) - 1) / 2)
    assert figures["unfairness_mean_pct_over_time"] == pytest.approx(100 * (140 / (50 * 230 / 140) - 1) / 2)
    assert figures["unfairness_mean_pct_by_sharing"] == pytest.approx(20.0)
    assert figures["baseline"] is None
    assert figures["configuration"]["predict"] is True


def test_who_stops_jobs_is_refused_where_a_trace_forbids_it(shell, csv):
    trace = csv("1,vc,0,100,1,0,a,false", "2,vc,10,50,1,0,a,true", header=f"{HEADER},preemptible")
    words = ("simulate", "--trace", trace, "--gpus", "1", "--policy")
    assert "policy srsf: stops jobs, and 1 job may not be stopped, 1 first" in shell.refuses(*words, "srsf")
    assert shell.json(*words, "elastic_fifo")["preemptions"] == 0


@pytest.fixture
def short_first(tmp_path):
    """A file of a configuration in which jobs of up to 60 s get nine tenths."""
    told = {"class_thresholds": [60, "inf"], "class_rates": [0.9, 0.1]}
    (tmp_path / "short.json").write_text(json.dumps(told))
    return tmp_path / "short.json"


@pytest.mark.parametrize(("how", "ends", "broken"), [("keep", [100.0, 150.0], 0), ("renew", [150.0, 75.556], 2)])
def test_a_configuration_that_changes(shell, two, short_first, how, ends, broken):
    """From 20 s on short jobs go first: 50 s of work at nine tenths end at 75.56, where promises are made anew."""
    configs = short_first.with_name("configs.csv")
    configs.write_text("from,config\n1970-01-01T00:00:20Z,short.json\n")
    words = ("--set", f"configs={configs}", "--set", f"promises={how}", "--predict", "--out", "done.csv")
    figures = shell.json(*two, "--policy", "pcs", *words)
    done = pl.read_csv("done.csv")
    assert done["end_time"].to_list() == pytest.approx(ends, abs=1e-3)
    assert done["worst_case_end_time"].to_list() == pytest.approx([100.0, 150.0], rel=1e-5)
    assert ("renewed_worst_case_end_time" in done.columns) == (how == "renew")
    told = [figures[f"promises_{name}"] for name in ("made", "kept", "remade", "broken")]
    assert told == [2, 2 - broken, broken, broken]


def test_a_worst_case_is_told_or_why_there_is_none(shell, two, short_first):
    """A tenth of the only GPU is sure for the long job: 1,000 s; of whole GPUs none is, and the table leaves it out."""
    words = (*two, "--policy", "pcs", "--set", f"config={short_first}", "--predict", "--out", "done.csv")
    shell.json(*words)
    assert pl.read_csv("done.csv")["worst_case_end_time"].to_list() == pytest.approx([1000.0, 10 + 50 / 0.9], rel=1e-5)
    figures = shell.json(*words, "--set", "whole_gpus=true")
    assert pl.read_csv("done.csv")["worst_case_end_time"].to_list() == [None, None]
    assert figures["promises_made"] == 0
    asked = ("predict", "jct", *two[1:], "--at", "12", "--job", "1", "--policy", "pcs", "--sizes", "declared")
    told = shell.json(*asked, "--set", f"config={short_first}")["answers"][0]["worst_case"]
    # Ten seconds alone, two at a tenth: 89.8 s are left.
    assert told["hours"] == pytest.approx(898 / 3600, rel=1e-5)
    assert told["end"].startswith("1970-01-01T00:15:10")


@pytest.fixture
def typed(csv, tmp_path):
    """The command that replays a trace on a node of one GPU of each type named; the fast one is twice as fast."""

    def words(trace, *types):
        table = csv("a,1,1.0,slow", "a,1,2.0,fast", name="speedups.csv", header=f"{TABLE},gpu_type")
        cluster = tmp_path / "cluster.yaml"
        cluster.write_text("nodes:\n" + "".join(f"  - {{count: 1, gpus: 1, gpu_type: {kind}}}\n" for kind in types))
        return ("simulate", "--trace", trace, "--cluster", cluster, "--set", f"speedups={table}")

    return words


@pytest.mark.parametrize("policy", ["elastic_fifo", "pcs"])
@pytest.mark.parametrize(
    ("nodes", "end_s"), [(("slow", "fast"), 50.0), (("fast", "slow"), 50.0), (("fast",), 50.0), (("slow",), 100.0)]
)
def test_a_duration_holds_on_the_first_type_of_the_table(shell, csv, typed, policy, nodes, end_s):
    """100 s on the slow type are 50 s on the fast one, in whatever order the cluster file tells of nodes."""
    trace = csv("1,vc,0,100,1,1,a", header=HEADER)
    assert shell.json(*typed(trace, *nodes), "--policy", policy)["makespan_s"] == pytest.approx(end_s)


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
        (("--policy", "srsf", "--forecasts", "random"), "--forecasts random: elastic policies go by declared"),
        (("--policy", "sia_vc", "--predict", "--forecasts", "oracle"), "so that nothing is left to forecast"),
    ],
)
def test_one_line_for_each_mistake(shell, two, words, told):
    assert told in shell.refuses(*two, *words)


def test_jobs_must_name_models_that_the_table_knows(shell, csv):
    table = csv("a,1,1.0", name="speedups.csv", header=TABLE)
    for row, told in (("1,vc,0,100,1,0,b", "no row of model 'b'"), ("1,vc,0,100,1,0,", "job 1 names no model")):
        trace = csv(row, header=HEADER)
        words = ("simulate", "--trace", trace, "--gpus", "1", "--policy", "elastic_fifo")
        assert told in shell.refuses(*words, "--set", f"speedups={table}")
