"""What is handed to HiGHS, and what comes back."""

import numpy as np
import pytest

from jobcast.schedulers.milp.programme import branch_and_bound, build, every_step, relax
from tests.schedulers.milp.milp_cases import cost, draw, usage


def programme_of(seed, beta):
    _, instance = draw(seed, jobs=30, quotas=(4, 3), span=12, longest=8)
    steps = every_step(instance)
    columns = steps.columns(instance, np.ones(len(steps.job), dtype=bool))
    return instance, columns, build(instance, columns, beta)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_an_incumbent_is_taken_without_any_time(beta):
    instance, columns, programme = programme_of(5, beta)
    solved = branch_and_bound(programme, columns.of(instance.cutoff), 0.0, 0)
    assert solved.accepted
    assert not solved.proved
    assert programme.cost @ solved.values == pytest.approx(cost(instance, instance.cutoff.tolist(), beta))


def test_a_schedule_beyond_capacity_is_not_taken():
    instance, columns, programme = programme_of(5, 0.0)
    assert usage(instance, instance.submit).sum(axis=0).max() > instance.gpus
    solved = branch_and_bound(programme, columns.of(instance.submit), 0.0, 0)
    assert not solved.accepted
    assert solved.values is None


def test_no_time_for_the_relaxation():
    assert relax(programme_of(5, 0.0)[2], 0.0) is None


def test_one_job_costs_nothing():
    _, instance = draw(0, jobs=1)
    steps = every_step(instance)
    programme = build(instance, steps.columns(instance, np.ones(len(steps.job), dtype=bool)))
    assert relax(programme, 10.0).cost == 0.0
