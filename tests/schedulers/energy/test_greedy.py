"""How often compiled constructions swap and draw; they are told apart by which of some jobs gets the only GPU."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.energy import POSTPONED, Deployment
from jobcast.schedulers.energy.andreas import queue_of
from jobcast.schedulers.energy.greedy import construct, uniform
from jobcast.schedulers.energy.greedy_state import new_draft
from jobcast.schedulers.energy.greedy_to_go import total_eur
from jobcast.schedulers.energy.objective import proxy_objective
from tests.simulator.energy.energy_cases import EnergyJob, cluster_of, energy_views, jobs_of, view_of

T4 = (0.0, 170.0)
TRIES = 4000


def test_numbers_are_those_of_splitmix64():
    """The first of seed 0 are known from its authors' code; a number is the first 53 of their 64 bits."""
    draft = SimpleNamespace(random=np.zeros(1, dtype=np.uint64))
    with np.errstate(over="ignore"):
        found = [int(uniform.py_func(draft) * 2**53) for _ in range(3)]
    assert found == [one >> 11 for one in (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)]


@pytest.mark.parametrize(("jobs", "gpus", "counts"), [(100, 200, 300.0), (200, 40, 250.0)])
def test_a_look_at_a_queue_counts_as_its_jobs_and_gpus_at_least_250(jobs, gpus, counts):
    queue = SimpleNamespace(order=np.arange(jobs)[None, :])
    plan = SimpleNamespace(sums=np.zeros(3), list_s=np.zeros(gpus), until_s=np.zeros(gpus), node=np.zeros(jobs))
    total_eur.py_func(queue, None, plan, np.inf)
    assert plan.sums.tolist() == [0.0, 0.0, counts]


def outcomes(view, swap, draw, order=0, cap=0):
    """(TRIES, n_jobs) nodes and GPUs of random constructions, one a seed."""
    queue = queue_of(view, 100.0)
    node_of, gpus_of = np.zeros((2, TRIES, len(view.active)), dtype=np.int64)
    for seed in range(TRIES):
        ways = np.tile([0.0, swap, draw, order, cap], (3, 1))
        construct(queue, new_draft(queue, seed * 7919), ways, 1, 0.0, 0, node_of[seed], gpus_of[seed])
    return node_of, gpus_of


def waiting(*weights):
    """Jobs of 1,000 s with due dates 1 s apart, so that pressures fall in order, and one T4."""
    rows = [EnergyJob(due_s=500.0 + job, weight=weight, epoch_s=((100.0,),)) for job, weight in enumerate(weights)]
    return view_of(jobs_of(*rows), cluster_of((1, T4)))


def shares(node_of):
    return (node_of != POSTPONED).mean(axis=0)


def test_a_job_goes_back_with_a_probability_inverse_to_its_weight():
    # The last job never goes back; weight 2 goes back half as often as the least, 1, would: 0.6 / 2.
    got = shares(outcomes(waiting(2.0, 1.0), swap=0.6, draw=0.0)[0])
    assert got == pytest.approx([0.7, 0.3], abs=0.03)


def test_a_job_may_go_back_further():
    # One T4 each for the first two turns is what a second node gives: the first job misses both with 0.5 x 0.5.
    rows = [EnergyJob(due_s=500.0 + job, weight=1.0, epoch_s=((100.0,),)) for job in range(3)]
    view = view_of(jobs_of(*rows), cluster_of((2, T4)))
    got = shares(outcomes(view, swap=0.5, draw=0.0)[0])
    assert got[0] == pytest.approx(0.75, abs=0.03)


def test_without_swaps_the_highest_pressure_is_first():
    assert shares(outcomes(waiting(1.0, 5.0, 5.0), swap=0.0, draw=1.0)[0]).tolist() == [1.0, 0.0, 0.0]


def alone(due_s):
    """One job; in kW s: V100 420, with both GPUs 402, T4 340, of 1,000, 600 and 2,000 s."""
    cluster = cluster_of((1, (0.0, 420.0, 670.0)), (1, T4))
    return view_of(jobs_of(EnergyJob(due_s=due_s, epoch_s=((100.0, 60.0), (200.0,)))), cluster)


@pytest.mark.parametrize(
    ("due_s", "inverse"),
    [
        (1e6, (1 / 420, 1 / 402, 1 / 340)),  # all in D*: by cost
        (1500.0, (1 / 420, 1 / 402, 0.0)),  # the T4 is late
        (100.0, (1 / 1000, 1 / 600, 1 / 2000)),  # all late: by time
    ],
)
def test_candidates_are_drawn_inversely_to_their_cost(due_s, inverse):
    node_of, gpus_of = outcomes(alone(due_s), swap=0.0, draw=1.0)
    got = [np.mean((node_of == node) & (gpus_of == gpus)) for node, gpus in ((0, 1), (0, 2), (1, 1))]
    assert got == pytest.approx(np.array(inverse) / sum(inverse), abs=0.03)


def test_half_the_draws_take_the_best():
    node_of, _ = outcomes(alone(1e6), swap=0.0, draw=0.5)
    share = (1 / 340) / (1 / 420 + 1 / 402 + 1 / 340)
    assert np.mean(node_of == 1) == pytest.approx(0.5 + 0.5 * share, abs=0.03)


def test_in_the_other_order_the_job_that_costs_most_to_postpone_is_first():
    # Pressures: 500 - 600, 1,000 - 2,000. M_j: 500, 5,000 s; postponed they are 300 + M_j - due late: 200, 3,300 s.
    rows = [EnergyJob(due_s=600.0, epoch_s=((50.0,), (50.0,))), EnergyJob(due_s=2000.0, epoch_s=((100.0,), (500.0,)))]
    view = view_of(jobs_of(*rows), cluster_of((1, (0.0, 420.0)), (0, T4)))
    assert shares(outcomes(view, swap=0.0, draw=0.0)[0]).tolist() == [1.0, 0.0]
    assert shares(outcomes(view, swap=0.0, draw=0.0, order=1)[0]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("cap", [1, 2])
def test_half_the_caps_leave_a_job_one_of_two_gpus(cap):
    # Both GPUs are wanted: 402 kW s against 420.
    view = view_of(jobs_of(EnergyJob(due_s=1e6, epoch_s=((100.0, 60.0),))), cluster_of((1, (0.0, 420.0, 670.0))))
    assert np.mean(outcomes(view, swap=0.0, draw=0.0, cap=cap)[1] == 2) == pytest.approx(0.5, abs=0.03)
    assert (outcomes(view, swap=0.0, draw=0.0)[1] == 2).all()


def test_caps_are_drawn_once_for_all_or_for_each_job():
    times = ((100.0, 60.0),)
    view = view_of(
        jobs_of(*(EnergyJob(due_s=1e6, epoch_s=times) for _ in range(2))), cluster_of((2, (0.0, 420.0, 670.0)))
    )
    once, each = (outcomes(view, swap=0.0, draw=0.0, cap=cap)[1] for cap in (1, 2))
    assert (once[:, 0] == once[:, 1]).all()
    assert np.mean(each[:, 0] == each[:, 1]) == pytest.approx(0.5, abs=0.03)


def test_beyond_the_cap_a_job_gets_more_if_nothing_else_can_be():
    view = view_of(jobs_of(EnergyJob(due_s=1e6, epoch_s=((np.inf, 60.0),))), cluster_of((1, (0.0, 420.0, 670.0))))
    assert (outcomes(view, swap=0.0, draw=0.0, cap=2)[1] == 2).all()


VIEWS = energy_views(most_jobs=6, most_nodes=3, tariffs=True)
WAY = (0.0, 0.5, 1.0, 0.0, 0.0)
PLENTY = 10**6


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
