"""The randomised greedy: what it may answer, what it costs, and cases by hand."""

from itertools import count as count_from
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.energy import POSTPONED, Deployment
from jobcast.schedulers.energy.andreas import Andreas, AndreasSettings, outlook_of, queue_of, relative_speed, warm, ways
from jobcast.schedulers.energy.exact import ExactSettings, solve
from jobcast.schedulers.energy.objective import deployed_s, proxy_objective, startable_s
from jobcast.schedulers.energy.settings import EQUATION_1, TO_GO
from papers.andreas.instances import small
from tests.schedulers.energy.exact_views import legal_deployments, random_view
from tests.simulator.energy.energy_cases import EnergyJob, cluster_of, energy_views, jobs_of, view_of
from tests.simulator.energy.energy_policies import free_gpus

SOME = 60
V100, T4 = (0.0, 420.0, 670.0), (0.0, 170.0)
VIEWS = energy_views(most_jobs=8, most_nodes=4, tariffs=True)
SETTINGS = st.builds(
    AndreasSettings,
    objective=st.just(EQUATION_1),
    max_iterations=st.integers(1, SOME),
    seed=st.integers(0, 5),
    draw=st.sampled_from([0.0, 0.3, 1.0]),
    hold=st.sampled_from([None, 0.0, 0.2]),
    keep=st.booleans(),
    caps=st.booleans(),
    force_nodes=st.booleans(),
)


def andreas(**settings):
    return Andreas(AndreasSettings(**{"objective": EQUATION_1, **settings}))


def answer(view, **settings):
    node, gpus = andreas(**settings).schedule(view)
    return list(zip(node.tolist(), gpus.tolist(), strict=True))


@given(view=VIEWS, chosen=SETTINGS, thorough=st.booleans())
def test_deployments_are_legal_and_cost_what_the_kernel_says(view, chosen, thorough):
    deployment, cost = Andreas(chosen.model_copy(update={"thorough": thorough})).best(view)
    runs = deployment.node_of != POSTPONED
    assert (free_gpus(view, *deployment) >= 0).all()
    assert (deployment.gpus_of[~runs] == 0).all()
    assert (deployment.gpus_of[runs] > 0).all()
    kind = view.cluster.kind_of[deployment.node_of[runs]]
    assert np.isfinite(view.jobs.epoch_s[view.active[runs], kind, deployment.gpus_of[runs] - 1]).all()
    assert cost == pytest.approx(proxy_objective(view, deployment), rel=1e-6, abs=1e-6)


def test_how_constructions_are_made_by_hand():
    """Running jobs kept, swaps, draws, order and cap: what runs goes on, the plain greedy, then by chance."""
    swaps = [(0.5, 0.8), (1.0, 0.8), (2.0, 0.8), (4.0, 0.8), (1.0, 0.4), (0.5, 0.1)]
    first = [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    plain = first + [[0, swap, draw, 0, 0] for swap, draw in swaps]
    assert ways(AndreasSettings(draw=0.8, keep=False)) == pytest.approx(np.array(plain))
    keeping = first + [[keep, swap, draw, 0, 0] for swap, draw in swaps for keep in (0, 1)]
    assert ways(AndreasSettings(draw=0.8)) == pytest.approx(np.array(keeping))
    capped = first + [[0, swap, draw, 0, cap] for cap in (0, 2, 1) for swap, draw in swaps]
    assert ways(AndreasSettings(draw=0.8, keep=False, caps=True)) == pytest.approx(np.array(capped))
    both = first + [[0, swap, draw, order, cap] for order in (0, 1) for cap in (0, 2, 1) for swap, draw in swaps]
    assert ways(AndreasSettings(draw=0.8, keep=False, thorough=True)) == pytest.approx(np.array(both))


@given(view=VIEWS, seed=st.integers(0, 3))
def test_more_constructions_never_cost_more(view, seed):
    costs = [andreas(seed=seed, max_iterations=count).best(view)[1] for count in (1, 2, 20, 80)]
    assert all(more <= fewer + 1e-9 * abs(fewer) for fewer, more in pairwise(costs))


@given(view=VIEWS)
def test_the_first_construction_leaves_running_jobs_where_they_run(view):
    deployment = andreas(max_iterations=1).schedule(view)
    here = view.active
    ran = view.node_of[here] != POSTPONED
    assert (deployment.node_of[ran] == view.node_of[here][ran]).all()
    assert (deployment.gpus_of[ran] == view.gpus_of[here][ran]).all()


@given(view=VIEWS, chosen=SETTINGS)
def test_no_gpu_idles_that_a_waiting_job_could_use(view, chosen):
    deployment = Andreas(chosen).schedule(view)
    free, times_s = free_gpus(view, *deployment), startable_s(view)
    for row in np.flatnonzero(deployment.node_of == POSTPONED):
        for node in np.flatnonzero(free):
            assert not np.isfinite(times_s[row, view.cluster.kind_of[node], : free[node]]).any()


def plain(view):
    """The greedy of section IV.B for jobs that wait, word by word, without randomness.

    Of open nodes with the same room it takes the one that was given a job last.
    """
    cluster, times_s = view.cluster, startable_s(view)
    rate = cluster.power_w * cluster.pue * cluster.tariff.at(view.now_s) / 1000.0
    free, opened = cluster.kind_gpus[cluster.kind_of], np.zeros(len(cluster.kind_of), dtype=bool)
    count = len(view.active)
    node_of, gpus_of = np.full(count, POSTPONED), np.zeros(count, dtype=np.int64)
    pressure = view.now_s + times_s.min(axis=(1, 2)) - view.jobs.due_s[view.active]
    missed, given_at, turns = [], np.zeros(len(cluster.kind_of)), count_from(1)

    def put(row, configs, kinds_of_room):
        for is_open in kinds_of_room:
            for _, kind, gpus in configs:
                fits = np.flatnonzero((cluster.kind_of == kind) & (free >= gpus) & (opened == is_open))
                if len(fits):
                    node = fits[np.lexsort((-given_at[fits], free[fits]))[0]]
                    node_of[row], gpus_of[row], opened[node], given_at[node] = node, gpus, True, next(turns)
                    free[node] -= gpus
                    return True
        return False

    for row in np.argsort(-pressure, kind="stable"):
        ways = [(times_s[row, k, g], k, g + 1) for k, g in zip(*np.nonzero(np.isfinite(times_s[row])), strict=True)]
        good = [(t * rate[k, g], k, g) for t, k, g in ways if view.now_s + t < view.jobs.due_s[view.active[row]]]
        best = sorted(good or ways, key=lambda way: way[0])
        if not (put(row, best[:1], (True, False)) or put(row, best, (True, False))):
            missed.append((row, sorted(ways, key=lambda way: way[0])))
    for row, ways in missed:
        for way in ways:
            if put(row, [way], (True, False)):
                break
    return Deployment(node_of, gpus_of)


@given(view=energy_views(most_jobs=8, most_nodes=4))
def test_without_running_jobs_the_first_construction_is_the_plain_greedy(view):
    idle = view._replace(node_of=np.full_like(view.node_of, POSTPONED), gpus_of=np.zeros_like(view.gpus_of))
    cost = andreas(max_iterations=1).best(idle)[1]
    assert cost == pytest.approx(proxy_objective(idle, plain(idle)), rel=1e-6, abs=1e-6)


def test_with_4n_each_job_has_a_node_of_its_own_while_there_are_enough():
    times = ((100.0, 80.0),)
    jobs = jobs_of(*(EnergyJob(due_s=5000.0, epochs=10.0, epoch_s=times) for _ in range(3)))
    used = [
        {node for node, _ in answer(view_of(jobs, cluster_of((3, V100))), force_nodes=forced)} == {0, 1, 2}
        for forced in (False, True)
    ]
    assert used == [False, True]
    # To leave all where they run is cheaper, and one node short.
    pair = view_of(jobs, cluster_of((2, V100)), active=[0, 1], node_of=[0, 0, POSTPONED])
    assert [{node for node, _ in answer(pair, force_nodes=forced)} for forced in (False, True)] == [{0}, {0, 1}]


def urgent_beside_patient(patient_due_s):
    """A T4 that J7 holds for 6,000 s more, and J2, which needs 2,000 s of it by 3,000 s."""
    jobs = jobs_of(
        EnergyJob(submit_s=0.0, due_s=patient_due_s, weight=3.0, epochs=100.0, epoch_s=((100.0,),)),
        EnergyJob(submit_s=4000.0, due_s=7000.0, weight=2.0, epochs=20.0, epoch_s=((100.0,),)),
    )
    return view_of(jobs, cluster_of((1, T4)), node_of=[0, POSTPONED], left=[60.0, 20.0])


def test_an_urgent_job_preempts_one_with_slack():
    # ANDREAS, appendix B: J2 takes the node of J7.
    assert answer(urgent_beside_patient(30_000.0)) == [(POSTPONED, 0), (0, 1)]


def test_a_job_without_slack_is_not_preempted():
    # J7 postponed: 3 EUR/h x (300 + 6,000 - 5,000 s) x rho more than J2 postponed: 2 x (300 + 2,000 - 3,000 s).
    assert answer(urgent_beside_patient(9000.0)) == [(0, 1), (POSTPONED, 0)]


@pytest.mark.parametrize("objective", [EQUATION_1, TO_GO])
@pytest.mark.parametrize("price", [0.0, 0.1])
def test_ties_go_to_what_runs(objective, price):
    # Two alike, one GPU, none late: whatever runs first costs the same; at price 0 nothing.
    jobs = jobs_of(*(EnergyJob(weight=0.0, epochs=10.0, epoch_s=((100.0,),)) for _ in range(2)))
    view = view_of(jobs, cluster_of((1, T4), price=price), node_of=[POSTPONED, 0], left=[10.0, 10.0])
    assert answer(view, objective=objective) == [(POSTPONED, 0), (0, 1)]


def test_hold_keeps_running_jobs_where_little_is_gained():
    # Moving the only job from the V100 to the T4 saves 15 % of 340 / 400 kJ.
    cluster = cluster_of((1, (0.0, 400.0)), (1, T4))
    jobs = jobs_of(EnergyJob(due_s=1e5, epochs=10.0, epoch_s=((100.0,), (200.0,))))
    view = view_of(jobs, cluster, node_of=[0])
    assert answer(view, hold=0.1) == [(1, 1)]
    assert answer(view, hold=0.2) == [(0, 1)]


def test_nothing_to_do():
    view = view_of(jobs_of(EnergyJob()), cluster_of((1, T4)), active=[])
    deployment, cost = andreas().best(view)
    assert (deployment.node_of.tolist(), deployment.gpus_of.tolist(), cost) == ([], [], 0.0)


def gaps(views, forced, **settings):
    """Shares by which schedules cost more than the optimum, which is above 0."""
    best = np.array([solve(view, ExactSettings(force_nodes=forced)).objective for view in views])
    cost = np.array([andreas(force_nodes=forced, **settings).best(view)[1] for view in views])
    some = best > 1e-6
    return cost[some] / best[some] - 1.0


@pytest.mark.parametrize("forced", [False, True])
def test_thorough_schedules_are_near_the_optimum(forced):
    # The plain greedy is far above, so the instances are not easy.
    views = [small(seed) for seed in range(1000, 1020)]
    found = gaps(views, forced, thorough=True)
    assert (found >= -1e-6).all()
    assert found.mean() <= 1e-6
    assert gaps(views, forced, max_iterations=2).mean() > 0.3


HURRIED = {"max_iterations": 20, "thorough": True}
ON_RECORD = [
    ({"max_iterations": 1}, 63423.899157),
    ({"max_iterations": 10}, 28704.743983),
    ({"max_iterations": 10, "hold": 0.2, "seed": 3}, 30549.104919),
    ({"max_iterations": 10, "keep": False, "draw": 0.3, "seed": 2}, 47532.934318),
    ({"max_iterations": 10, "caps": True, "force_nodes": True}, 29695.215380),
    (HURRIED, 6212.878386),
    ({**HURRIED, "force_nodes": True, "seed": 1}, 6240.721267),
    ({"objective": TO_GO, "max_iterations": 3}, 6423.020773),
    ({"objective": TO_GO, "max_iterations": 10, "seed": 1, "hold": 0.1}, 6471.208182),
    ({"objective": TO_GO, "max_iterations": 40, "seed": 2}, 6397.619516),
]


@pytest.mark.parametrize(("settings", "total_eur"), ON_RECORD)
def test_schedules_cost_what_they_did(monkeypatch, settings, total_eur):
    """Of 14 jobs on six nodes, with so little time for searches that every step on the way counts.

    A look counts as 250: it is the 33rd, at 8,000, that is the last.
    """
    monkeypatch.setattr("jobcast.schedulers.energy.andreas.PLACES", 400)
    monkeypatch.setattr("jobcast.schedulers.energy.andreas.LOOKS", 8_001.0)
    views = [random_view(seed, 14, 6, kinds=kinds, most=most) for kinds, most in ((2, 4), (3, 8)) for seed in range(12)]
    costs = [andreas(**settings).best(view)[1] for view in views]
    assert sum(costs) == pytest.approx(total_eur, rel=1e-9)


def to_go(view, deployment):
    """The cost-to-go, written once more from its definition."""
    queue = queue_of(view, 100.0)
    look = outlook_of(view, queue, AndreasSettings())
    cluster, here = view.cluster, view.active
    until = [[view.period_s] * int(count) for count in np.diff(look.ends)]
    times, total, price_h = deployed_s(view, deployment), 0.0, look.wait_eur_s * 3600.0
    taken = [0] * len(until)
    hour = price_h / AndreasSettings().impatience
    keep_h = [0.3 * hour * speed for speed in relative_speed(view.jobs.epoch_s[here])]

    def late(row, end_s):
        return view.jobs.weight[here[row]] * max(0.0, view.now_s + end_s - view.jobs.due_s[here[row]]) / 3600.0

    for node, kind in enumerate(cluster.kind_of):
        rows = np.flatnonzero(deployment.node_of == node)
        steps = sorted({0.0, *times[rows]})
        for begin, end in pairwise(steps):
            busy = int(deployment.gpus_of[rows][times[rows] > begin].sum())
            total += look.rate_eur_s[kind, busy] * (end - begin)
        for row in rows:
            gpus = int(deployment.gpus_of[row])
            total += late(row, times[row]) + (keep_h[kind] * gpus + price_h) * times[row] / 3600.0
            taken[kind] += gpus
            until[kind] = [times[row]] * gpus + until[kind]
    # GPUs that nobody got are idle.
    until = [ends[: len(ends) - count] for ends, count in zip(until, taken, strict=True)]
    starts = startable_s(view)
    for row in queue.order[0]:
        if deployment.node_of[row] != POSTPONED:
            continue
        ways = []
        for kind, gpu in zip(*np.nonzero(np.isfinite(starts[row])), strict=True):
            if len(until[kind]) <= gpu:
                continue
            from_s, time_s = sorted(until[kind])[gpu], starts[row, kind, gpu]
            rate = look.rate_eur_s[kind, gpu + 1] + (keep_h[kind] * (gpu + 1) + price_h) / 3600.0
            eur = late(row, from_s + time_s) + rate * time_s + from_s * look.wait_eur_s
            ways.append((eur, kind, gpu + 1, from_s + time_s))
        if ways:
            eur, kind, gpus, end_s = min(ways)
            total += eur
            until[kind] = sorted(until[kind])[gpus:] + [end_s] * gpus
    return total


@given(view=VIEWS, count=st.integers(1, 8), seed=st.integers(0, 5))
def test_by_the_cost_to_go_schedules_are_legal_and_cost_what_is_said(view, count, seed):
    deployment, cost = andreas(objective=TO_GO, max_iterations=count, seed=seed).best(view)
    runs = deployment.node_of != POSTPONED
    assert (free_gpus(view, *deployment) >= 0).all()
    assert (deployment.gpus_of[~runs] == 0).all()
    assert np.isfinite(deployed_s(view, deployment)[runs]).all()
    assert cost == pytest.approx(to_go(view, deployment), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_by_the_cost_to_go_no_schedule_is_much_cheaper(seed):
    view = random_view(seed, 3, 2)
    able = (one for one in legal_deployments(view) if np.isfinite(deployed_s(view, one)[one.node_of >= 0]).all())
    least = min(to_go(view, one) for one in able)
    cost = andreas(objective=TO_GO).best(view)[1]
    assert least - 1e-6 <= cost <= 1.01 * least


def test_by_the_cost_to_go_a_restart_is_paid_for():
    # 60 s less of a job of 1,000 s on the V100 is no reason to lose 300 s in a restart, but half of it is.
    cluster = cluster_of((1, (0.0, 400.0)), (1, (0.0, 400.0)))
    for other_s, moves in ((94.0, False), (50.0, True)):
        jobs = jobs_of(EnergyJob(due_s=100.0, weight=5.0, epochs=10.0, epoch_s=((100.0,), (other_s,))))
        view = view_of(jobs, cluster, node_of=[0])._replace(restart_s=300.0, started=np.array([True]))
        assert answer(view, objective=TO_GO) == [(1, 1) if moves else (0, 1)]


def test_warming_leaves_nothing_to_compile():
    from jobcast.schedulers.energy.greedy import construct

    warm()
    compiled = len(construct.signatures)
    andreas().schedule(small(0))
    assert len(construct.signatures) == compiled == 1
