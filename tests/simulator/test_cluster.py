import gc
from math import inf
from types import FunctionType, ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import DecisionError, PoolsError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import ANYWHERE, Cell, Decision, Grant
from jobcast.simulator.cluster import ClusterState, Placements, Placer
from jobcast.simulator.engine import replay
from jobcast.simulator.queues import PendingQueue, Run
from jobcast.simulator.workload import Workload
from tests.simulator.pool_cases import Script

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
    assert state.service(JOB)[:2] == (0.0, 0.0)  # without an engine nobody has run


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


def test_no_way_leads_from_the_view_to_the_truth(workload):
    made = workload([("a", "p", 0, 1000, 1), ("b", "p", 1, 2000, 1)], {"p": 2})
    found = []

    class Spy(Script):
        def decide(self, view):
            if view.now_s <= 1:
                found.extend(reachable(view))
            return super().decide(view)

    replay(made, Spy({0.0: {"a": 1}, 1.0: {"b": 1}}))
    assert any(isinstance(thing, Job) for thing in found)
    assert not [thing for thing in found if isinstance(thing, Outcome)]
    assert not [thing for thing in found if isinstance(thing, float) and 1000 <= thing < inf]  # no run time, no end


def gang(gpus, name="j"):
    return Job(0, name, "p", 0.0, gpus)


NARROW = gang(1)


def test_cells_of_a_job_are_as_many_gpus_as_it_is_wide_and_free():
    placements = Placements((8, 4))
    assert placements.why_not(NARROW, Grant(6, (Cell(0, 0, 2), Cell(1, 0, 4)))) is None
    placements.give(gang(4, "held"), (Cell(1, 0, 4),))
    assert placements.why_not(NARROW, Grant(1, (Cell(1, 3, 1),))) == "GPU 3 of server 1 is held by job held"
    placements.take((Cell(1, 0, 4),))
    assert placements.why_not(NARROW, Grant(1, (Cell(1, 3, 1),))) is None


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
        (2, (Cell(0, 0, 2), Cell(0, 4, 0)), "there is no such cell"),
        (4, (Cell(0, 0, 2), Cell(0, 1, 2)), "its cells overlap"),
        (10, (Cell(0, ANYWHERE, 5), Cell(0, ANYWHERE, 5)), "server 0 has 8 GPUs free, it is given 10 of them"),
    ],
)
def test_impossible_cells(gpus, cells, message):
    assert message in Placements((8,)).why_not(NARROW, Grant(gpus, cells))


def test_cells_may_lie_anywhere_on_a_server():
    assert Placements((8,)).why_not(NARROW, Grant(8, (Cell(0, ANYWHERE, 3), Cell(0, ANYWHERE, 5)))) is None


def test_without_servers_there_are_no_cells():
    assert Placements().why_not(NARROW, Grant(1, ())) is None
    assert Placements().why_not(NARROW, Grant(1, (Cell(0, 0, 1),))) == "the cluster has no servers, it is given 1 cells"


class AllOn:
    """Starts every pending job on one cell."""

    name = "all_on"

    def __init__(self, cell):
        self.cell, self.seen = cell, []

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


def test_gangs_that_name_no_nodes_lie_where_they_fit():
    placer, free = Placer(np.array([0, 0, 1]), np.array([True, False])), np.array([4.0, 2.0, 4.0])

    def placed(*grants, able=(True, True)):
        starts = [(Job(seq, str(seq), f"p{seq}", 0.0, 1), grant) for seq, grant in enumerate(grants)]
        found = placer.complete(starts, free, lambda job, gpus: np.array(able), {})
        return [[(cell.server, cell.gpus) for cell in grant.cells] for _, grant in found]

    named = Grant(2, (Cell(0, ANYWHERE, 2),))
    assert placed(named, Grant(3)) == [[(0, 2)], [(2, 3)]]
    assert placed(named, Grant(4), able=(True, False)) == [[(0, 2)], [(0, 2), (1, 2)]]
    assert placed(named, Grant(5)) == [[(0, 2)]]  # no kind has so many
    assert placed(Grant(1), able=(False, True)) == [[(2, 1)]]


def test_servers_hold_the_quotas():
    workload = Workload([Job(0, "a", "p", 0.0, 1)], [Outcome(1.0)], [Pool("p", 9)], servers=(8,))
    with pytest.raises(PoolsError, match=r"the pools' quotas \(9 GPUs\) exceed the 8 GPUs of 1 servers"):
        replay(workload, AllOn(Cell(0, 0, 1)))


ADDED = st.tuples(st.just("add"), st.integers(0, 3), st.integers(1, 3), st.integers(-2, 2))
TAKEN = st.tuples(st.just("take"), st.integers(0, 30), st.just(0), st.just(0))
ASKED = st.tuples(st.just("ask"), st.integers(0, 3), st.integers(0, 4), st.integers(0, 5))


def job(seq, gpus=1):
    return Job(seq, f"j{seq}", "p", 0.0, gpus)


@given(st.lists(st.one_of(ADDED, TAKEN, ASKED), max_size=80), st.booleans())
def test_a_queue_answers_as_a_plain_list_does(steps, fifo):
    queue, plain = PendingQueue(cluster().pools["p"], {}), []  # plain: (key, seq, lane, job)
    for seq, (kind, a, b, c) in enumerate(steps):
        if kind == "add":
            key = 0.0 if fifo else float(c)
            queue.add(job(seq, b), a, key)
            plain.append((key, seq, a, job(seq, b)))
        elif kind == "take" and plain:
            key, _, lane, taken = plain.pop(a % len(plain))
            assert queue.remove(taken) == (lane, key)
            if a % 3 == 0:  # stopped: filed again where it was
                queue.add(taken, lane, key)
                plain.append((key, taken.seq, lane, taken))
        plain.sort(key=lambda row: row[:2])
        skip = {row[1] for row in plain[:c]} if kind == "ask" else set()
        left = [row for row in plain if row[1] not in skip]
        fitting = [row for row in left if row[2] <= a and row[3].gpus <= b]
        assert queue.head(skip) == (left[0][3] if left else None)
        assert queue.first(b, a, skip) == (fitting[0][3] if fitting else None)
        assert (len(queue), queue.gpus) == (len(plain), sum(row[3].gpus for row in plain))
        assert all(row[3] in queue and queue.key(row[3]) == row[:2] for row in plain)


def test_taking_heads_frees_memory():
    run = Run()
    entries = [(0.0, seq, job(seq)) for seq in range(640)]
    for entry in entries:
        run.add(entry)
    for place, entry in enumerate(entries[:-1], 1):
        run.remove(entry)
        assert (len(run), run.first(set())) == (640 - place, entries[place])
        assert len(run._entries) <= 2 * len(run)


QUOTAS = {"p": 3, "q": 5, "r": 8}
STEPS = st.lists(st.tuples(st.sampled_from("saxtlo"), st.integers(0, 30), st.integers(1, 4), st.integers(0, 3)))


def told(tally):
    """All that a tally tells."""
    edges = range(5)
    return (
        [pool.name for pool in tally.waiting],
        sorted(tally.ready),
        tally.pledged,
        {name: room for name, (_, room) in tally.roomy.items()},
        [tally.narrowest(lane) for lane in edges],
        [sorted(tally.holders(gpus, lane)) for gpus in edges for lane in edges],
    )


def read(state):
    """The same, worked out from the pools and their pending jobs one by one."""
    pools, edges = list(state.pools.values()), range(5)
    unused = {pool.name: pool.quota - pool.dedicated for pool in pools}
    asked = {pool.name: pool.pending.gpus for pool in pools}
    heads = {pool.name: pool.pending.head() for pool in pools if len(pool.pending)}

    def holders(gpus, lane):
        return sorted(pool.name for pool in pools if pool.pending.first(gpus, lane) is not None)

    return (
        sorted(heads),
        sorted(name for name, job in heads.items() if job.gpus <= unused[name]),
        sum(min(asked[name], unused[name]) for name in asked),
        {name: unused[name] - asked[name] for name in asked if unused[name] > asked[name]},
        [next((gpus for gpus in edges if holders(gpus, lane)), float("inf")) for lane in edges],
        [holders(gpus, lane) for gpus in edges for lane in edges],
    )


def change(state, kind, pick, gpus, lane, number):
    """Submit, start, finish or stop a job."""
    pools = sorted(QUOTAS)
    pending = [job for job in state.active.values() if job.seq not in state.running]
    running = [run.job for run in state.running.values()]
    if kind == "s":
        pool = pools[pick % len(pools)]
        width = min(gpus, QUOTAS[pool])
        state.submit(Job(number, f"{number}", pool, 0.0, width, preemptible=True), lane, float(pick % 3))
    elif kind in "ax" and pending:
        job = pending[pick % len(pending)]
        state.start(job, Grant(job.gpus, dedicated=kind == "a"))
    elif kind == "t" and running:
        state.finish(running[pick % len(running)])
    elif kind == "o" and running:
        state.stop(running[pick % len(running)])


@given(STEPS)
def test_the_kept_tally_is_the_one_read_from_scratch(steps):
    state = ClusterState([Pool(name, quota) for name, quota in QUOTAS.items()])
    assert told(state.tally) == read(state)
    for number, (kind, pick, gpus, lane) in enumerate(steps):
        change(state, kind, pick, gpus, lane, number)
        if kind == "l":  # several changes between two questions
            assert told(state.tally) == read(state)
    assert told(state.tally) == read(state)


def test_a_tally_by_hand():
    state = ClusterState([Pool(name, quota) for name, quota in QUOTAS.items()])
    for seq, (pool, gpus, lane) in enumerate([("p", 3, 1), ("p", 1, 0), ("q", 2, 2), ("q", 2, 3)]):
        state.submit(Job(seq, f"{seq}", pool, 0.0, gpus), lane, 0.0)
    state.start(state.active[2], Grant(2))
    # p: 4 pending of 3 unused; q: 2 pending of 3 unused; r: 8 unused
    assert told(state.tally)[:4] == (["p", "q"], ["p", "q"], 5.0, {"q": 1.0, "r": 8.0})
    assert [state.tally.narrowest(lane) for lane in (-1, 0, 3)] == [float("inf"), 1, 1]
    assert sorted(state.tally.holders(2, 0)) == ["p"]
    assert sorted(state.tally.holders(2, 3)) == ["p", "q"]
    assert sorted(state.tally.holders(0, 3)) == []
    state.start(state.active[1], Grant(1))
    state.start(state.active[3], Grant(2, dedicated=False))
    # p's head, 3 wide, no longer fits the 2 GPUs left; q has nothing pending
    assert told(state.tally)[:4] == (["p"], [], 2.0, {"q": 3.0, "r": 8.0})
