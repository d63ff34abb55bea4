"""Figures of drafts by turns, got by hand."""

from math import inf

import numpy as np
import pytest

from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import Cell
from jobcast.schedulers.cells.turns import TurnPlacer, reserved, reserved_gpus
from jobcast.schedulers.tentative_allocation import Loads
from jobcast.simulator.cluster import ClusterState


def draft_of(cells, servers, rows, apart="none"):
    """A draft of pending jobs (pool, GPUs) of pools with these cells, and the jobs."""
    jobs = [Job(seq, f"j{seq}", pool, 0.0, gpus) for seq, (pool, gpus) in enumerate(rows)]
    state = ClusterState([Pool(name, sum(mine)) for name, mine in cells.items()], servers)
    state.advance(0.0)
    placer = TurnPlacer(cells, follow=True, apart=apart)
    for job in jobs:
        state.submit(job, lane=job.gpus, key=0.0)
        placer.submitted(job)
    return placer.draft(state), jobs


@pytest.mark.parametrize(
    ("cells", "rows", "left", "costs"),
    [
        # Cells of 4 and 2 on the second server are bound, its last GPU is nobody's; what is left are 8 and 1.
        ({"p": (4, 2, 1), "q": (8,)}, [("p", 4), ("p", 2)], 8, [0, 0, *[8] * 7]),
        ({"p": (8,), "q": (8,)}, [], 16, [0, *[8] * 8, *[16] * 8]),
        ({"p": (4, 4), "q": (8,)}, [("q", 8)], 8, [0, *[4] * 4, *[8] * 4]),
        ({"p": (8,), "q": (8,)}, [("p", 1), ("q", 1)], 0, [0]),
    ],
)
def test_what_is_left_for_claims_and_what_borrowers_take_of_it(cells, rows, left, costs):
    draft, jobs = draft_of(cells, (8, 8), rows)
    assert all(map(draft.dedicate, jobs))
    assert draft.left() == (left, costs)


def test_who_is_due_is_told_while_a_gpu_is_idle():
    draft, (first, second, other) = draft_of({"p": (1,), "q": (1,)}, (2,), [("q", 1), ("q", 1), ("p", 1)])
    assert [job for _, job in draft.due()] == [first, other]
    assert draft.dedicate(first)
    assert [job for _, job in draft.due()] == [other]
    assert draft.start(second, dedicated=False)
    assert list(draft.due()) == []  # and is due still


@pytest.mark.parametrize(("forecast", "widest"), [(0.0, 4), (1.0, 2), (2.0, 2), (3.0, 0), (inf, 0)])
def test_the_widest_job_that_borrows_a_part_that_no_turn_comes_to(forecast, widest):
    # In p's cell GPU 0 is taken; turns of 1 GPU take GPU 1, at 2 GPUs 2 and 3 too, at 3 all of the half that is left.
    draft, (held,) = draft_of({"p": (8,), "q": (8,)}, (8, 8), [("p", 1)])
    assert draft.dedicate(held)
    assert draft.usable(Loads(60.0, lambda pool, _: forecast if pool == "p" else inf)) == widest


def test_spare_jobs_take_the_smallest_part_that_holds_them():
    # q needs its server; of p's 8 GPUs the first and the last four are taken: parts of 1 and 2 GPUs are left.
    rows = [("p", 1), ("p", 4), ("q", 1), ("q", 1), ("q", 1), ("q", 2)]
    draft, (one, four, *spare, last) = draft_of({"p": (8,), "q": (8,)}, (8, 8), rows)
    loads = Loads(60.0, lambda pool, _: 0.0 if pool == "p" else inf)
    assert draft.dedicate(one)
    assert draft.dedicate(four)
    assert all(draft.lend(job, [loads]) for job in spare)
    cells = [draft._placer.held[job.seq].cells for job in spare]
    assert cells == [(Cell(0, 1, 1),), (Cell(0, 2, 1),), (Cell(0, 3, 1),)]
    assert draft.usable(loads) == 0
    assert not draft.lend(last, [loads])


def test_a_turn_of_who_runs_early_needs_no_room():
    draft, (held, early) = draft_of({"p": (8,), "q": (8,)}, (8, 8), [("p", 1), ("p", 8)])
    loads = Loads(60.0, lambda pool, _: 0.0)
    assert draft.dedicate(held)
    assert draft.usable(loads) == 8
    assert draft.lend(early)
    assert draft.usable(loads) == 4  # beside `held`: p has nobody else who may start there


ONE_SIZE, TWO_SIZES = [(4, 3, 1)], [(8, 4, 1), (4, 2, 0)]


@pytest.mark.parametrize(
    ("sizes", "turns", "starts", "cells"),
    [
        # Turns enter ceil(turns / 4) cells beside the one that they have entered; there are three.
        *((ONE_SIZE, turns, 9.0, [4] * cells) for turns, cells in ((0.0, 1), (2.0, 2), (5.0, 3), (99.0, 3))),
        # No more than jobs may start in.
        *((ONE_SIZE, 5.0, starts, [4] * cells) for starts, cells in ((2.0, 2), (0.5, 1), (0.0, 0))),
        # Of 8 GPUs: one entered and two more for 9 GPUs of turns. Of 4: three, of which there are two.
        (TWO_SIZES, 9.0, 2.0, [8, 8, 4, 4]),
        (TWO_SIZES, 9.0, 9.0, [8, 8, 8, 4, 4]),
        (TWO_SIZES, inf, inf, [8, 8, 8, 8, 4, 4]),
    ],
)
def test_cells_reserved_for_turns(sizes, turns, starts, cells):
    assert reserved([16], sizes, turns, starts) == [16, *cells]
    assert reserved_gpus([16], sizes, np.array([turns]), np.array([starts])).tolist() == [16 + sum(cells)]


def test_claims_are_of_whole_cells():
    # One cell of 4 is needed now; 2 GPUs more may enter another one or that of 2, 5 GPUs both others and that of 2.
    draft, _ = draft_of({"p": (4, 4, 4, 2), "q": (2,)}, (8, 8), [("p", 4)])
    now, most, more = draft.claims(draft._view.pools["p"], np.array([0.0, 2.0, 5.0]))
    assert (now, most, more.tolist()) == (4.0, 14.0, [0.0, 6.0, 10.0])
    assert draft.claims(draft._view.pools["q"], np.array([0.0]))[:2] == (0.0, 2.0)


@pytest.mark.parametrize(
    ("rows", "spare", "own", "cells"),
    [
        # The spare job lies on the first GPU of the only server for p: in the other half of p's cell there is room.
        ([("q", 4), ("q", 1), ("p", 2)], 1, (Cell(0, 2, 2),), (Cell(1, 2, 2),)),
        # That is the last one's place from the start, and the only one, for the first half is the turn of another.
        ([("q", 4), ("q", 1), ("p", 2), ("p", 2)], 1, (Cell(0, 2, 2),), (Cell(1, 2, 2),)),
        # The spare job has all of that server: only in q's cell, which is bound, are GPUs idle.
        ([("q", 1), ("q", 4), ("p", 2)], 1, (), (Cell(0, 2, 2),)),
    ],
)
def test_where_a_job_goes_that_a_spare_one_keeps_from_its_place(rows, spare, own, cells):
    draft, jobs = draft_of({"p": (4,), "q": (4,)}, (4, 4), rows)
    assert draft.dedicate(jobs[0])
    assert draft.start(jobs[spare], dedicated=False)
    assert draft.dedicate(jobs[-1])
    held = draft._placer.held[jobs[-1].seq]
    assert (held.own, held.cells) == (own, cells)
