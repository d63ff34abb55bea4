"""Shockwave, Figure 4: the toy is built after the description; its lengths are checked by hand."""

import pytest

from papers.shockwave.figure4 import TOY, ToyJob, agnostic, plan, proactive, reactive, schedule

J1 = ToyJob("J1", (4, 1, 1, 1))


@pytest.mark.parametrize(
    ("done", "left"),
    [(0, (7, 16, 16)), (2, (5, 14, 14)), (4, (3, 3, 12)), (5, (2, 2, 8)), (7, (0, 0, 0))],
)
def test_estimates_of_what_is_left_by_hand(done, left):
    assert (proactive(J1, done), reactive(J1, done), agnostic(J1, done)) == left


def test_the_plan_of_least_makespan_runs_the_longest_first():
    assert plan([5, 2, 3], 2) == [0, 2]
    assert plan([2, 2, 2], 2) == [0, 1]  # ties go to the first
    assert plan([1], 2) == [0]


def test_nobody_runs_twice_in_a_round_and_all_complete():
    rounds = schedule(TOY, reactive)
    assert all(len(set(run)) == len(run) <= 2 for run in rounds)
    assert {job.name: sum(job.name in run for run in rounds) for job in TOY} == {"J1": 7, "J2": 7, "J3": 12}


def test_the_less_is_foreseen_the_longer_it_takes():
    # 7 + 7 + 12 rounds on two GPUs: 13; J3 begins after the first epochs of the others: 4 + 12; or one round later
    assert [len(schedule(TOY, rule)) for rule in (proactive, reactive, agnostic)] == [13, 16, 17]
