"""Shockwave, the policy, in rounds of its own."""

from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.jobs import Job
from jobcast.domain.rounds import ActiveJob
from jobcast.domain.training import Progress, Regime, Training
from jobcast.schedulers.shockwave import Shockwave
from jobcast.schedulers.shockwave.policy import Budgets, best_left_s, forecast_fairness, present_left_s
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


def test_doubt_brackets_the_forecast():
    training = Training("LM", 10, 10, "gns", {10: 60.0, 20: 40.0, 40: 30.0})
    job = Job(0, "0", "p", 0.0, 1, training=training)
    known = ActiveJob(job, 120.0, 120.0, True, Progress(4.0, (Regime(20, 4.0),)))
    assert (best_left_s(known), present_left_s(known)) == (180.0, 240.0)
    assert (best_left_s(active(0)), present_left_s(active(0))) == (float("inf"), 0.0)
