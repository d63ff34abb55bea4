"""FIFO, SRSF and LAS by hand."""

import numpy as np

from jobcast.schedulers.registry import make_policy
from tests.simulator.elastic.elastic_cases import Case, cluster_of, jobs_of

FIFO, SRSF, LAS = (make_policy(name) for name in ("elastic_fifo", "srsf", "elastic_las"))


def ends(case, policy):
    return case.log(policy).end_s.tolist()


def test_fifo_serves_in_order_of_submission():
    """4 GPUs: the first takes 3, the second the one left; at 10 s the second takes 2, having done 10 of 30 s."""
    case = Case(jobs_of([(0.0, 30.0, 3), (0.0, 30.0, 2)]), cluster_of(4))
    assert ends(case, FIFO) == [10.0, 20.0]


def test_fifo_passes_over_a_least_that_does_not_fit():
    """The second needs 4 at once and waits for all GPUs; the third, behind it, runs on the one that is left."""
    case = Case(jobs_of([(0.0, 30.0, 3), (0.0, 40.0, 4, 4), (0.0, 5.0, 1)]), cluster_of(4))
    assert ends(case, FIFO) == [10.0, 20.0, 5.0]


def test_srsf_goes_by_gpus_times_time_left():
    """One GPU: at 4 s the first has 6 s left, more than the 5 s of the second."""
    case = Case(jobs_of([(0.0, 10.0, 1), (4.0, 5.0, 1)]), cluster_of(1))
    assert ends(case, SRSF) == [15.0, 9.0]


def test_srsf_counts_the_gpus_that_speed_does_not_repay():
    """2 GPUs at speed 1.25: 8 / 1.25 x 2 = 12.8 GPU-seconds, more than 10 on one; linear it would be 8."""
    slow = np.array([0.0, 1.0, 1.25])
    tables = np.stack([np.stack([slow, slow])])
    case = Case(jobs_of([(0.0, 8.0, 2), (0.0, 10.0, 1)], tables=tables), cluster_of(1))
    assert ends(case, SRSF) == [18.0, 10.0]


def test_las_goes_by_gpu_seconds_held():
    """The first held 2 x 3 = 6 GPU-seconds when the second comes, which runs to its end; then the first goes on."""
    case = Case(jobs_of([(0.0, 20.0, 2), (3.0, 10.0, 2)]), cluster_of(2))
    assert ends(case, LAS) == [15.0, 8.0]


def test_las_serves_jobs_that_waited_in_order_of_submission():
    case = Case(jobs_of([(0.0, 4.0, 1), (1.0, 2.0, 1), (1.0, 2.0, 1)]), cluster_of(1))
    assert ends(case, LAS) == [8.0, 3.0, 5.0]
