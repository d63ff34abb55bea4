import subprocess
import sys

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

from jobcast.domain.errors import RegistryError
from jobcast.models.algorithms import (
    ALGORITHMS,
    MEMBERS,
    AverageSettings,
    fit_classifier,
    mean_of_logits,
    read_classifier,
)
from jobcast.models.classifier import Constant, plain
from jobcast.models.classifiers import BoosterSettings, ExtraTrees, ForestSettings, LogisticSettings
from jobcast.models.scores import roc_auc
from tests.shared import refused

FEW = BoosterSettings(trees=20)
GROVE = ForestSettings(trees=15)
SMALL = {
    "lightgbm": FEW,
    "xgboost": FEW,
    "logistic": LogisticSettings(),
    "extra-trees": GROVE,
    "average": AverageSettings(lightgbm=FEW, extra_trees=GROVE),
}
FILES = {
    "lightgbm": ["txt"],
    "xgboost": ["json"],
    "logistic": ["json"],
    "extra-trees": ["npz"],
    "average": ["lightgbm.txt", "logistic.json", "extra-trees.npz"],
}
NAMES = list(ALGORITHMS)


def rows(n=1500, seed=0):
    """Column 0 decides with noise, column 1 is noise, column 2 is missing now and then."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = X[:, 0] + 0.5 * rng.normal(size=n) > 0.8
    X[::7, 2] = np.nan
    return X, y


def fitted(name, X, y, seed=0):
    return fit_classifier(name, X, y, seed, SMALL[name])


@pytest.fixture(scope="module", params=NAMES)
def trained(request):
    """Each algorithm on the same rows: its name, and the classifier."""
    return request.param, fitted(request.param, *rows())


def written(classifier, folder, stem="5min"):
    folder.mkdir(exist_ok=True)
    for file, content in classifier.files(stem).items():
        (folder / file).write_bytes(content)
    return folder


def test_learns_what_decides(trained):
    _, classifier = trained
    later, truth = rows(seed=1)
    probability = classifier.predict_proba(later)
    assert probability.shape == (len(later),)
    assert roc_auc(truth, probability) > 0.9
    assert classifier.gain.shape == (3,)
    assert classifier.gain.argmax() == 0


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_are_not_reweighted(name):
    X, y = rows(4000)
    assert fitted(name, X, y).predict_proba(X).mean() == pytest.approx(y.mean(), abs=0.03)


def test_same_seed_same_bytes_and_another_draws_others(trained):
    name, classifier = trained
    assert fitted(name, *rows()).files("5min") == classifier.files("5min")
    assert (fitted(name, *rows(), seed=2).files("5min") == classifier.files("5min")) == (name == "logistic")


def test_files_hold_all_of_it(trained, tmp_path):
    (name, classifier), (X, _) = trained, rows()
    read = read_classifier(name, written(classifier, tmp_path), "5min")
    assert set(classifier.files("5min")) == {f"5min.{ending}" for ending in FILES[name]}
    assert np.array_equal(read.predict_proba(X), classifier.predict_proba(X))
    assert np.array_equal(read.gain, classifier.gain)
    assert read.files("5min") == classifier.files("5min")


def test_one_row_gets_what_it_gets_among_many(trained):
    (_, classifier), (X, _) = trained, rows()
    alone = np.concatenate([classifier.predict_proba(X[i : i + 1].astype(np.float64)) for i in range(50)])
    assert np.array_equal(alone, classifier.predict_proba(X)[:50])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("seen", "probability"), [(False, 1 / 12), (True, 11 / 12)])
def test_one_class_gives_a_constant(name, seen, probability, tmp_path):
    X = np.zeros((10, 4), np.float32)
    folder = written(fit_classifier(name, X, np.full(10, seen)), tmp_path)
    read = read_classifier(name, folder, "5min")
    assert isinstance(read, Constant)
    assert read.predict_proba(X[:3]).tolist() == [probability] * 3
    assert read.gain.tolist() == [0.0] * 4


@pytest.mark.parametrize("name", NAMES)
def test_columns_that_say_nothing_and_few_rows_do_no_harm(name):
    X = np.zeros((12, 3), np.float32)
    X[:, 1] = np.nan
    X[:, 2] = np.arange(12)
    probability = fitted(name, X, np.arange(12) > 5).predict_proba(X)
    assert np.isfinite(probability).all()
    assert ((probability >= 0) & (probability <= 1)).all()


def test_the_flat_forest_is_scikit_learns():
    X, y = rows()
    mine = ExtraTrees(ForestSettings(trees=12, min_rows_leaf=10), seed=3).fit(X, y)
    theirs = ExtraTreesClassifier(12, min_samples_leaf=10, max_features=0.5, random_state=3).fit(plain(X), y)
    later, _ = rows(seed=2)
    assert np.allclose(mine.predict_proba(later), theirs.predict_proba(later)[:, 1], rtol=0, atol=1e-12)


def test_the_logistic_answers_what_it_was_fitted_to():
    """The weights are told for unscaled terms: a column that is centred and 1 wide, y from a known line."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 1)).astype(np.float32)
    truth = 1 / (1 + np.exp(-(2.0 * np.arcsinh(X[:, 0]) - 0.5)))
    classifier = fit_classifier("logistic", X, rng.random(len(X)) < truth, settings=LogisticSettings(10.0))
    assert np.abs(classifier.predict_proba(X) - truth).mean() < 0.01


def test_the_average_is_that_of_its_members(tmp_path):
    X, y = rows()
    average = fitted("average", X, y)
    alone = [fitted(name, X, y) for name in MEMBERS]
    expected = mean_of_logits([member.predict_proba(X) for member in alone])
    assert np.array_equal(average.predict_proba(X), expected)
    for name, member in zip(MEMBERS, alone, strict=True):
        assert set(member.files(f"5min.{name}").items()) <= set(average.files("5min").items())


def test_unknown_algorithm_names_the_known_ones():
    with pytest.raises(RegistryError, match=r"'catboost' is not known; choose from lightgbm, xgboost, logistic"):
        fit_classifier("catboost", *rows(10))


def test_settings_of_another_algorithm_are_refused():
    with pytest.raises(RegistryError, match="logistic takes LogisticSettings, got BoosterSettings"):
        fit_classifier("logistic", *rows(10), settings=FEW)


def test_a_missing_file_is_named(tmp_path):
    refused(RegistryError, r"5min\.npz: cannot be read", read_classifier, "extra-trees", tmp_path, "5min")


def test_no_library_is_imported_before_it_is_needed():
    code = (
        "import sys, jobcast.models.will_jobs_arrive, jobcast.models.predictors, jobcast.models.evaluation\n"
        "import jobcast.models.arrival_selection, jobcast.models.arrival_selection\n"
        "print(sorted({'lightgbm', 'xgboost', 'sklearn', 'optuna', 'numba', 'mlflow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
