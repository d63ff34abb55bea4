from sklearn.utils.estimator_checks import parametrize_with_checks

from jobcast.models.arrival_classifier import ArrivalClassifier
from jobcast.models.boosters import ALGORITHMS, BoosterSettings

FEW_TREES = BoosterSettings(trees=30)


@parametrize_with_checks([ArrivalClassifier(name, settings=FEW_TREES) for name in ALGORITHMS])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
