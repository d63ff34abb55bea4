"""Placement: by hand where jobs go, and what holds for any."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import DecisionError
from jobcast.pipelines.report.job_table import last_nodes
from jobcast.schedulers.placement import NodePlacement, nodes_needed, place
from jobcast.schedulers.rounds import Rounds
from jobcast.simulator.engine import replay
from tests.schedulers.rounds_driver import InOrder, gangs


def test_a_narrow_job_takes_the_node_that_it_fills_best():
    placed = place([4, 4, 4], {0: ((0, 3),), 1: ((1, 2),)}, {2: 1, 3: 2})
    assert placed.seats == {0: ((0, 3),), 1: ((1, 2),), 2: ((0, 1),), 3: ((1, 2),)}
    assert (placed.moved, placed.spread, placed.unseated) == ((), (), ())


def test_wider_jobs_go_first():
    # In the order of their numbers the first would take half of a node, and the second none whole.
    assert place([4, 4], {0: ((0, 2),)}, {1: 2, 2: 4}).seats == {0: ((0, 2),), 1: ((0, 2),), 2: ((1, 4),)}


def test_a_wide_job_takes_whole_nodes_and_its_rest_the_best_fit():
    assert place([4, 4, 4], {0: ((1, 1),)}, {1: 8}).seats[1] == ((0, 4), (2, 4))
    assert place([4, 4, 4], {0: ((1, 1),)}, {1: 7}).seats[1] == ((0, 4), (1, 3))


def test_the_fewest_nodes_of_a_mixed_cluster():
    assert [nodes_needed([4, 8, 4], width) for width in (1, 8, 9, 12, 13, 16)] == [1, 1, 2, 2, 3, 3]
    assert place([4, 8, 4], {}, {0: 10}).seats[0] == ((0, 2), (1, 8))


def test_a_running_job_makes_room_that_is_missing():
    placed = place([4, 4], {0: ((0, 2),), 1: ((1, 2),)}, {2: 4})
    assert placed.seats == {0: ((1, 2),), 1: ((1, 2),), 2: ((0, 4),)}
    assert placed.moved == (0,)


def test_of_several_ways_the_one_with_the_fewest_and_narrowest_moves():
    # Node 0 would have to be left by two, node 1 by one of two GPUs, node 2 by one of a single GPU.
    staying = {0: ((0, 1),), 1: ((0, 1),), 2: ((1, 2),), 3: ((2, 1),)}
    placed = place([4, 4, 4], staying, {4: 4})
    assert (placed.moved, placed.seats[3], placed.seats[4]) == ((3,), ((0, 1),), ((2, 4),))


def test_a_wide_job_has_nodes_cleared_for_it():
    placed = place([4] * 4, {0: ((0, 1),), 1: ((1, 1),), 2: ((2, 1),)}, {3: 8})
    assert placed.moved == (0,)
    assert (placed.seats[0], placed.seats[3]) == (((1, 1),), ((0, 4), (3, 4)))


def test_jobs_that_must_not_be_moved_stay():
    staying = {0: ((0, 2),), 1: ((1, 2),)}
    assert place([4, 4], staying, {2: 4}, fixed={0}).moved == (1,)
    placed = place([4, 4], staying, {2: 4}, fixed={0, 1})
    assert (placed.moved, placed.spread, placed.seats[2]) == ((), (2,), ((0, 2), (1, 2)))


def test_what_has_to_be_spread_leaves_the_better_seats_to_the_others():
    # Of 1, 1 and 2 free GPUs the narrower job gets the 2, though the wider one is looked at first.
    staying = {0: ((0, 3),), 1: ((1, 3),), 2: ((2, 2),)}
    placed = place([4, 4, 4], staying, {3: 2, 4: 3}, fixed={0, 1, 2})
    assert placed.seats[3] == ((2, 2),)
    assert placed.unseated == (4,)
    placed = place([4, 4, 5], staying, {3: 2, 4: 3}, fixed={0, 1, 2})
    assert (placed.seats[4], placed.seats[3]) == (((2, 3),), ((0, 1), (1, 1)))


def test_spread_jobs_can_be_moved_too():
    # The spread one leaves a GPU on each node: the other node then has room for it.
    placed = place([4, 4], {0: ((0, 1), (1, 1)), 1: ((1, 1),)}, {2: 4})
    assert (placed.moved, placed.seats[0], placed.seats[2]) == ((0,), ((1, 2),), ((0, 4),))


def test_what_a_moved_job_leaves_and_takes_is_free_and_taken_for_the_next():
    # Job 1 leaves node 1 for node 0, which has one GPU left then: 3 takes it, and nothing is left for 4.
    placed = place([4, 4], {0: ((0, 2),), 1: ((1, 1),)}, {2: 4, 3: 1, 4: 1})
    assert (placed.moved, placed.unseated) == ((1,), (4,))
    assert placed.seats == {0: ((0, 2),), 1: ((0, 1),), 2: ((1, 4),), 3: ((0, 1),)}


def test_a_job_that_leaves_a_node_has_back_no_more_than_it_held_elsewhere():
    # Job 0 could only sit on two nodes again, one GPU of node 1 and the one of node 2.
    staying = {0: ((0, 1), (1, 1)), 1: ((1, 3),)}
    placed = place([4, 4, 1], staying, {2: 4}, fixed={1})
    assert (placed.moved, placed.spread, placed.seats[2]) == ((), (2,), ((0, 3), (2, 1)))


def test_jobs_that_leave_together_share_the_room_that_there_is():
    # Four GPUs of node 0 must be left, to node 1: by 1 + 3 or 2 + 2, as narrow; the smaller keys go.
    staying = {0: ((0, 1),), 1: ((0, 3),), 2: ((0, 2),), 3: ((0, 2),)}
    placed = place([9, 4], staying, {4: 5})
    assert set(placed.moved) == {0, 1}
    assert (placed.seats[0], placed.seats[1], placed.seats[4]) == (((1, 1),), ((1, 3),), ((0, 5),))


def test_nobody_is_moved_where_partly_free_nodes_are_as_few():
    # Of 10 GPUs two nodes hold 8 + 2 at best, or 6 that are free of the larger and 4.
    placed = place([4, 8, 4], {0: ((1, 2),)}, {1: 10})
    assert (placed.moved, placed.seats[1]) == ((), ((0, 4), (1, 6)))


NODES = st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=6)


@st.composite
def scenarios(draw, nodes=NODES, widths=(1, 2, 3, 4, 5, 8, 12)):
    """Nodes, seats of staying jobs (any, also bad ones), widths of coming ones, staying ones that are fixed."""
    sizes = draw(nodes)
    free, staying = list(sizes), {}
    for job in range(draw(st.integers(0, 8))):
        seat = {}
        for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
            node = draw(st.integers(0, len(sizes) - 1))
            gpus = draw(st.sampled_from([width for width in widths if width <= free[node]] or [0]))
            if gpus and node not in seat:
                seat[node] = gpus
                free[node] -= gpus
        if seat:
            staying[job] = tuple(sorted(seat.items()))
    coming, left = {}, sum(free)
    for job in draw(st.permutations(range(100, 106))):
        fitting = [width for width in widths if width <= left]
        if fitting and draw(st.booleans()):
            coming[job] = draw(st.sampled_from(fitting))
            left -= coming[job]
    fixed = draw(st.sets(st.sampled_from(sorted(staying)))) if staying else set()
    return sizes, staying, coming, fixed


def left_over(sizes, seats):
    free = list(sizes)
    for seat in seats.values():
        for node, gpus in seat:
            free[node] -= gpus
    return free


@given(scenarios())
def test_everybody_is_seated_within_capacity(scenario):
    sizes, staying, coming, fixed = scenario
    placed = place(sizes, staying, coming, fixed)
    assert placed.unseated == ()
    assert placed.seats.keys() == staying.keys() | coming.keys()
    assert min(left_over(sizes, placed.seats)) >= 0
    for job, seat in placed.seats.items():
        assert sum(gpus for _, gpus in seat) == (coming.get(job) or sum(gpus for _, gpus in staying[job]))
        assert [node for node, _ in seat] == sorted({node for node, _ in seat})
        assert all(gpus > 0 for _, gpus in seat)


@given(scenarios())
def test_who_goes_on_stays_unless_moved_and_a_move_ends_well(scenario):
    sizes, staying, coming, fixed = scenario
    placed = place(sizes, staying, coming, fixed)
    assert set(placed.moved) <= staying.keys() - fixed
    assert len(set(placed.moved)) == len(placed.moved)
    for job, seat in staying.items():
        if job in placed.moved:
            assert len(placed.seats[job]) <= nodes_needed(sizes, sum(gpus for _, gpus in seat))
        else:
            assert placed.seats[job] == seat
    if all(width <= 1 for width in coming.values()):
        assert placed.moved == ()


@given(scenarios())
def test_nobody_is_spread_where_a_node_has_room(scenario):
    sizes, staying, coming, fixed = scenario
    placed = place(sizes, staying, coming, fixed)
    wasteful = {job for job in coming if len(placed.seats[job]) > nodes_needed(sizes, coming[job])}
    assert wasteful == set(placed.spread)
    free = left_over(sizes, placed.seats)
    assert all(max(free) < coming[job] for job in placed.spread)


@given(scenarios())
def test_the_order_of_jobs_makes_no_difference(scenario):
    sizes, staying, coming, fixed = scenario
    turned = [dict(reversed(jobs.items())) for jobs in (staying, coming)]
    assert place(sizes, *turned, fixed) == place(sizes, staying, coming, fixed)


def can_pack(sizes, free, widths):
    """Whether all widths find as few nodes as they need without a move, by trying everything."""
    if not widths:
        return True
    width, rest = widths[0], widths[1:]
    count = nodes_needed(sizes, width)
    for nodes in combinations(range(len(sizes)), count):
        after = list(free)
        for node in nodes:
            after[node] -= width // count
        if min(after) >= 0 and can_pack(sizes, after, rest):
            return True
    return False


ALIKE = st.integers(1, 5).map(lambda count: [4] * count)


@given(scenarios(nodes=ALIKE, widths=(1, 2, 4, 8)))
def test_with_powers_of_two_a_job_is_moved_or_spread_only_if_one_must_be(scenario):
    sizes, staying, coming, fixed = scenario
    placed = place(sizes, staying, coming, fixed)
    packed = can_pack(sizes, left_over(sizes, staying), list(coming.values()))
    assert packed == (not placed.moved and not placed.spread)


@pytest.mark.parametrize("width", [5, 6])
def test_a_large_cluster_is_answered_without_trying_everything(width):
    """Full nodes of 64 single GPUs: no node can be cleared, and no more than four are asked to leave any."""
    staying = {node * 63 + job: ((node, 1),) for node in range(8) for job in range(63)}
    placed = place([64] * 8, staying, {1_000: width})
    assert (len(placed.moved), placed.spread) == ((4, ()) if width == 5 else (0, (1_000,)))


class Greedy:
    """Runs everybody, whether they fit or not."""

    def choose(self, state):
        return [one.job for one in state.active]


# Two jobs a node; on each one ends within the first round, and the fifth wants a node for itself.
HALVES = [(0, 50, 1), (0, 300, 1), (0, 50, 1), (0, 300, 1), (10, 100, 2)]


def test_a_move_costs_a_restart_and_the_others_go_on():
    seats = NodePlacement([2, 2])
    log = replay(gangs(HALVES, 4, nodes=(2, 2)), Rounds(InOrder(), "in_order", seats=seats))
    # The second leaves node 0 at 120 s, after 100 s of progress, and starts anew on node 1.
    assert log.end_s.tolist() == [70.0, 340.0, 70.0, 320.0, 240.0]
    assert log.preemptions.tolist() == [0, 1, 0, 0, 0]
    assert seats.figures() == {"moves": 1.0, "spread_pct": 0.0}
    assert last_nodes(log) == {0: [0], 1: [1], 2: [1], 3: [1], 4: [0]}


def test_a_job_that_may_not_be_stopped_is_not_moved():
    seats = NodePlacement([2, 2])
    log = replay(gangs(HALVES, 4, preemptible=False, nodes=(2, 2)), Rounds(InOrder(), "in_order", seats=seats))
    assert log.end_s.tolist() == [70.0, 320.0, 70.0, 320.0, 240.0]
    assert log.preemptions.tolist() == [0, 0, 0, 0, 0]
    assert seats.figures() == {"moves": 0.0, "spread_pct": 20.0}  # one of five starts
    assert last_nodes(log)[4] == [0, 1]


def test_a_flat_cluster_has_no_figures_of_seats():
    policy = Rounds(InOrder(), "in_order")
    log = replay(gangs(HALVES, 4), policy)
    assert log.end_s.tolist() == [70.0, 320.0, 70.0, 320.0, 240.0]
    assert policy.figures().keys() == {"rounds"}


def test_more_than_the_nodes_hold_is_the_policys_mistake():
    with pytest.raises(DecisionError, match=r"policy greedy at 0\.0+ s: jobs of 6 GPUs .* nodes of 4 GPUs"):
        replay(gangs([(0, 50, 4), (0, 50, 2)], 4), Rounds(Greedy(), "greedy", seats=NodePlacement([2, 2])))
