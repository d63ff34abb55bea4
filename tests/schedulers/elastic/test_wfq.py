"""PCS by hand: shares of queues, demand caps and their relaxation, whole GPUs, GPU types."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.worst_case_runs import tallied
from jobcast.schedulers.elastic.config import WfqConfig, parse_config
from jobcast.schedulers.elastic.wfq import demand_cap, fill, joined, pcs, round_shares, turn_at, turn_of
from jobcast.schedulers.elastic.worst_case import BLOCKED, CAPPED, EARLIER, REASONS, guaranteed_gpus
from jobcast.schedulers.registry import make_policy
from tests.simulator.elastic.elastic_cases import BUMPY, LINEAR, Case, cases, cluster_of, dealt, jobs_of, views

FIFO = make_policy("elastic_fifo")


def held(case, policy):
    """GPUs right after the last submission."""
    run = case.run(policy)
    run.submit(len(case.jobs.size_s))
    return run.state.gpus.sum(axis=1).tolist()


def test_caps_at_the_first_crossing_or_the_last():
    """Efficiency 1, 0.905, 0.813, 0.863, 0.78, ...: at 0.85 first crossed at 3 GPUs, last reached at 4."""
    jobs = jobs_of([(0.0, 1.0, 8)], tables=np.stack([np.stack([BUMPY, BUMPY])]))
    assert demand_cap(jobs, 0, 0.85, False) == 2.0
    assert demand_cap(jobs, 0, 0.85, True) == 4.0
    assert demand_cap(jobs, 0, 0.0, False) == 16.0
    assert demand_cap(jobs, 0, 1.0, False) == 1.0  # one GPU is just as efficient as that
    assert demand_cap(jobs, 0, 1.1, False) == 0.0  # nobody is


def test_what_a_satisfied_queue_leaves_goes_to_the_others_by_weight():
    """10 GPUs by 6 : 3 : 1; the first wants 2, so 8 go 3 : 1: 6 and 2; the second wants 5, so the last gets 3."""
    shares = np.zeros(3)
    fill(np.array([6.0, 3.0, 1.0]), np.array([2.0, 5.0, 40.0]), 10.0, shares)
    assert shares == pytest.approx([2.0, 5.0, 3.0])


@given(st.lists(st.tuples(st.floats(0.01, 9.0), st.integers(0, 9)), min_size=1, max_size=5), st.integers(0, 20))
def test_shares_are_as_high_by_weight_as_demands_allow(rows, gpus):
    weights, demands = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    shares = np.zeros(len(rows))
    fill(weights, demands, float(gpus), shares)
    low, high = 0.0, 9.0 / weights.min()
    for _ in range(100):
        level = (low + high) / 2
        low, high = (level, high) if np.minimum(demands, level * weights).sum() <= gpus else (low, level)
    assert shares == pytest.approx(np.minimum(demands, high * weights), abs=1e-6)


@pytest.mark.parametrize(
    ("shares", "demands", "gpus", "whole"),
    [
        ([1.2, 1.45, 1.35], [9, 9, 9], 4, [1, 2, 1]),
        ([1.6, 1.7, 1.7], [9, 9, 9], 5, [1, 2, 2]),
        ([1.5, 1.5], [9, 9], 3, [2, 1]),  # of equal rests the first
        ([1.5 - 1e-8, 1.5], [9, 9], 3, [2, 1]),  # as are those that differ by rounding
        ([1.6, 0.4], [1, 9], 2, [1, 1]),  # who has all it asks for gets no more
        ([0.5, 0.3], [1, 1], 1, [1, 0]),
        ([2.0 - 1e-10, 1.0], [9, 9], 3, [2, 1]),
        ([2.2, 0.8], [9, 9], 3, [2, 1]),  # rests alone count, not what they are beside
        ([2.0, 0.9, 0.1], [9, 9, 9], 3, [2, 1, 0]),  # a whole share leaves no rest
    ],
)
def test_whole_shares_go_by_largest_remainder(shares, demands, gpus, whole):
    found = np.array(shares)
    round_shares(found, np.array(demands, dtype=float), float(gpus))
    assert found.tolist() == whole


def test_a_configuration_may_leave_out_caps():
    assert parse_config({"class_thresholds": ["inf"], "class_rates": [1]}, "here") == WfqConfig()


def test_queues_hold_fractions_of_gpus():
    """4 GPUs by 2 : 1 for a small and a large job: 8/3 and 4/3; whole: 3 and 1."""
    config = WfqConfig((10.0, inf), (2.0, 1.0))
    case = Case(jobs_of([(0.0, 100.0, 4), (0.0, 10.0, 4)]), cluster_of(4))
    assert held(case, config.policy()) == pytest.approx([4 / 3, 8 / 3])
    assert held(case, config.policy(whole=True)) == [1.0, 3.0]


def test_a_cap_holds_while_others_can_use_the_share_and_is_lowered_if_not():
    """Cap 2 at efficiency 0.85. Two jobs on 4 GPUs: 2 each. Alone: lowered by 0.1 to 0.75, first missed at 7 GPUs."""
    config = WfqConfig(clip_demand_factor=0.85, delta=0.1)
    tables = np.stack([np.stack([BUMPY, BUMPY])])
    rows = [(0.0, 50.0, 4), (0.0, 50.0, 4)]
    assert held(Case(jobs_of(rows, tables=tables), cluster_of(4)), config.policy()) == [2.0, 2.0]
    assert held(Case(jobs_of(rows[:1], tables=tables), cluster_of(4)), config.policy()) == [4.0]
    # On 5 GPUs the two are one short of using all.
    assert held(Case(jobs_of(rows, tables=tables), cluster_of(5)), config.policy()) == [4.0, 1.0]
    # Without a step there is no cap at all where it is not kept to.
    at_once = WfqConfig(clip_demand_factor=0.85, delta=0.0).policy()
    assert held(Case(jobs_of(rows[:1], tables=tables), cluster_of(4)), at_once) == [4.0]
    # Three on 10 GPUs at 0.79, first missed at 5 GPUs: 4 each as far as there are, though they could use 8.
    wide = Case(jobs_of([(0.0, 50.0, 8)] * 3, tables=tables), cluster_of(10))
    assert held(wide, WfqConfig(clip_demand_factor=0.85, delta=0.06).policy()) == [4.0, 4.0, 2.0]


def test_a_cap_reaches_to_the_last_efficient_number_of_gpus_where_it_is_monotone():
    """Caps 2 and 4 at efficiency 0.85, as above; the first two can use 6 GPUs at 4."""
    config, tables = WfqConfig(clip_demand_factor=0.85), np.stack([np.stack([BUMPY, BUMPY])])
    case = Case(jobs_of([(0.0, 50.0, 8)] * 3, tables=tables), cluster_of(6))
    assert held(case, config.policy()) == [2.0, 2.0, 2.0]
    assert held(case, config.policy(monotone=True)) == [4.0, 2.0, 0.0]


@pytest.mark.parametrize(("small", "slow"), [(1e-9, [4.0, 0.0]), (1 / 3, [3.0, 1.0])])
def test_types_have_weights_of_their_own(small, slow):
    """4 GPUs of each type. The small job's queue has 3 fast ones, and of the slow ones all but nothing, or one."""
    config = WfqConfig((10.0, inf), (3.0, 1.0), type_rates={"slow": (small, 1.0)})
    jobs = jobs_of([(0.0, 100.0, 8), (0.0, 10.0, 8)], speed=[[1.0, 0.5]] * 4)
    run = Case(jobs, cluster_of(4, 4)).run(config.policy(("fast", "slow")))
    run.submit(2)
    assert run.state.gpus == pytest.approx(np.column_stack([[1.0, 3.0], slow]), abs=1e-6)


def test_slow_types_idle_where_not_all_gpus_are_wanted():
    """A job that can use 3 of 2 slow and 2 fast GPUs holds both fast ones, as under FIFO."""
    run = Case(jobs_of([(0.0, 100.0, 3)], speed=[[1.0, 2.0]] * 4), cluster_of(2, 2)).run(WfqConfig().policy(("s", "f")))
    run.submit(1)
    assert run.state.gpus.tolist() == [[1.0, 2.0]]


def test_jobs_go_by_the_configuration_of_their_submission():
    configs = (WfqConfig(), WfqConfig((10.0, inf), (2.0, 1.0)), WfqConfig((5.0, 9.0, inf), (3.0, 2.0, 1.0)))
    first, second, third = (config.numbers(("",)) for config in configs)
    numbers = joined(joined(first, 20.0, second), 30.0, third)
    parts = [numbers[slice(*turn_at(numbers, turn))].tolist() for turn in range(3)]
    assert parts == [first.tolist(), second.tolist(), third.tolist()]
    assert [turn_of(numbers, at_s) for at_s in (0.0, 19.9, 20.0, 29.9, 30.0)] == [0, 0, 1, 1, 2]


def test_later_configurations_share_what_earlier_ones_leave():
    """One of 4 GPUs is the first job's, by FIFO; the other three go by 2 : 1 to a small and a large one."""
    case = Case(jobs_of([(0.0, 100.0, 1), (6.0, 100.0, 4), (6.0, 10.0, 4)]), cluster_of(4))
    later = WfqConfig((10.0, inf), (2.0, 1.0))
    for whole in (False, True):
        policy = later.policy(whole=whole)
        numbers = joined(WfqConfig().numbers(("",), whole=whole), 5.0, policy.numbers)
        assert held(case, replace(policy, numbers=numbers)) == pytest.approx([1.0, 1.0, 2.0])


@given(views())
def test_one_queue_without_a_cap_deals_as_fifo(view):
    assert dealt(WfqConfig().policy(), view) == pytest.approx(dealt(FIFO, view), abs=1e-9)


@given(cases())
def test_one_queue_without_a_cap_is_fifo_job_by_job(case):
    pcs, fifo = case.log(WfqConfig().policy(), predict=True), case.log(FIFO, predict=True)
    assert pcs.end_s == pytest.approx(fifo.end_s, abs=1e-6)
    assert pcs.columns["predicted_end_s"] == pytest.approx(fifo.columns["predicted_end_s"], abs=1e-6)


# The latest completions that PCS promises: by hand, against arrivals that mean harm, and why there may be none.

TWO = WfqConfig((50.0, inf), (0.75, 0.25))
ONE = WfqConfig()


def promised(case, policy):
    """A run after its last submission, each job promised its worst case at its own."""
    run = case.run(policy)
    run.forecast(len(case.jobs.size_s))
    return run


def ends(run):
    """(n_jobs,) seconds that were promised."""
    return [run.worst_cases[job].end_s for job in range(len(run.worst_cases))]


def test_fifo_is_promised_what_happens():
    """Two GPUs, 100 and 50 s of work: at 50 and 75. What comes behind them changes nothing."""
    case = Case(jobs_of([(0, 100, 2), (0, 50, 2), (1, 1000, 2)]), cluster_of(2))
    run = promised(case, ONE.policy())
    assert ends(run) == pytest.approx([50.0, 75.0, 575.0], rel=1e-5)
    run.finish()
    assert run.state.end_s.tolist() == pytest.approx([50.0, 75.0, 575.0])


def test_a_queue_is_sure_of_its_weight_alone():
    """A quarter of four GPUs: 100 s of work take 100 s once the other queue is flooded, and 25 s if it is not."""
    quiet = promised(Case(jobs_of([(0, 100, 4)]), cluster_of(4)), TWO.policy())
    assert ends(quiet) == pytest.approx([100.0], rel=1e-5)
    quiet.finish()
    assert quiet.state.end_s[0] == pytest.approx(25.0)
    flood = promised(Case(jobs_of([(0, 100, 4), *[(0, 50, 4)] * 8]), cluster_of(4)), TWO.policy())
    flood.finish()
    assert flood.state.end_s[0] == pytest.approx(100.0)
    assert flood.state.end_s[0] <= ends(flood)[0]


def test_whole_shares_may_be_rounded_down():
    """A quarter of 7 is 1.75: one GPU is sure; of 3 it is 0.75: none."""
    numbers = TWO.numbers(("",), whole=True)
    assert [guaranteed_gpus(numbers, np.array([gpus]), 1) for gpus in (7.0, 3.0)] == [1.0, 0.0]
    assert guaranteed_gpus(TWO.numbers(("",)), np.array([7.0]), 1) == 1.75


def test_a_relaxed_cap_of_the_head_is_foreseen():
    """Of ten GPUs the head, capped at 4, takes all at once when the cap is dropped, and gains little: 4.6 GPUs' worth.

    Tight caps all along would have the second at 25 s; relaxed, it gets nothing until the head is over, at 21.7 s.
    """
    steep = np.concatenate([LINEAR[:5], 4.0 + 0.1 * np.arange(1, 13)])
    jobs = jobs_of([(0, 100, 10, 0, 0), (0, 100, 4, 0, 0)], tables=np.stack([[steep, steep]]))
    run = promised(Case(jobs, cluster_of(10)), WfqConfig(clip_demand_factor=0.9, delta=0.0).policy())
    run.finish()
    assert run.state.end_s.tolist() == pytest.approx([100 / 4.6, 100 / 4.6 + 25.0])
    assert ends(run) == pytest.approx([25.0, 100 / 4.6 + 25.0], rel=1e-5)


def test_narrow_jobs_ahead_do_not_block():
    """A job of a million seconds on one GPU leaves three of four to whoever is behind."""
    run = promised(Case(jobs_of([(0, 1e6, 1), (0, 90, 4)]), cluster_of(4)), ONE.policy())
    assert ends(run) == pytest.approx([1e6, 30.0], rel=1e-5)


def test_a_type_of_which_there_is_no_gpu_slows_nobody():
    jobs = jobs_of([(0, 100, 2)], speed=np.array([[1.0, 0.5]] * 4))
    run = promised(Case(jobs, cluster_of(2, 0)), ONE.policy(("fast", "slow")))
    assert ends(run) == pytest.approx([50.0], rel=1e-5)


@pytest.mark.parametrize(("speed", "end_s"), [(2.0, 15.0), (0.5, 60.0)])
def test_a_job_that_gets_nowhere_on_one_gpu_is_promised_when_both_are_free(speed, end_s):
    """On two it does 2 s a second, or half: 15 s for 30 s of work, or 60 s, from the end of the one ahead on.

    By the work of what is ahead nothing can be said.
    """
    steep = np.array([0.0, 0.0, *[speed] * 15])
    tables, cluster = np.stack([[LINEAR, LINEAR], [steep, steep]]), cluster_of(2)
    alone = Case(jobs_of([(0, 30, 2, 0, 1)], tables=tables), cluster)
    assert ends(promised(alone, ONE.policy())) == pytest.approx([end_s], rel=1e-5)
    behind = Case(jobs_of([(0, 10, 1), (0, 30, 2, 0, 1)], tables=tables), cluster)
    assert ends(promised(behind, ONE.policy())) == pytest.approx([10.0, 10.0 + end_s], rel=1e-5)


def test_without_a_cap_jobs_may_hold_more_than_their_table_is_wide():
    """On 18 to 20 GPUs a job is as fast as on the table's last, 16; the first takes all 20, the second waits for it."""
    case = Case(jobs_of([(0, 160, 20, 18), (0, 160, 20)]), cluster_of(20))
    assert held(case, ONE.policy()) == [20.0, 0.0]
    assert ends(promised(case, ONE.policy())) == pytest.approx([10.0, 20.0], rel=1e-5)


def test_stages_count_by_their_own_widths():
    """Half of 80 s on four GPUs, half on one."""
    jobs = jobs_of([(0, 80, 4)], stages={0: [(0.5, 4), (1.0, 1)]})
    assert ends(promised(Case(jobs, cluster_of(4)), ONE.policy())) == pytest.approx([50.0], rel=1e-5)


def test_a_stage_that_is_over_holds_nothing():
    """At 20 s the one ahead has been on its last GPU for 10 s, and 30 s are left: three GPUs have 60 s of work left."""
    jobs = jobs_of([(0, 80, 4), (0, 90, 4)], stages={0: [(0.5, 4), (1.0, 1)]})
    run = promised(Case(jobs, cluster_of(4)), ONE.policy())
    run.advance(20.0)
    assert run.worst_case(1).end_s == pytest.approx(20.0 + 60 / 3, rel=1e-5)


def test_changes_cost_what_they_cost_in_one_queue():
    """When the first ends the second gets its GPU, and stands still for 5 s; a promise foresees three stops at most."""
    case = Case(jobs_of([(0, 10, 1), (0, 100, 2)]), cluster_of(2, preempt_s=5.0))
    run = promised(case, ONE.policy())
    run.finish()
    assert run.state.end_s[1] == pytest.approx(10 + 5 + 90 / 2)
    assert 60.0 <= ends(run)[1] <= 60.0 + 4 * 5.0


@pytest.mark.parametrize(
    ("reason", "config", "row", "cluster", "whole"),
    [
        ("weight guarantees no GPU", TWO, (0, 100, 4), cluster_of(3), True),
        ("fewer GPUs than it needs at least", TWO, (0, 100, 4, 2), cluster_of(4), False),
        ("cap on its demand", WfqConfig(clip_demand_factor=0.9), (0, 100, 4, 4, 1), cluster_of(4), False),
        ("every arrival may stop it", TWO, (0, 100, 4), cluster_of(4, preempt_s=1.0), False),
    ],
)
def test_why_nothing_is_promised(reason, config, row, cluster, whole):
    run = promised(Case(jobs_of([row]), cluster), config.policy(whole=whole))
    assert run.worst_cases[0].end_s == inf
    assert reason in run.worst_cases[0].reason


def test_who_may_wait_for_ever_is_in_the_way_of_others():
    """The head may be starved by its cap, and hold all four GPUs once it is not: then a rigid job of four has none."""
    jobs = jobs_of([(0, 100, 4, 4, 1), (0, 100, 4, 4, 0)])
    run = promised(Case(jobs, cluster_of(4)), WfqConfig(clip_demand_factor=0.9).policy())
    assert [run.worst_cases[job].reason for job in (0, 1)] == [REASONS[CAPPED], REASONS[BLOCKED]]
    run = promised(Case(jobs, cluster_of(8)), WfqConfig(clip_demand_factor=0.9).policy())
    assert ends(run) == pytest.approx([inf, 25.0], rel=1e-5)
    assert [run.worst_cases[job].reason for job in (0, 1)] == [REASONS[CAPPED], ""]


def test_a_cap_of_no_gpu_stops_who_needs_no_least_either():
    """One GPU has an efficiency of 1, which is below 1.5: whoever comes, the job may be left without any."""
    run = promised(Case(jobs_of([(0, 100, 4)]), cluster_of(4)), WfqConfig(clip_demand_factor=1.5).policy())
    assert run.worst_cases[0].reason == REASONS[CAPPED]


def joining(first, from_s):
    """A policy of a configuration until an instant, of FIFO from then on."""
    policy = ONE.policy()
    return replace(policy, numbers=joined(first.numbers(("",)), from_s, policy.numbers))


def test_who_comes_under_a_later_configuration_waits_for_all_of_earlier_ones():
    """As under FIFO alone: two GPUs, 100 and 50 s of work, then 30 s: at 50, 75 and 90."""
    case = Case(jobs_of([(0, 100, 2), (1, 50, 2), (6, 30, 2)]), cluster_of(2))
    assert ends(promised(case, joining(ONE, 5.0))) == pytest.approx([50.0, 75.0, 90.0], rel=1e-5)
    starved = Case(jobs_of([(0, 100, 4, 4, 1), (6, 10, 1)]), cluster_of(4))
    run = promised(starved, joining(WfqConfig(clip_demand_factor=0.9), 5.0))
    assert [run.worst_cases[job].reason for job in (0, 1)] == [REASONS[CAPPED], REASONS[EARLIER]]


def test_a_promise_can_be_asked_for_again_and_comes_no_later():
    """At a quarter of the work done, three quarters are left to the guaranteed share."""
    run = promised(Case(jobs_of([(0, 100, 4)]), cluster_of(4)), TWO.policy())
    run.advance(6.25)
    assert run.worst_case(0).end_s == pytest.approx(6.25 + 75.0, rel=1e-5)


def test_promises_hold_whoever_comes():
    tally = tallied(300, seed=7)
    assert tally.broken == []
    assert (tally.promises, tally.nearly) == (4800, 31)
    assert [tally.refused[reason] for reason in REASONS[1:]] == [624, 421, 516, 1392, 7, 0]
    assert (tally.promised_s, tally.reached) == pytest.approx((78_952_028.98191647, 0.9999989933612108), rel=1e-9)


@pytest.mark.slow
def test_promises_hold_in_ten_thousand_runs():
    tally = tallied(10_000, seed=8)
    assert tally.broken == []
    assert tally.nearly > 500


def test_the_rule_is_the_same_object():
    """Compiled once: configurations differ in numbers alone."""
    assert TWO.policy().rule is ONE.policy().rule is pcs
