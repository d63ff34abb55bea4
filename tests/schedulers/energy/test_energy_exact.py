"""The exact model against every deployment of small views. Golden values by hand from appendix A of ANDREAS."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from jobcast.domain.energy import POSTPONED, Deployment, Tariff
from jobcast.domain.errors import DecisionError
from jobcast.schedulers.energy import exact
from jobcast.schedulers.energy.exact import Exact, ExactSettings, columns_of, nodes_to_use, solve
from jobcast.schedulers.energy.objective import counted, longest_s, postponed_eur, proxy_objective
from tests.schedulers.energy.exact_views import cluster, legal_deployments, random_view, view

INF = np.inf
HOURLY = [[3600.0, 1800.0, 1200.0]]
"""An epoch an hour; with more GPUs, as much faster."""
UNFORCED = ExactSettings(force_nodes=False)
NODE = cluster([0], [3], [[0, 1000, 2000, 3000]])
"""Three GPUs at 0.1 EUR an hour each."""
PAIR = NODE._replace(kind_of=np.array([0, 0]))
READINGS = [(printed, forced) for printed in (False, True) for forced in (False, True)]


def rows(deployment):
    return list(zip(deployment.node_of.tolist(), deployment.gpus_of.tolist(), strict=True))


def staying(view, deployment):
    same = (deployment.node_of == view.node_of[view.active]) & (deployment.gpus_of == view.gpus_of[view.active])
    return int((same & (deployment.node_of != POSTPONED)).sum())


def brute(view, printed, forced):
    """The least cost of all deployments, and how many jobs stay at most in those that cost it."""
    used = nodes_to_use(view)
    priced = [
        (proxy_objective(view, one, as_printed=printed), staying(view, one))
        for one in legal_deployments(view)
        if not forced or len(set(one.node_of.tolist()) - {POSTPONED}) == used
    ]
    least = min(priced)[0]
    return least, max(stay for cost, stay in priced if cost <= least + 1e-9)


@pytest.mark.parametrize(("printed", "forced"), READINGS)
@pytest.mark.parametrize("seed", range(16))
def test_equals_brute_force(seed, printed, forced):
    jobs, nodes = ((3, 2), (2, 3), (3, 2), (2, 2))[seed % 4]
    some = random_view(seed, jobs, nodes)
    found = solve(some, ExactSettings(as_printed=printed, force_nodes=forced))
    least, stay = brute(some, printed, forced)
    assert found.objective == pytest.approx(least, rel=1e-9, abs=1e-6)
    assert found.gap == 0.0
    assert staying(some, found.deployment) >= stay


@pytest.mark.parametrize(("printed", "forced"), READINGS)
def test_equals_brute_force_on_three_jobs_and_alike_nodes_where_nothing_runs(printed, forced):
    some = random_view(5, 3, 3, kinds=1, running=0.0)
    found = solve(some, ExactSettings(as_printed=printed, force_nodes=forced))
    assert found.objective == pytest.approx(brute(some, printed, forced)[0], rel=1e-9, abs=1e-6)


def test_forced_nodes_are_as_many_as_jobs_can_be_spread_over():
    """Three nodes and jobs, but two of the jobs run only on the first kind, of which there is one node."""
    nodes = cluster([0, 1, 1], [1, 1], [[0, 1000], [0, 500]])
    first, both = [[3600.0], [INF]], [[3600.0], [3600.0]]
    some = view(nodes, [(first, 1, INF, 1), (first, 2, INF, 1), (both, 1, INF, 1)])
    assert nodes_to_use(some) == 2
    assert solve(some, ExactSettings(force_nodes=True)).objective == pytest.approx(0.1 + 0.05, rel=1e-9)


@given(seed=st.integers(0, 10_000), printed=st.booleans(), forced=st.booleans(), data=st.data())
def test_no_legal_deployment_is_below_the_bound(seed, printed, forced, data):
    some = random_view(seed, 3, 2)
    found = solve(some, ExactSettings(as_printed=printed, force_nodes=forced))
    every = [one for one in legal_deployments(some) if not forced or len({*one.node_of} - {-1}) == nodes_to_use(some)]
    one = data.draw(st.sampled_from(every))
    assert found.bound <= proxy_objective(some, one, as_printed=printed) + 1e-9
    assert found.bound <= found.objective


@pytest.mark.parametrize("time_limit_s", [1e-9, 0.05])
def test_out_of_time_there_is_a_legal_schedule_and_a_bound(time_limit_s):
    some = random_view(3, 12, 6, most=3)
    best, found = solve(some, UNFORCED), solve(some, ExactSettings(time_limit_s=time_limit_s, force_nodes=False))
    node, gpus = found.deployment
    used = np.bincount(node[node != POSTPONED], gpus[node != POSTPONED], len(some.cluster.kind_of))
    assert (used <= some.cluster.kind_gpus[some.cluster.kind_of]).all()
    assert found.bound <= best.objective + 1e-6 <= found.objective + 2e-6
    assert 0.0 <= found.gap <= 1.0


def test_capacity_told_once_a_node_leaves_the_optimum(monkeypatch):
    some = random_view(8, 5, 3)
    tight = solve(some, UNFORCED).objective
    monkeypatch.setattr(exact, "MOST_PREFIXES", 0)
    assert solve(some, UNFORCED).objective == pytest.approx(tight, abs=1e-6)
    columns = columns_of(some, as_printed=False)
    assert [len(block.low) for block in exact._capacity(some, columns)] == [1] * len(np.unique(columns.node))


def test_of_schedules_that_cost_the_same_the_one_that_moves_nobody_is_taken():
    # 2 h on one GPU, 1 h on two and 40 min on three cost .2 EUR on either node.
    assert rows(Exact(UNFORCED).schedule(view(PAIR, [(HOURLY, 2, 7200, 3, 1, 1, 2)]))) == [(1, 1)]


def test_of_alike_nodes_on_which_nothing_runs_no_more_are_offered_than_jobs_need():
    assert set(columns_of(view(PAIR, [(HOURLY, 2, 7200, 3)]), as_printed=False).node.tolist()) == {0}


def test_highs_has_what_time_is_left_and_never_none(monkeypatch):
    real, limits_s = optimize.milp, []

    def milp(*given, options, **named):
        limits_s.append(options["time_limit"])
        return real(*given, options=options, **named)

    monkeypatch.setattr(optimize, "milp", milp)
    for time_limit_s in (1e-9, 60.0):
        solve(view(NODE, [(HOURLY, 2, 5400, 3)]), ExactSettings(time_limit_s=time_limit_s))
    assert limits_s[0] == 0.001
    assert 0.001 < limits_s[1] <= 60.0


def test_nothing_is_proved_where_time_is_over_at_once(monkeypatch):
    monkeypatch.setattr(exact, "_cheapest", lambda *_: (None, -INF))
    found = solve(view(NODE, [(HOURLY, 2, 5400, 3)]), UNFORCED)
    assert (found.objective, found.bound, found.gap) == (pytest.approx(175.0), 0.0, 1.0)


def test_a_model_without_a_solution_is_refused(monkeypatch):
    monkeypatch.setattr(exact, "nodes_to_use", lambda view: 2)
    with pytest.raises(DecisionError, match="policy exact: HiGHS does not solve the model"):
        solve(view(NODE, [(HOURLY, 2, 5400, 3)]), ExactSettings(force_nodes=True))


def test_no_job_and_no_configuration():
    stuck = view(NODE, [([[INF, INF, INF]], 2, 0, 1)])
    assert rows(Exact(UNFORCED).schedule(stuck)) == [(POSTPONED, 0)]
    assert rows(Exact().schedule(stuck)) == [(POSTPONED, 0)]
    nobody = stuck._replace(active=np.array([], dtype=int))
    assert rows(Exact(UNFORCED).schedule(nobody)) == []
    assert nodes_to_use(nobody) == 0


# The proxy objective. Golden values are worked out by hand from equation 1 and constraints 4i to 4k of ANDREAS.


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
