"""Shockwave, the policy, in rounds of its own."""

from dataclasses import replace
from math import log
from time import perf_counter

import numpy as np
import pytest

from jobcast.domain.jobs import Job
from jobcast.schedulers.shockwave import Shockwave
from jobcast.schedulers.shockwave.policy import Budgets, Claims, forecast_fairness
from tests.schedulers.rounds_driver import ROUND_S, Known, active, drive, state


def test_a_job_alone_runs_in_one_piece():
    job = Job(0, "0", "p", 0.0, 2)
    assert drive(Shockwave(Known({0: 1000.0})), [job], {0: 1000.0}, 4) == [{0}] * 9  # 100 s + 8 x 120 s


def test_the_long_job_that_arrives_last_runs_at_once_and_never_stops():
    jobs = [Job(seq, str(seq), "p", 0.0, 1) for seq in range(12)] + [Job(12, "12", "p", 1200.0, 2)]
    run_s = dict.fromkeys(range(12), 2400.0) | {12: 12_000.0}
    log = drive(Shockwave(Known(run_s)), jobs, run_s, 8)
    held = [index for index, names in enumerate(log) if 12 in names]
    assert held == list(range(10, 10 + len(held)))


def test_jobs_run_in_two_pieces_on_average_at_most():
    jobs = [Job(seq, str(seq), "p", 60.0 * seq, 1) for seq in range(30)]
    run_s = {seq: 1200.0 + 97.0 * (seq % 11) for seq in range(30)}
    log = drive(Shockwave(Known(run_s)), jobs, run_s, 8)
    starts = sum(len(set(now) - set(before)) for before, now in zip([[], *log], log, strict=False))
    assert starts <= 2 * len(jobs)


@pytest.mark.parametrize(("mode", "solves"), [("reactive", 2), ("lazy", 1)])
def test_a_change_of_batch_size_is_answered_at_once_or_later(mode, solves):
    policy = Shockwave(Known({0: 5000.0, 1: 5000.0}), mode=mode)
    policy.choose(state([active(0), active(1)], 1))
    policy.choose(state([active(0), active(1)], 1, ROUND_S, adapted=True))
    assert policy.figures()["solves"] == solves


def test_it_plans_anew_for_arrivals_completions_and_when_the_plan_has_elapsed():
    policy = Shockwave(Known(dict.fromkeys(range(3), 9e4)), window=3)
    seen = []
    for index, names in enumerate([(0,), (0,), (0, 1), (0, 1), (1,), (1,), (1,), (1,)]):
        policy.choose(state([active(seq) for seq in names], 1, index * ROUND_S))
        seen.append(policy.figures()["solves"])
    assert seen == [1, 1, 2, 2, 3, 3, 3, 4]


def test_a_weight_of_the_user_decides_between_equals():
    policy = Shockwave(Known({0: 6000.0, 1: 6000.0}), lam=0.0)
    plain, weighty = active(0), active(1)
    weighty = replace(weighty, job=replace(weighty.job, weight=5.0))
    assert [job.seq for job in policy.choose(state([plain, weighty], 1))] == [1]


def test_equation_9_by_hand():
    rho = forecast_fairness(np.array([0.0, 900.0]), np.array([400.0, 100.0]), np.array([400.0, 400.0]), np.full(2, 3.0))
    assert rho.tolist() == pytest.approx([1.0, 1.0])  # (900 + 100 x 3) / (400 x 3)


def test_contention_counts_each_jobs_own_life():
    budgets = Budgets()
    budgets.observe(state([active(seq) for seq in range(8)], 2))
    now = state([active(0), active(9)], 2, ROUND_S)
    budgets.observe(now)
    assert budgets.contention(now).tolist() == [2.5, 1.0]  # (4 + 1) / 2 rounds; 1


def test_a_running_job_keeps_the_fairness_that_it_was_started_with():
    budgets = Budgets()
    queue = [active(seq) for seq in range(4)]
    budgets.observe(state(queue, 1))
    assert budgets.fairness(state(queue, 1), np.full(4, 600.0)).tolist() == [1.0] * 4
    later = state([active(0, running=True, held_s=120.0), *queue[1:]], 1, ROUND_S)
    budgets.observe(later)
    rho = budgets.fairness(later, np.array([480.0, 600.0, 600.0, 600.0]))
    assert rho.tolist() == pytest.approx([1.0, 1.05, 1.05, 1.05])  # unkept: (120 + 480 x 4) / 2400 = 0.85


@pytest.mark.parametrize("running", [True, False])
def test_nothing_is_kept_of_who_was_not_started_here_or_waits(running):
    now, budgets = state([active(0, 1, 120.0, running), *map(active, range(1, 4))], 1, ROUND_S), Budgets()
    budgets.observe(now)
    assert budgets.fairness(now, np.array([480.0, 600.0, 600.0, 600.0]))[0] == pytest.approx(0.85)  # as above


def test_what_a_plan_says_of_a_buyer_by_hand():
    """A job of 480 s, a quarter done, on all 2 GPUs for a round of 120 s; rho 540 / 480, of its share 4 / 3 are left.

    With a floor of 3 its round is worth 1.125 x 4 / 3 x log((3 + 1 / 2) / (3 + 1 / 4)) / 2, and half as much a GPU.
    """
    policy, began = Shockwave(Known({0: 480.0}), k=1.0, lam=0.0, window=1), perf_counter()
    assert set(policy.figures().values()) == {0.0}
    policy.choose(state([active(0, 2, 120.0, running=True, submit_s=60.0)], 2, 240.0))
    market = {name: of[0] for name, of in policy.job_columns().items()}
    worth = 1.5 * log(3.5 / 3.25) / 4
    assert market.pop("market_worth_last") == pytest.approx(worth, rel=1e-6)
    assert market == {"market_budget": 1.125, "market_price": 0.0, "market_rounds": 1.0, "market_worth_next": 0.0}
    assert policy.figures()["solves"] == 1.0
    assert 0.0 < policy.figures()["solve_s_total"] <= perf_counter() - began


def claims(left_s, most_s=None, least_s=None, budgets=None, widths=None, running=()):
    rows = len(left_s)
    ones = np.ones(rows)
    return Claims(
        left_s=np.array(left_s),
        most_s=np.array(most_s or left_s),
        least_s=np.array(least_s or left_s),
        budgets=np.array(budgets or ones),
        widths=np.array(widths or [1] * rows),
        running=np.isin(np.arange(rows), list(running)),
    )


def test_who_may_have_most_of_the_makespans_bound_left_binds_it():
    # On 2 GPUs the load is (400 + 500 + 900 x 2) / 2 = 1350 s, which nobody has left; on 9 the longest decides.
    three, fresh = claims([400.0, 500.0, 900.0], widths=[1, 1, 2]), np.zeros(3, bool)
    assert three.binding(2, 0.9, fresh).tolist() == [False, False, False]
    assert three.binding(9, 0.9, fresh).tolist() == [False, False, True]
    assert three.binding(9, 0.5, fresh).tolist() == [False, True, True]
    for most_s in (850.0, 810.0):  # more than .9 of 900 s, or as much
        assert claims([400.0, 900.0], most_s=[most_s, 900.0]).binding(9, 0.9, fresh[:2]).tolist() == [True, True]


def test_jobs_that_are_twice_as_fast_have_half_as_much_left():
    there = claims([300.0, 600.0], [400.0, 700.0], [200.0, 500.0], running=[0, 1]).at(
        np.array([2, 4]), np.array([0.5, 2.0]), np.array([True, False])
    )
    assert [there.left_s.tolist(), there.most_s.tolist()] == [[600.0, 300.0], [800.0, 350.0]]
    assert [there.least_s.tolist(), there.widths.tolist()] == [[400.0, 250.0], [2, 4]]
    assert there.running.tolist() == [True, False]


def test_who_runs_since_it_bound_the_makespan_goes_on_below_the_line():
    # 820 s count 911 of 1000 where .9 bind; 800 count 889; who does not run counts as it is.
    jobs = claims([820.0, 800.0, 820.0, 1000.0], running=[0, 1])
    assert jobs.binding(9, 0.9, np.array([True, True, True, False])).tolist() == [True, False, False, True]


@pytest.mark.parametrize(("held_s", "chosen"), [(100.0, [1, 0]), (0.0, [0, 2])])
def test_a_forecast_that_jumps_holds_nobody_else_back(held_s, chosen):
    """A job of 700 s is said to have 3,000 left all at once: it goes first, and the longest of the others goes on.

    Of one that still waits nothing new is asked.
    """
    told = Known({0: 900.0, 1: 700.0, 2: 60.0})
    policy = Shockwave(told)
    assert [job.seq for job in policy.choose(state([active(0), active(1), active(2, 8)], 9))] == [0, 2]
    told.run_s[1] = 3100.0
    later = [active(0, held_s=100.0, running=True), active(1, held_s=held_s), active(2, 8)]
    assert [job.seq for job in policy.choose(state(later, 9, ROUND_S))] == chosen


def test_binding_jobs_go_first_then_those_owed_rounds_by_worth():
    jobs = claims([500.0, 900.0, 300.0, 1000.0, 400.0, 200.0], budgets=[1.0, 1.0, 1.0, 1.0, 4.0, 1.0])
    binding = np.array([False, True, False, True, False, False])
    owed = np.array([True, False, True, True, True, False])
    # The longest of the two that bind; 400 s at budget 4 before 300 s, before 500 s; nothing is owed to the shortest.
    assert jobs.order(binding, owed).tolist() == [3, 1, 4, 2, 0, 5]


def test_a_running_job_gives_way_to_who_is_worth_more_than_it_by_a_third():
    nobody, everybody = np.zeros(2, bool), np.ones(2, bool)
    assert claims([300.0, 250.0], running=[0]).order(nobody, everybody).tolist() == [0, 1]
    assert claims([300.0, 200.0], running=[0]).order(nobody, everybody).tolist() == [1, 0]


def test_a_billionth_more_or_less_changes_no_order():
    rng = np.random.default_rng(0)
    left_s = rng.permutation(np.repeat(rng.uniform(100, 9000, 20), 2))
    jobs, moved = claims(left_s.tolist()), claims((left_s * (1 + 1e-9 * rng.uniform(-1, 1, 40))).tolist())
    owed, fresh = rng.random(40) < 0.5, np.zeros(40, bool)
    binds, still = jobs.binding(4, 0.1, fresh), moved.binding(4, 0.1, fresh)
    assert binds.tolist() == still.tolist()
    assert jobs.order(binds, owed).tolist() == moved.order(still, owed).tolist()


@pytest.mark.parametrize(("told_s", "first"), [(6000.0, 1), (700.0, 0)])
def test_the_makespan_sees_how_long_a_job_may_take(told_s, first):
    """Two jobs on one GPU: the shorter one goes first, unless the other may take nearly all that is left."""

    class Uncertain(Known):
        def at_most_s(self, active, level=0.9, hedge=1.0):
            return told_s if active.job.seq else 500.0

    policy = Shockwave(Uncertain({0: 500.0, 1: 650.0}))
    assert [job.seq for job in policy.choose(state([active(0), active(1)], 1))] == [first]


def test_a_plan_owes_rounds_until_they_are_given():
    policy = Shockwave(Known({0: 100.0, 1: 9e4}))
    log = [policy.choose(state([active(0, 1), active(1, 1)], 2, index * ROUND_S)) for index in range(3)]
    assert [len(chosen) for chosen in log] == [2, 2, 2]
    assert policy.figures()["solves"] == 1
