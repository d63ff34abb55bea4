"""NodePlacement over the rounds of a run: who stays, who moves and what that costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import DecisionError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.pipelines.experiments.simulation import last_nodes
from jobcast.schedulers.las import LeastAttained
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.placement import NodePlacement
from jobcast.schedulers.rounds import Rounds
from jobcast.simulator.engine import replay
from jobcast.simulator.workload import Workload


class InOrder:
    """Runs jobs by `seq`, as they fit."""

    def choose(self, state):
        return first_fit([one.job for one in state.active], state.total_gpus)


class Greedy:
    """Runs everybody, whether they fit or not."""

    def choose(self, state):
        return [one.job for one in state.active]


class Watched(NodePlacement):
    """Checks each round: nodes hold what they can, and whoever goes on and does not move keeps the seat."""

    def settle(self, staying, coming):
        before = dict(self._seats)
        moved = super().settle(staying, coming)
        kept = {job.seq for job in staying} - {*moved}
        assert all(self._seats[seq] == before[seq] for seq in kept)
        assert self._seats.keys() == {job.seq for job in (*staying, *coming)}
        used = [0] * len(self._nodes)
        for seat in self._seats.values():
            for node, gpus in seat:
                used[node] += gpus
        assert all(there <= size for there, size in zip(used, self._nodes, strict=True))
        return moved


def workload(rows, gpus, preemptible=True, nodes=()):
    """Rows (submit, duration, width); a start takes 20 s."""
    jobs = [Job(i, f"{i:03d}", "all", float(at), wide, preemptible=preemptible) for i, (at, _, wide) in enumerate(rows)]
    return Workload(
        jobs, [Outcome(float(duration)) for _, duration, _ in rows], [Pool("all", gpus)], 20.0, servers=nodes
    )


# Two jobs a node; on each one ends within the first round, and the fifth wants a node for itself.
HALVES = [(0, 50, 1), (0, 300, 1), (0, 50, 1), (0, 300, 1), (10, 100, 2)]


def test_a_move_costs_a_restart_and_the_others_go_on():
    seats = NodePlacement([2, 2])
    log = replay(workload(HALVES, 4, nodes=(2, 2)), Rounds(InOrder(), "in_order", seats=seats))
    # The second leaves node 0 at 120 s, after 100 s of progress, and starts anew on node 1.
    assert log.end_s.tolist() == [70.0, 340.0, 70.0, 320.0, 240.0]
    assert log.preemptions.tolist() == [0, 1, 0, 0, 0]
    assert seats.figures() == {"moves": 1.0, "spread_pct": 0.0}
    assert last_nodes(log) == {0: [0], 1: [1], 2: [1], 3: [1], 4: [0]}


def test_a_job_that_may_not_be_stopped_is_not_moved():
    seats = NodePlacement([2, 2])
    log = replay(workload(HALVES, 4, False, (2, 2)), Rounds(InOrder(), "in_order", seats=seats))
    assert log.end_s.tolist() == [70.0, 320.0, 70.0, 320.0, 240.0]
    assert log.preemptions.tolist() == [0, 0, 0, 0, 0]
    assert seats.figures() == {"moves": 0.0, "spread_pct": 20.0}  # one of five starts
    assert last_nodes(log)[4] == [0, 1]


def test_a_flat_cluster_has_no_figures_of_seats():
    policy = Rounds(InOrder(), "in_order")
    log = replay(workload(HALVES, 4), policy)
    assert log.end_s.tolist() == [70.0, 320.0, 70.0, 320.0, 240.0]
    assert policy.figures().keys() == {"rounds"}


def test_more_than_the_nodes_hold_is_the_policys_mistake():
    with pytest.raises(DecisionError, match=r"policy greedy at 0\.0+ s: jobs of 6 GPUs .* nodes of 4 GPUs"):
        replay(workload([(0, 50, 4), (0, 50, 2)], 4), Rounds(Greedy(), "greedy", seats=NodePlacement([2, 2])))


rows = st.lists(
    st.tuples(st.integers(0, 2_000), st.integers(1, 900), st.sampled_from([1, 2, 3, 4, 8])), min_size=1, max_size=14
)


@given(rows, st.sampled_from([[4, 4], [8], [2, 2, 2, 2], [4, 3, 1], [5, 5]]), st.booleans())
def test_every_round_is_seated_and_every_start_is_counted(rows, sizes, preemptible):
    seats = Watched(sizes)
    work = workload(rows, 8, preemptible, sizes)
    if sum(sizes) < 8:
        return
    log = replay(work, Rounds(LeastAttained(), "las", seats=seats))
    assert (log.end_s > log.start_s).all()
    figures = seats.figures()
    assert figures["moves"] <= log.preemptions.sum()
    assert 0.0 <= figures["spread_pct"] <= 100.0
    assert seats._starts == len(set(zip(log.spans.job, log.spans.from_s, strict=True)))
    if sizes == [8]:
        assert figures == {"moves": 0.0, "spread_pct": 0.0}
        flat = replay(workload(rows, 8, preemptible), Rounds(LeastAttained(), "las"))
        assert flat.end_s.tolist() == log.end_s.tolist()
