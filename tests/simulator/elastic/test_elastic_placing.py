"""Where jobs lie: by hand, and never more on a node than it has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples

from jobcast.schedulers.registry import make_policy
from tests.simulator.elastic.elastic_cases import Case, cases, cluster_of, jobs_of, policies

FIFO, SRSF = (make_policy(name) for name in ("elastic_fifo", "srsf"))
WHOLE = {name: policy for name, policy in policies().items() if policy.integral}
TWO_NODES = [(0, 4), (0, 4)]


def nodes_of(case, policy, arrived):
    """(arrived, n_nodes) GPUs by node, and locality, right after a submission."""
    run = case.run(policy)
    run.submit(arrived)
    return run.state.on_node[:arrived].tolist(), run.state.locality[:arrived].tolist()


def test_jobs_are_packed_onto_the_fullest_node_that_takes_them():
    """3, then 2 that the first node cannot take, then 1 that it can."""
    case = Case(jobs_of([(0.0, 9.0, 3), (0.0, 9.0, 2), (0.0, 9.0, 1)]), cluster_of(8, nodes=TWO_NODES))
    assert nodes_of(case, FIFO, 3) == ([[3.0, 0.0], [0.0, 2.0], [1.0, 0.0]], [0, 0, 0])


def test_a_job_on_more_nodes_than_it_needs_is_slow():
    """3 and 3 leave one GPU on either node: the third job of 2 lies on both, at 0.9 x 2, so 18 s take 10 s."""
    rows = [(0.0, 300.0, 3), (0.0, 300.0, 3), (0.0, 18.0, 2)]
    case = Case(jobs_of(rows), cluster_of(8, nodes=TWO_NODES))
    assert nodes_of(case, FIFO, 3) == ([[3.0, 0.0], [0.0, 3.0], [1.0, 1.0]], [0, 0, 1])
    assert case.log(FIFO).end_s[2] == pytest.approx(10.0)


def test_a_job_wider_than_a_node_lies_on_two_and_is_not_slow():
    case = Case(jobs_of([(0.0, 80.0, 8)]), cluster_of(8, nodes=TWO_NODES))
    assert nodes_of(case, FIFO, 1) == ([[4.0, 4.0]], [0])
    assert case.log(FIFO).end_s.tolist() == [10.0]


def test_what_stays_stays():
    """The one on both nodes does not move when a node gets free, which another one takes."""
    rows = [(0.0, 3.0, 3), (0.0, 300.0, 3), (0.0, 180.0, 2), (2.0, 300.0, 3)]
    case = Case(jobs_of(rows), cluster_of(8, nodes=TWO_NODES))
    on_node, locality = nodes_of(case, FIFO, 4)
    assert on_node == [[0.0, 0.0], [0.0, 3.0], [1.0, 1.0], [3.0, 0.0]]
    assert locality[1:] == [0, 1, 0]


def test_who_shrinks_leaves_the_node_on_which_it_holds_least():
    """6 on two nodes, 4 and 2; a shorter one of 4 comes, so that 4 are left: on the first node."""
    case = Case(jobs_of([(0.0, 600.0, 6), (1.0, 4.0, 4)]), cluster_of(8, nodes=TWO_NODES))
    assert nodes_of(case, SRSF, 1) == ([[4.0, 2.0]], [0])
    assert nodes_of(case, SRSF, 2) == ([[4.0, 0.0], [0.0, 4.0]], [0, 0])


def test_types_lie_on_their_own_nodes():
    """One node of each type; model 1 prefers the second."""
    jobs = jobs_of([(0.0, 9.0, 3, 0, 1), (0.0, 9.0, 2, 0, 1)], speed=[[1.0, 1.0], [0.5, 1.0], [1, 1], [1, 1]])
    case = Case(jobs, cluster_of(4, 4, nodes=[(0, 4), (1, 4)]))
    assert nodes_of(case, FIFO, 2) == ([[0.0, 3.0], [1.0, 1.0]], [0, 0])


@pytest.mark.parametrize("name", WHOLE)
@examples(max_examples=40)
@given(case=cases(placed=True))
def test_nodes_hold_what_jobs_hold_and_no_more_than_they_have(name, case):
    run = case.run(WHOLE[name])
    for arrived in range(1, len(case.jobs.size_s) + 1):
        run.submit(arrived)
        active = run.state.active[: run.state.count[1]]
        on_node = run.state.on_node[active]
        assert (on_node >= 0.0).all()
        assert (on_node.sum(axis=0) <= case.cluster.node_gpus).all()
        assert on_node.sum(axis=1).tolist() == run.state.gpus[active].sum(axis=1).tolist()
        least_nodes = np.ceil(on_node.sum(axis=1) / 4)
        assert run.state.locality[active].tolist() == ((on_node > 0).sum(axis=1) > least_nodes).tolist()


@examples(max_examples=40)
@given(case=cases(placed=True, types=2))
def test_nodes_of_a_type_hold_that_type(case):
    run = case.run(FIFO)
    run.submit(len(case.jobs.size_s))
    for kind in (0, 1):
        there = run.state.on_node[:, case.cluster.node_type == kind].sum(axis=1)
        active = run.state.active[: run.state.count[1]]
        assert there[active].tolist() == run.state.gpus[active, kind].tolist()
