"""The proxy objective. Golden values are worked out by hand from equation 1 and constraints 4i to 4k of ANDREAS."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.energy import Deployment, Tariff
from jobcast.schedulers.energy.objective import counted, longest_s, postponed_eur, proxy_objective
from tests.schedulers.energy.exact_views import cluster, legal_deployments, random_view, view

INF = np.inf
NODE = cluster([0], [3], [[0, 1000, 2000, 3000]])
"""Three GPUs at 0.1 EUR an hour each."""
HOURLY = [[3600.0, 1800.0, 1200.0]]
"""An epoch an hour; with more GPUs, as much faster."""


def objective(view, *places, **options):
    node, gpus = np.array(places).T
    return proxy_objective(view, Deployment(node, gpus), **options)


def test_a_late_job_costs_its_tardiness_and_its_node():
    """2 h on one GPU, due after 1.5 h, 3 EUR an hour: 3 x 0.5 + 2 x 0.1."""
    assert objective(view(NODE, [(HOURLY, 2, 5400, 3)]), (0, 1)) == pytest.approx(1.7, rel=1e-12)


def test_a_job_in_time_costs_its_node_alone():
    """1 h on two GPUs at 0.2 EUR an hour."""
    assert objective(view(NODE, [(HOURLY, 2, 5400, 3)]), (0, 2)) == pytest.approx(0.2, rel=1e-12)


def test_a_postponed_job_costs_the_worst_case():
    """300 s + 2 h - 1.5 h = 2100 s; 100 x 3 x 2100 / 3600."""
    assert objective(view(NODE, [(HOURLY, 2, 5400, 3)]), (-1, 0)) == pytest.approx(175.0, rel=1e-12)
    assert objective(view(NODE, [(HOURLY, 2, 5400, 3)]), (-1, 0), rho=2.0) == pytest.approx(3.5, rel=1e-12)


def test_nothing_is_late_without_a_due_date():
    assert objective(view(NODE, [(HOURLY, 2, INF, 3)]), (-1, 0)) == 0.0
    assert objective(view(NODE, [(HOURLY, 2, INF, 3)]), (0, 1)) == pytest.approx(0.2, rel=1e-12)


def test_a_node_costs_its_first_ending_job_or_as_printed_its_cheapest():
    """2 h on one GPU cost 0.2 EUR; 1.5 h on two cost 0.3 EUR and end first."""
    two = view(NODE, [(HOURLY, 2, INF, 1), (HOURLY, 3, INF, 1)])
    assert objective(two, (0, 1), (0, 2)) == pytest.approx(0.3, rel=1e-12)
    assert objective(two, (0, 1), (0, 2), as_printed=True) == pytest.approx(0.2, rel=1e-12)


def test_the_cheapest_of_those_that_end_together_counts():
    assert counted(np.array([1, 1]), np.array([7.0, 7.0]), np.array([0.4, 0.3]), as_printed=False).tolist() == [1]


def test_nodes_add_up():
    pair = view(NODE._replace(kind_of=np.array([0, 0])), [(HOURLY, 2, INF, 1), (HOURLY, 3, INF, 1)])
    assert objective(pair, (0, 1), (1, 1)) == pytest.approx(0.5, rel=1e-12)


def test_a_job_that_stays_keeps_what_it_did_since_its_snapshot():
    """1.5 h are left in place; elsewhere 2 h, and 360 s of a restart."""
    runs = view(NODE, [(HOURLY, 1.5, INF, 1, 0, 1, 2)], restart_s=360.0)
    assert objective(runs, (0, 1)) == pytest.approx(0.15, rel=1e-12)
    assert objective(runs, (0, 2)) == pytest.approx((1.0 + 0.1) * 0.2, rel=1e-12)
    assert longest_s(runs).tolist() == [7560.0]


def test_a_job_where_it_cannot_run_costs_without_end():
    here = view(NODE, [([[3600.0, INF, INF]], 2, INF, 1), (HOURLY, 1, INF, 1)])
    assert objective(here, (0, 2), (0, 1)) == INF
    assert objective(here, (0, 1), (0, 1)) < INF
    assert longest_s(view(NODE, [([[INF] * 3], 2, INF, 1)])).tolist() == [0.0]


def test_gpus_that_a_node_does_not_have_are_no_configuration():
    """The slowest that counts is one GPU, 2 h; the 20 h on three are beyond the node."""
    small = view(NODE._replace(kind_gpus=np.array([2])), [([[3600.0, 1800.0, 36000.0]], 2, 5400, 3)])
    assert longest_s(small).tolist() == [7200.0]
    assert postponed_eur(small).tolist() == pytest.approx([175.0])
    assert objective(small, (0, 3)) == INF
    assert objective(small, (0, 2)) == pytest.approx(0.2)


def test_energy_is_priced_at_the_hour_of_the_call_with_the_pue():
    """1,000,000 s is 13:46 UTC: 0.2 EUR a kWh, times 1.5."""
    tariff = Tariff(np.array([0.0, 28800.0]), np.array([0.1, 0.2]))
    assert objective(view(NODE._replace(tariff=tariff, pue=1.5), [(HOURLY, 2, INF, 1)]), (0, 1)) == pytest.approx(0.6)


def test_nothing_to_do_costs_nothing():
    empty = view(NODE, [(HOURLY, 2, 0, 1)])._replace(active=np.array([], dtype=int))
    assert proxy_objective(empty, Deployment(np.array([], dtype=int), np.array([], dtype=int))) == 0.0


@given(seed=st.integers(0, 10_000), place=st.integers(0, 10_000))
def test_free_choice_never_costs_more_and_nothing_is_below_zero(seed, place):
    some = random_view(seed, 2, 2)
    every = list(legal_deployments(some))
    one = every[place % len(every)]
    first, free = proxy_objective(some, one), proxy_objective(some, one, as_printed=True)
    assert 0.0 <= free <= first
    assert proxy_objective(some, one, rho=0.0) <= first
