import gc
from math import inf
from types import FunctionType, ModuleType

import pytest

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Grant
from jobcast.simulator.cluster import ClusterState
from jobcast.simulator.engine import replay

JOB = Job(0, "a", "p", 0.0, 2, preemptible=True)


def cluster():
    state = ClusterState([Pool("q", 1), Pool("p", 4)])
    state.advance(7.0)
    return state


def state_of(state):
    pool = state.pools["p"]
    return (state.free_gpus, pool.allocated, pool.dedicated, pool.pending.gpus, len(state.running), len(state.touched))


def test_a_job_goes_through_the_cluster():
    state = cluster()
    assert state_of(state) == (5, 0, 0, 0, 0, 0)
    state.submit(JOB, lane=1, key=0.0)
    assert state_of(state) == (5, 0, 0, 2, 0, 1)
    state.settle()
    state.start(JOB, Grant(2, dedicated=False))
    assert state_of(state) == (3, 2, 0, 0, 1, 0)
    assert state.running[0].start_s == 7.0
    assert state.stop(JOB).dedicated is False
    assert state_of(state) == (5, 0, 0, 2, 0, 0)
    assert state.pools["p"].pending.first(2, 0) is None  # filed in lane 1 as before
    state.start(JOB, Grant(2))
    assert state_of(state) == (3, 2, 2, 0, 1, 0)
    state.finish(JOB)
    assert state_of(state) == (5, 0, 0, 0, 0, 1)


def test_pools_come_by_name_and_add_up():
    state = cluster()
    assert list(state.pools) == ["p", "q"]
    assert [pool.quota for pool in state.pools.values()] == [4, 1]
    assert state.total_gpus == 5


@pytest.mark.parametrize("name", ["now_s", "free_gpus", "total_gpus", "touched"])
def test_a_view_cannot_be_written_to(name):
    with pytest.raises(AttributeError):
        setattr(cluster(), name, 1)


def test_mappings_and_pools_of_a_view_cannot_be_written_to():
    state = cluster()
    with pytest.raises(TypeError):
        state.pools["p"] = None
    with pytest.raises(TypeError):
        state.running[0] = None
    with pytest.raises(AttributeError):
        state.pools["p"].allocated = 0


def reachable(root):
    """Objects that can be reached from one, without going through types, functions and modules."""
    seen, queue = {}, [root]
    while queue:
        found = queue.pop()
        if id(found) in seen or isinstance(found, type | FunctionType | ModuleType):
            continue
        seen[id(found)] = found
        queue += gc.get_referents(found)
    return list(seen.values())


def test_no_way_leads_from_the_view_to_the_truth(workload, scripted):
    made = workload([("a", "p", 0, 1000, 1), ("b", "p", 1, 2000, 1)], {"p": 2})
    policy = scripted(made, {0.0: (("a",), (), None), 1.0: (("b",), (), None)})
    found = []
    decide = policy.decide

    def spy(view):
        if view.now_s <= 1:
            found.extend(reachable(view))
        return decide(view)

    policy.decide = spy
    replay(made, policy)
    assert any(isinstance(thing, Job) for thing in found)
    assert not [thing for thing in found if isinstance(thing, Outcome)]
    assert not [thing for thing in found if isinstance(thing, float) and 1000 <= thing < inf]  # no run time, no end
