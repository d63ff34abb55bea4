import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from jobcast.schedulers.gavel import Gavel, centre, water
from tests.schedulers.rounds_driver import active, state

JOBS = st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=12)


def least(widths, weights, shares):
    return float((widths * shares / weights).min())


def by_highs(widths, weights, gpus):
    """Value of the programme of the docstring."""
    count = len(widths)
    rows = np.zeros((count + 1, count + 1))
    rows[:count, :count], rows[:count, -1], rows[-1, :count] = -np.diag(widths), weights, widths
    cost = np.append(np.zeros(count), -1.0)
    answer = linprog(cost, rows, np.append(np.zeros(count), gpus), bounds=[(0, 1)] * count + [(0, None)])
    return -answer.fun


@given(jobs=JOBS, gpus=st.integers(8, 40))
def test_both_fills_reach_the_value_of_the_programme(jobs, gpus):
    widths, weights = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    value = by_highs(widths, weights, gpus)
    for fill in (centre, water):
        shares = fill(widths, weights, float(gpus))
        assert least(widths, weights, shares) == pytest.approx(value, rel=1e-7)
        assert (shares >= 0).all()
        assert (shares <= 1 + 1e-12).all()
        assert widths @ shares <= gpus * (1 + 1e-9)


@given(jobs=JOBS, gpus=st.integers(8, 40))
def test_water_wastes_nothing(jobs, gpus):
    widths, weights = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    shares = water(widths, weights, float(gpus))
    assert widths @ shares == pytest.approx(min(gpus, widths.sum()))
    # whoever has less than all of the time has as much as the level of the others that do
    levels = (widths * shares / weights)[shares < 1 - 1e-9]
    assert levels == pytest.approx(np.full(len(levels), levels.max(initial=0.0)))


def test_more_jobs_than_gpus_leaves_one_optimum():
    # 4 jobs on 3 GPUs: each 3/4 of a GPU's time
    jobs = [active(seq, gpus) for seq, gpus in enumerate([1, 1, 2, 4])]
    for fill in ("centre", "water"):
        assert Gavel(fill).shares(state(jobs, 3)) == pytest.approx([0.75, 0.75, 0.375, 0.1875])


def test_a_weight_of_two_gets_twice_the_share():
    jobs = [active(0), active(1, weight=2.0)]
    assert Gavel().shares(state(jobs, 1)) == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize("fill", [centre, water])
def test_who_is_bound_by_its_whole_time_runs_always_and_not_longer(fill):
    # 1.7 x (7 / 1.7) / 7 is a little more than 1 in doubles; the other has room above its floor, 0.51
    shares = fill(np.array([7.0, 4.0]), np.array([1.7, 0.5]), 11.0)
    assert shares[0] == 1.0
    assert 0.6 < shares[1] <= 1.0


def test_the_centre_maximises_the_product_of_slacks():
    # widths 1, 4 and 4 on 8 GPUs: the first runs always, the others between a quarter and all of the time
    widths, weights = np.array([1.0, 4.0, 4.0]), np.ones(3)
    shares = centre(widths, weights, 8.0)
    grid = np.linspace(0.2501, 0.8749, 20_001)
    best = grid[np.argmax(2 * np.log((grid - 0.25) * grid * (1 - grid)) + np.log(8 - 1 - 8 * grid))]
    assert shares[0] == 1.0
    assert shares[1] == shares[2] == pytest.approx(best, abs=1e-4)
    # widths 2 and 4, weights 1 and a half on 4 GPUs: the second runs between a quarter and a half of the time
    shares = centre(np.array([2.0, 4.0]), np.array([1.0, 0.5]), 4.0)
    grid = np.linspace(0.2501, 0.4999, 20_001)
    best = grid[np.argmax(np.log((grid - 0.25) * grid * (1 - grid)) + np.log(4 - 2 - 4 * grid))]
    assert shares.tolist() == [1.0, pytest.approx(best, abs=1e-4)]
