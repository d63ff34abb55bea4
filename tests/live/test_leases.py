"""Leases by their marks, pools by their QOS, and what fits on nodes."""

from dataclasses import replace

import pytest

from jobcast.domain.jobs import Pool
from jobcast.live.leases import Room, leases_of, mark_of, marked, pool_of, pools_of, unmarked
from jobcast.live.slurm import Node, Qos
from tests.live.imagined_slurm import ImaginedSlurm


def job(**more):
    slurm = ImaginedSlurm()
    slurm.submit("7", "a", more.pop("gpus", 8), **{"qos": "lent_a", **more})
    return slurm.jobs["7"]


@pytest.mark.parametrize("before", ["", "ask Ada", "x | y", "jobcast lease=", "a | jobcast lease=1 until=x"])
def test_a_mark_is_taken_off_as_it_was_put_on(before):
    one = job(mark=before, qos="a")
    mark = marked(one, "n1", 99.0, "new-load:3")
    assert mark_of(mark)["name"] == "n1"
    assert unmarked(replace(one, mark=mark)) == before


@pytest.mark.parametrize(("before", "left"), [("", "see ticket 7"), ("ask Ada", "ask Ada | see ticket 7")])
def test_a_lease_stands_whatever_is_added_to_its_mark(before, left):
    one = job(mark=before, qos="a")
    noted = replace(one, qos="lent_a", mark=marked(one, "n1", 99.0, "new-load:3") + " | see ticket 7")
    assert (mark_of(noted.mark)["name"], mark_of(noted.mark)["versions"]) == ("n1", "new-load:3")
    assert unmarked(noted) == left


def test_what_has_no_mark_is_no_lease():
    slurm = ImaginedSlurm()
    slurm.submit("1", "a", 4, qos="lent_a")
    slurm.submit("2", "a", 4, qos="a", mark="jobcast lease=n until=5 from=a v=")
    slurm.submit("3", "a", 4, qos="lent_a", mark="jobcast lease=n until=5 from=a v=x:1,y:2")
    (lease,) = leases_of(slurm.look(0.0), "account")
    assert (lease.job.job_id, lease.until_s, lease.qos, lease.versions, lease.gpus) == ("3", 5.0, "a", "x:1,y:2", 4)


@pytest.mark.parametrize(("by", "pool"), [("account", "a"), ("qos", "a"), ("partition", "gpu")])
def test_the_pool_of_a_job_stays_while_it_is_on_lease(by, pool):
    assert pool_of(job(partition="gpu,short"), by) == pool


def test_pools_are_limited_qos_with_one_for_leases_or_all_that_are_limited():
    qos = {"a": Qos(16), "b": Qos(8), "normal": Qos(None), "lent_b": Qos(0)}
    assert pools_of(qos) == [Pool("b", 8)]
    assert pools_of({"a": Qos(16), "b": Qos(8), "normal": Qos(None)}) == [Pool("a", 16), Pool("b", 8)]


def test_what_fits_on_nodes_takes_the_fullest_that_does():
    room = Room({"n1": Node(8, 6, True), "n2": Node(8, 2, True), "n3": Node(8, 0, False)})
    assert room.take(job(gpus=2))
    assert not room.take(job(gpus=8))
    assert room.take(job(gpus=6))
    assert not room.take(job(gpus=1))


def test_a_job_of_several_nodes_needs_as_much_on_each():
    nodes = {f"n{number}": Node(8, 4 * number, True) for number in range(3)}
    assert not Room(nodes).take(job(gpus=16, nodes=2))
    assert Room(nodes).take(job(gpus=8, nodes=2))


def test_a_job_takes_only_what_it_may_use():
    """By type of GPUs, partition and feature; a node of which nobody told them may be used by all."""
    names = ("a100", "v100")
    nodes = {name: Node(8, 0, True, frozenset((f"gpu {name}", f"partition {name}", "partition gpu"))) for name in names}
    of_v100 = job(gpus=8, asks=(frozenset(("partition gpu",)), frozenset(("gpu v100",))))
    room = Room(nodes)
    assert (room.take(of_v100), room.take(of_v100), room.stuck(of_v100)) == (True, False, True)
    assert not room.stuck(job(gpus=16))
    assert room.take(job(gpus=8, asks=(frozenset(("partition a100", "partition h100")),)))
    assert Room({"n": Node(8, 0, True)}).take(of_v100)
