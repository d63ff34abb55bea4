from dataclasses import replace

import pytest

from jobcast.domain.hardware import NodeGroup, numbered
from jobcast.pipelines.experiments.locality import on_servers
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.traces.generators import generate
from tests.scenarios import pool_scenario


@pytest.fixture(scope="module")
def scenario():
    trace, pools = generate("sia", 0, {"variant": "base"})
    return pool_scenario(trace, pools, limit=60)


def test_servers_of_eight_unless_a_cluster_file_tells(scenario):
    ready, cells, _ = on_servers(scenario.workload, scenario.place)
    assert ready.servers == (8,) * 4
    groups = tuple(NodeGroup("", 16, (), numbered(count)) for count in (1, 2))
    on_file, its, note = on_servers(scenario.workload, replace(scenario.place, groups=groups))
    assert on_file.servers == (16,) * 3
    assert its == {pool.name: (8,) for pool in scenario.workload.pools}
    assert note == "locality: 3 servers of 16 GPUs"
    log = replay(ready, make_policy("fcfs", cells=cells))
    assert len(log) == 60


@pytest.fixture
def apart(csv):
    """Two cells of 4 of a server of 8 each; a's jobs of 2 leave no 4 together while one runs."""
    trace = csv("a1,a,0,600,2", "a2,a,1,60,4", "b1,b,0,60,4", "b2,b,2,600,1", "a3,a,2,60,2")
    pools = csv("a,4,1x4", "b,4,1x4", name="pools.csv", header="pool,gpus,cells")
    return ("--trace", trace, "--pools", pools)


def test_a_backtest_puts_all_its_policies_on_servers(shell, apart):
    told = shell.json(
        *("backtest", *apart, "--policies", "fcfs,sia,hived", "--forecasts", "oracle", "--jobs", 1),
        *("--set", "locality=true", "--set", "apart=none"),
    )
    rows = {row["label"]: row for row in told["rows"]}
    assert list(rows) == ["fcfs", "sia oracle", "sia oracle, apart=none", "hived"]
    assert told["configuration"] == {"settings": {"locality": "true", "apart": "none"}}
    assert told["inputs"][0]["notes"][-1] == "locality: 1 servers of 8 GPUs"
    for policy, label in (("fcfs", "fcfs"), ("sia", "sia oracle"), ("hived", "hived")):
        alone = shell.json("simulate", *apart, "--policy", policy, "--forecasts", "oracle", "--set", "locality=true")
        assert (alone["mean_jct_s"], alone["speedup_gmean"]) == (
            rows[label]["figures"]["mean_jct_s"],
            rows[label]["figures"]["speedup_gmean"],
        )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policies", "las"), "policy las knows no locality; choose from fcfs, ssf"),
        (("--policies", "sia", "--baseline", "las"), "--baseline: policy las knows no locality"),
        (("--policies", "mmfs", "--set", "apart=none"), "setting apart: no policy of mmfs knows it with locality"),
    ],
)
def test_backtests_on_servers_refuse_what_knows_none(shell, apart, words, message):
    assert message in shell.refuses("backtest", *apart, *words, "--set", "locality=true")
