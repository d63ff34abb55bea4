"""The latest completions that PCS promises: by hand, against arrivals that mean harm, and why there may be none."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from benchmarks.worst_case_runs import tallied
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.schedulers.elastic.wfq import joined, pcs
from jobcast.schedulers.elastic.worst_case import BLOCKED, CAPPED, EARLIER, REASONS, guaranteed_gpus
from tests.simulator.elastic.elastic_cases import LINEAR, Case, cluster_of, jobs_of

TWO = WfqConfig((50.0, inf), (0.75, 0.25))
FIFO = WfqConfig()


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
    run = promised(case, FIFO.policy())
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
    run = promised(Case(jobs_of([(0, 1e6, 1), (0, 90, 4)]), cluster_of(4)), FIFO.policy())
    assert ends(run) == pytest.approx([1e6, 30.0], rel=1e-5)


def test_a_type_of_which_there_is_no_gpu_slows_nobody():
    jobs = jobs_of([(0, 100, 2)], speed=np.array([[1.0, 0.5]] * 4))
    run = promised(Case(jobs, cluster_of(2, 0)), FIFO.policy(("fast", "slow")))
    assert ends(run) == pytest.approx([50.0], rel=1e-5)


def test_a_job_that_gets_nowhere_on_one_gpu_is_promised_when_both_are_free():
    """On two it does 2 s a second: 15 s for 30 s of work. By the work of what is ahead nothing can be said."""
    steep = np.array([0.0, 0.0, *[2.0] * 15])
    jobs = jobs_of([(0, 30, 2, 0, 0)], tables=np.stack([[steep, steep]]))
    assert ends(promised(Case(jobs, cluster_of(2)), FIFO.policy())) == pytest.approx([15.0], rel=1e-5)


def test_stages_count_by_their_own_widths():
    """Half of 80 s on four GPUs, half on one."""
    jobs = jobs_of([(0, 80, 4)], stages={0: [(0.5, 4), (1.0, 1)]})
    assert ends(promised(Case(jobs, cluster_of(4)), FIFO.policy())) == pytest.approx([50.0], rel=1e-5)


def test_changes_cost_what_they_cost_in_one_queue():
    """When the first ends the second gets its GPU, and stands still for 5 s; a promise foresees three stops at most."""
    case = Case(jobs_of([(0, 10, 1), (0, 100, 2)]), cluster_of(2, preempt_s=5.0))
    run = promised(case, FIFO.policy())
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


def joining(first, from_s):
    """A policy of a configuration until an instant, of FIFO from then on."""
    policy = FIFO.policy()
    return replace(policy, numbers=joined(first.numbers(("",)), from_s, policy.numbers))


def test_who_comes_under_a_later_configuration_waits_for_all_of_earlier_ones():
    """As under FIFO alone: two GPUs, 100 and 50 s of work, then 30 s: at 50, 75 and 90."""
    case = Case(jobs_of([(0, 100, 2), (1, 50, 2), (6, 30, 2)]), cluster_of(2))
    assert ends(promised(case, joining(FIFO, 5.0))) == pytest.approx([50.0, 75.0, 90.0], rel=1e-5)
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
    assert TWO.policy().rule is FIFO.policy().rule is pcs
