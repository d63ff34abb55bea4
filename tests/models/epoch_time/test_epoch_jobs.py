"""Profiled jobs: which configurations are profiled, and the shape of step times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from jobcast.domain.errors import ConfigError
from jobcast.models.epoch_time.jobs import COUNT, PLANS, draw_points, jobs_of, log_step_s, pick_points
from jobcast.traces.profiles import profile_table
from tests.shared import refused


def job_of(rows):
    return jobs_of(profile_table([("A", size, kind, gpus, 1.0) for size, kind, gpus in rows]))[0]


GRID = job_of([(size, "t4", gpus) for size in (16, 32, 64) for gpus in (1, 2, 4)])


@pytest.mark.parametrize(
    ("plan", "picked"),
    [
        ("middle-wide", {(64, 1), (32, 4), (16, 1)}),
        ("small-wide", {(64, 1), (16, 4), (32, 1)}),
        ("square", {(64, 1), (16, 4), (32, 2)}),
    ],
)
def test_on_a_grid(plan, picked):
    rows = pick_points(GRID, plan)
    assert {(int(GRID.places.batch_size[row]), int(GRID.places.gpus[row])) for row in rows} == picked


def test_fewer_points_begin_with_the_most_useful():
    rows = pick_points(GRID, "middle-wide", 1)
    assert [(GRID.places.batch_size[row], GRID.places.gpus[row]) for row in rows] == [(64.0, 1.0)]


def test_one_batch_size_has_its_ends_and_its_middle():
    job = job_of([(16, "t4", gpus) for gpus in (1, 2, 8)])
    assert pick_points(job, "middle-wide").tolist() == [0, 1, 2]
    job = job_of([(16, "t4", gpus) for gpus in (1, 2, 3, 8)])
    assert pick_points(job, "middle-wide").tolist() == [0, 2, 3]


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([8, 16, 32, 64]), st.sampled_from(["t4", "v100"]), st.sampled_from([1, 2, 4])),
        min_size=1,
        unique=True,
    ),
    plan=st.sampled_from(sorted(PLANS)),
    points=st.integers(1, 3),
    seed=st.integers(0, 9),
)
def test_as_many_as_there_are_and_no_more(rows, plan, points, seed):
    job = job_of(rows)
    for picked in (pick_points(job, plan, points), draw_points(job, np.random.default_rng(seed), points)):
        assert np.unique(picked).tolist() == picked.tolist()
        kinds = job.places.kind
        for kind in np.unique(kinds):
            assert (kinds[picked] == kind).sum() == min(points, (kinds == kind).sum())


def test_what_is_not_known():
    refused(ConfigError, "plan best: is not known", pick_points, GRID, "best")
    refused(ConfigError, "--points 4", pick_points, GRID, "square", 4)


BY_HAND = np.array([np.log(2.0), 0.0, np.log(0.5), 1.0, 0.0, -40.0])
"""s = 2, a = 1/2, r = 1/2, q = 1, c = 0, gamma = 1."""


def seconds(log_size: float, gpus: float, parameters: np.ndarray = BY_HAND) -> float:
    return float(np.exp(log_step_s(parameters[None], np.array([log_size]), np.array([gpus]))[0][0]))


def test_by_hand():
    """2 (1/2 + 1/2) = 2 on one GPU; 2 (1/2 + 3/2) = 4 at three times the size; on 4 GPUs 2 x 1/2 x 2 = 2 more."""
    assert_allclose(seconds(0.0, 1.0), 2.0)
    assert_allclose(seconds(np.log(3.0), 1.0), 4.0)
    assert_allclose(seconds(np.log(3.0), 4.0), 6.0)


def test_contention_and_overlap():
    """c = 1/2 on 4 GPUs doubles gradients: 4 + 2. With gamma = 2: sqrt(2^2 + 2^2)."""
    crowded = BY_HAND.copy()
    crowded[4] = 0.5
    assert_allclose(seconds(0.0, 4.0, crowded), 6.0)
    overlapping = BY_HAND.copy()
    overlapping[5] = 0.0
    assert_allclose(seconds(0.0, 4.0, overlapping), np.sqrt(8.0))


@given(
    parameters=st.lists(st.floats(-2, 2), min_size=COUNT, max_size=COUNT),
    log_size=st.floats(-3, 3),
    gpus=st.sampled_from([1.0, 2.0, 3.0, 8.0]),
)
def test_derivatives(parameters, log_size, gpus):
    at, size, wide = np.array(parameters), np.array([log_size]), np.array([gpus])
    slope = log_step_s(at[None], size, wide)[1][0]
    step = 1e-6
    for column in range(COUNT):
        high, low = at.copy(), at.copy()
        high[column] += step
        low[column] -= step
        difference = log_step_s(high[None], size, wide)[0] - log_step_s(low[None], size, wide)[0]
        assert_allclose(slope[column], difference[0] / (2 * step), atol=1e-6)
