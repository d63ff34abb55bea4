"""Schedulers of every kind meet in one table: each row is what `simulate` tells of the policy alone."""

import json
from dataclasses import replace

import pytest

from jobcast.schedulers.registry import POLICIES, find_policy
from tests.enriching import enriched_trace
from tests.pipelines.conftest import typed

pytestmark = pytest.mark.usefixtures("untrained")
ROWS = [f"j{at},{'ab'[at % 2]},u{at % 3},{600 * at},{900 + 400 * (at % 5)},{(1, 2, 4)[at % 3]}" for at in range(14)]
NODES = "nodes: [{count: 2, gpus: 4, gpu_type: v100}]\n"
POLICIES_OF = {
    "fcfs": "fcfs", "sia": "fcfs", "srpt": "fcfs", "las": "fcfs", "pcs": "elastic_fifo", "srsf": "elastic_fifo",
    "mlf_h": "gandiva", "tiresias": "gandiva", "edf": "energy_fifo", "pollux": "none",
}  # fmt: skip
"""A policy of each kind -> what its row is compared with."""
NOT_REPEATABLE = ("wall_s", "cpu_s", "decision_ms_mean", "decision_ms_max")


@pytest.fixture(scope="module")
def enriched(tmp_path_factory):
    """A plain trace of 14 jobs with all facts, and two nodes."""
    facts = ("--facts", "speedups,training,goodput,tasks,epochs,due")
    return enriched_trace(tmp_path_factory.mktemp("table"), ROWS, NODES, *facts)


@pytest.fixture
def plain(enriched):
    """The trace that knows none of them, on GPUs that are known by number."""
    return ("--trace", enriched[1].parents[1] / "plain.csv", "--gpus", 8)


@pytest.fixture(scope="module")
def table(enriched, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    words = ("--policies", ",".join([*POLICIES_OF, "mlf_rl"]), "--forecasts", "oracle", "--jobs", 1)
    typed("backtest", *enriched, *words, "--json", home / "table.json", home=home)
    return json.loads((home / "table.json").read_text())


@pytest.mark.parametrize("policy", POLICIES_OF)
def test_a_row_is_what_simulate_tells_of_the_policy_alone(shell, enriched, table, policy):
    row = next(row for row in table["rows"] if row["policy"] == policy)
    alone = ("--policy", policy, "--forecasts", "oracle", "--baseline", POLICIES_OF[policy])
    told = shell.json("simulate", *enriched, *alone)
    assert row["law"] == told["law"]
    for name, value in row["figures"].items():
        if name not in NOT_REPEATABLE:
            assert told[name] == pytest.approx(value, rel=1e-12, nan_ok=True), name


def test_rows_of_a_law_are_compared_with_whoever_came_first_under_it(table):
    laws = {row["label"]: row["law"] for row in table["rows"]}
    assert all(laws[gain["label"]] == laws[gain["against"]] for gain in table["gains"])
    assert {gain["against"] for gain in table["gains"]} == {"fcfs", "elastic_fifo", "gandiva", "energy_fifo oracle"}
    assert len(table["assumptions"]) == 6


def test_what_cannot_run_is_listed_with_what_it_lacks(table):
    (skipped,) = table["skipped"]
    assert skipped["policy"] == "mlf_rl"
    assert "no mlf-policy is registered; train one" in skipped["lacks"]


def test_policies_whose_facts_a_plain_trace_lacks_are_listed(shell, plain):
    words = ("backtest", *plain, "--policies", "fcfs,mlf_h,edf", "--jobs", 1)
    told = shell.json(*words)
    assert [row["policy"] for row in told["rows"]] == ["fcfs"]
    assert [one["policy"] for one in told["skipped"]] == ["mlf_h", "edf"]
    assert all("jobcast trace enrich --facts" in one["lacks"] or "--cluster" in one["lacks"] for one in told["skipped"])
    assert "trace enrich --facts tasks" in shell.refuses(*words[:-3], "mlf_h")


def known_alone(monkeypatch, policies):
    monkeypatch.setattr(POLICIES, "_ours", policies)
    monkeypatch.setattr(POLICIES, "_own", policies.__getitem__)


def test_of_all_policies_those_for_fewer_jobs_are_listed_unless_they_are_named(shell, enriched, monkeypatch):
    few = {"exact": replace(find_policy("exact"), most_jobs=13)}
    known_alone(monkeypatch, {name: find_policy(name) for name in ("fcfs", "energy_fifo")} | few)
    words = ("backtest", *enriched, "--forecasts", "oracle", "--jobs", 1, "--policies")
    told = shell.json(*words, "all")
    assert [row["policy"] for row in told["rows"]] == ["fcfs", "energy_fifo"]
    lacks = "fewer jobs: it is for at most 13, of 14; --policies all,exact runs it all the same"
    assert told["skipped"] == [{"policy": "exact", "lacks": lacks}]
    assert "exact" in {row["policy"] for row in shell.json(*words, "all,exact")["rows"]}


@pytest.mark.parametrize(
    ("more", "lacks"),
    [
        (("--set", "locality=true"), "knows no locality; leave it out, or --set locality=true"),
        (("--closed-loop",), "no loop can be closed around it; leave it out, or --closed-loop"),
    ],
)
def test_of_all_policies_those_that_an_option_is_not_for_are_listed_unless_they_are_named(
    shell, plain, monkeypatch, more, lacks
):
    known_alone(monkeypatch, {name: find_policy(name) for name in ("fcfs", "mmfs", "sia_vc")})
    words = ("backtest", *plain, "--jobs", 1, "--forecasts", "conservative", *more, "--policies")
    told = shell.json(*words, "all")
    assert [row["policy"] for row in told["rows"]] == ["fcfs", "mmfs"]
    assert told["skipped"] == [{"policy": "sia_vc", "lacks": lacks}]
    assert "sia_vc" in shell.refuses(*words, "all,sia_vc")
