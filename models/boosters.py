"""Gradient-boosted trees: LightGBM and XGBoost, small and regularised.

What works on this problem is *small* and *regularised*: rows of neighbouring instants overlap, so that the
defaults of either library overfit (they lose to "any job in the last window"). Classes are not reweighted,
so that the probabilities come out calibrated.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.models.classifier import TRAINING_THREADS, Matrix, ReadFile, plain, smallest_leaf
from jobcast.models.metadata import booster_of

SERVING_THREADS = 1
"""A forecast is a few rows: waking other threads costs more than the trees do."""
MOST_BINS = 255


@dataclass(frozen=True, slots=True)
class BoosterSettings:
    """Size and regularisation of the trees, the same words for every library.

    Attributes
    ----------
    trees, leaves, learning_rate : size of the ensemble, at most `leaves` leaves a tree
    min_rows_leaf : rows that a leaf must hold, scaled down on little data (see `classifier.smallest_leaf`)
    l2 : ridge on the leaves' values
    column_share : share of the columns that a tree may look at, drawn by the seed
    """

    trees: int = 180
    leaves: int = 10
    learning_rate: float = 0.04
    min_rows_leaf: int = 300
    l2: float = 20.0
    column_share: float = 0.8


@dataclass(slots=True)
class LightGbm:
    """LightGBM, saved as its model string [1].

    References
    ----------
    .. [1] Ke et al., LightGBM: A Highly Efficient Gradient Boosting Decision Tree, NeurIPS 2017.
    """

    suffix: ClassVar[str] = "txt"
    settings: BoosterSettings = field(default_factory=BoosterSettings)
    seed: int = 0
    model_: Any = field(default=None, init=False)

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Train; see `Classifier`."""
        import lightgbm

        data = lightgbm.Dataset(plain(X), label=y.astype(np.float32), params={"verbosity": -1})
        self.model_ = lightgbm.train(self._parameters(len(X)), data, num_boost_round=self.settings.trees)
        return self

    def _parameters(self, rows: int) -> dict[str, Any]:
        return {
            "objective": "binary",
            "num_leaves": self.settings.leaves,
            "learning_rate": self.settings.learning_rate,
            "min_data_in_leaf": smallest_leaf(self.settings.min_rows_leaf, rows),
            "lambda_l2": self.settings.l2,
            "feature_fraction": self.settings.column_share,
            "max_bin": MOST_BINS,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": TRAINING_THREADS,
            "verbosity": -1,
        }

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Probabilities; see `Classifier`."""
        return np.asarray(self.model_.predict(plain(X), num_threads=SERVING_THREADS), dtype=np.float64)

    @property
    def gain(self) -> NDArray[np.float64]:
        """Total gain by column."""
        return np.asarray(self.model_.feature_importance(importance_type="gain"), dtype=np.float64)

    def files(self, stem: str) -> dict[str, bytes]:
        """The model string."""
        return {f"{stem}.{self.suffix}": str(self.model_.model_to_string()).encode()}

    @classmethod
    def from_files(cls, stem: str, read: ReadFile) -> Self:
        """Read a model string."""

        booster = cls()
        booster.model_ = booster_of(read(f"{stem}.{cls.suffix}").decode())
        return booster


@dataclass(slots=True)
class XgBoost:
    """XGBoost, saved as its JSON [1].

    References
    ----------
    .. [1] Chen and Guestrin, XGBoost: A Scalable Tree Boosting System, KDD 2016.
    """

    suffix: ClassVar[str] = "json"
    settings: BoosterSettings = field(default_factory=BoosterSettings)
    seed: int = 0
    model_: Any = field(default=None, init=False)

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Train; see `Classifier`."""
        import xgboost

        data = xgboost.QuantileDMatrix(
            plain(X), label=y.astype(np.float32), max_bin=MOST_BINS, nthread=TRAINING_THREADS
        )
        self.model_ = xgboost.train(
            self._parameters(len(X), float(y.mean())), data, num_boost_round=self.settings.trees
        )
        self.model_.set_param({"nthread": SERVING_THREADS})
        return self

    def _parameters(self, rows: int, base_rate: float) -> dict[str, Any]:
        # A leaf is bounded by its sum of p (1 - p), which is this much for `smallest_leaf` rows of average odds.
        weight = smallest_leaf(self.settings.min_rows_leaf, rows) * base_rate * (1 - base_rate)
        return {
            "objective": "binary:logistic",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": self.settings.leaves,
            "learning_rate": self.settings.learning_rate,
            "min_child_weight": weight,
            "reg_lambda": self.settings.l2,
            "colsample_bytree": self.settings.column_share,
            "max_bin": MOST_BINS,
            "seed": self.seed,
            "nthread": TRAINING_THREADS,
            "verbosity": 0,
        }

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Probabilities; see `Classifier`."""
        return np.asarray(self.model_.inplace_predict(plain(X)), dtype=np.float64)

    @property
    def gain(self) -> NDArray[np.float64]:
        """Total gain by column."""
        by_name = self.model_.get_score(importance_type="total_gain")
        return np.array([by_name.get(f"f{column}", 0.0) for column in range(self.model_.num_features())])

    def files(self, stem: str) -> dict[str, bytes]:
        """The model's JSON."""
        return {f"{stem}.{self.suffix}": bytes(self.model_.save_raw(raw_format="json"))}

    @classmethod
    def from_files(cls, stem: str, read: ReadFile) -> Self:
        """Read a model's JSON."""
        import xgboost

        booster = cls()
        booster.model_ = xgboost.Booster(model_file=bytearray(read(f"{stem}.{cls.suffix}")))
        booster.model_.set_param({"nthread": SERVING_THREADS})
        return booster
