"""The oracle's programme against every schedule of tiny instances, and against policies on larger ones."""

from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.milp.instance import make_instance
from jobcast.schedulers.milp.programme import Relaxation, every_step
from jobcast.schedulers.milp.solve import Ledger, Plan, Settings, plan, worthwhile
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.workload import Workload
from tests.schedulers.milp.milp_cases import (
    GRID_S,
    brute_force,
    cost,
    draw,
    known,
    random_schedule,
    usage,
    virtual_clock,
)

EXACT = Settings(exact=True, time_limit_s=30.0)
BARE = EXACT.model_copy(update={"search_tries": 0})
"""Without the search, so that branch and bound has something left to do."""
SIZES = {"narrow": (4, (3, 2), 4, 4), "many pools": (5, (2, 1, 2), 5, 5), "wide": (4, (4, 4), 3, 4)}
TRIED = 3000  # schedules, at most


def tiny(name, beta_seed):
    """The first instance from a seed on that leaves something to choose, and not too much."""
    jobs, quotas, span, longest = SIZES[name]
    for seed in range(1000 * beta_seed, 1000 * beta_seed + 1000):
        workload, instance = draw(seed, jobs, quotas, span, longest)
        if 8 < np.prod(instance.cutoff - instance.submit + 1) <= TRIED:
            return workload, instance
    raise AssertionError("no instance")


def steps(found, instance):
    return [round((start_s - instance.origin_s) / GRID_S) for start_s in found.start_s]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("beta", [0.0, 0.3, 2.5])
@pytest.mark.parametrize("seed", range(4))
def test_as_good_as_the_best_of_all_schedules(name, beta, seed, monkeypatch):
    monkeypatch.setattr("jobcast.schedulers.milp.solve.REACH_PER_GPU", 1)  # so that windows must grow
    workload, instance = tiny(name, seed)
    jobs, durations_s, pools = known(workload)
    found = plan(jobs, durations_s, [*pools, Pool("without GPUs", 0)], BARE.model_copy(update={"beta": beta}))
    best = brute_force(instance, beta)
    assert found.objective_s == pytest.approx(GRID_S * best)
    assert found.bound_s == pytest.approx(GRID_S * best)
    assert found.gap == pytest.approx(0.0, abs=1e-9)
    assert GRID_S * cost(instance, steps(found, instance), beta) == pytest.approx(found.objective_s)


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5]), st.booleans())
def test_every_plan_keeps_cut_offs_and_capacity(seed, beta, exact):
    workload, instance = draw(seed, jobs=14, quotas=(4, 3, 2), span=12, longest=8)
    began = perf_counter()
    found = plan(*known(workload), EXACT.model_copy(update={"beta": beta, "exact": exact, "time_limit_s": 1.0}))
    assert found.solve_s <= perf_counter() - began
    start = steps(found, instance)
    assert all(s <= at <= m for s, at, m in zip(instance.submit, start, instance.cutoff, strict=True))
    assert usage(instance, start).sum(axis=0).max() <= instance.gpus
    assert found.bound_s <= found.objective_s + 1e-6
    assert found.objective_s == pytest.approx(GRID_S * cost(instance, start, beta))
    assert found.total_wait_s == GRID_S * (sum(start) - instance.submit.sum())
    assert found.objective_s <= found.incumbent_s
    assert found.accepted


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_a_lower_bound_on_the_wait_under_every_policy_that_slows_nobody(seed):
    workload, instance = draw(seed, jobs=14, quotas=(4, 3, 2), span=12, longest=8)
    found = plan(*known(workload), EXACT)
    submit_s = sum(job.submit_s for job in workload.jobs)
    fcfs_s = float(replay(workload, make_policy("fcfs", None, {})).start_s.sum()) - submit_s
    assert found.fcfs_wait_s == fcfs_s
    assert found.virtual_clock_wait_s == GRID_S * (sum(virtual_clock(instance)) - instance.submit.sum())
    rng = np.random.default_rng(seed)
    drawn = min(sum(random_schedule(instance, rng)) - instance.submit.sum() for _ in range(3))
    assert found.gap == 0.0
    assert found.bound_s <= min(fcfs_s, found.virtual_clock_wait_s, GRID_S * drawn)


@pytest.mark.parametrize("beta", [0.0, 0.4])
def test_fewer_starts_are_never_better_and_their_bound_holds_for_all(beta):
    worse = better = 0
    for seed in range(8):
        workload, _ = draw(seed, jobs=14, quotas=(4, 4), span=10, longest=12)
        best = plan(*known(workload), BARE.model_copy(update={"beta": beta}))
        few = plan(*known(workload), BARE.model_copy(update={"beta": beta, "exact": False, "starts_per_duration": 1}))
        assert best.gap == pytest.approx(0.0, abs=1e-6)
        assert few.objective_s >= best.objective_s - 1e-6
        assert 0.0 < few.bound_s <= best.objective_s + 1e-6
        worse += few.objective_s > best.objective_s + 1e-6
        better += few.objective_s < few.incumbent_s - 1e-6
    assert worse
    assert better


@pytest.mark.parametrize(("beta", "bound", "half"), [(0.0, 1.0, False), (1.0, 4.0, True)])
def test_starts_that_a_better_schedule_may_have(beta, bound, half):
    """Job b waits two steps for a: 2, and 3 for the steps in which p is in use. The bound is 1 below.

    Waits alone are better by a whole step, so that none is left to be lost; with fairness a half may be.
    """
    jobs = [Job(seq, name, "p", 0.0, 1) for seq, name in enumerate("ab")]
    instance = make_instance(jobs, [2 * GRID_S, GRID_S], [Pool("p", 1)], GRID_S)
    ledger = Ledger(instance, beta, instance.cutoff)
    found = worthwhile(ledger, every_step(instance), Relaxation(bound, np.array([0.0, 0.0, 0.5, 3.0]), None))
    assert found.tolist() == [True, True, half, True]  # a at 0, b at 0, 1 and, as it is, 2
    ledger.raise_bound(0.5)
    assert ledger.bound == (0.5 if half else 1.0)


def test_time_that_ends_at_once_leaves_the_incumbent():
    workload, instance = draw(3, jobs=14, quotas=(4, 3, 2), span=12, longest=8)
    found = plan(*known(workload), EXACT.model_copy(update={"time_limit_s": 0.0}))
    assert found.objective_s == found.incumbent_s
    assert found.bound_s == 0.0
    assert found.variables == 0
    assert usage(instance, steps(found, instance)).sum(axis=0).max() <= instance.gpus


def test_gpus_kept_idle_for_a_job_to_come():
    """By hand; SIA, section 4.1: a small job that is about to arrive is let in before a long one.

    q has no jobs and 1 GPU. p: a runs [0, 4) on its GPU. b (10 min) waits from 1, c (1 min) from 2; cut-offs 4 and 14.
    q's GPU: b at 1 leaves c to start at 4 on p's: waits 0 + 2. c at 2 and b at 3: waits 2 + 0. A d (1 min) at 3 tells:
    b at 1, c at 4, d at 5: 0 + 2 + 2; c at 2, d at 3, b at 4: 0 + 0 + 3.
    """
    rows = [("a", 0, 4), ("b", 1, 10), ("c", 2, 1), ("d", 3, 1)]
    jobs = [Job(0, name, "p", GRID_S * at, 1) for name, at, _ in rows]
    workload = Workload(jobs, [Outcome(GRID_S * long) for *_, long in rows], [Pool("p", 1), Pool("q", 1)])
    found = plan(*known(workload), BARE)
    assert [start_s / GRID_S for start_s in found.start_s] == [0, 4, 2, 3]
    assert found.total_wait_s == found.bound_s == 3 * GRID_S


def test_no_jobs():
    assert plan([], [], [Pool("p", 1)], EXACT) == Plan((), *[0.0] * 8, 0, 0, True)
