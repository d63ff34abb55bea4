"""Finish-time fairness, by hand."""

import numpy as np
import pytest

from jobcast.domain.jobs import Pool
from jobcast.simulator.fairness import fairness, finish_time_fairness, lifetime_contention, static_contention
from jobcast.simulator.log import RunLog, flat_spans


def log_of(submit, end, duration, gpus=1):
    count = len(submit)
    none = np.zeros(0)
    return RunLog(
        policy="p",
        pools=(Pool("all", gpus),),
        submit_s=np.array(submit, dtype=float),
        start_s=np.array(submit, dtype=float),
        end_s=np.array(end, dtype=float),
        duration_s=np.array(duration, dtype=float),
        gpus=np.ones(count, dtype=np.int64),
        pool=np.zeros(count, dtype=np.int64),
        preemptions=np.zeros(count, dtype=np.int64),
        dedicated=np.ones(count, dtype=bool),
        spans=flat_spans(none.astype(np.int64), none, none, none),
        events=0,
    )


def test_two_jobs_on_one_gpu_share_it_by_two():
    log = log_of([0, 0], [10, 30], [10, 20])
    assert static_contention(log) == 2.0
    assert finish_time_fairness(log, 2.0).tolist() == [0.5, 0.75]


def test_a_jobs_own_contention_counts_who_is_there_while_it_is():
    # First: two jobs for 10 s. Second: two for 10 s, then alone for 20 s, (20 + 20) / 30.
    log = log_of([0, 0], [10, 30], [10, 20])
    assert lifetime_contention(log) == pytest.approx([2.0, 4 / 3])


def test_contention_is_never_below_one():
    log = log_of([0, 100], [10, 130], [10, 20], gpus=8)
    assert static_contention(log) == 1.0
    assert lifetime_contention(log).tolist() == [1.0, 1.0]


def test_shares_of_unfair_jobs_at_three_thresholds():
    log = log_of([0, 0, 0, 0], [10, 10.4, 10.8, 12], [10, 10, 10, 10], gpus=4)
    figures = fairness(log)
    assert figures["worst_ftf"] == pytest.approx(1.2)
    assert (figures["unfair_pct_100"], figures["unfair_pct_105"], figures["unfair_pct_110"]) == (75.0, 50.0, 25.0)
    assert figures["worst_ftf_lifetime"] == pytest.approx(1.2)


def test_run_times_alone_may_be_others_than_those_executed():
    log = log_of([0], [10], [10])
    assert fairness(log, exclusive_s=np.array([5.0]))["worst_ftf"] == 2.0


def test_jobs_before_the_warmup_and_those_that_never_ran_count_for_nothing():
    log = log_of([0, 100], [50, np.nan], [10, 10])
    figures = fairness(log, warmup_until_s=100.0)
    assert np.isnan(figures["worst_ftf"])
    assert np.isnan(figures["unfair_pct_105"])
