"""The demand function, and GPUs given by type."""

import numpy as np
import pytest

from jobcast.domain.elastic import ElasticView
from jobcast.domain.elastic_kernels import grant, speed_on, speedup_at
from tests.simulator.elastic.elastic_cases import jobs_of

TABLES = np.array([[[0.0, 1.0, 1.8, 2.4], [0.0, 1.0, 1.5, 1.6]]])


def view_of(least, speed):
    """One active job of at most 3 GPUs."""
    jobs = jobs_of([(0.0, 10.0, 3, least)], tables=TABLES, speed=[speed])
    one = np.ones(1)
    return ElasticView(0.0, np.zeros(len(speed)), np.zeros(1, dtype=np.int64), 1, jobs, one, jobs.most, one, one)


@pytest.mark.parametrize(
    ("locality", "gpus", "speedup"),
    [(0, 0.0, 0.0), (0, 0.5, 0.5), (0, 1.0, 1.0), (0, 1.25, 1.2), (0, 3.0, 2.4), (0, 7.5, 2.4), (1, 2.5, 1.55)],
)
def test_speedups_are_linear_in_between_and_flat_beyond(locality, gpus, speedup):
    assert speedup_at(TABLES, 0, locality, gpus) == pytest.approx(speedup)


def test_no_job_is_faster_than_on_all_that_it_can_use():
    view = view_of(0, [1.0])
    view.most[0] = 2.0
    assert speed_on(view, 0, 3.0) == 1.8


@pytest.mark.parametrize(
    ("least", "free", "wanted", "got"),
    [
        (0, [2, 2, 2], 3, [0, 2, 1]),  # the fastest first, of equal ones the first
        (0, [0, 1, 0], 3, [0, 1, 0]),
        (3, [1, 1, 1], 3, [1, 1, 1]),
        (3, [1, 1, 0], 3, [0, 0, 0]),  # less than its least
        (0, [2, 2, 2], 0, [0, 0, 0]),
    ],
)
def test_grants_the_fastest_first_and_no_less_than_the_least(least, free, wanted, got):
    view, left, gpus = view_of(least, [0.5, 1.0, 0.7]), np.array(free, dtype=float), np.zeros((1, 3))
    assert grant(view, 0, left, float(wanted), gpus) == sum(got)
    assert gpus.tolist() == [[float(part) for part in np.array(got)]]
    assert (left + gpus[0]).tolist() == free


def test_grants_more_to_who_holds_its_least_already():
    view, left, gpus = view_of(2, [1.0]), np.array([1.0]), np.array([[2.0]])
    assert grant(view, 0, left, 1.0, gpus) == 1.0
    assert gpus.tolist() == [[3.0]]
