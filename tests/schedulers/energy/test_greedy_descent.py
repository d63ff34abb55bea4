"""Local descent: it never makes a schedule dearer, ends where no single job gains, and keeps to constraint 4n."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.energy import POSTPONED, Deployment
from jobcast.schedulers.energy.andreas import queue_of
from jobcast.schedulers.energy.greedy import construct
from jobcast.schedulers.energy.greedy_state import new_draft
from jobcast.schedulers.energy.objective import proxy_objective
from tests.simulator.energy.energy_cases import EnergyJob, cluster_of, energy_views, jobs_of, view_of

VIEWS = energy_views(most_jobs=6, most_nodes=3, tariffs=True)
WAY = (0.0, 0.5, 1.0, 0.0, 0.0)
PLENTY = 10**6
T4 = (0.0, 170.0)


def made(view, seed, most, force_nodes=False):
    """One construction, the plain one, or the random one after the plain two, and what a descent makes of it."""
    queue = queue_of(view, 100.0, force_nodes=force_nodes)
    node_of, gpus_of = np.zeros((2, len(view.active)), dtype=np.int64)
    ways = np.tile(WAY, (3, 1))
    cost = construct(queue, new_draft(queue, seed), ways, 1, 0.0, most, node_of, gpus_of)
    return Deployment(node_of, gpus_of), cost


@given(view=VIEWS, seed=st.integers(0, 1000), most=st.sampled_from([1, 10, PLENTY]), forced=st.booleans())
def test_never_dearer(view, seed, most, forced):
    before, before_eur = made(view, seed, 0, forced)
    after, after_eur = made(view, seed, most, forced)
    assert after_eur <= before_eur + 1e-9 * abs(before_eur)
    assert after_eur == pytest.approx(proxy_objective(view, after), rel=1e-6, abs=1e-6)
    if forced:
        nodes = min(len(view.cluster.kind_of), len(view.active))
        assert used(after) >= min(used(before), nodes)


def used(deployment):
    return len(np.unique(deployment.node_of[deployment.node_of != POSTPONED]))


@given(view=VIEWS, seed=st.integers(0, 1000))
def test_ends_where_no_single_job_gains(view, seed):
    deployment, cost = made(view, seed, PLENTY)
    for other in neighbours(view, deployment):
        assert proxy_objective(view, other) >= cost - 1e-6 * abs(cost)


def neighbours(view, deployment):
    """All schedules in which one job is elsewhere or postponed, and that have room."""
    room = view.cluster.kind_gpus[view.cluster.kind_of]
    for row in range(len(view.active)):
        for node, most in [(POSTPONED, 0), *enumerate(room)]:
            for gpus in range(min(1, most), most + 1):
                node_of, gpus_of = deployment.node_of.copy(), deployment.gpus_of.copy()
                node_of[row], gpus_of[row] = node, gpus
                runs = node_of != POSTPONED
                if (np.bincount(node_of[runs], gpus_of[runs], minlength=len(room)) <= room).all():
                    yield Deployment(node_of, gpus_of)


def test_postpones_a_job_that_has_time():
    # Postponed, the second costs nothing, for it ends before it is due; on the T4 it costs energy.
    times = ((100.0,),)
    jobs = jobs_of(EnergyJob(due_s=1000.0, epoch_s=times), EnergyJob(due_s=1e6, epoch_s=times))
    view = view_of(jobs, cluster_of((2, T4)))
    assert used(made(view, 0, 0)[0]) == 2
    assert (made(view, 0, PLENTY)[0].node_of == POSTPONED).tolist() == [False, True]
    assert used(made(view, 0, PLENTY, force_nodes=True)[0]) == 2


def test_stops_when_its_places_are_looked_at():
    times = ((100.0,),)
    jobs = jobs_of(*(EnergyJob(due_s=1e6, epoch_s=times) for _ in range(3)))
    view = view_of(jobs, cluster_of((3, T4)))
    waiting = [int((made(view, 0, most)[0].node_of == POSTPONED).sum()) for most in (0, 1, PLENTY)]
    assert waiting == [0, 1, 3]
