"""Longest jobs first while they bind the makespan, the shortest remaining time first among the others."""

import pytest

from jobcast.schedulers.longest_then_srpt import LongestThenSrpt
from jobcast.schedulers.round_rules import ShortestRemaining
from tests.schedulers.rounds_driver import Known, active, drive, job, seqs, state


def chosen(left_s, gpus, share=0.8, widths=None, running=()):
    actives = [active(seq, (widths or [1] * len(left_s))[seq], running=seq in running) for seq in range(len(left_s))]
    return seqs(LongestThenSrpt(Known(dict(enumerate(left_s))), share).choose(state(actives, gpus)))


def test_short_jobs_go_first_where_the_load_leaves_time():
    # Mean load (300 + 400 + 900 + 1000) / 2 = 1300 s: nobody has .8 of it left.
    assert chosen([900.0, 400.0, 1000.0, 300.0], 2) == [3, 1]


def test_jobs_that_bind_the_makespan_go_first_the_longest_before_the_others():
    # .8 x 1000 s are binding: 1000 s, then 900 s; 300 s behind them.
    assert chosen([900.0, 400.0, 1000.0, 300.0], 3) == [2, 0, 3]
    assert chosen([900.0, 400.0, 1000.0, 300.0], 3, share=0.95) == [2, 3, 1]


def test_gangs_are_packed_by_first_fit():
    assert chosen([1000.0, 900.0, 100.0], 4, widths=[3, 2, 1]) == [0, 2]


@pytest.mark.parametrize("running", [0, 1])
def test_ties_go_to_who_runs(running):
    assert chosen([500.0, 500.0, 900.0], 1, share=1.0, running=[running]) == [running]


def test_a_long_job_is_not_left_to_the_end():
    """A job of 10 rounds and eight of 2 on two GPUs: 13 rounds of work; the shortest first would take 18."""
    run_s = {0: 10 * 120.0 - 20.0} | dict.fromkeys(range(1, 9), 220.0)
    jobs = [job(seq) for seq in run_s]
    assert len(drive(LongestThenSrpt(Known(run_s)), jobs, run_s, 2)) == 14
    assert len(drive(ShortestRemaining(Known(run_s)), jobs, run_s, 2)) == 18
