"""Cluster files of unlike GPUs: what is read, what is refused, and that what is written is read back."""

import os
from pathlib import Path

import pytest
import yaml

from jobcast.domain.errors import PoolsError
from jobcast.traces.cluster_files import read_nodes
from jobcast.traces.gpu_nodes import EnergyPrice, GpuNodes, NodeGroup, read_gpu_nodes, write_gpu_nodes
from jobcast.traces.gpu_types import GPU_TYPES

BOTH = """
nodes:
  - {count: 2, gpus: 2, gpu_type: v100, power_w: [0, 420, 670]}
  - {count: 1, gpus: 1, gpu_type: t4, node_w: 170, gpu_w: 70, idle_w: 20}
energy: {pue: 1.2, tariff: [{from_h: 0, price_eur_kwh: 0.1}, {from_h: 8.5, price_eur_kwh: 0.2}]}
"""
OPENB_TYPES = {"T4": 404, "P100": 134, "V100M16": 55, "V100M32": 30, "A10": 2, "G2": 549, "G3": 39}
"""Nodes by type, counted in the file; 1,213 in all."""


def read(tmp_path, text):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return read_gpu_nodes(path)


def test_groups_power_and_tariff(tmp_path):
    nodes = read(tmp_path, BOTH)
    assert nodes.groups == (
        NodeGroup("v100", 2, (0.0, 420.0, 670.0), ("node-1", "node-2")),
        NodeGroup("t4", 1, (20.0, 240.0), ("node-3",)),
    )
    assert nodes.price == EnergyPrice(1.2, ((0.0, 0.1), (8.5, 0.2)))
    assert (len(nodes), nodes.gpus, nodes.widest, nodes.notes) == (3, 5, {"v100": 2, "t4": 1}, ())


def test_what_a_file_does_not_say_is_the_papers_or_assumed_and_told(tmp_path):
    nodes = read(tmp_path, "nodes: [{gpus: 2, gpu_type: V100}]\npools: {a: 2}\n")
    assert nodes.price == EnergyPrice(1.33, ((0.0, 0.172),))  # ANDREAS, section V.A
    assert nodes.groups == (NodeGroup("V100", 2, (0.0, 350.0, 600.0), ("node-1",)),)
    assert "assumed of its type" in nodes.notes[0]
    assert "pools" in nodes.notes[1]


def test_names_are_numbered_where_there_are_several(tmp_path):
    nodes = read(tmp_path, "nodes: [{gpus: 1, gpu_type: t4, name: a}, {count: 2, gpus: 1, gpu_type: t4, name: b}]")
    assert [name for group in nodes.groups for name in group.names] == ["a", "b-1", "b-2"]


def test_what_is_written_is_read_back(tmp_path):
    named = NodeGroup("v100", 2, (5.0, 420.0, 670.0), ("armida-05", "armida-06"))
    plain = NodeGroup("t4", 1, (0.0, 240.0), ("node-3", "node-4"))
    for price in (EnergyPrice(), EnergyPrice(1.5, ((0.0, 0.1), (7.0, 0.3)))):
        nodes = GpuNodes((named, plain), price)
        write_gpu_nodes(nodes, tmp_path / "written.yaml")
        again = read_nodes(tmp_path / "written.yaml")
        assert [name for group in again.groups for name in group.names] == [
            "armida-05",
            "armida-06",
            "node-3",
            "node-4",
        ]
        assert {group.power_w for group in again.groups} == {named.power_w, plain.power_w}
        assert again.price == price


NODE = "nodes: [{gpus: 1, gpu_type: t4}]\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[]", "nodes, pools, energy are expected"),
        ("nodes: []", "nodes: [{count: 5"),
        ("nodes: [{gpus: 1, gpu_type: t4, watts: 3}]", "node group 1: watts is not known; known are count, gpus"),
        (NODE + "prices: 3", "prices is not known"),
        (NODE + "energy: {price: 0.2}", "energy: price is not known; known are price_eur_kwh, pue, tariff"),
        ("nodes: [{gpus: 0, gpu_type: t4}]", "node group 1, gpus: must be a whole number >= 1, got 0"),
        ("nodes: [{gpus: 1}]", "node group 1, gpu_type: a name is expected"),
        ("nodes: [{gpus: 1, gpu_type: x9}]", "nothing is known of the power of x9; give power_w"),
        ("nodes: [{gpus: 1, gpu_type: t4, power_w: [0, -5]}]", "power_w: must be a number >= 0, got -5"),
        ("nodes: [{gpus: 1, gpu_type: t4, power_w: [0, .nan]}]", "power_w: must be a number >= 0, got nan"),
        ("nodes: [{gpus: 2, gpu_type: t4, power_w: [0, 5]}]", "power_w: 3 numbers are expected, with 0 to 2 GPUs"),
        ("nodes: [{gpus: 1, gpu_type: t4, power_w: [0, 5], gpu_w: 5}]", "power_w and gpu_w exclude each other"),
        ("nodes: [{gpus: 1, gpu_type: t4, gpu_w: 5}]", "node_w is missing beside gpu_w"),
        ("nodes: [{gpus: 1, gpu_type: t4, node_w: -1, gpu_w: 5}]", "node_w: must be a number >= 0, got -1"),
        (NODE + "energy: {pue: 0.9}", "energy, pue: must be a number >= 1, got 0.9"),
        (NODE + "energy: {price_eur_kwh: -1}", "energy, price_eur_kwh: must be a number >= 0"),
        (NODE + "energy: {price_eur_kwh: 1, tariff: [{from_h: 0, price_eur_kwh: 1}]}", "exclude each other"),
        (NODE + "energy: {tariff: 3}", "energy, tariff: [{from_h: 0"),
        (NODE + "energy: {tariff: [{from_h: 1, price_eur_kwh: 1}]}", "from_h must begin at 0 and ascend below 24"),
        (
            NODE + "energy: {tariff: [{from_h: 0, price_eur_kwh: 1}, {from_h: 9, price_eur_kwh: 2}, "
            "{from_h: 9, price_eur_kwh: 1}]}",
            "from_h must begin at 0 and ascend below 24, got [0.0, 9.0, 9.0]",
        ),
        (NODE + "energy: {tariff: [{from_h: 0, price_eur_kwh: 1}, {from_h: 24, price_eur_kwh: 2}]}", "below 24"),
        (NODE + "energy: {tariff: [{from_h: 0}]}", "step 1, price_eur_kwh: must be a number >= 0, got None"),
        ("nodes: [{gpus: 1, gpu_type: t4, name: a}, {gpus: 1, gpu_type: t4, name: a}]", "two nodes are named a"),
        ("nodes: [1", "not valid YAML"),
    ],
)
def test_files_that_cannot_be_used_are_refused_in_one_line(tmp_path, text, line):
    with pytest.raises(PoolsError) as refused:
        read(tmp_path, text)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_openbs_nodes_are_a_cluster_and_those_without_gpus_are_left_out(tmp_path):
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\na,1,1,2,T4\nb,1,1,0,\nc,1,1,8,G2\nd,1,1,2,T4\n")
    nodes = read_nodes(path)
    assert nodes.groups == (
        NodeGroup("T4", 2, (0.0, 170.0, 240.0), ("a", "d")),
        NodeGroup("G2", 8, (0.0, *(100.0 + GPU_TYPES["g2"].power_w * used for used in range(1, 9))), ("c",)),
    )
    assert "3 nodes, 1 without GPUs left out" in nodes.notes[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("sn,gpu\na,1\n", "column model missing"),
        ("sn,gpu,model\na,two,T4\n", "row 1, gpu: must be a whole number >= 0, got 'two'"),
        ("sn,gpu,model\na,1,T4\na,1,T4\n", "each node needs a name of its own"),
        ("sn,gpu,model\na,1,H100\n", "nothing is known of the power of GPUs 'H100'"),
        ("sn,gpu,model\na,0,\n", "no node has a GPU"),
    ],
)
def test_lists_that_are_none_of_openbs_are_refused(tmp_path, text, line):
    path = tmp_path / "nodes.csv"
    path.write_text(text)
    with pytest.raises(PoolsError) as refused:
        read_nodes(path)
    assert line in str(refused.value)


def test_openb_has_1213_nodes_with_gpus():
    folder = os.environ.get("JOBCAST_DATA")
    if folder is None:
        pytest.skip("JOBCAST_DATA is not set: openb's list of nodes is not there")
    nodes = read_nodes(Path(folder) / "openb" / "openb_node_list_gpu_node.csv")
    assert (len(nodes), nodes.gpus) == (1213, 6212)
    by_type: dict[str, int] = {}
    for group in nodes.groups:
        by_type[group.gpu_type] = by_type.get(group.gpu_type, 0) + group.count
    assert by_type == OPENB_TYPES


def test_a_cluster_file_of_energy_serves_other_schedulers(tmp_path):
    """Their readers know nothing of watts and prices, and let them stand."""
    from jobcast.pipelines.elastic.cluster import hardware
    from jobcast.pipelines.scenes import capacity
    from jobcast.pipelines.tasks.servers import servers

    path = tmp_path / "cluster.yaml"
    path.write_text(BOTH)
    assert yaml.safe_load(BOTH)["energy"]["pue"] == 1.2
    assert capacity(None, pools=None, cluster=path, gpus=None, from_s=None).pools[0].quota == 5
    assert hardware(None, gpus=None, cluster=path, pools=None).gpus == 5
    assert servers(cluster=path).gpus == 5
