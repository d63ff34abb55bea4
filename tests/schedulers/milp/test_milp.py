"""The oracle's programme against every schedule of tiny instances, and against policies on larger ones."""

from itertools import pairwise
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.milp.instance import Instance, make_instance, on_grid
from jobcast.schedulers.milp.policy import Milp
from jobcast.schedulers.milp.programme import (
    Relaxation,
    branch_and_bound,
    build,
    every_step,
    linear_relaxation,
    relax,
    sized_by_duration,
    with_tails,
)
from jobcast.schedulers.milp.search import PARTS, improved, inserted, plain_orders, relaxed_orders
from jobcast.schedulers.milp.solve import Ledger, Plan, Settings, plan, worthwhile
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.metrics import against
from jobcast.simulator.workload import Workload
from tests.contract.random_jobs import most_held
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


# Jobs on a grid, and their cut-offs.

POOL = [Pool("p", 2)]


def test_times_are_rounded_up_and_no_job_vanishes():
    jobs = [Job(0, "a", "p", 119.0, 1), Job(1, "b", "p", 120.0, 1), Job(2, "c", "p", 120.0 + 1e-9, 1)]
    rounded, outcomes = on_grid(jobs, [Outcome(1.0), Outcome(60.0), Outcome(61.0)], 60.0)
    assert [job.submit_s for job in rounded] == [120.0, 120.0, 120.0]
    assert [outcome.duration_s for outcome in outcomes] == [60.0, 60.0, 120.0]


@given(st.integers(0, 10**6))
def test_cut_offs_are_the_starts_under_fcfs(seed):
    workload, instance = draw(seed, jobs=20, quotas=(4, 3, 1), span=15, longest=9)
    log = replay(workload, make_policy("fcfs", None, {}))
    assert (instance.origin_s + GRID_S * instance.cutoff).tolist() == log.start_s.tolist()


def test_a_grid_far_from_the_epoch_holds_any_fraction_of_a_second():
    workload = Workload(
        [Job(0, "a", "p", 1.7e9 + 0.3, 1), Job(0, "b", "p", 1.7e9 + 0.9, 2)], [Outcome(0.6), Outcome(1.8)], POOL
    )
    instance = make_instance(*known(workload), 0.6)
    assert (instance.submit.tolist(), instance.duration.tolist(), instance.cutoff.tolist()) == ([0, 1], [1, 3], [0, 1])


@pytest.mark.parametrize(
    ("submit_s", "duration_s", "gpus", "what"),
    [
        (90.0, 60.0, 1, r"job b is submitted 90\.000000 s after the first job, .* --set grid_s="),
        (60.0, 30.0, 1, r"job b runs 30\.000000 s, which is no multiple of grid_s=60; round"),
        (60.0, 0.0, 1, r"job b runs 0\.000000 s"),
        (60.0, 60.0, 3, "job b is wider than pool p"),
    ],
)
def test_what_lies_off_the_grid_is_refused(submit_s, duration_s, gpus, what):
    jobs = [Job(0, "a", "p", 0.0, 1), Job(1, "b", "p", submit_s, gpus)]
    with pytest.raises(ConfigError, match=what):
        make_instance(jobs, [60.0, duration_s], POOL, 60.0)


def test_a_gridded_workload_is_accepted():
    rng = np.random.default_rng(0)
    jobs = [Job(0, f"{index:02d}", "p", float(rng.uniform(1e9, 1e9 + 1e4)), 1) for index in range(30)]
    workload = Workload(*on_grid(jobs, [Outcome(float(rng.uniform(1, 1e4))) for _ in jobs], 300.0), POOL)
    assert len(make_instance(*known(workload), 300.0)) == 30


# The oracle as a policy, in the engine.


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.booleans())
def test_the_plan_is_carried_out_nobody_is_slowed_and_dedicated_jobs_stay_within_their_quotas(seed, exact):
    workload, instance = draw(seed, jobs=14, quotas=(4, 3, 2), span=12, longest=8)
    source = Oracle(workload)
    policy = Milp(source, exact=exact, time_limit_s=1.0)
    log = replay(workload, policy, source)
    planned = plan(*known(workload), Settings(exact=exact, time_limit_s=1.0))
    assert policy.figures()["milp_wait_s"] == float(log.start_s.sum() - log.submit_s.sum())
    if planned.gap == 0.0:
        assert policy.figures()["milp_wait_s"] == planned.total_wait_s
    assert against(log, replay(workload, make_policy("fcfs", None, {})))["slowed_pct"] == 0
    for index, pool in enumerate(workload.pools):
        own = log.dedicated & (log.pool == index)
        assert most_held(log.start_s[own], log.end_s[own], log.gpus[own]) <= pool.quota
    assert log.dedicated.all() or (instance.cutoff > instance.submit).any()


def test_fractions_of_a_second_are_carried_out_too():
    """Ends and planned starts differ by dust here; a start waits for the end that it needs."""
    rng = np.random.default_rng(2)
    jobs = [Job(0, f"{index:02d}", "pq"[index % 2], float(rng.uniform(1.7e9, 1.7e9 + 20)), 1) for index in range(30)]
    outcomes = [Outcome(float(rng.uniform(0.1, 9))) for _ in jobs]
    workload = Workload(*on_grid(jobs, outcomes, 0.7), [Pool("p", 2), Pool("q", 1)])
    source = Oracle(workload)
    policy = Milp(source, grid_s=0.7, time_limit_s=5.0)
    log = replay(workload, policy, source)
    assert log.start_s.sum() - log.submit_s.sum() == pytest.approx(policy.figures()["milp_wait_s"], abs=1e-3)


def test_a_workload_off_the_grid_is_refused():
    workload, _ = draw(0)
    source = Oracle(workload)
    with pytest.raises(ConfigError, match=r"policy milp: job \d+ .* no multiple of grid_s=25; round the trace's times"):
        replay(workload, Milp(source, grid_s=25.0), source)


def test_figures_come_with_the_plan():
    workload, _ = draw(4, jobs=14, quotas=(4, 3, 2), span=12, longest=8)
    source = Oracle(workload)
    policy = Milp(source, exact=True)
    assert policy.figures() == {}
    replay(workload, policy, source)
    assert policy.figures()["milp_gap"] == 0.0
    assert policy.figures()["milp_bound_s"] == policy.figures()["milp_wait_s"]


# Which starts are offered, and what the programme makes of them.


def test_starts_lie_as_far_apart_as_the_job_is_long():
    """A job of 12 steps has every third start at 4 a duration; one of up to 7 steps has all of them."""
    _, instance = draw(11, jobs=14, quotas=(2, 1), span=4, longest=12)
    steps = every_step(instance)
    offered = sized_by_duration(instance, steps, 4)
    for job in range(len(instance)):
        window = range(instance.submit[job], instance.cutoff[job] + 1)
        mine = steps.start[(steps.job == job) & offered].tolist()
        apart = max(1, instance.duration[job] // 4)
        assert mine == sorted({*window[::apart], window[-1]})
    assert offered.sum() < len(offered)


def test_what_no_computer_can_hold_is_refused():
    """By hand: ten jobs of a million steps wait 0, 1, ... 9 million steps on one GPU: 45,000,010 starts."""
    jobs = [Job(0, f"{index}", "p", 0.0, 1) for index in range(10)]
    instance = make_instance(jobs, [1e6] * 10, [Pool("p", 1)], 1.0)
    with pytest.raises(ConfigError, match="10 jobs have 45,000,010 possible starts, more than 10,000,000; take fewer"):
        every_step(instance)


@given(st.integers(0, 10**6), st.integers(0, 6))
def test_rows_refuse_exactly_what_exceeds_capacity(seed, reach):
    """Any choice of one start a job: the rows hold where usage stays within the GPUs, and only there."""
    _, instance = draw(seed, jobs=6, quotas=(3, 2), span=5, longest=6)
    steps = every_step(instance)
    columns = steps.columns(instance, np.ones(len(steps.job), dtype=bool))
    programme = build(instance, columns)
    relaxed = with_tails(instance, steps, np.ones(len(steps.job), dtype=bool), np.full(len(instance), reach))
    assert np.array_equal(relaxed.tail, relaxed.start - instance.submit[relaxed.job] > reach)
    loose = build(instance, relaxed)
    rng = np.random.default_rng(seed)
    choices = [[int(rng.integers(s, m + 1)) for s, m in zip(instance.submit, instance.cutoff, strict=True)]]
    choices += [instance.submit.tolist(), instance.cutoff.tolist(), random_schedule(instance, rng)]
    for start in choices:
        fits = usage(instance, start).sum(axis=0).max() <= instance.gpus
        values = columns.of(np.array(start))
        assert bool((programme.matrix @ values <= programme.high + 1e-9).all()) == bool(fits)
        assert programme.cost @ values == sum(start) - instance.submit.sum()
        if fits:
            tails = relaxed.of(np.array(start))
            assert (loose.matrix @ tails <= loose.high + 1e-9).all()
            assert (loose.matrix @ tails >= loose.low - 1e-9).all()
            assert loose.cost @ tails <= programme.cost @ values


@given(st.integers(0, 10**6), st.integers(0, 6))
def test_a_row_each_for_stretches_that_may_be_too_much_and_tell_something_new(seed, reach):
    """Where more jobs may run than fit, unless all of them run in the next one too, or in the last that was kept."""
    _, instance = draw(seed, jobs=6, quotas=(3, 2), span=5, longest=6)
    steps = every_step(instance)
    columns = with_tails(instance, steps, np.ones(len(steps.job), dtype=bool), np.full(len(instance), reach))
    programme = build(instance, columns)
    assert (programme.at + programme.length).tolist() == [*programme.at[1:], columns.end.max()]
    runs = [(columns.begin <= at) & (at < columns.end) for at in programme.at]
    full = [instance.width[np.unique(columns.job[one])].sum() > instance.gpus for one in runs]
    ends = np.isin(programme.at + programme.length, columns.end[columns.begin < columns.end])
    kept = np.flatnonzero(full & ends).tolist()
    begins = columns.begin[columns.begin < columns.end]
    new = [
        place
        for last, place in pairwise([-1, *kept])
        if last < 0 or ((programme.at[last] < begins) & (begins <= programme.at[place])).any()
    ]
    assert programme.capacity_of.tolist() == new


def programme_of(seed, beta, jobs=30):
    _, instance = draw(seed, jobs=jobs, quotas=(4, 3), span=12, longest=8)
    steps = every_step(instance)
    columns = steps.columns(instance, np.ones(len(steps.job), dtype=bool))
    return instance, columns, build(instance, columns, beta)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_an_incumbent_is_taken_without_any_time(beta):
    instance, columns, programme = programme_of(5, beta)
    solved = branch_and_bound(programme, columns.of(instance.cutoff), 0.0)
    assert solved.accepted
    assert not solved.proved
    assert programme.cost @ solved.values == pytest.approx(cost(instance, instance.cutoff.tolist(), beta))


def test_a_schedule_beyond_capacity_is_not_taken():
    instance, columns, programme = programme_of(5, 0.0)
    assert usage(instance, instance.submit).sum(axis=0).max() > instance.gpus
    solved = branch_and_bound(programme, columns.of(instance.submit), 0.0)
    assert not solved.accepted
    assert solved.values is None


def test_a_schedule_found_that_costs_more_than_the_incumbent_is_another():
    instance, columns, programme = programme_of(5, 0.0, jobs=15)
    solved = branch_and_bound(programme, columns.of(instance.submit), 60.0)
    assert programme.cost @ solved.values > programme.cost @ columns.of(instance.submit)
    assert solved.proved
    assert not solved.accepted


def test_no_time_for_the_relaxation():
    assert relax(programme_of(5, 0.0)[2], 0.0) is None


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 2.5]))
def test_starts_that_join_round_by_round_come_to_the_relaxation_of_all_of_them(seed, beta):
    _, instance = draw(seed, jobs=8, quotas=(3, 2), span=6, longest=6)
    steps = every_step(instance)
    first = (steps.start == instance.submit[steps.job]) | (steps.start == instance.cutoff[steps.job])
    found = linear_relaxation(instance, steps, first, beta, perf_counter() + 60.0)
    whole = relax(build(instance, steps.columns(instance, np.ones(len(steps.job), dtype=bool)), beta), 60.0)
    assert found.bound == pytest.approx(whole.cost, abs=1e-5)
    assert np.bincount(steps.job, found.share) == pytest.approx(np.ones(len(instance)))
    rng = np.random.default_rng(seed)
    for start in [instance.cutoff.tolist(), *(random_schedule(instance, rng) for _ in range(3))]:
        least = found.bound + found.reduced[steps.at(np.array(start), instance)].max()
        assert cost(instance, start, beta) >= least - 1e-5


def test_one_job_costs_nothing():
    _, instance = draw(0, jobs=1)
    steps = every_step(instance)
    programme = build(instance, steps.columns(instance, np.ones(len(steps.job), dtype=bool)))
    assert relax(programme, 10.0).cost == 0.0


# Orders of jobs and what comes of them, against plain lists.


def one_by_one(instance, order):
    """Each job at its earliest start beside all others, which stand at their cut-offs until it is their turn."""
    start = instance.cutoff.tolist()
    for job in order:
        tried = ([*start[:job], begin, *start[job + 1 :]] for begin in range(instance.submit[job], start[job] + 1))
        start = next(one for one in tried if usage(instance, one).sum(axis=0).max() <= instance.gpus)
    return start


@pytest.mark.parametrize("seed", range(6))
def test_jobs_are_moved_forward_in_order(seed):
    _, instance = draw(seed, jobs=12, quotas=(3, 2), span=8, longest=6)
    order = np.random.default_rng(seed).permutation(len(instance))
    assert inserted(instance, order).tolist() == one_by_one(instance, order.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_orders_that_wait_no_longer_are_kept(seed):
    _, instance = draw(seed, jobs=9, quotas=(3, 2), span=6, longest=6)
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(instance), 25)
    places = picks + (1 + rng.exponential(10.0, 25).astype(int)) * rng.choice([-1, 1], 25)
    order = np.argsort(-instance.duration)
    kept, best = order.tolist(), one_by_one(instance, order)
    least = sum(best)
    for pick, place in zip(picks.tolist(), places.clip(0, len(instance) - 1).tolist(), strict=True):
        tried = kept.copy()
        tried.insert(place, tried.pop(pick))
        start = one_by_one(instance, tried)
        best = start if sum(start) < least else best
        if sum(start) <= least:
            kept, least = tried, sum(start)
    assert improved(instance, order, 25, seed).tolist() == best


def test_orders_by_rules_of_thumb():
    """Work: 3, 4, 3."""
    submit, duration, width, pool, cutoff, quotas = map(np.array, zip(*[(0, 3, 1, 0, 4, 3)] * 3, strict=True))
    submit[2], duration[1:], width[1:], cutoff[1:] = 1, [2, 1], [2, 3], 2
    instance = Instance(submit, duration, width, pool, cutoff, quotas[:1], 1.0, 0.0)
    found = [order.tolist() for order in plain_orders(instance)]
    assert found == [[0, 1, 2], [0, 2, 1], [0, 1, 2], [2, 1, 0], [2, 1, 0]]


@pytest.mark.parametrize("seed", range(4))
def test_orders_of_a_relaxation(seed):
    """Shares in sixteenths, so that sums are exact."""
    _, instance = draw(seed, jobs=8, quotas=(3, 2), span=6, longest=6)
    steps, rng, jobs = every_step(instance), np.random.default_rng(seed), range(8)
    starts = [steps.start[steps.job == job].tolist() for job in jobs]
    share = [(rng.multinomial(16, np.full(len(one), 1 / len(one))) / 16).tolist() for one in starts]
    expected = []
    for part in PARTS.tolist():
        begun = [
            next(start for at, start in enumerate(starts[job]) if sum(share[job][: at + 1]) >= part - 1e-9)
            for job in jobs
        ]
        expected += [
            sorted(jobs, key=begun.__getitem__),
            sorted(jobs, key=lambda job: begun[job] + part * float(instance.duration[job])),
        ]
    mean = [sum(a * b for a, b in zip(*both, strict=True)) for both in zip(share, starts, strict=True)]
    middle = [mean[job] + instance.duration[job] / 2 for job in jobs]
    expected += [sorted(jobs, key=one.__getitem__) for one in (mean, middle)]
    found = relaxed_orders(instance, steps, np.concatenate(share))
    assert [order.tolist() for order in found] == expected
    assert pytest.approx([one / 20 for one in range(1, 21)]) == PARTS.tolist()
