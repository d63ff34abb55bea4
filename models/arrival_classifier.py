"""The algorithms of arrivals as a scikit-learn classifier on a plain matrix, for use outside the predictors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from jobcast.models.algorithms import Settings, fit_classifier


class ArrivalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Binary classifier: one of the algorithms of arrivals; see `algorithms`.

    Parameters
    ----------
    algorithm : key of `algorithms.ALGORITHMS`
    seed : of all draws
    settings : of the algorithm; None takes its defaults

    Attributes
    ----------
    classes_ : (n_classes,) at most two labels, ascending
    classifier_ : what was trained, or a constant where y held one class
    n_features_in_ : columns of X
    """

    def __init__(self, algorithm: str = "lightgbm", seed: int = 0, settings: Settings | None = None):
        self.algorithm = algorithm
        self.seed = seed
        self.settings = settings

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any) -> "ArrivalClassifier":
        """Train on X of shape (n_rows, n_features), NaN for missing values, and y of shape (n_rows,)."""
        X, y = validate_data(self, X, y, dtype=np.float32, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass; "
                f"y holds {len(self.classes_)} classes."
            )
        self.classifier_ = fit_classifier(self.algorithm, X, codes.astype(bool), self.seed, self.settings)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of `classes_`, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, ensure_all_finite="allow-nan", reset=False)
        if len(self.classes_) == 1:
            return np.ones((len(X), 1))
        later = self.classifier_.predict_proba(X)
        return np.column_stack([1.0 - later, later])

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier label of each row, shape (n_rows,)."""
        likelier = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[likelier]
        return labels
