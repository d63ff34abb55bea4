"""The toy's filter and its search, by hand and against a search without any cleverness."""

from fractions import Fraction
from itertools import product

import pytest

from papers.shockwave import toy
from papers.shockwave.toy import ToyJob, adaptive_scores, all_scores, filter_scores, score

THIRD, TWO_THIRDS, ONE = Fraction(1, 3), Fraction(2, 3), Fraction(1)


def ends(scores):
    return {one.ends for one in scores}


@pytest.fixture
def small(monkeypatch):
    """Two jobs on two GPUs: X wants both for 3 GPU-rounds, Y one for 2."""
    monkeypatch.setattr(toy, "JOBS", (ToyJob("X", 3, 2), ToyJob("Y", 2, 1)))
    monkeypatch.setattr(toy, "GPUS", 2)


@pytest.mark.usefixtures("small")
def test_a_filter_of_one_job_by_hand():
    """X first: 2 GPUs; Y passes next, X ends on the GPU that is left, Y in round 3.

    Y first: one each. Then either passes: X ends on both GPUs and Y in round 3, or Y ends and X in round 3.
    """
    assert ends(filter_scores([Fraction(1, 2)])) == {(2, 3), (3, 2)}


@pytest.mark.usefixtures("small")
def test_no_filter_by_hand():
    """One each, and then a tie: the first GPU goes to either and the second to the other, who has less by then."""
    assert ends(filter_scores([ONE])) == {(3, 2)}


@pytest.mark.usefixtures("small")
def test_all_schedules_against_brute_force():
    """Every way to fill two GPUs for four rounds, idle ones included; nothing not dominated is missed."""
    found = set()
    for slots in product("XY.", repeat=8):
        lines = ["".join(slots[:4]), "".join(slots[4:])]
        try:
            found.add(score(lines).ends)
        except ValueError:
            continue
    ours = ends(all_scores())
    assert ours <= found
    assert all(any(all(a <= b for a, b in zip(mine, theirs, strict=True)) for mine in ours) for theirs in found)


def test_a_filter_is_one_of_all_schedules_and_of_the_adaptive_ones():
    adaptive = adaptive_scores([THIRD, TWO_THIRDS, ONE])
    assert adaptive <= all_scores()
    for share in (THIRD, TWO_THIRDS, ONE):
        assert filter_scores([share]) <= adaptive
    assert filter_scores([ONE, THIRD]) <= adaptive


def test_rho_against_an_equal_share_and_against_requested_gpus():
    """Equal shares of 4/3 GPUs: 9, 6 and 4.5 rounds. Requested ones, three jobs: 3 x 4, 3 x 4 and 3 x 3."""
    made = toy.Score((9, 6, 9))
    assert made.rho == pytest.approx((1.0, 1.0, 2.0))
    assert made.worst_requested_rho == pytest.approx(1.0)
    assert (made.mean_jct, made.makespan) == (8.0, 9)
