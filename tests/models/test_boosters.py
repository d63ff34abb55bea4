import subprocess
import sys

import numpy as np
import pytest

from jobcast.domain.errors import RegistryError
from jobcast.models.boosters import ALGORITHMS, BoosterSettings, Constant, fit_booster, read_booster
from jobcast.models.scores import roc_auc

SMALL = BoosterSettings(trees=20)
NAMES = sorted(ALGORITHMS)


def rows(n=1500, seed=0):
    """Column 0 decides with noise, column 1 is noise, column 2 is missing now and then."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = X[:, 0] + 0.5 * rng.normal(size=n) > 0.8
    X[::7, 2] = np.nan
    return X, y


@pytest.mark.parametrize("name", NAMES)
def test_learns_what_decides(name):
    X, y = rows()
    booster = fit_booster(name, X, y, settings=SMALL)
    later, truth = rows(seed=1)
    probability = booster.predict_proba(later)
    assert probability.shape == (len(later),)
    assert roc_auc(truth, probability) > 0.9
    assert booster.gain.shape == (3,)
    assert booster.gain.argmax() == 0


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_are_not_reweighted(name):
    X, y = rows(4000)
    booster = fit_booster(name, X, y, settings=SMALL)
    assert booster.predict_proba(X).mean() == pytest.approx(y.mean(), abs=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_text_other_seed_another(name):
    X, y = rows()
    first, again, other = (fit_booster(name, X, y, seed=seed, settings=SMALL).to_text() for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", NAMES)
def test_text_holds_all_of_it(name):
    X, y = rows()
    booster = fit_booster(name, X, y, settings=SMALL)
    text = booster.to_text()
    read = read_booster(name, text)
    assert np.array_equal(read.predict_proba(X), booster.predict_proba(X))
    assert np.array_equal(read.gain, booster.gain)
    assert read.to_text() == text


@pytest.mark.parametrize("name", NAMES)
def test_one_row_gets_what_it_gets_among_many(name):
    X, y = rows()
    booster = fit_booster(name, X, y, settings=SMALL)
    alone = np.concatenate([booster.predict_proba(X[i : i + 1].astype(np.float64)) for i in range(50)])
    assert np.array_equal(alone, booster.predict_proba(X)[:50])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("seen", "probability"), [(False, 1 / 12), (True, 11 / 12)])
def test_one_class_gives_a_constant(name, seen, probability):
    X = np.zeros((10, 4), np.float32)
    booster = read_booster(name, fit_booster(name, X, np.full(10, seen)).to_text())
    assert isinstance(booster, Constant)
    assert booster.predict_proba(X[:3]).tolist() == [probability] * 3
    assert booster.gain.tolist() == [0.0] * 4


def test_unknown_algorithm_names_the_known_ones():
    with pytest.raises(RegistryError, match=r"'catboost' is not known; choose from lightgbm, xgboost"):
        fit_booster("catboost", *rows(10))


def test_no_library_is_imported_before_it_is_needed():
    code = (
        "import sys, jobcast.models.will_jobs_arrive, jobcast.models.predictors, jobcast.models.evaluation\n"
        "print(sorted({'lightgbm', 'xgboost', 'sklearn', 'mlflow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
