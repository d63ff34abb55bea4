import pytest

from jobcast.domain.cells import Cell
from jobcast.domain.errors import DecisionError, PoolsError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Decision, Grant
from jobcast.simulator.cluster import Placements
from jobcast.simulator.engine import replay
from jobcast.simulator.workload import Workload


def job(gpus, name="j"):
    return Job(0, name, "p", 0.0, gpus)


JOB = job(1)


def test_cells_of_a_job_are_as_many_gpus_as_it_is_wide_and_free():
    placements = Placements((8, 4))
    assert placements.why_not(JOB, Grant(6, (Cell(0, 0, 2), Cell(1, 0, 4)))) is None
    placements.give(job(4, "held"), (Cell(1, 0, 4),))
    assert placements.why_not(JOB, Grant(1, (Cell(1, 3, 1),))) == "GPU 3 of server 1 is held by job held"
    placements.take((Cell(1, 0, 4),))
    assert placements.why_not(JOB, Grant(1, (Cell(1, 3, 1),))) is None


@pytest.mark.parametrize(
    ("gpus", "cells", "message"),
    [
        (2, (), "it is given 2 GPUs, its cells have 0"),
        (2, (Cell(0, 0, 4),), "it is given 2 GPUs, its cells have 4"),
        (2, (Cell(0, 7, 2),), "there is no such cell"),
        (2, (Cell(0, -2, 2),), "there is no such cell"),
        (2, (Cell(1, 0, 2),), "there is no such cell"),
        (2, (Cell(-1, 0, 2),), "there is no such cell"),
        (2, (Cell(0, 0, 3), Cell(0, 4, -1)), "there is no such cell"),
        (4, (Cell(0, 0, 2), Cell(0, 1, 2)), "its cells overlap"),
    ],
)
def test_impossible_cells(gpus, cells, message):
    assert message in Placements((8,)).why_not(JOB, Grant(gpus, cells))


def test_without_servers_there_are_no_cells():
    assert Placements().why_not(JOB, Grant(1, ())) is None
    assert Placements().why_not(JOB, Grant(1, (Cell(0, 0, 1),))) == "the cluster has no servers, it is given 1 cells"


class AllOn:
    """Starts every pending job on one cell."""

    name = "all_on"

    def __init__(self, cell):
        self.cell, self.seen = cell, []

    def lane(self, job):
        return 0

    def key(self, job):
        return 0.0

    def decide(self, view):
        self.seen.append((tuple(view.servers), [run.cells for run in view.running.values()]))
        heads = [head for pool in view.pools.values() if (head := pool.pending.head())]
        return Decision({head.seq: Grant(head.gpus, (self.cell,)) for head in heads})


def test_the_engine_shows_cells_and_refuses_those_that_are_held():
    jobs = [Job(0, "a", "p", 0.0, 2), Job(0, "b", "p", 5.0, 2)]
    workload = Workload(jobs, [Outcome(5.0), Outcome(5.0)], [Pool("p", 8)], servers=(8,))
    policy = AllOn(Cell(0, 2, 2))
    assert replay(workload, policy).start_s.tolist() == [0.0, 5.0]  # the cell is free again when the job ends
    assert policy.seen == [((8,), []), ((8,), [])]  # at 0 and 5 s, before its answers
    overlapping = Workload(jobs, [Outcome(6.0), Outcome(5.0)], [Pool("p", 8)], servers=(8,))
    with pytest.raises(DecisionError, match="cannot start job b: GPU 2 of server 0 is held by job a"):
        replay(overlapping, AllOn(Cell(0, 2, 2)))


def test_servers_hold_the_quotas():
    workload = Workload([Job(0, "a", "p", 0.0, 1)], [Outcome(1.0)], [Pool("p", 9)], servers=(8,))
    with pytest.raises(PoolsError, match=r"the pools' quotas \(9 GPUs\) exceed the 8 GPUs of 1 servers"):
        replay(workload, AllOn(Cell(0, 0, 1)))
