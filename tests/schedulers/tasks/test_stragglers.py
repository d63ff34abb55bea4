"""What is learned of slow servers, and copies and moves against them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.iteration_kernels import Places
from jobcast.domain.policy import Decision
from jobcast.domain.tasks import MEMORY, QUEUED, by_sender
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.tasks.packing import limits_of
from jobcast.schedulers.tasks.stragglers import MOVE, Plan, Spells, expected_s, seen_slowness, without_copies
from tests.contract.tasks import Recorder
from tests.simulator.laws.test_stragglers import SECOND
from tests.simulator.tasks.task_cases import (
    TaskJob,
    cluster_of,
    jobs_of,
    loads_of,
    replay_tasks,
    view_of,
    workload_of,
    workloads,
)
from tests.simulator.tasks.test_task_properties import FEW, ROUND_S

TWO_SERVERS = cluster_of(2, 2)


def view_at(now_s, first_s, second_s):
    """Two jobs of a task of 1 s, on a server each, that last took so long; NaN: was not seen yet."""
    step_s = np.array([[first_s, np.nan], [second_s, np.nan]])
    rows = jobs_of(TaskJob(), TaskJob())
    return view_of(rows, TWO_SERVERS, gpu_of=[0, 2], done=[1.0, 1.0], now_s=now_s, step_s=step_s)


def test_slowness_is_what_loads_do_not_explain():
    """A GPU used one and a half times makes 1 s 1.5 s; the server is twice as slow beyond that."""
    rows = jobs_of(TaskJob(gpu=0.75), TaskJob(gpu=0.75), TaskJob())
    step_s = np.array([[3.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    view = view_of(rows, TWO_SERVERS, gpu_of=[0, 0, 2], done=[1.0] * 3, step_s=step_s)
    assert np.array_equal(seen_slowness(view), [2.0, np.nan], equal_nan=True)


def test_parameter_servers_tell_what_they_compute_whatever_the_gpu_beside_which_they_are():
    """The second server's GPU is used twice; one of two parameter servers takes 4 s for its 2, one computes nothing."""
    rows = jobs_of(*(TaskJob(gpu=1.0, server=True, server_compute_s=seconds) for seconds in (2.0, 0.0)))
    step_s = np.array([[np.nan] * 2, [4.0, np.nan], [np.nan] * 2, [1.0, np.nan]])
    view = view_of(rows, TWO_SERVERS, gpu_of=[2] * 4, done=[1.0] * 2, step_s=step_s)
    assert np.array_equal(seen_slowness(view), [np.nan, 2.0], equal_nan=True)


def test_a_copy_tells_of_its_own_server():
    view = view_at(0.0, 1.0, np.nan)._replace(
        copy_of=np.array([3, QUEUED]), step_s=np.array([[1.0, 4.0], [np.nan] * 2])
    )
    assert seen_slowness(view).tolist() == [1.0, 4.0]


def test_nothing_is_expected_before_a_server_was_seen_to_become_slow():
    spells = Spells(2, 0.0)
    for minute in range(10):
        spells.look(view_at(60.0 * minute, 1.0, 1.3))
    assert (spells.share, spells.factor, spells.chance.tolist()) == (0.0, 1.0, [0.0, 0.0])


def test_spells_are_counted_and_shrunk():
    """The second server becomes slow in the second minute, stays so for two, and is healthy again."""
    spells = Spells(2, 0.0)
    for minute, second_s in enumerate((1.0, 2.0, 2.0, 1.0)):
        spells.look(view_at(60.0 * minute, 1.0, second_s))
    assert spells.factor == 2.0
    # Healthy: the first for three minutes, the second for one.
    assert spells.rates == pytest.approx((1.0 / (240.0 + 3600.0), 2.0 / (120.0 + 3600.0)))
    begins, ends = spells.rates
    assert spells.share == pytest.approx(begins / (begins + ends))
    assert spells.chance.tolist() == [0.0, 0.0]


def test_belief_in_a_server_that_is_not_seen_goes_to_its_share():
    spells = Spells(2, 0.0)
    for minute, second_s in enumerate((1.0, 3.0, np.nan)):
        spells.look(view_at(60.0 * minute, 1.0, second_s))
    share, rate = spells.share, sum(spells.rates)
    assert spells.chance[1] == pytest.approx(share + (1.0 - share) * np.exp(-60.0 * rate))
    spells.look(view_at(1e7, 1.0, np.nan))
    assert spells.chance[1] == pytest.approx(spells.share)


@pytest.mark.parametrize(
    ("chances", "left", "total_s", "worst"),
    [
        ([0.0, 1.0], 5.0, 1.0 + 2 * (0.5 + 0.5 * (1 - np.exp(-0.5)) / 0.5), 1),
        ([0.0, 1.0], 0.0, 1.0 + 2 * 1.0, 1),
        ([1.0, 1.0], 0.0, 1.0 + 2 * 2.0, 0),
        ([0.0, 0.0], 0.0, 1.0, QUEUED),
    ],
)
def test_what_slow_servers_are_expected_to_cost(chances, left, total_s, worst):
    """Two workers of a second side by side, on a server each that makes it three; the first worst one counts.

    A quarter of the time in the long run, from what they are now on at a tenth a second.
    """
    rows = jobs_of(TaskJob(workers=2))
    view, ones = view_of(rows, TWO_SERVERS, gpu_of=[0, 2]), np.ones(2)
    where = (by_sender(rows.edge_from), TWO_SERVERS.server_of, view.gpu_of, view.copy_of)
    at = Places(*where, view.task_load, view.gpu_load, ones, ones, ones.copy())
    found = expected_s(rows, at, 0, left, (np.array(chances), 0.25, 0.1, 3.0), np.empty((2, 2, 2)))
    assert found == (1.0, pytest.approx(total_s), worst)


@pytest.mark.parametrize(
    ("gpu", "decided", "left", "moves"),
    [
        (2, Decision(), 14.9, False),
        (2, Decision(), 15.3, True),
        (QUEUED, Decision(tasks={0: 2}), 0.3, True),  # it starts anyway: nothing is lost
        (2, Decision(change={0: None}, tasks={0: 2}), 0.3, True),
    ],
)
def test_who_runs_moves_for_half_a_minute_or_more(gpu, decided, left, moves):
    """Slow by 3: two seconds more an iteration that is left; spells of an hour hardly end in so few."""
    view = view_of(jobs_of(TaskJob()), TWO_SERVERS, gpu_of=[gpu], done=[100.0 - left])
    spells = Spells(2, 0.0)
    spells.chance[1], spells.factor = 1.0, 3.0
    plan = Plan(view, decided, spells, limits_of(0.9, 0.9))
    plan.add((MOVE,))
    assert plan.decision().tasks == ({0: 0} if moves else dict(decided.tasks))


@pytest.mark.parametrize(
    ("chance", "gpu", "copies"), [(0.0, 0.5, {0: QUEUED}), (1.0, 0.5, {}), (1.0, 0.75, {0: QUEUED})]
)
def test_copies_end_where_a_job_is_as_quick_without_and_where_they_have_no_room(chance, gpu, copies):
    """Beside a copy that uses half a GPU another half is all."""
    rows, gpu_of, copy_of = jobs_of(TaskJob(), TaskJob(gpu=gpu)), np.array([0, 2]), np.array([2, QUEUED])
    loads = zip(*(loads_of(TWO_SERVERS, rows.demand, where) for where in (gpu_of, copy_of)), strict=True)
    load, gpu_load = (sum(both) for both in loads)
    view = view_of(rows, TWO_SERVERS, gpu_of=gpu_of, copy_of=copy_of, load=load, gpu_load=gpu_load)
    spells = Spells(2, 0.0)
    spells.chance[0], spells.factor = chance, 3.0
    plan = Plan(view, Decision(), spells, limits_of(0.9, 0.9))
    plan.drop()
    assert plan.decision().copies == copies
    assert plan._room.gpu_load.tolist() == (without_copies(view) if copies else view).gpu_load.tolist()


LONG = [TaskJob(iterations=20_000.0, gpu=0.8), TaskJob(iterations=20_000.0, gpu=0.8)]
"""Two jobs of which the heuristic puts one on each server."""


def ends_of(way, rows=LONG, **world):
    how = {**SECOND, "fluctuation": 0.0, **world}
    return replay_tasks(workload_of(rows, TWO_SERVERS), make_policy("mlf_h", None, {"slow_servers": way}), **how)


@pytest.mark.parametrize(("way", "moves"), [("move", 1), ("replicate", 0), ("both", 1)])
def test_a_job_on_a_slow_server_gets_away(way, moves):
    """Ignored it takes three times as long; else a minute is lost, ten seconds, and the way of the model."""
    assert sorted(ends_of("ignore").end_s.tolist()) == pytest.approx([20_000.0, 60_000.0])
    log = ends_of(way)
    assert log.end_s.max() == pytest.approx(60.0 + 10.0 + 0.4 + 20_000.0 - 20.0, abs=1.0)
    assert log.columns["migrations"].sum() == moves


def test_a_job_that_is_nearly_over_stays():
    rows = [TaskJob(iterations=60.0, gpu=0.8), TaskJob(iterations=30.0, gpu=0.8)]
    assert np.array_equal(ends_of("both", rows).end_s, ends_of("ignore", rows).end_s)


def test_jobs_do_not_wait_for_copies():
    """While the first two run each copy fills a GPU; a third and a fourth get in as if there were none."""
    rows = [
        *LONG,
        TaskJob(submit_s=600.0, iterations=100.0, gpu=0.8),
        TaskJob(submit_s=600.0, iterations=100.0, gpu=0.8),
    ]
    copied, ignored = ends_of("replicate", rows), ends_of("ignore", rows)
    assert copied.start_s.tolist() == ignored.start_s.tolist()


def test_loads_without_copies_are_those_of_the_tasks():
    view = view_at(0.0, 1.0, 1.0)
    assert without_copies(view) is view
    load, gpu_load = loads_of(TWO_SERVERS, view.task_load, np.array([3, QUEUED]))
    copied = view._replace(copy_of=np.array([3, QUEUED]), load=view.load + load, gpu_load=view.gpu_load + gpu_load)
    assert np.allclose(without_copies(copied).load, view.load)
    assert np.allclose(without_copies(copied).gpu_load, view.gpu_load)


@FEW
@given(workloads(roomy=True), st.integers(0, 99), st.sampled_from(["move", "replicate", "both"]))
def test_what_every_run_keeps_to(case, seed, way):
    jobs, cluster = case
    how = {"seed": seed, "stragglers": 0.4, "straggler_factor": 3.0, "straggler_h": 0.2, "round_s": ROUND_S}
    policy = Recorder(make_policy("mlf_h", None, {"slow_servers": way}))
    log = replay_tasks(workload_of(*case), policy, **how)
    assert np.isfinite(log.end_s).all()
    for view, decided, _ in policy.seen:
        assert (view.load[:, MEMORY] <= cluster.capacity[:, MEMORY] * (1 + 1e-9)).all()
        copied = view.copy_of != QUEUED
        assert (view.gpu_of[copied] != QUEUED).all()
        assert np.isin(jobs.job_of[copied], view.active).all()
        assert way != "move" or not (copied.any() or decided.copies)
    again = replay_tasks(workload_of(*case), make_policy("mlf_h", None, {"slow_servers": way}), **how)
    assert np.array_equal(log.end_s, again.end_s)


@FEW
@given(workloads(roomy=True), st.integers(0, 99))
def test_where_no_server_is_slow_and_loads_are_steady_no_bit_changes(case, seed):
    logs = [
        replay_tasks(
            workload_of(*case),
            make_policy("mlf_h", None, {"slow_servers": way}),
            seed=seed,
            fluctuation=0.0,
            round_s=ROUND_S,
        )
        for way in ("ignore", "both")
    ]
    assert np.array_equal(logs[0].end_s, logs[1].end_s)


@pytest.mark.parametrize("name", ["mlf_h", "mlf_c", "mlfs", "mlf_rl"])
def test_ways_that_are_not_known_are_refused(name):
    with pytest.raises(ConfigError, match="slow_servers"):
        make_policy(name, None, {"slow_servers": "run"})
