"""FIFO, EDF and PS: one configuration a job, never taken back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.energy import POSTPONED
from jobcast.schedulers.energy.baselines import ORDERS, QueuePolicy, QueueSettings, configurations
from tests.simulator.energy.energy_cases import EnergyJob, cluster_of, energy_views, jobs_of, tariff_of, view_of
from tests.simulator.energy.energy_policies import free_gpus

V100, T4 = (0.0, 420.0, 670.0), (0.0, 170.0)
NAMES = st.sampled_from(sorted(ORDERS))


def policy(name, strict=False):
    return QueuePolicy(name, ORDERS[name], QueueSettings(strict=strict))


def answer(view, name, strict=False):
    node, gpus = policy(name, strict).schedule(view)
    return list(zip(node.tolist(), gpus.tolist(), strict=True))


@given(view=energy_views(most_jobs=8, tariffs=True), name=NAMES, strict=st.booleans())
def test_running_jobs_stay_and_others_get_their_one_configuration(view, name, strict):
    deployment = policy(name, strict).schedule(view)
    here = view.active
    ran = view.node_of[here] != POSTPONED
    assert (deployment.node_of[ran] == view.node_of[here][ran]).all()
    assert (deployment.gpus_of[ran] == view.gpus_of[here][ran]).all()
    fresh = ~ran & (deployment.node_of != POSTPONED)
    kind, gpus = configurations(view, here)
    assert (view.cluster.kind_of[deployment.node_of[fresh]] == kind[fresh]).all()
    assert (deployment.gpus_of[fresh] == gpus[fresh]).all()
    free, runs = free_gpus(view, *deployment), deployment.node_of != POSTPONED
    assert (free >= 0).all()
    if not strict:
        for row in np.flatnonzero(~runs):
            assert not ((view.cluster.kind_of == kind[row]) & (free >= gpus[row])).any()


@given(view=energy_views(tariffs=True), later_s=st.floats(1.0, 1e5))
def test_configurations_never_change(view, later_s):
    later = view._replace(now_s=view.now_s + later_s, left_saved=view.left_saved / 2.0, left=view.left / 2.0)
    for before, after in zip(configurations(view, view.active), configurations(later, view.active), strict=True):
        assert before.tolist() == after.tolist()


@pytest.mark.parametrize("price", [0.0, 0.1])
@pytest.mark.parametrize(("due_s", "there"), [(2500.0, (1, 1)), (2000.0, (0, 2)), (999.0, (0, 2)), (500.0, (0, 2))])
def test_the_cheapest_that_meets_the_due_date_else_the_fastest(due_s, there, price):
    # 10 epochs. V100: 1,000 s or 600 s with two; T4: 2,000 s. By watts: 420 kJ, 402 kJ, 340 kJ.
    jobs = jobs_of(EnergyJob(submit_s=50.0, due_s=50.0 + due_s, epoch_s=((100.0, 60.0), (200.0,))))
    cluster = cluster_of((1, V100), (1, T4), tariff=tariff_of((0, price)))
    assert answer(view_of(jobs, cluster), "fifo") == [there]


def line(**settings):
    """Three jobs for one T4: the first submitted, the earliest due date, the largest weight."""
    rows = [(0.0, 9000.0, 1.0), (1.0, 5000.0, 2.0), (2.0, 7000.0, 3.0)]
    jobs = jobs_of(*(EnergyJob(at, due, weight, 10.0, ((100.0,),)) for at, due, weight in rows))
    return view_of(jobs, cluster_of((1, T4)), **settings)


@pytest.mark.parametrize(("name", "first"), [("fifo", 0), ("edf", 1), ("ps", 2)])
def test_order_of_the_queue(name, first):
    assert [node for node, _ in answer(line(), name)] == [0 if job == first else POSTPONED for job in range(3)]


def test_equal_weights_go_by_due_date():
    view = line()
    view = view._replace(jobs=view.jobs._replace(weight=np.ones(3)))
    assert answer(view, "ps")[1] == (0, 1)


def test_nobody_is_preempted():
    assert answer(line(node_of=[0, POSTPONED, POSTPONED]), "ps") == [(0, 1), (POSTPONED, 0), (POSTPONED, 0)]


def two_wide_jobs():
    """A node of two GPUs with one free; the first waiting job needs both, the second one of them."""
    jobs = jobs_of(
        EnergyJob(epoch_s=((100.0, 80.0),)),
        EnergyJob(due_s=100.0, epoch_s=((100.0, 60.0),)),
        EnergyJob(epoch_s=((100.0, 90.0),)),
    )
    return view_of(jobs, cluster_of((1, V100)), node_of=[0, POSTPONED, POSTPONED])


def test_who_finds_no_room_is_passed_over_unless_strict():
    assert answer(two_wide_jobs(), "fifo") == [(0, 1), (POSTPONED, 0), (0, 1)]
    assert answer(two_wide_jobs(), "fifo", strict=True) == [(0, 1), (POSTPONED, 0), (POSTPONED, 0)]
    assert answer(line(), "fifo", strict=True) == [(0, 1), (POSTPONED, 0), (POSTPONED, 0)]


def test_who_runs_nowhere_waits_for_ever():
    nowhere, somewhere = EnergyJob(epoch_s=((np.inf,),)), EnergyJob(epoch_s=((100.0,),))
    view = view_of(jobs_of(nowhere, somewhere, nowhere), cluster_of((2, T4)))
    assert answer(view, "fifo") == [(POSTPONED, 0), (0, 1), (POSTPONED, 0)]


def test_best_fit():
    # The second node has one GPU free, the first two: one GPU is taken from the second.
    jobs = jobs_of(*(EnergyJob(epoch_s=((100.0, 80.0),)) for _ in range(2)))
    view = view_of(jobs, cluster_of((2, V100)), node_of=[1, POSTPONED])
    assert answer(view, "fifo")[1] == (1, 1)
