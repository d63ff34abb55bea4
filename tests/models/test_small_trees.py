import lightgbm
import numpy as np
import pytest

from jobcast.models.compiled_trees import SmallTrees


@pytest.mark.parametrize("objective", ["quantile", "binary"])
@pytest.mark.parametrize("leaves", [2, 4, 10])
def test_sums_are_lightgbms_raw_scores(objective, leaves):
    rng = np.random.default_rng(leaves)
    X = rng.normal(size=(2000, 6)).astype(np.float32)
    X[:, 2] = rng.integers(0, 4, 2000)
    y = (X[:, 0] + X[:, 2] > 1) if objective == "binary" else X[:, 0] * X[:, 1] + X[:, 2]
    parameters = {"objective": objective, "num_leaves": leaves, "alpha": 0.9, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, label=y.astype(np.float32)), num_boost_round=40)
    later = rng.normal(size=(500, 6)).astype(np.float32)
    later[:, 2] = rng.integers(-1, 6, 500)
    assert np.array_equal(SmallTrees.of(booster)(later), booster.predict(later, raw_score=True))


def test_a_tree_without_a_split_is_its_leaf():
    X = np.zeros((40, 2), np.float32)
    booster = lightgbm.train(
        {"objective": "regression", "verbosity": -1}, lightgbm.Dataset(X, label=np.full(40, 3.0)), num_boost_round=2
    )
    assert SmallTrees.of(booster)(X[:3]) == pytest.approx(booster.predict(X[:3]))
