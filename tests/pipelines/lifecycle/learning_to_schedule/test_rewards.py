"""Reward 7 of MLFS, section 3.4, from decision to decision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.pipelines.lifecycle.learning_to_schedule.rewards import (
    HORIZON_S,
    STEP_S,
    Scale,
    Standing,
    objectives,
    returns,
)

SCALE = Scale(mean_jct_s=600.0, moved_mb=1000.0)


def standing(now_s, over, accuracy=(0.0, 0.0), sent_mb=0.0):
    return Standing(now_s, np.array(over), np.array([True, True]), np.array(accuracy), sent_mb)


def between(before, after, deadline_s=(np.inf, np.inf), target=(np.nan, np.nan)):
    return objectives(before, after, np.array(deadline_s), np.array(target), SCALE)


def test_an_active_job_costs_the_time_that_passes():
    told = between(standing(0.0, [False, True]), standing(300.0, [False, True], sent_mb=50.0))
    assert told.tolist() == pytest.approx([-300.0 / (2 * 600.0), 0.0, -0.05, 0.0, 0.0])


def test_a_deadline_costs_once_when_it_passes():
    jobs = {"deadline_s": (250.0, 250.0)}
    assert between(standing(0.0, [False, True]), standing(300.0, [False, True]), **jobs)[1] == -0.5
    assert between(standing(300.0, [False, True]), standing(600.0, [False, True]), **jobs)[1] == 0.0


def test_a_missing_accuracy_costs_at_the_deadline_or_the_end():
    needs = {"deadline_s": (250.0, 9e9), "target": (0.5, 0.5)}
    poor, good = (0.4, 0.4), (0.6, 0.6)
    assert between(standing(0.0, [False] * 2), standing(300.0, [False, False], poor), **needs)[3] == -0.5
    assert between(standing(0.0, [False] * 2), standing(300.0, [False, True], poor), **needs)[3] == -1.0
    assert between(standing(0.0, [False] * 2), standing(300.0, [False, True], good), **needs)[3] == 0.0
    late = between(standing(300.0, [False] * 2), standing(600.0, [True, False], poor), **needs)
    assert late[3] == 0.0  # was judged at its deadline


def test_accuracy_counts_until_the_deadline():
    told = between(standing(300.0, [False] * 2), standing(600.0, [False] * 2, (0.2, 0.3)), deadline_s=(250.0, 900.0))
    assert told[4] == pytest.approx(0.15)


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=30), st.integers(0, 99))
def test_returns_are_the_discounted_sums_up_to_the_horizon(rewards, seed):
    gaps = np.random.default_rng(seed).uniform(300.0, 4 * 3600.0, len(rewards))
    now_s = np.cumsum(gaps)
    found = returns(np.array(rewards), now_s, eta=0.9)
    for place in range(len(rewards)):
        apart = now_s[place:] - now_s[place]
        kept = apart < HORIZON_S
        expected = (0.9 ** (apart / STEP_S) * np.array(rewards[place:]))[kept].sum()
        assert found[place] == pytest.approx(expected, abs=1e-9)
