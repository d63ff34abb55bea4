import lightgbm
import numpy as np
import pytest

from jobcast.models.compiled_trees import MOST_LEAVES, SmallTrees, rounded_down, sigmoids
from jobcast.models.load_quantile import LEVELS, NOTHING, WHOLE, quantile_of
from tests.shared import refused


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 17])
def test_a_row_gets_the_same_bits_alone_as_among_others(rows):
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(500, 4)).astype(np.float32)
    data = lightgbm.Dataset(X, label=(X[:, 0] * X[:, 1] > 0).astype(np.float32))
    trees = SmallTrees.of(lightgbm.train({"objective": "binary", "num_leaves": 8, "verbosity": -1}, data, 30))
    later = rng.normal(size=(rows, 4)).astype(np.float32)
    later[rows // 2, 1] = np.nan
    assert np.array_equal(trees(later)[0], np.concatenate([trees(row[None])[0] for row in later]))


def test_quantiles_of_a_load_are_numpys():
    """As array expressions would give them, for shares and amounts that are no numbers too."""
    rng = np.random.default_rng(3)
    share, amounts = rng.random(4000), np.sort(np.abs(rng.normal(1.0, 2.0, (4000, len(LEVELS)))), axis=1)
    share[:4], amounts[4:6], amounts[6:8, 4] = (0.0, 1.0, np.nan, 1e-12), 800.0, np.nan
    known = np.asarray(LEVELS)
    for level in (0.5, 0.9, 0.95, 0.98, 0.999):
        within = (level - (1.0 - share)) / np.maximum(share, NOTHING)
        left = np.clip(np.searchsorted(known, within, side="right") - 1, 0, len(LEVELS) - 2)
        weight = np.clip((within - known[left]) / (known[left + 1] - known[left]), 0.0, 1.0)
        rows = np.arange(len(share))
        logs = (1.0 - weight) * amounts[rows, left] + weight * amounts[rows, left + 1]
        with np.errstate(over="ignore"):
            expected = np.where(within <= 0.0, 0.0, np.floor(np.expm1(logs) + WHOLE))
        assert np.array_equal(quantile_of(share, amounts, level), expected, equal_nan=True)


@pytest.mark.parametrize("objective", ["quantile", "binary"])
@pytest.mark.parametrize("leaves", [2, 4, 10, 32])
def test_sums_are_lightgbms_raw_scores(objective, leaves):
    rng = np.random.default_rng(leaves)
    X = rng.normal(size=(2000, 6)).astype(np.float32)
    X[:, 2] = rng.integers(0, 4, 2000)
    y = (X[:, 0] + X[:, 2] > 1) if objective == "binary" else X[:, 0] * X[:, 1] + X[:, 2]
    parameters = {"objective": objective, "num_leaves": leaves, "alpha": 0.9, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, label=y.astype(np.float32)), num_boost_round=40)
    later = rng.normal(size=(500, 6)).astype(np.float32)
    later[:, 2] = rng.integers(-1, 6, 500)
    assert np.array_equal(SmallTrees.of(booster)(later)[0], booster.predict(later, raw_score=True))


def test_a_tree_without_a_split_is_its_leaf():
    X = np.zeros((40, 2), np.float32)
    booster = lightgbm.train(
        {"objective": "regression", "verbosity": -1}, lightgbm.Dataset(X, label=np.full(40, 3.0)), num_boost_round=2
    )
    assert SmallTrees.of(booster)(X[:3])[0] == pytest.approx(booster.predict(X[:3]))


@pytest.mark.parametrize("missing_in_training", [True, False])
def test_probabilities_are_lightgbms_own_where_values_are_missing_too(missing_in_training):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 4)).astype(np.float32)
    y = X[:, 0] + X[:, 1] > 0.3
    if missing_in_training:
        X[::3, 0] = np.nan
    parameters = {"objective": "binary", "num_leaves": 10, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, label=y.astype(np.float32)), num_boost_round=40)
    later = rng.normal(size=(400, 4)).astype(np.float32)
    later[::5, 0], later[::7, 2] = np.nan, np.nan
    trees = SmallTrees.of(booster)
    assert np.array_equal(sigmoids(trees(later)[0]), booster.predict(later))


def test_several_boosters_in_one_call():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(500, 3)).astype(np.float32)
    parameters = {"objective": "regression", "num_leaves": 4, "verbosity": -1, "num_threads": 1}
    boosters = [
        lightgbm.train(parameters, lightgbm.Dataset(X, label=y), num_boost_round=rounds)
        for y, rounds in ((X[:, 0], 5), (X[:, 1] ** 2, 20))
    ]
    told = SmallTrees.of(boosters[0], None, boosters[1])(X)
    assert np.array_equal(told[0], boosters[0].predict(X))
    assert not told[1].any()
    assert np.array_equal(told[2], boosters[1].predict(X))


def test_a_tree_of_too_many_leaves_is_refused():
    X = np.arange(2000, dtype=np.float32)[:, None]
    parameters = {"objective": "regression", "num_leaves": 40, "min_data_in_leaf": 1, "verbosity": -1}
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, label=np.sin(X[:, 0])), num_boost_round=1)
    refused(ValueError, f"at most {MOST_LEAVES} are read", SmallTrees.of, booster)


def test_thresholds_in_single_precision_part_single_numbers_alike():
    thresholds = np.random.default_rng(7).normal(size=2000)
    single = rounded_down(thresholds)
    for x in (single, np.nextafter(single, np.float32(np.inf)), np.nextafter(single, np.float32(-np.inf))):
        assert np.array_equal(x <= single, x.astype(np.float64) <= thresholds)
