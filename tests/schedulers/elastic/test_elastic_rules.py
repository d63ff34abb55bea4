"""What holds for every rule whatever it is asked."""

import numpy as np
import pytest
from hypothesis import given

from tests.simulator.elastic.elastic_cases import dealt, policies, views

POLICIES = policies()


def check(policy, view):
    """Nothing but what is there, to those who are there, as much as they can use and no less than they need."""
    gpus, active = dealt(policy, view), view.active[: view.count]
    assert np.delete(gpus, active, axis=0).sum() == 0.0
    assert (gpus >= 0.0).all()
    assert (gpus.sum(axis=0) <= view.capacity + 1e-9).all()
    held = gpus[active].sum(axis=1)
    assert (held <= view.most[active] + 1e-9).all()
    assert ((held <= 1e-9) | (held >= view.jobs.least[active] - 1e-9)).all()
    if policy.integral:
        assert (gpus == np.round(gpus)).all()
    return held


@pytest.mark.parametrize("name", POLICIES)
@given(view=views())
def test_uses_all_that_can_be_used(name, view):
    held = check(POLICIES[name], view)
    assert held.sum() == pytest.approx(min(view.capacity.sum(), view.most[view.active[: view.count]].sum()), abs=1e-6)


@pytest.mark.parametrize("name", POLICIES)
@given(view=views(types=1, leasts=(0, 1, 2, 4, 16)))
def test_keeps_leasts_or_gives_nothing(name, view):
    check(POLICIES[name], view)


@pytest.mark.parametrize("name", POLICIES)
@given(view=views(types=2, leasts=(0, 0, 3)))
def test_keeps_to_what_there_is_of_two_types(name, view):
    check(policies(types=2)[name], view)


@pytest.mark.parametrize("name", POLICIES)
@given(view=views(types=2))
def test_uses_all_of_two_types(name, view):
    held = check(policies(types=2)[name], view)
    assert held.sum() == pytest.approx(min(view.capacity.sum(), view.most[view.active[: view.count]].sum()), abs=1e-6)
