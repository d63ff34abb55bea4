from random import Random as Draws

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.policy import Cell
from jobcast.schedulers.cells.buddy import Buddies, Covered, sizes_of, used_of
from jobcast.schedulers.cells.turns import out_of_reach


def gpus_of(cell):
    return {(cell.server, gpu) for gpu in range(cell.first, cell.first + cell.gpus)}


def test_the_smallest_block_is_split_and_halves_merge():
    tree = Buddies([8, 8])
    one = tree.find((1,))
    assert one == (Cell(0, 0, 1),)
    tree.take(one)
    two = tree.find((2,))
    assert two == (Cell(0, 2, 2),)  # beside it, the second server stays whole
    tree.take(two)
    assert [(cell.first, cell.gpus) for cell in tree.blocks(1) if cell.server == 0] == [(1, 1), (4, 4)]
    tree.give(one)
    tree.give(two)
    assert list(tree.blocks(1)) == [Cell(0, 0, 8), Cell(1, 0, 8)]


def test_whole_roots_for_wide_jobs():
    tree = Buddies([8, 4, 8, 8])
    tree.take((Cell(0, 3, 1),))
    assert tree.find((8, 8)) == (Cell(2, 0, 8), Cell(3, 0, 8))
    assert tree.find((8, 8, 8)) is None
    assert tree.find((8, 8), lambda root: (-root,)) == (Cell(3, 0, 8), Cell(2, 0, 8))
    assert [tree.is_whole(root) for root in range(4)] == [False, True, True, True]
    assert (tree.widest(8), Buddies([]).widest(8)) == (16, 0)


def test_halves_of_larger_roots_are_no_whole_ones_and_go_by_the_rank_of_their_root():
    tree = Buddies([16, 8, 8, 16])
    tree.take((Cell(0, 0, 8), Cell(3, 0, 8)))
    assert tree.find((8, 8)) == (Cell(1, 0, 8), Cell(2, 0, 8))
    assert tree.find((8,), lambda root: (-root,)) == (Cell(3, 8, 8),)


def test_what_is_taken_cannot_be_taken_again():
    tree = Buddies([4])
    tree.take((Cell(0, 0, 2),))
    with pytest.raises(ValueError, match="not free"):
        tree.take((Cell(0, 1, 1),))


@given(st.integers(0, 10**6))
def test_cells_never_overlap_and_merge_to_whole_roots(seed):
    rng = Draws(seed)
    roots = [rng.choice((1, 2, 4, 8, 16)) for _ in range(rng.randint(1, 5))]
    tree, held = Buddies(roots), []
    for _ in range(60):
        if held and rng.random() < 0.5:
            tree.give((held.pop(rng.randrange(len(held))),))
        elif found := tree.find((rng.choice((1, 2, 4, 8)),)):
            tree.take(found)
            held += found
        assert all(cell.first % cell.gpus == 0 and cell.first + cell.gpus <= roots[cell.server] for cell in held)
        everything = [gpu for cell in (*held, *tree.blocks(1)) for gpu in gpus_of(cell)]
        assert len(everything) == len(set(everything)) == sum(roots)
    tree.give(held)
    assert sorted(tree.blocks(1)) == [Cell(root, 0, gpus) for root, gpus in enumerate(roots)]


@given(st.integers(0, 10**6))
def test_legal_cells_are_always_found(seed):
    """HiveD's theorem: what could be in use together is found, however it came and went."""
    rng = Draws(seed)
    servers = rng.randint(1, 4)
    legal, room = [], 8 * servers
    while room:
        legal.append(rng.choice([gpus for gpus in (1, 2, 4, 8) if gpus <= room]))
        room -= legal[-1]
    tree, held = Buddies([8] * servers), {}
    for _ in range(80):
        own = rng.randrange(len(legal))
        if own in held:
            tree.give(held.pop(own))
            continue
        held[own] = tree.find((legal[own],))
        assert held[own] is not None
        tree.take(held[own])


@given(st.integers(0, 10**6))
def test_turns_do_not_come_out_of_their_reach(seed):
    rng = Draws(seed)
    tree, held = Buddies([rng.choice((4, 8, 16, 32)) for _ in range(rng.randint(1, 3))]), []
    for _ in range(rng.randint(0, 40)):
        if held and rng.random() < 0.45:
            tree.give(held.pop(rng.randrange(len(held))))
        elif found := tree.find((rng.choice((1, 1, 2, 4, 8)),)):
            tree.take(found)
            held.append(found)
    left = rng.randint(1, 10)
    beyond = set().union(*(gpus_of(cell) for cell in out_of_reach(tree, left)))
    while left:
        if held and rng.random() < 0.4:
            tree.give(held.pop(rng.randrange(len(held))))
            continue
        gpus = rng.choice([gpus for gpus in (1, 2, 4, 8) if gpus <= left])
        left -= gpus
        if found := tree.find((gpus,)):
            assert not gpus_of(found[0]) & beyond
            tree.take(found)
            held.append(found)


def test_where_nothing_comes_all_free_blocks_are_out_of_reach():
    tree = Buddies([8])
    tree.take((Cell(0, 0, 1),))
    assert list(out_of_reach(tree, 0)) == list(tree.blocks(1))
    assert list(out_of_reach(tree, 1)) == [Cell(0, 3, 1), Cell(0, 5, 1), Cell(0, 6, 2)]
    assert list(out_of_reach(tree, 2)) == [Cell(0, 6, 2)]
    assert list(out_of_reach(tree, 3)) == []
    assert list(out_of_reach(tree, float("inf"))) == []


def test_covers_may_overlap():
    covered = Covered([8])
    covered.cover([Cell(0, 1, 1)])
    covered.cover([Cell(0, 0, 4)])
    assert list(covered.free.blocks(1)) == [Cell(0, 4, 4)]
    covered.uncover([Cell(0, 1, 1)])
    assert list(covered.free.blocks(1)) == [Cell(0, 4, 4)]
    covered.uncover([Cell(0, 0, 4)])
    assert list(covered.free.blocks(1)) == [Cell(0, 0, 8)]


def test_odd_widths_take_up_the_next_power_of_two():
    assert [sizes_of(gpus, 8) for gpus in (3, 5, 7, 9, 24)] == [(4,), (8,), (8,), (8, 8), (8, 8, 8)]
    assert used_of((Cell(2, 4, 4),), 3) == (Cell(2, 4, 3),)
