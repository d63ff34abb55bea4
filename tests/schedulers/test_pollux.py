from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.schedulers.pollux import LEAST_SPEEDUP, Pollux
from jobcast.schedulers.registry import make_policy
from tests.schedulers.scaling_views import Scalable, allocated

LINEAR = tuple(float(gpus) for gpus in range(1, 9))
FLAT = (1.0,) * 8


def p_mean(speedups, p=-1.0):
    """Generalised mean of speedups."""
    return float((np.maximum(speedups, LEAST_SPEEDUP) ** p).mean() ** (1.0 / p))


def waiting(goodput):
    return Scalable(600.0, 0, 0, goodput)


@st.composite
def concave_jobs(draw):
    steps = draw(st.lists(st.floats(0.1, 5.0), min_size=1, max_size=6))
    return tuple(np.cumsum(sorted(steps, reverse=True)).tolist())


@given(tables=st.lists(concave_jobs(), min_size=1, max_size=3), gpus=st.integers(1, 6))
def test_greedy_steps_find_the_best_division_of_concave_goodputs(tables, gpus):
    jobs = [waiting(table) for table in tables]
    policy, fair = Pollux(), max(1, gpus // len(tables))

    def fitness(plan):
        goodputs = [(0.0, *table) for table in tables]
        fairs = [goodput[min(fair, len(goodput) - 1)] for goodput in goodputs]
        return p_mean([goodput[count] / at for goodput, count, at in zip(goodputs, plan, fairs, strict=True)])

    plan = allocated(policy, jobs, gpus)
    options = product(*(range(len(table) + 1) for table in tables))
    assert fitness(plan) == pytest.approx(max(fitness(option) for option in options if sum(option) <= gpus))


def test_who_gains_gets_the_gpus():
    assert allocated(Pollux(), [waiting(LINEAR), waiting(FLAT)], 8) == [7, 1]
    assert allocated(Pollux(), [waiting(LINEAR), waiting(LINEAR)], 8) == [4, 4]


def test_speedups_are_over_an_equal_share():
    # 5 GPUs for 3 jobs: one each is an equal share. Two more take 2/3 off the sum of 1 / speedup in the first job, one
    # more 2/7 in each of the others. Over two GPUs each it would be 11/15 and 2/5.
    assert allocated(Pollux(), [waiting((1.0, 1.1, 3.0)), *[waiting((1.0, 1.4, 1.5))] * 2], 5) == [3, 1, 1]


def test_a_change_must_pay_for_the_restart():
    # 2 + 2 GPUs, 1 more would gain little over a restart after 60 s, much after a day
    table = (1.0, 2.0, 2.1)
    young = [Scalable(60.0, 2, 0, table), Scalable(60.0, 2, 0, table)]
    assert allocated(Pollux(), young, 6) == [2, 2]
    old = [Scalable(86_400.0, 2, 0, table) for _ in range(2)]
    assert allocated(Pollux(), old, 6) == [3, 3]


def test_a_change_costs_who_holds_gpus_and_nobody_else():
    # A tenth more after a restart that takes a third; at once for who waits, be it since this instant.
    assert allocated(Pollux(), [Scalable(60.0, 1, 0, (1.0, 1.1))], 2) == [1]
    assert allocated(Pollux(), [Scalable(0.0, 0, 0, (1.0, 1.1))], 2) == [2]
    # Restarts took all of its time: another one would leave it nothing, as if it waited.
    assert allocated(Pollux(), [Scalable(60.0, 1, 5, (1.0, 1000.0))], 2) == [1]
    # Where they are free, who has just come is worth no more elsewhere.
    assert allocated(Pollux(restart_s=0.0), [Scalable(0.0, 2, 0, (1.0, 2.0, 2.0))], 3) == [2]


def test_who_cannot_use_an_equal_share_is_compared_with_the_most_it_can():
    # Three each. Over 1.5 a second GPU takes 1/2 off the first's 1 / speedup, more than the other's fifth off its own,
    # 1 - 1 / 1.7; over 1 it would take 1/3.
    old = [Scalable(1e9, 1, 0, (1.0, 1.5)), Scalable(1e9, 5, 0, (1.0, 1.0, 1.0, 1.0, 1.7))]
    assert allocated(Pollux(), old, 6) == [2, 1]


def test_of_equal_gains_a_gpu_the_smaller_step_is_taken():
    # Each GPU takes a quarter off 1 / speedup.
    assert allocated(Pollux(), [waiting((1.0, 4 / 3, 2.0))] * 2, 4) == [2, 2]


def test_too_few_gpus_serve_who_is_there():
    jobs = [Scalable(900.0, 0, 0, LINEAR), Scalable(900.0, 1, 0, LINEAR), Scalable(9.0, 0, 0, LINEAR)]
    assert allocated(Pollux(), jobs, 1) == [0, 1, 0]
    assert allocated(Pollux(), jobs, 2) == [1, 1, 0]


def test_settings_reach_the_rule():
    # two GPUs more would gain little: with free restarts they are taken
    job = Scalable(60.0, 2, 1, (1.0, 2.0, 2.1))
    assert allocated(make_policy("pollux", None, {}), [job], 3) == [2]
    assert allocated(make_policy("pollux", None, {"restart_s": "0"}), [job], 3) == [3]
    assert make_policy("pollux", None, {"p": "-4"})._p == -4.0
