import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from jobcast.models.algorithms import ALGORITHMS
from jobcast.models.arrival_classifier import ArrivalClassifier
from jobcast.models.average import AverageSettings
from jobcast.models.boosters import BoosterSettings
from jobcast.models.extra_trees import ForestSettings

FEW_TREES = BoosterSettings(trees=30)
GROVE = ForestSettings(trees=10)
SMALL = {
    "lightgbm": FEW_TREES,
    "xgboost": FEW_TREES,
    "logistic": None,
    "extra-trees": GROVE,
    "average": AverageSettings(lightgbm=FEW_TREES, extra_trees=GROVE),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([ArrivalClassifier(name, settings=SMALL[name]) for name in ALGORITHMS])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
