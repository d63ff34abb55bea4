"""What forecasts of duration bins learn from how jobs turn out: by hand, and what it is worth."""

import math

import numpy as np
import pytest

from jobcast.models.calibration_rates import (
    FORECASTS,
    FORGOTTEN,
    HEAD_START,
    LEAST_TEMPER,
    MOST_TEMPER,
    SHIFT_RATE,
    TEMPER_RATE,
    TRUST_RATE,
)
from jobcast.models.duration_calibration import Calibration, calibrated_proba, steps_of
from jobcast.models.job_duration import JobDuration

K = len(FORECASTS)
DAY_S = 86400.0


def parts(booster, rules):
    """The booster's probabilities, and the same of each rule."""
    return np.array([booster, *[rules] * (K - 1)])


def test_before_anything_is_known_the_booster_counts_most():
    known = Calibration.untaught(2).known("a")
    assert known[0] == pytest.approx(math.exp(HEAD_START) / (math.exp(HEAD_START) + K - 1))
    assert known[K:].tolist() == [1.0, 0.0, 0.0]
    told = calibrated_proba(parts([0.9, 0.1], [0.5, 0.5])[None], known[None])
    assert told[0] == pytest.approx(known[0] * np.array([0.9, 0.1]) + (1 - known[0]) * 0.5)


@pytest.mark.parametrize("far", [-2000.0, 2000.0])
def test_what_all_weights_or_all_shifts_have_in_common_changes_nothing(far):
    calibration = Calibration.untaught(2)
    calibration.state[:K] += far
    calibration.state[K + 1 :] = far
    known = calibration.known("a")
    assert known[:K] == pytest.approx(Calibration.untaught(2).known("a")[:K])
    told = parts([0.9, 0.1], [0.9, 0.1])
    assert calibrated_proba(told[None], known[None])[0] == pytest.approx([0.9, 0.1])


def test_another_pool_has_shifts_of_its_own():
    calibration = Calibration.untaught(2)
    for _ in range(100):
        calibration.learn(parts([0.5, 0.5], [0.5, 0.5]), 1, 1.0, "a")
    a, b = (calibration.known(pool)[K + 1 :] for pool in ("a", "b"))
    assert a[1] - a[0] == pytest.approx(2 * (b[1] - b[0]))
    assert set(calibration.shifts) == {"a"}


def softmax(values):
    exp = np.exp(values - values.max())
    return exp / exp.sum()


def after_one_job(told, which, step, state, shifts):
    """State and shifts of the pool after a step down the log loss, in vectors."""
    log_weights, power, common = state[:K], state[K], state[K + 1 :]
    mixed = softmax(log_weights) @ told
    miss = softmax(power * np.log(mixed) + common + shifts) - np.eye(told.shape[1])[which]
    head_start = HEAD_START * (np.arange(K) == 0)
    weights = log_weights + step * (TRUST_RATE * np.log(told[:, which]) - FORGOTTEN * (log_weights - head_start))
    steeper = power - step * (TEMPER_RATE * miss @ np.log(mixed) + FORGOTTEN * (power - 1.0))
    of_all, of_pool = (one - step * (SHIFT_RATE * miss + FORGOTTEN * one) for one in (common, shifts))
    return np.concatenate([weights, [np.clip(steeper, LEAST_TEMPER, MOST_TEMPER)], of_all]), of_pool


@pytest.mark.parametrize("seed", range(5))
def test_a_job_moves_all_that_is_known_one_step_down_the_log_loss(seed):
    rng = np.random.default_rng(seed)
    calibration = Calibration.untaught(3)
    calibration.state[:] = rng.normal(0.5, 1.0, K + 4)
    calibration.state[K] = (0.7, 1.0, 1.4, LEAST_TEMPER, MOST_TEMPER)[seed]
    calibration.shifts["a"] = rng.normal(0.0, 0.5, 3)
    told, which, step = rng.dirichlet(np.ones(3), K), int(rng.integers(3)), 0.5
    state, shifts = after_one_job(told, which, step, calibration.state.copy(), calibration.shifts["a"].copy())
    calibration.learn(told, which, step, "a")
    assert calibration.state == pytest.approx(state, rel=1e-12)
    assert calibration.shifts["a"] == pytest.approx(shifts, rel=1e-12)


def test_rows_are_calibrated_each_by_what_was_known():
    rng = np.random.default_rng(3)
    n = 2 * K
    told, known = rng.dirichlet(np.ones(3), (n, K)), rng.normal(0.0, 1.0, (n, K + 4))
    known[:, :K] = rng.dirichlet(np.ones(K), n)
    expected = [softmax(one[K] * np.log(one[:K] @ part) + one[K + 1 :]) for part, one in zip(told, known, strict=True)]
    assert calibrated_proba(told, known) == pytest.approx(np.array(expected), rel=1e-12)


def test_what_is_settled_at_a_submission_is_known_to_it():
    told = np.full((3, K, 2), 0.5)
    submit_s, settled_s = np.array([0.0, 10.0, 20.0]), np.array([10.0, 20.5, 30.0])
    calibration = Calibration.untaught(2)
    known = calibration.replayed(
        told, submit_s, np.arange(3), settled_s, np.array([1, 1, 1]), np.zeros(3, np.int64), np.array(["a"] * 3)
    )
    fresh, once = Calibration.untaught(2), Calibration.untaught(2)
    once.learn(told[0], 1, steps_of(np.arange(3), np.zeros(3, np.int64))[0], "a")
    for found, expected in zip(known, (fresh, once, once), strict=True):
        assert np.array_equal(found, expected.known("a"))


def test_a_replay_is_one_job_after_another():
    rng = np.random.default_rng(1)
    n = 60
    told = rng.dirichlet(np.ones(3), (n, K))
    submit_s, bins, burst = np.sort(rng.uniform(0, 10 * DAY_S, n)), rng.integers(0, 3, n), rng.integers(0, 20, n)
    pool, settled_s = rng.choice(["a", "b"], n), submit_s + DAY_S
    lessons = np.arange(n)
    replayed = Calibration.untaught(3)
    known = replayed.replayed(told, submit_s, lessons, settled_s, bins, burst, pool)
    single, taught, steps = Calibration.untaught(3), 0, steps_of(lessons, burst)
    for job in range(n):
        while settled_s[taught] <= submit_s[job]:
            single.learn(told[taught], int(bins[taught]), steps[taught], str(pool[taught]))
            taught += 1
        assert np.array_equal(known[job], single.known(str(pool[job])))
    assert 0 < taught < n
    for job in range(taught, n):
        single.learn(told[job], int(bins[job]), steps[job], str(pool[job]))
    assert np.array_equal(replayed.state, single.state)


def test_jobs_teach_at_one_age_and_those_of_unseen_pools_whenever_they_ran():
    model = JobDuration(algorithm="tag-pool-width")
    model.pools_, model.trained_until_s_ = ("a",), 5 * DAY_S
    settled_s = [4 * DAY_S, 5 * DAY_S, 4 * DAY_S]
    assert model.teaches(["a", "a", "b"], settled_s).tolist() == [False, True, True]
