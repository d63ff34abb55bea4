from dataclasses import replace

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import NodeGroup, PoolsTable, Quota, numbered
from jobcast.domain.jobs import Outcome, Pool
from jobcast.pipelines.experiments.locality import asks_for_locality, on_servers
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.workload import Workload
from jobcast.traces.generators import generate
from tests.scenarios import pool_scenario


@pytest.fixture(scope="module")
def scenario():
    trace, pools = generate("sia", 0, {"variant": "base"})
    return pool_scenario(trace, pools, limit=60)


def test_locality_is_asked_for_by_a_setting():
    assert asks_for_locality({"locality": "true", "tick_s": "60"})
    assert not asks_for_locality({"tick_s": "60"})
    with pytest.raises(ConfigError, match="setting locality must be true or false, got perhaps"):
        asks_for_locality({"locality": "perhaps"})


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


def test_a_job_that_fits_no_cell_is_refused(scenario):
    wide = max(scenario.workload.jobs, key=lambda job: job.gpus)
    assert wide.gpus == 8
    given = PoolsTable(tuple(Quota(pool.name, pool.quota, cells=(4, 4)) for pool in scenario.workload.pools))
    with pytest.raises(TraceError, match=r"its 8 GPUs need 8 together, its pool \S+ has 4\+4"):
        on_servers(scenario.workload, replace(scenario.place, quotas=given))


def test_odd_quotas_are_cells(scenario):
    jobs = [job for job in scenario.workload.jobs if job.gpus == 1]
    workload = Workload(jobs, [Outcome(1.0)] * len(jobs), [Pool(pool.name, 7) for pool in scenario.workload.pools])
    ready, cells, _ = on_servers(workload, scenario.place)
    assert ready.servers == (8,) * 4
    assert set(cells.values()) == {(4, 2, 1)}


def test_policies_and_baselines_without_locality_are_refused_before_anything_is_read(shell):
    asked = ("--trace", "none.csv", "--set", "locality=true")
    line = shell.refuses("simulate", *asked, "--policy", "fcfs", "--baseline", "las")
    assert line.startswith("--baseline: policy las knows no locality; choose from fcfs, ssf, sjf, ")
    assert line.endswith(", or none")
    line = shell.refuses("simulate", *asked, "--policy", "sia_vc", "--forecasts", "oracle")
    assert "sia_vc knows no locality (it plans GPUs ahead by number, and cells may be in pieces then)" in line


def test_settings_of_cells_are_refused_where_nothing_is_placed_in_them(shell, csv):
    trace = csv("a1,a,0,60,1", "a2,a,0,60,1")
    line = shell.refuses("simulate", "--trace", trace, "--policy", "sia", "--set", "apart=none")
    assert line.startswith(
        "policy sia: setting apart: not known; known: adapt, order, slack, switches, tick_s, windows_min"
    )
    asked = ("--trace", trace, "--set", "locality=true")
    line = shell.refuses("simulate", *asked, "--policy", "mmfs", "--set", "apart=none")
    assert line == "policy mmfs with locality: setting apart: not known; known: strict"


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
