"""`jobcast trace enrich`, and `simulate` on what it wrote."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("untrained")
ALL = "speedups,training,goodput,tasks,epochs,due,limits"


@pytest.fixture
def plain(csv, shell):
    csv(*(f"j{row},{'ab'[row % 2]},{60 * row},{100 + 37 * row},{1 + row % 4}" for row in range(12)), name="plain.csv")
    return "plain.csv"


def test_it_tells_what_it_assumed(shell, plain):
    answer = shell.works("trace", "enrich", plain, "--facts", ALL, "--out", "made", "--seed", 3)
    lines = answer.err.splitlines()
    assert lines[0].endswith("jobs.parquet: 12 jobs; what was assumed: made/assumptions.json")
    assert sum("synthetic" in line for line in lines) == 3
    told = json.loads(Path("made/assumptions.json").read_text())
    assert told["seed"] == 3
    assert told["trace"]["path"] == plain
    assert {Path(one["file"]).suffix for one in told["files"].values()} == {".csv", ".parquet"}


def test_policies_of_each_kind_find_their_tables(shell, plain):
    shell.works("trace", "enrich", plain, "--facts", ALL, "--out", "made")
    words = ("simulate", "--trace", "made/jobs.parquet", "--gpus", 8, "--baseline", "none", "--json", "-", "--policy")
    due = "Due dates are drawn, as multiples of the duration. Weights are drawn, uniformly."
    for policy, facts in {
        "fcfs": [],
        "easy": ["Time limits are drawn"],
        "srpt": ["Training is synthetic", due],
        "srsf": ["Scaling is assumed"],
        "pollux": ["Goodput is synthetic"],
        "tiresias": ["Task graphs and training curves are synthetic", due],
    }.items():
        answer = shell.works(*words, policy)
        assert [one.split(":")[0] for one in json.loads(answer.out)["assumptions"]] == facts, policy
        assert ("assumed: " in answer.err) == bool(facts), policy


def test_mistakes_are_one_line(shell, plain, csv):
    words = ("trace", "enrich", plain, "--out", "made", "--facts")
    assert "did you mean speedups?" in shell.refuses(*words, "speedup")
    line = shell.refuses("trace", "enrich", plain, "--out", plain, "--facts", "due")
    assert "plain.csv: holds something else" in line
    elastic = csv("j,a,0,5,2,1", name="elastic.csv", header="job_id,pool,submit_time,duration,gpus,min_gpus")
    line = shell.refuses("trace", "enrich", elastic, "--out", "made", "--facts", "due")
    assert "the trace is elastic by itself" in line
