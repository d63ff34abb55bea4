"""Weights that learn from changes of themselves."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'jobcast[rl]'")

from jobcast.models.scheduling.learner import Explorer

SPREADS = {"a": np.array([[0.1, 0.0]]), "b": np.array([0.5, 0.2])}
GOAL = np.array([0.3, 0.0, -1.0, 0.4])


def value(arrays):
    return -np.square(np.concatenate([arrays["a"].ravel(), arrays["b"]]) - GOAL).sum()


def learned(explorer, steps, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        changes = explorer.changes(rng, 6)
        gains = np.array([value(explorer.changed(one)) - value(explorer.changed(-one)) for one in changes])
        explorer.learn(changes, gains, 0.1)
    return explorer


def test_weights_move_to_where_the_value_is_highest_and_what_is_not_learnt_stays():
    explorer = Explorer(SPREADS)
    assert value(explorer.arrays()) == -np.square(GOAL).sum()
    found = learned(explorer, 200).arrays()
    assert found["a"].shape == (1, 2)
    assert found["a"][0, 1] == 0.0
    assert value(found) > -0.02


def test_the_unit_of_gains_does_not_count():
    found = []
    for unit in (1.0, 1e-3):
        explorer = Explorer({"a": np.ones(2)})
        explorer.learn(np.array([[1.0, 0.5], [-1.0, 1.0]]), unit * np.array([1.0, -0.5]), 1.0)
        found.append(explorer.arrays()["a"])
    np.testing.assert_allclose(*found, rtol=1e-6)
    assert found[0][0] == pytest.approx(1.0, abs=1e-6)  # Adam's first step is of the rate


def test_no_gains_change_nothing():
    explorer = Explorer(SPREADS)
    explorer.learn(explorer.changes(np.random.default_rng(0), 3), np.zeros(3), 0.1)
    assert not any(values.any() for values in explorer.arrays().values())


def test_learning_goes_on_as_if_it_had_not_stopped(tmp_path):
    whole, first, second = (learned(Explorer(SPREADS), 5) for _ in range(3))
    learned(whole, 5, seed=1)
    first.save(tmp_path / "state")
    second.restore(tmp_path / "state")
    for name, values in learned(second, 5, seed=1).arrays().items():
        np.testing.assert_array_equal(values, whole.arrays()[name])


def test_weights_are_taken_over():
    explorer = Explorer(SPREADS)
    explorer.assign({"a": np.array([[0.2, 0.0]]), "b": np.array([1.0, -1.0])})
    assert explorer.arrays()["b"] == pytest.approx([1.0, -1.0])
    assert explorer.arrays()["a"].ravel() == pytest.approx([0.2, 0.0])
