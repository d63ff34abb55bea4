"""The cluster of a simulation: however it was named, every engine gets it."""

from dataclasses import replace

import pytest
from numpy.testing import assert_array_equal

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import Cluster, NodeGroup, PoolsTable, Quota, flat_cluster, numbered
from jobcast.domain.jobs import Pool
from jobcast.pipelines.experiments.clusters import (
    assumed_power,
    cluster_of,
    elastic_cluster,
    energy_cluster,
    task_cluster,
)
from jobcast.pipelines.experiments.rigid_jobs import on_servers
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.traces.generators import generate
from jobcast.traces.readers import read_trace
from tests.scenarios import pool_scenario
from tests.shared import refused

NODES = "nodes: [{count: 2, gpus: 4, gpu_type: v100}, {count: 1, gpus: 8, gpu_type: t4, cpus: 16}]"


@pytest.fixture
def trace(csv):
    """Five jobs of two pools, a second apart."""
    return read_trace(csv("1,a,0,10,1", "2,b,1,10,2", "3,a,2,10,4", "4,b,3,10,1", "5,a,4,10,1"))


@pytest.fixture
def named(trace, tmp_path):
    """The cluster of a file with this text."""

    def read(text, **where):
        (tmp_path / "cluster.yaml").write_text(text)
        return cluster_of(trace, cluster=tmp_path / "cluster.yaml", **where)

    return read


def test_a_number_of_gpus_is_a_flat_cluster(trace):
    place = cluster_of(trace, gpus=4)
    assert (place, place.flat, place.pools) == (flat_cluster(4), True, [Pool("all", 4)])
    assert place.shared.origin == place.origin == "a flat cluster of 4 GPUs, pools ignored"


def test_without_any_the_trace_gives_its_own(trace):
    # GPU time 60 of a and 30 of b in 4 s: 60 / 4 / 0.8 = 18.75, 30 / 4 / 0.8 = 9.375, both 28.125.
    place = cluster_of(trace)
    assert place.pools == [Pool("a", 19), Pool("b", 10)]
    assert elastic_cluster(place).capacity.tolist() == [29.0]
    assert "max(widest job, ceil(GPU-time / span / 0.8))" in place.origin
    assert cluster_of(trace, otherwise=80) == flat_cluster(80)


def test_quotas_count_as_of_the_windows_beginning(trace, csv, named):
    pools = csv("a,4,", "a,8,3", name="pools.csv", header="pool,gpus,from")
    changing = f"{NODES}\npools: {{a: [4, {{gpus: 8, from: 3}}]}}"
    for from_s, gpus in ((None, 4), (3.0, 8)):
        place = cluster_of(trace, pools=pools, from_s=from_s)
        assert (place.pools, place.gpus) == ([Pool("a", gpus)], gpus)
        assert named(changing, from_s=from_s).pools == [Pool("a", gpus)]


def test_a_cluster_file_gives_quotas_or_one_flat_pool(named):
    flat = named(NODES)
    assert (flat.pools, flat.flat, flat.nodes) == ([Pool("all", 16)], True, ((2, 4), (1, 8)))
    assert flat.origin.endswith("cluster.yaml: 8 v100, 8 t4 GPUs on 3 nodes")
    pools = named(f"{NODES}\npools: {{b: 2, a: 12}}")
    assert (pools.pools, pools.flat, pools.gpus) == ([Pool("a", 12), Pool("b", 2)], False, 16)
    assert pools.shared.flat
    assert pools.shared.origin == f"16 GPUs in all, {pools.origin}; quotas are ignored"


def test_every_engine_takes_every_file(named):
    place = named(f"{NODES}\npools: {{b: 2, a: 14}}\nenergy: {{pue: 1.1, price_eur_kwh: 0.3}}")
    elastic, tasks, (energy, kinds) = elastic_cluster(place), task_cluster(place), energy_cluster(place)
    assert (place.gpu_types, elastic.capacity.tolist()) == (("v100", "t4"), [8.0, 8.0])
    assert (elastic.node_type.tolist(), elastic.node_gpus.tolist()) == ([0, 0, 1], [4.0, 4.0, 8.0])
    assert tasks.capacity.tolist() == [[4, 32, 244, 1250]] * 2 + [[8, 16, 244, 1250]]
    assert tasks.server_of.tolist() == [0] * 4 + [1] * 4 + [2] * 8
    assert (kinds, energy.kind_gpus.tolist(), energy.pue) == (("v100", "t4"), [4, 8], 1.1)
    assert energy.tariff.at(0.0) == 0.3
    assert energy.power_w[1].tolist() == [0.0, *(100.0 + 70.0 * used for used in range(1, 9))]
    assert assumed_power(place) == (
        "no power_w of nodes with v100: they draw what is assumed of its type",
        "no power_w of nodes with t4: they draw what is assumed of its type",
    )


def test_gpus_known_by_number_are_on_servers_of_four():
    # MLFS, section 4.1
    assert task_cluster(flat_cluster(80)).capacity.tolist() == [[4, 32, 244, 1250]] * 20
    odd = task_cluster(flat_cluster(6))
    assert odd.capacity.tolist() == [[4, 32, 244, 1250], [2, 16, 122, 625]]
    assert odd.server_of.tolist() == [0, 0, 0, 0, 1, 1]
    quotas = Cluster(quotas=PoolsTable((Quota("a", 1), Quota("b", 1))))
    assert task_cluster(quotas).capacity.tolist() == [[2, 16, 122, 625]]


def test_groups_that_are_alike_are_one_kind():
    fast, slow = (0.0, 420.0, 670.0), (0.0, 240.0)
    groups = (
        NodeGroup("v100", 2, fast, ("a", "b")),
        NodeGroup("t4", 1, slow, ("c",)),
        NodeGroup("v100", 2, fast, ("d",)),
    )
    cluster, gpu_types = energy_cluster(Cluster(groups, tariff=((0.0, 0.1), (8.5, 0.2))))
    assert_array_equal(cluster.kind_of, [0, 0, 1, 0])
    assert_array_equal(cluster.kind_gpus, [2, 1])
    assert_array_equal(cluster.power_w, [[0, 420, 670], [0, 240, 240]])
    assert gpu_types == ("v100", "t4")
    assert [cluster.tariff.at(hour * 3600.0) for hour in (0, 8, 9, 24)] == [0.1, 0.1, 0.2, 0.1]


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (flat_cluster(4), "--cluster FILE is missing: schedulers of energy need nodes and what they draw"),
        (Cluster((NodeGroup("", 1, (), ("a",)),)), "made by hand, node group 1: no gpu_type"),
        (Cluster((NodeGroup("x9", 1, (), ("a",)),)), "node group 1: nothing is known of the power of x9; give power_w"),
    ],
)
def test_energy_without_watts_is_refused_with_the_remedy(place, line):
    refused(ConfigError, line, energy_cluster, place)


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
        for figure in ("mean_jct_s", "speedup_gmean"):
            assert alone[figure] == rows[label]["figures"][figure]


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
