"""Which cells of servers are bound, reserved and lent, by hand."""

import pytest

from jobcast.domain.policy import Cell
from jobcast.schedulers.cells.placer import ServerMap


def test_what_no_quota_has_stays_out_of_use_on_the_last_servers():
    assert list(ServerMap((8, 8), 10).idle.blocks(1)) == [Cell(1, 6, 2), Cell(0, 0, 8)]


def test_reserves_the_largest_first_and_nothing_where_some_cannot_be_had():
    floor = ServerMap((8, 8), 16)
    assert floor.reserve([4, 8, 4]) == [Cell(0, 0, 8), Cell(1, 0, 4), Cell(1, 4, 4)]
    floor = ServerMap((8, 8), 16)
    assert floor.reserve([8, 8, 4]) is None
    assert list(floor.covered.free.blocks(1)) == [Cell(0, 0, 8), Cell(1, 0, 8)]


def test_lends_where_most_gpus_are_lent():
    floor = ServerMap((8, 8), 16)
    floor.lend([Cell(0, 0, 4)])
    floor.lend([Cell(1, 0, 1), Cell(1, 1, 1)])
    assert floor.to_lend((4,)) == (Cell(0, 4, 4),)


@pytest.mark.parametrize("server", [0, 1])
def test_what_was_given_back_is_lent_no_more_and_the_last_server_lends_first(server):
    floor = ServerMap((8, 8), 16)
    floor.lend([Cell(server, 0, 4)])
    floor.give_back([Cell(server, 0, 4)])
    assert floor.to_lend((8,)) == (Cell(1, 0, 8),)


def test_dedicated_jobs_go_where_others_are_and_spare_ones_where_none_is():
    floor = ServerMap((8, 8), 12)  # the first half of server 1 is nobody's
    floor.lend([Cell(1, 4, 4)])
    assert floor.bind("p", [Cell(0, 0, 4)], [4, 4]) == (Cell(0, 0, 4),)
    floor.give_back([Cell(1, 4, 4)])
    assert floor.to_lend((4,)) == (Cell(1, 4, 4),)
    assert floor.bind("p", [Cell(1, 0, 4)], [4, 4]) == (Cell(0, 4, 4),)


def test_a_cell_is_bound_until_its_last_job_is_gone():
    floor = ServerMap((8,), 8)
    placed = floor.bind("p", [Cell(0, 0, 1)], [8])
    assert (floor.to_lend((4,)), floor.to_lend((4,), bound=True)) == ((), (Cell(0, 4, 4),))
    floor.lend([Cell(0, 4, 4)], within=("p", 0))
    floor.release("p", [Cell(0, 0, 1)], placed)
    assert floor.base("p", 0) == Cell(0, 0, 8)
    floor.give_back([Cell(0, 4, 4)], within=("p", 0))
    assert floor.base("p", 0) is None


def test_only_the_crowded_are_bound_beside_spare_jobs():
    floor = ServerMap((8,), 8)
    floor.lend([Cell(0, 0, 2)])
    assert floor.bind("p", [Cell(0, 4, 4)], [8]) == ()
    assert floor.bind("p", [Cell(0, 4, 4)], [8], crowded=True) == (Cell(0, 4, 4),)
