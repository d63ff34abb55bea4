"""Learned schedulers: choices and their rows, weights of the reward, folders, and scores as MLflow serves them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.scheduling.learner import BETAS, HIGHEST, LOWEST, VARIATION, search_betas
from jobcast.models.scheduling.policy import (
    DevicePolicy,
    Measured,
    MlfPolicy,
    ServedSchedulingPolicy,
    Training,
    joined,
    picks_of,
)
from jobcast.schedulers.tasks.features import JOB_FEATURES
from jobcast.schedulers.tasks.network import networks_of, scores_of
from tests.schedulers.tasks.test_task_network import arrays

MEASURED = Measured(20, {"mean_jct": -0.2}, {"mean_jct": -0.3}, {"mean_jct": -0.1})
TRAINING = Training(seed=3, iterations=40, betas=(0.5, 0.55, 0.25, 0.15, 0.15), servers=20, jobs=70)


def policy(kind=MlfPolicy, seed=0, **changes):
    rng = np.random.default_rng(seed)
    shapes = {"first": (3, 2), "first_bias": 2, "second": (2, 2), "second_bias": 2, "last": 2}
    arrays = {f"jobs.{name}": rng.normal(size=shape) for name, shape in shapes.items()}
    given = {"measured": MEASURED, "better": True, "from_s": 10.0, "until_s": 20.0} | changes
    return kind().set(arrays, {"jobs": ("a", "b", "c"), "hosts": ()}, TRAINING, **given)


@pytest.mark.parametrize("kind", [MlfPolicy, DevicePolicy])
@pytest.mark.parametrize("changes", [{}, {"measured": None, "better": False}])
def test_what_is_saved_is_loaded(tmp_path, kind, changes):
    saved = policy(kind, **changes)
    saved.save(tmp_path)
    loaded = kind.load(tmp_path)
    for name, values in saved.arrays_.items():
        np.testing.assert_array_equal(loaded.arrays_[name], values)
    for name in ("columns_", "training_", "measured_", "better_", "trained_from_s_", "trained_until_s_"):
        assert getattr(loaded, name) == getattr(saved, name)


def drawn(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, 2)) for size in sizes], [int(rng.integers(size)) for size in sizes]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.data())
def test_taking_choices_takes_their_rows_along(sizes, data):
    rows, chosen = drawn(sizes)
    which = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=8))
    taken = picks_of(rows, chosen, 2).take(np.array(which, dtype=np.int64))
    assert taken.chosen.tolist() == [chosen[k] for k in which]
    for place, k in enumerate(which):
        np.testing.assert_array_equal(taken.rows[taken.begins[place] : taken.begins[place + 1]], rows[k])


def test_joined_choices_follow_one_another():
    (first, a), (second, b) = drawn([2, 3]), drawn([1], seed=1)
    both = joined([picks_of(first, a, 2), picks_of(second, b, 2)], 2)
    whole = picks_of(first + second, a + b, 2)
    np.testing.assert_array_equal(both.rows, whole.rows)
    assert both.begins.tolist() == whole.begins.tolist() == [0, 2, 5, 6]
    assert both.chosen.tolist() == a + b


def test_no_choices_have_no_rows():
    assert len(joined([], 3)) == len(picks_of([], [], 3)) == 0
    assert joined([], 3).rows.shape == (0, 3)


def near(goal):
    return lambda betas: -float(np.square(np.subtract(betas, goal)).sum())


def test_the_search_begins_with_the_papers_weights_and_ends_no_worse():
    value_of = near((0.9, 0.2, 0.3, 0.5, 0.1))
    tried = search_betas(value_of, 10, seed=1)
    assert tried[0].betas == BETAS
    assert len(tried) == 10 + len(BETAS)
    assert all(LOWEST <= beta <= HIGHEST for each in tried for beta in each.betas)
    assert max(each.value for each in tried) > tried[0].value


def test_small_changes_vary_one_weight_of_the_best_by_a_tenth():
    tried = search_betas(near(BETAS), 3, seed=0)
    for number, each in enumerate(tried[3:]):
        changed = np.flatnonzero(~np.isclose(each.betas, BETAS))
        assert changed.tolist() == [number]
        assert np.isclose(abs(each.betas[number] / BETAS[number] - 1.0), VARIATION)


def test_equal_seeds_try_the_same():
    first, second = (search_betas(near((0.3,) * 5), 4, seed=2) for _ in range(2))
    assert first == second


def test_served_scores_are_those_that_the_scheduler_orders_by():
    training = Training(seed=0, iterations=0, betas=(1.0,), servers=1, jobs=1)
    policy = MlfPolicy().set(arrays(), {"jobs": JOB_FEATURES, "hosts": ()}, training)
    served = ServedSchedulingPolicy(policy)
    frame = served.example()
    frame.loc[1, "remaining"] = 0.7
    told = served.predict(frame)
    expected = scores_of(networks_of(arrays()).jobs, frame.to_numpy())
    np.testing.assert_allclose(told["score"], expected)
    assert told["probability"].sum() == pytest.approx(1.0)
    assert np.isclose(np.log(told["probability"][1] / told["probability"][0]), expected[1] - expected[0])
