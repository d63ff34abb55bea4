"""Cluster files: what is read, what is refused, and that what is written is read back."""

from collections import Counter
from math import inf
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import PoolsError
from jobcast.domain.hardware import ALWAYS_S, GPU_TYPES, Cluster, NodeGroup, PoolsTable, Quota, numbered
from jobcast.domain.jobs import Pool
from jobcast.domain.scheduling_rules import NO_RULES, Account, Limits, PriorityWeights, Qos, SchedulingRules
from jobcast.traces.cluster_file import read_cluster, write_cluster
from tests.shared import refused

BOTH = """
nodes:
  - {count: 2, gpus: 2, gpu_type: v100, power_w: [0, 420, 670]}
  - {count: 1, gpus: 1, gpu_type: t4, node_w: 170, gpu_w: 70, idle_w: 20}
energy: {pue: 1.2, tariff: [{from_h: 0, price_eur_kwh: 0.1}, {from_h: 8.5, price_eur_kwh: 0.2}]}
"""
OPENB_TYPES = {"T4": 404, "P100": 134, "V100M16": 55, "V100M32": 30, "A10": 2, "G2": 549, "G3": 39}
"""Nodes by type, counted in the file; 1,213 in all."""
DOCS = (Path(__file__).resolve().parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
DAY_S = 86_400.0


def read(tmp_path, text):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return read_cluster(path)


def test_groups_power_and_tariff(tmp_path):
    nodes = read(tmp_path, BOTH)
    assert nodes.groups == (
        NodeGroup("v100", 2, (0.0, 420.0, 670.0), ("node-1", "node-2")),
        NodeGroup("t4", 1, (20.0, 240.0), ("node-3",)),
    )
    assert (nodes.pue, nodes.tariff) == (1.2, ((0.0, 0.1), (8.5, 0.2)))
    assert (len(nodes.names), nodes.gpus, nodes.widest, nodes.notes) == (3, 5, {"v100": 2, "t4": 1}, ())
    assert (nodes.by_type, nodes.nodes) == ({"v100": 4, "t4": 1}, ((2, 2), (1, 1)))
    assert (nodes.node_gpus.tolist(), nodes.node_type.tolist()) == ([2, 2, 1], [0, 0, 1])
    assert (nodes.flat, nodes.pools) == (True, [Pool("all", 5)])


def test_what_a_file_does_not_say_is_the_papers_or_assumed(tmp_path):
    nodes = read(tmp_path, "nodes: [{gpus: 2, gpu_type: V100}]\npools: {a: 2}\n")
    assert (nodes.pue, nodes.tariff) == (1.33, ((0.0, 0.172),))  # ANDREAS, section V.A
    assert nodes.groups == (NodeGroup("V100", 2, (), ("node-1",)),)
    assert nodes.groups[0].power_w == (0.0, 350.0, 600.0)
    assert read(tmp_path, "nodes: [{gpus: 2}]").groups == (NodeGroup("", 2, (), ("node-1",)),)
    assert read(tmp_path, "nodes: [{gpus: 2}]").groups[0].power_w == ()


def test_quotas_their_cells_and_their_changes(tmp_path):
    pools = (
        "{b: 2, a: {gpus: 12, cells: 1x8+1x4}, 7: [{gpus: 1}, {gpus: 2, from: 1970-01-02}, {gpus: 3, from: 172800}]}"
    )
    cluster = read(tmp_path, f"nodes: [{{count: 3, gpus: 8}}]\npools: {pools}\n")
    assert cluster.quotas.quotas == (
        Quota("7", 1), Quota("7", 2, DAY_S), Quota("7", 3, 2 * DAY_S), Quota("a", 12, cells=(8, 4)), Quota("b", 2),
    )  # fmt: skip
    assert (cluster.flat, cluster.gpus, cluster.pools) == (False, 24, [Pool("7", 1), Pool("a", 12), Pool("b", 2)])
    assert cluster.cells == {"a": (8, 4)}
    assert cluster.quotas.at(DAY_S)[0] == Pool("7", 2)


def test_the_documented_file_is_read(tmp_path):
    text = next(part.strip() for part in DOCS.split("```") if part.strip().startswith(("yaml\nnodes:", "nodes:")))
    cluster = read(tmp_path, text.removeprefix("yaml"))
    assert (cluster.gpus, cluster.gpu_types, cluster.flat) == (69, ("v100", "t4"), False)
    assert cluster.groups[0].cpus == 32.0
    assert cluster.names[-1] == "armida-05"


HOST = st.none() | st.floats(0.001, 1e6)
SMALL = st.integers(1, 4)


@st.composite
def clusters(draw):
    """Clusters as a file may tell them."""
    groups, before = [], 0
    for row in range(draw(SMALL)):
        count, gpus = draw(SMALL), draw(SMALL)
        names = numbered(count, before) if draw(st.booleans()) else tuple(f"n{row}.{at}" for at in range(count))
        watts = draw(st.just(()) | st.tuples(*[st.floats(0, 1e4)] * (gpus + 1)))
        groups.append(
            NodeGroup(draw(st.sampled_from(["", "t4", "x9"])), gpus, watts, names, *draw(st.tuples(*[HOST] * 3)))
        )
        before += count
    total = sum(group.count * group.gpus for group in groups)
    since = draw(st.lists(st.integers(0, 10**9), unique=True, max_size=3).map(sorted))
    cells = draw(st.sampled_from([(), (total,), (1,) * total]))
    quotas = [Quota("a", total, ALWAYS_S, cells), *(Quota("a", row % 2, float(at_s)) for row, at_s in enumerate(since))]
    hours = draw(st.lists(st.integers(1, 23), unique=True, max_size=3).map(sorted))
    tariff = tuple((float(hour), draw(st.floats(0, 10))) for hour in (0, *hours))
    table = PoolsTable(tuple(quotas) if draw(st.booleans()) else ())
    return Cluster(tuple(groups), table, pue=draw(st.floats(1, 3)), tariff=tariff, rules=draw(rules()))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cluster=clusters())
def test_what_is_written_is_read_back(tmp_path, cluster):
    write_cluster(cluster, tmp_path / "written.yaml")
    again = read_cluster(tmp_path / "written.yaml")
    assert again.names == cluster.names
    assert node_by_node(again) == node_by_node(cluster)
    assert (again.quotas, again.pue, again.tariff) == (cluster.quotas, cluster.pue, cluster.tariff)
    assert again.rules == cluster.rules


def node_by_node(cluster):
    return [
        (group.gpu_type, group.gpus, group.told_w, group.cpus, group.memory_gb, group.bandwidth_mb_s)
        for group in cluster.groups
        for _ in group.names
    ]


NODE = "nodes: [{gpus: 1, gpu_type: t4}]\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[]", "nodes, pools, energy, priority, accounts, qos, partitions are expected"),
        ("", "nodes: [{count: 8, gpus: 4}] and pools: {name: gpus} are expected"),
        ("just text", "partitions are expected, got 'just text'"),
        ("nodes: [4]", "node group 1: count, gpus, gpu_type"),
        ("nodes: [{count: 1}]", "node group 1, gpus: must be a whole number >= 1, got None; correct it"),
        (
            "nodes: [{count: 3, gpus: 4}, {count: -1, gpus: 4}]",
            "group 2, count: must be a whole number >= 1, got -1",
        ),
        ("nodes: [{count: 1.7, gpus: 4}]", "count: must be a whole number >= 1, got 1.7"),
        ("nodes: [{count: yes, gpus: 4}]", "got True"),
        ("nodes: [{gpus: 4, gpu_type: {a: b}}]", "node group 1, gpu_type: a text is expected, got {'a': 'b'}"),
        ("nodes: [{gpus: 4, cpus: 0}]", "node group 1, cpus: must be a number > 0, got 0"),
        (f"nodes: [{{gpus: 4, cpus: 1{'0' * 400}}}]", "node group 1, cpus: must be a number > 0"),
        (
            "nodes: [{gpus: 4, memory: 9}]",
            "node group 1: memory is not known; did you mean memory_gb? known are count, gpus",
        ),
        (NODE + "pools: [a]", "pools: {name: gpus} are expected, got ['a']"),
        (NODE + "pools: {a: {gpus: -1, from: 2024-01-01}}", "pool a: must be a whole number >= 1, got -1"),
        (
            NODE + "energy: {pue: 1e3}",
            "pue: must be a number >= 1, got '1e3'; write it with a point and a sign, as in 1.0e+3",
        ),
        (NODE + "pools: {a: 0}", "pool a: must be a whole number >= 1, got 0"),
        (NODE + "pools: {1: 1, '1': 1}", "a pool is given twice"),
        (NODE + "pools: {a: 5}", "the pools' quotas (5) exceed the cluster's 1 GPUs"),
        (NODE + "pools: {a: [{gpus: 1}, {gpus: 2, from: 1970-01-02}]}", "quotas (2) exceed the cluster's 1 GPUs"),
        (
            NODE + "pools: {a: {gpus: 1, cell: 1x1}}",
            "pool a: cell is not known; did you mean cells? known are gpus, cells, from",
        ),
        (NODE + "pools: {a: {gpus: 1, cells: 1x2}}", "pool a, cells: 1x2 are not the 1 GPUs of the pool"),
        (NODE + "pools: {a: {gpus: 2000000, cells: 2000000x1}}", "more than 1,000,000 cells"),
        (NODE + "energy: {price: 0.2}", "energy: price is not known; known are price_eur_kwh, pue, tariff"),
        ("nodes: [{gpus: 1, gpu_type: t4, power_w: [0, -5]}]", "power_w: must be a number >= 0, got -5"),
        ("nodes: [{gpus: 2, gpu_type: t4, power_w: [0, 5]}]", "power_w: 3 numbers are expected, with 0 to 2 GPUs"),
        ("nodes: [{gpus: 1, gpu_type: t4, power_w: [0, 5], gpu_w: 5}]", "power_w and gpu_w exclude each other"),
        ("nodes: [{gpus: 1, gpu_type: t4, gpu_w: 5}]", "node_w is missing beside gpu_w"),
        (NODE + "energy: {pue: 0.9}", "energy, pue: must be a number >= 1, got 0.9"),
        (NODE + "energy: {price_eur_kwh: 1, tariff: [{from_h: 0, price_eur_kwh: 1}]}", "exclude each other"),
        (NODE + "energy: {tariff: 3}", "energy, tariff: [{from_h: 0"),
        (NODE + "energy: {tariff: [{from_h: 1, price_eur_kwh: 1}]}", "from_h must begin at 0 and ascend below 24"),
        (
            NODE + "energy: {tariff: [{from_h: 0, price_eur_kwh: 1}, {from_h: 9, price_eur_kwh: 2}, "
            "{from_h: 9, price_eur_kwh: 1}]}",
            "from_h must begin at 0 and ascend below 24, got [0.0, 9.0, 9.0]",
        ),
        (NODE + "energy: {tariff: [{from_h: 0, price_eur_kwh: 1}, {from_h: 24, price_eur_kwh: 2}]}", "below 24"),
        ("nodes: [{gpus: 1, gpu_type: t4, name: a}, {gpus: 1, gpu_type: t4, name: a}]", "two nodes are named a"),
        (NODE + "priority: {agee: 1}", "priority: agee is not known; did you mean age? known are age, fairshare"),
        (NODE + "priority: {age: -1}", "priority, age: must be a number >= 0, got -1"),
        (NODE + "priority: {period_s: 0}", "priority, period_s: must be a number > 0, got 0"),
        (NODE + "priority: {favor_small: 1}", "priority, favor_small: must be true or false, got 1"),
        (NODE + "priority: [1]", "priority: age, fairshare"),
        (NODE + "accounts: {a: {accounts: {a: {}}}}", "accounts, a, accounts, a: there are two accounts of that name"),
        (NODE + "accounts: {7: {}}", "accounts: names with what each is are expected"),
        (NODE + "accounts: {a: 5}", "accounts, a: shares, users, accounts, grp_gpus"),
        (NODE + "accounts: {a: {users: [ann]}}", "accounts, a, users: names with what each is are expected"),
        (NODE + "accounts: {a: {grp_gpu: 5}}", "did you mean grp_gpus?"),
        (NODE + "qos: {a: {priority: high}}", "qos, a, priority: must be a number >= 0, got 'high'"),
        (NODE + "partitions: {a: {}}", "partitions, a: must be a number >= 0, got {}"),
        ("nodes: [1", "not valid YAML"),
    ],
)
def test_files_that_cannot_be_used_are_refused_in_one_line(tmp_path, text, line):
    assert line in refused(PoolsError, "", read, tmp_path, text)


def test_openbs_nodes_are_a_cluster_and_those_without_gpus_are_left_out(written):
    path = written("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,1,1,2,T4\nb,1,1,0,\nc,1,1,8,G2\nd,1,1,2,T4\n")
    nodes = read_cluster(path)
    assert nodes.groups == (
        NodeGroup("T4", 2, (), ("a", "d")),
        NodeGroup("G2", 8, (), ("c",)),
    )
    assert [group.power_w for group in nodes.groups] == [
        (0.0, 170.0, 240.0),
        (0.0, *(100.0 + GPU_TYPES["g2"].power_w * used for used in range(1, 9))),
    ]
    assert (len(nodes.names), nodes.notes) == (3, ("1 without GPUs left out",))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("sn,gpu\na,1\n", "column model missing"),
        ("sn,gpu,model\na,two,T4\n", "row 2, column gpu: must be a number, got 'two'"),
        ("sn,gpu,model\na,1,T4\na,1,T4\n", "row 3, column sn: is there twice, got 'a'; keep one row a node"),
        ("sn,gpu,model\na,0,\n", "no node has a GPU"),
    ],
)
def test_lists_that_are_none_of_openbs_are_refused(written, text, line):
    assert line in refused(PoolsError, "", read_cluster, written("nodes.csv", text))


def test_openb_has_1213_nodes_with_gpus(published):
    nodes = read_cluster(published / "openb" / "openb_node_list_gpu_node.csv")
    assert (len(nodes.names), nodes.gpus) == (1213, 6212)
    assert Counter(kind for group in nodes.groups for kind in [group.gpu_type] * group.count) == OPENB_TYPES


# Priority, accounts, QOS and limits of a cluster file.

WHOLE = """
priority: {age: 10, fairshare: 2.5, half_life_s: 0, favor_small: true}
accounts:
  lab: {shares: 3, grp_gpus: 8, users: {ann: 2}, accounts: {theory: {user_jobs: 4, accounts: {deep: }}}}
  guests: {}
qos: {high: {priority: 100, user_gpus: 2}, low: }
partitions: {gpu: 10}
"""


def test_all_sections(tmp_path):
    rules = read(tmp_path, NODE + WHOLE).rules
    assert rules.weights == PriorityWeights(age=10.0, fairshare=2.5, half_life_s=inf, favor_small=True)
    assert rules.accounts == {
        "lab": Account("", 3.0, {"ann": 2.0}, Limits(grp_gpus=8.0)),
        "theory": Account("lab", 1.0, {}, Limits(user_jobs=4.0)),
        "deep": Account("theory"),
        "guests": Account(),
    }
    assert rules.qos == {"high": Qos(100.0, Limits(user_gpus=2.0)), "low": Qos()}
    assert rules.partitions == {"gpu": 10.0}
    assert (rules.above("deep"), rules.above("new"), rules.above("")) == (("deep", "theory", "lab"), ("new",), ())
    assert (rules.limited, rules.weights.any) == (True, True)


def test_a_file_without_them_has_no_rules(tmp_path):
    rules = read(tmp_path, NODE).rules
    assert rules == NO_RULES
    assert (rules.limited, rules.weights.any) == (False, False)


NAMES = ("a", "b", "c d", "ä")
NUMBER = st.floats(0.0, 1e6)
LIMITS = st.builds(Limits, *[NUMBER | st.just(inf)] * 4)


@st.composite
def rules(draw):
    accounts, parents = {}, [""]
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        users = draw(st.dictionaries(st.sampled_from(NAMES), NUMBER, max_size=2))
        accounts[name] = Account(draw(st.sampled_from(parents)), draw(NUMBER), users, draw(LIMITS))
        parents.append(name)
    weights = st.builds(PriorityWeights, *[NUMBER] * 5, *[st.floats(0.1, 1e9)] * 3, st.booleans())
    qos = st.dictionaries(st.sampled_from(NAMES), st.builds(Qos, NUMBER, LIMITS), max_size=2)
    return SchedulingRules(draw(weights), accounts, draw(qos), draw(st.dictionaries(st.sampled_from(NAMES), NUMBER)))
