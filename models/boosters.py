"""Gradient-boosted trees behind one small protocol: probabilities of arrivals from a plain matrix.

What works on this problem is *small* and *regularised*: rows of neighbouring instants overlap, so that the
defaults of either library overfit (they lose to "any job in the last window"). Classes are not reweighted,
so that the probabilities come out calibrated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import RegistryError

Matrix = NDArray[np.float32]
TRAINING_THREADS = 2
"""Fixed, since sums of gradients depend on how rows are shared out among threads."""
SERVING_THREADS = 1
"""A forecast is a few rows: waking other threads costs more than the trees do."""
ROWS_PER_SMALLEST_LEAF = 50
"""On little data a leaf may hold one row in so many, rather than `min_rows_leaf`."""
MOST_BINS = 255
CONSTANT = "constant"
"""First word of the text of a model that was trained on one class."""


@dataclass(frozen=True, slots=True)
class BoosterSettings:
    """Size and regularisation of the trees, the same words for every library.

    Attributes
    ----------
    trees, leaves, learning_rate : size of the ensemble, at most `leaves` leaves a tree
    min_rows_leaf : rows that a leaf must hold, scaled down on little data (see `smallest_leaf`)
    l2 : ridge on the leaves' values
    column_share : share of the columns that a tree may look at, drawn by the seed
    """

    trees: int = 180
    leaves: int = 10
    learning_rate: float = 0.04
    min_rows_leaf: int = 300
    l2: float = 20.0
    column_share: float = 0.8

    def smallest_leaf(self, rows: int) -> int:
        """Rows that a leaf must hold when `rows` rows train.

        >>> [BoosterSettings().smallest_leaf(rows) for rows in (10, 5_000, 100_000)]
        [1, 100, 300]
        """
        return max(1, min(self.min_rows_leaf, rows // ROWS_PER_SMALLEST_LEAF))


class Booster(Protocol):
    """A binary classifier on plain matrices whose text holds all of it."""

    suffix: ClassVar[str]

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Train on rows of both classes: X of shape (n_rows, n_features), y of shape (n_rows,)."""
        ...

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Probabilities of the class True, shape (n_rows,)."""
        ...

    @property
    def gain(self) -> NDArray[np.float64]:
        """Importance of each column: what its splits took off the loss, shape (n_features,)."""
        ...

    def to_text(self) -> str:
        """The model in its library's own text format."""
        ...

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `to_text` wrote."""
        ...


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
        """Train; see `Booster`."""
        import lightgbm

        data = lightgbm.Dataset(_plain(X), label=y.astype(np.float32), params={"verbosity": -1})
        self.model_ = lightgbm.train(self._parameters(len(X)), data, num_boost_round=self.settings.trees)
        return self

    def _parameters(self, rows: int) -> dict[str, Any]:
        return {
            "objective": "binary",
            "num_leaves": self.settings.leaves,
            "learning_rate": self.settings.learning_rate,
            "min_data_in_leaf": self.settings.smallest_leaf(rows),
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
        """Probabilities; see `Booster`."""
        return np.asarray(self.model_.predict(_plain(X), num_threads=SERVING_THREADS), dtype=np.float64)

    @property
    def gain(self) -> NDArray[np.float64]:
        """Total gain by column."""
        return np.asarray(self.model_.feature_importance(importance_type="gain"), dtype=np.float64)

    def to_text(self) -> str:
        """The model string."""
        return str(self.model_.model_to_string())

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read a model string."""
        import lightgbm

        booster = cls()
        booster.model_ = lightgbm.Booster(model_str=text)
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
        """Train; see `Booster`."""
        import xgboost

        data = xgboost.QuantileDMatrix(
            _plain(X), label=y.astype(np.float32), max_bin=MOST_BINS, nthread=TRAINING_THREADS
        )
        self.model_ = xgboost.train(
            self._parameters(len(X), float(y.mean())), data, num_boost_round=self.settings.trees
        )
        self.model_.set_param({"nthread": SERVING_THREADS})
        return self

    def _parameters(self, rows: int, base_rate: float) -> dict[str, Any]:
        # A leaf is bounded by its sum of p (1 - p), which is this much for `smallest_leaf` rows of average odds.
        weight = self.settings.smallest_leaf(rows) * base_rate * (1 - base_rate)
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
        """Probabilities; see `Booster`."""
        return np.asarray(self.model_.inplace_predict(_plain(X)), dtype=np.float64)

    @property
    def gain(self) -> NDArray[np.float64]:
        """Total gain by column."""
        by_name = self.model_.get_score(importance_type="total_gain")
        return np.array([by_name.get(f"f{column}", 0.0) for column in range(self.model_.num_features())])

    def to_text(self) -> str:
        """The model's JSON."""
        return bytes(self.model_.save_raw(raw_format="json")).decode()

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read a model's JSON."""
        import xgboost

        booster = cls()
        booster.model_ = xgboost.Booster(model_file=bytearray(text.encode()))
        booster.model_.set_param({"nthread": SERVING_THREADS})
        return booster


@dataclass(slots=True)
class Constant:
    """The same probability for every row: what is left to say when only one class has been seen."""

    suffix: ClassVar[str] = "txt"
    n_features: int = 0
    probability: float = 0.5

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Laplace's rule of succession, (hits + 1) / (rows + 2): what was never seen is not impossible.

        >>> Constant().fit(np.zeros((8, 1), np.float32), np.zeros(8, bool)).probability
        0.1
        """
        self.n_features = X.shape[1]
        self.probability = float((y.sum() + 1) / (len(y) + 2))
        return self

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Probabilities; see `Booster`."""
        return np.full(len(X), self.probability)

    @property
    def gain(self) -> NDArray[np.float64]:
        """No column matters."""
        return np.zeros(self.n_features)

    def to_text(self) -> str:
        """One line."""
        return f"{CONSTANT} {self.n_features} {self.probability!r}\n"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read that line."""
        _, n_features, probability = text.split()
        return cls(int(n_features), float(probability))


ALGORITHMS: Mapping[str, type[LightGbm] | type[XgBoost]] = {"lightgbm": LightGbm, "xgboost": XgBoost}
"""Libraries by the name that users give."""


def algorithm_named(name: str) -> type[LightGbm] | type[XgBoost]:
    """Library of a name.

    Raises
    ------
    RegistryError
        There is none of that name.
    """
    if name not in ALGORITHMS:
        raise RegistryError(f"algorithm {name!r} is not known; choose from {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def fit_booster(
    name: str, X: Matrix, y: NDArray[np.bool_], seed: int = 0, settings: BoosterSettings | None = None
) -> Booster:
    """Train a booster, or a constant where y holds one class only.

    Parameters
    ----------
    name : key of `ALGORITHMS`
    X : shape (n_rows, n_features); NaN is a missing value
    y : shape (n_rows,)
    seed : of the columns that each tree may look at
    settings : size and regularisation; None takes the defaults
    """
    algorithm = algorithm_named(name)
    if y.all() or not y.any():
        return Constant().fit(X, y)
    return algorithm(settings or BoosterSettings(), seed).fit(X, y)


def read_booster(name: str, text: str) -> Booster:
    """Booster from what `to_text` wrote."""
    algorithm = algorithm_named(name)
    if text.startswith(f"{CONSTANT} "):
        return Constant.from_text(text)
    return algorithm.from_text(text)


def _plain(X: NDArray[Any]) -> Matrix:
    """Rows as both libraries read them: float32, so that batch and live rows round alike."""
    return np.ascontiguousarray(X, dtype=np.float32)
