from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from jobcast.schedulers.mst import EPOCHS, STEPS, MaxSumThroughput, fractional_knapsack
from tests.schedulers.rounds_driver import active, state, trained


def sized(job, samples):
    """The job with a data set of so many samples."""
    training = replace(job.job.training, samples=samples)
    return replace(job, job=replace(job.job, training=training))


@given(
    items=st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1, 2, 4])), min_size=1, max_size=10),
    gpus=st.integers(1, 16),
)
def test_the_knapsack_is_the_optimum_of_the_programme(items, gpus):
    values, widths = (np.array(column, dtype=float) for column in zip(*items, strict=True))
    shares = fractional_knapsack(values, widths, float(gpus))
    best = -linprog(-values, [widths], [gpus], bounds=[(0, 1)] * len(items)).fun
    assert values @ shares == pytest.approx(best)
    assert widths @ shares == pytest.approx(min(gpus, widths.sum()))


def test_rates_follow_the_batch_size_of_the_moment():
    # epochs a second a GPU: 1/60, 1/40 (it has grown), 1/50 over 2 GPUs
    jobs = [
        trained(0, "LM", 10, {10: 60.0}),
        trained(1, "LM", 10, {10: 60.0, 20: 40.0}, at=20),
        trained(2, "LM", 10, {10: 50.0}, gpus=2),
    ]
    assert MaxSumThroughput().shares(state(jobs, 1)) == [0.0, 1.0, 0.0]
    assert MaxSumThroughput().shares(state(jobs, 3)) == [1.0, 1.0, 0.5]


def test_in_steps_a_large_data_set_counts():
    # 1000 / 10 steps in 100 s = 1 a second; 400 / 10 in 50 s = 0.8; 1/100 and 1/50 epochs a second
    jobs = [sized(trained(0, "A", 10, {10: 100.0}), 1000), sized(trained(1, "B", 10, {10: 50.0}), 400)]
    assert MaxSumThroughput(STEPS).shares(state(jobs, 1)) == [1.0, 0.0]
    assert MaxSumThroughput().shares(state(jobs, 1)) == [0.0, 1.0]
    grown = sized(trained(0, "A", 10, {10: 100.0, 40: 50.0}, at=40), 1000)
    assert [MaxSumThroughput(unit).rate(grown) for unit in (STEPS, EPOCHS)] == [1000 / 40 / 50.0, 1 / 50.0]


def test_rates_differ_by_their_share_however_small_they_are():
    assert fractional_knapsack(np.array([2e-7, 1e-7]), np.ones(2), 1.0).tolist() == [1.0, 0.0]
    assert fractional_knapsack(np.array([1.0, 1.0 - 1e-12]), np.ones(2), 1.0).tolist() == [0.5, 0.5]


def test_without_jobs_there_are_no_shares():
    assert MaxSumThroughput().shares(state([], 4)) == []


def test_without_a_rate_a_job_gets_what_is_left():
    jobs = [active(0), trained(1, "A", 10, {10: 100.0}), active(2)]
    assert MaxSumThroughput().shares(state(jobs, 2)) == [0.5, 1.0, 0.5]
    small, unknown = sized(trained(0, "A", 10, {10: 100.0}), 1), trained(1, "A", 10, {10: 1.0})
    assert MaxSumThroughput(STEPS).shares(state([unknown, small], 1)) == [0.0, 1.0]
