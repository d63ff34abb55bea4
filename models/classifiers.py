"""The algorithms of arrivals: logistic regression, extremely randomised trees, gradient-boosted trees.

Logistic regression on robustly scaled columns, saved as JSON numbers.

Extremely randomised trees, saved and served as flat arrays.

Gradient-boosted trees: LightGBM and XGBoost, small and regularised.

What works on this problem is *small* and *regularised*: rows of neighbouring instants overlap, so that the
defaults of either library overfit (they lose to "any job in the last window"). Classes are not reweighted,
so that the probabilities come out calibrated.
"""

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.memory import need_memory
from jobcast.models.classifier import TRAINING_THREADS, Matrix, ReadFile, from_logit, json_bytes, plain, smallest_leaf
from jobcast.models.metadata import REMEDY, booster_data, booster_of, trained_booster

if TYPE_CHECKING:
    from jobcast.models.compiled_trees import SmallTrees

QUARTILES_TO_DEVIATION = 1.349
"""Distance between the quartiles of a normal distribution, in standard deviations."""
MOST_ITERATIONS = 500
KNOTS = (5.0, 25.0, 50.0, 75.0, 95.0)
"""Percentiles of a column at which its line may bend."""
_LINEAR_ARRAYS = ("center", "scale", "knot", "weight")
"""Arrays in the order in which the kernel takes them."""


@dataclass(frozen=True, slots=True)
class LogisticSettings:
    """Regularisation.

    Attributes
    ----------
    inverse_l2 : scikit-learn's C; a smaller one shrinks the weights more
    """

    inverse_l2: float = 0.005


@dataclass(slots=True)
class Logistic:
    """scikit-learn's logistic regression on columns that were scaled robustly, bent and given knots.

    A column enters as z = asinh((x - median) / spread), which is a logarithm far from the median, and as
    max(0, z - knot) for knots at `KNOTS` of its values. The spread is that of the quartiles, else of the values that
    are not the median. A missing value counts as the median. Such a sum knows no interactions, but it carries little
    into new weeks that was noise in old ones.
    """

    suffix: ClassVar[str] = "json"
    settings: LogisticSettings = field(default_factory=LogisticSettings)
    seed: int = 0
    arrays_: dict[str, Floats] = field(default_factory=dict, init=False)
    intercept_: float = field(default=0.0, init=False)

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Train; see `Classifier`."""
        from sklearn.linear_model import LogisticRegression

        rows = plain(X).astype(np.float64)
        center, scale = _spread(rows)
        # asinh is linear near the median and a logarithm far away, on both sides of it.
        z = np.nan_to_num(np.arcsinh((rows - center) / scale), nan=0.0)
        knot = np.percentile(z, KNOTS, axis=0).T
        # Order of terms within a column: the line, then its knots, as `bent_logits` reads the weights.
        terms = np.stack([z, *(np.maximum(0.0, z - knot[:, k]) for k in range(len(KNOTS)))], axis=2)
        terms = terms.reshape(len(z), -1)
        mean, deviation = terms.mean(axis=0), terms.std(axis=0)
        # A column of one value has terms of no width; its weight stays 0 whatever it is divided by.
        deviation[deviation == 0.0] = 1.0
        model: Any = LogisticRegression(C=self.settings.inverse_l2, max_iter=MOST_ITERATIONS)
        model.fit((terms - mean) / deviation, y)
        # Scaling and centring go into weights and intercept, so that serving needs neither.
        weight = model.coef_[0] / deviation
        self.intercept_ = float(model.intercept_[0] - (weight * mean).sum())
        self.arrays_ = {"center": center, "scale": scale, "knot": np.ascontiguousarray(knot)}
        self.arrays_["weight"] = weight.reshape(len(center), -1)
        return self

    def predict_proba(self, X: Matrix) -> Floats:
        """Probabilities; see `Classifier`."""
        from jobcast.models.compiled_trees import bent_logits

        return from_logit(bent_logits(plain(X), *(self.arrays_[name] for name in _LINEAR_ARRAYS), self.intercept_))

    @property
    def gain(self) -> Floats:
        """Sum of the sizes of each column's weights."""
        return np.asarray(np.abs(self.arrays_["weight"]).sum(axis=1))

    def files(self, stem: str) -> dict[str, bytes]:
        """The numbers."""
        result = {name: array.tolist() for name, array in self.arrays_.items()}
        return {f"{stem}.{self.suffix}": json_bytes({**result, "intercept": self.intercept_})}

    @classmethod
    def from_files(cls, stem: str, read: ReadFile) -> Self:
        """Read the numbers."""
        saved = json.loads(read(f"{stem}.{cls.suffix}"))
        model = cls()
        model.arrays_ = {name: np.array(saved[name], np.float64) for name in _LINEAR_ARRAYS}
        model.intercept_ = saved["intercept"]
        return model


def _spread(rows: Floats) -> tuple[Floats, Floats]:
    """Median and spread of each column, the spread 1 where a column says one thing only."""
    center, scale = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    # Column by column, since each has other missing rows.
    for column in range(rows.shape[1]):
        known = rows[~np.isnan(rows[:, column]), column]
        if len(known):
            low, center[column], high = np.percentile(known, (25, 50, 75))
            off = np.abs(known - center[column])
            # Where most values are the median the quartiles coincide; what differs from it then tells the spread.
            spread = (high - low) / QUARTILES_TO_DEVIATION or (np.median(off[off > 0.0]) if off.any() else 1.0)
            scale[column] = spread
    return center, scale


_NODE_ARRAYS = ("column", "threshold", "left", "right", "missing_left")
"""Arrays of nodes in the order in which the kernel takes them."""
_TREE_ARRAYS = ("root", *_NODE_ARRAYS, "value")


@dataclass(frozen=True, slots=True)
class ForestSettings:
    """Size and regularisation.

    Attributes
    ----------
    trees : of the forest
    min_rows_leaf : rows that a leaf must hold, scaled down on little data (see `classifier.smallest_leaf`)
    column_share : share of the columns that a split may choose from, drawn by the seed
    """

    trees: int = 100
    min_rows_leaf: int = 30
    column_share: float = 0.5


@dataclass(slots=True)
class ExtraTrees:
    """scikit-learn's ExtraTreesClassifier with large leaves [1]: the mean of the leaves' shares of arrivals.

    References
    ----------
    .. [1] Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63, 2006.
    """

    suffix: ClassVar[str] = "npz"
    settings: ForestSettings = field(default_factory=ForestSettings)
    seed: int = 0
    arrays_: dict[str, NDArray[Any]] = field(default_factory=dict, init=False)
    gain_: Floats = field(default_factory=lambda: np.empty(0), init=False)
    nodes_: NDArray[np.void] | None = field(default=None, init=False, repr=False, compare=False)
    """The arrays' nodes, laid out when first needed."""

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Train; see `Classifier`."""
        from sklearn.ensemble import ExtraTreesClassifier

        # Two threads draw the same as one: each tree has a seed of its own.
        forest: Any = ExtraTreesClassifier(
            n_estimators=self.settings.trees,
            min_samples_leaf=smallest_leaf(self.settings.min_rows_leaf, len(X)),
            max_features=self.settings.column_share,
            n_jobs=TRAINING_THREADS,
            random_state=self.seed,
        )
        forest.fit(plain(X), y)
        self.arrays_ = _flat([one.tree_ for one in forest.estimators_])
        self.gain_ = np.asarray(forest.feature_importances_, np.float64)
        return self

    def predict_proba(self, X: Matrix) -> Floats:
        """Probabilities; see `Classifier`."""
        from jobcast.models.compiled_trees import forest_means, forest_nodes

        if self.nodes_ is None:
            self.nodes_ = forest_nodes(*(self.arrays_[name] for name in _NODE_ARRAYS))
        return np.asarray(forest_means(plain(X), self.arrays_["root"], self.nodes_, self.arrays_["value"]))

    @property
    def gain(self) -> Floats:
        """Share of the impurity that the splits on each column took away."""
        return self.gain_

    def files(self, stem: str) -> dict[str, bytes]:
        """One NumPy archive, whose dates are fixed."""
        packed = io.BytesIO()
        held: dict[str, Any] = {**self.arrays_, "gain": self.gain_}
        np.savez_compressed(packed, **held)
        return {f"{stem}.{self.suffix}": packed.getvalue()}

    @classmethod
    def from_files(cls, stem: str, read: ReadFile) -> Self:
        """Read the archive; nothing in it is code."""
        model, packed = cls(), io.BytesIO(read(f"{stem}.{cls.suffix}"))
        # Sizes are read from the archive's directory, before anything is unpacked.
        with ZipFile(packed) as archive:  # a few bytes may unpack to any number
            need_memory(sum(part.file_size for part in archive.infolist()), f"{stem}.{cls.suffix}", REMEDY)
        with np.load(packed, allow_pickle=False) as result:
            model.arrays_ = {name: result[name] for name in _TREE_ARRAYS}
            model.gain_ = result["gain"]
        return model


def _flat(trees: list[Any]) -> dict[str, NDArray[Any]]:
    """Nodes of all trees one after another; `left` and `right` are positions among all nodes, -1 at leaves."""
    root = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1].astype(np.int32)

    def joined(parts: list[NDArray[Any]], kind: Any) -> NDArray[Any]:
        return np.concatenate(parts).astype(kind)

    def children(parts: list[NDArray[Any]]) -> NDArray[Any]:
        # scikit-learn numbers nodes within a tree; here they are positions among all trees' nodes.
        return joined([np.where(part < 0, -1, part + at) for part, at in zip(parts, root, strict=True)], np.int32)

    return {
        "root": root,
        "column": joined([tree.feature for tree in trees], np.int32),
        "threshold": joined([tree.threshold for tree in trees], np.float64),
        "left": children([tree.children_left for tree in trees]),
        "right": children([tree.children_right for tree in trees]),
        "missing_left": joined([tree.missing_go_to_left for tree in trees], np.bool_),
        # Of classes False and True the second, as a share of the rows in the leaf.
        "value": joined([tree.value[:, 0, 1] / tree.value[:, 0].sum(axis=1) for tree in trees], np.float64),
    }


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
    trees_: "SmallTrees | None" = field(default=None, init=False, repr=False, compare=False)
    """The model's, laid out when first needed: LightGBM's own predictor takes longest for a few rows."""

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Train; see `Classifier`."""
        least = smallest_leaf(self.settings.min_rows_leaf, len(X))
        how = {"objective": "binary", "min_data_in_leaf": least, "max_bin": MOST_BINS}
        size = (self.settings, self.settings.trees, self.seed, TRAINING_THREADS)
        self.model_ = trained_booster(booster_data(plain(X), y.astype(np.float32)), *size, how)
        return self

    def predict_proba(self, X: Matrix) -> Floats:
        """Probabilities; see `Classifier`."""
        from jobcast.models.compiled_trees import SmallTrees, sigmoids

        if self.trees_ is None:
            # Laid out once; a copy of LightGBM's own predictor would be asked for each few rows.
            self.trees_ = SmallTrees.of(self.model_)
        return np.asarray(sigmoids(self.trees_(plain(X))[0]))

    @property
    def gain(self) -> Floats:
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

        rows = xgboost.QuantileDMatrix(
            plain(X), label=y.astype(np.float32), max_bin=MOST_BINS, nthread=TRAINING_THREADS
        )
        return self._train(rows, self._parameters(len(X), float(y.mean())), self.settings.trees)

    def _train(self, rows: Any, parameters: dict[str, Any], trees: int) -> Self:
        import xgboost

        fixed = {"objective": "binary:logistic", "seed": self.seed, "nthread": TRAINING_THREADS, "verbosity": 0}
        self.model_ = xgboost.train({**fixed, **parameters}, rows, num_boost_round=trees)
        self.model_.set_param({"nthread": SERVING_THREADS})
        return self

    def _parameters(self, rows: int, base_rate: float) -> dict[str, Any]:
        # A leaf is bounded by its sum of p (1 - p), which is this much for `smallest_leaf` rows of average odds.
        weight = smallest_leaf(self.settings.min_rows_leaf, rows) * base_rate * (1 - base_rate)
        return {
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": self.settings.leaves,
            "learning_rate": self.settings.learning_rate,
            "min_child_weight": weight,
            "reg_lambda": self.settings.l2,
            "colsample_bytree": self.settings.column_share,
            "max_bin": MOST_BINS,
        }

    def predict_proba(self, X: Matrix) -> Floats:
        """Probabilities; see `Classifier`."""
        return np.asarray(self.model_.inplace_predict(plain(X)), dtype=np.float64)

    @property
    def gain(self) -> Floats:
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


PAPER_TREES = 100
"""XGBClassifier's default; its others (depth 6, learning rate 0.3, ...) are those of the library itself."""


@dataclass(frozen=True, slots=True)
class NoSettings:
    """The library's defaults."""


@dataclass(slots=True)
class PaperXgBoost(XgBoost):
    """XGBoost's defaults, classes weighted to balance.

    SIA, section 5.4.1 and footnote 3: "default hyperparameters for XGBoost v1.4.1 for skewed datasets". Probabilities
    are of the weighted classes and so too high; a threshold of one half is meant for these.
    """

    settings: NoSettings = field(default_factory=NoSettings)  # type: ignore[assignment]

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Train; see `Classifier`."""
        import xgboost

        arrived = int(y.sum())
        rows = xgboost.DMatrix(plain(X), label=y.astype(np.float32), nthread=TRAINING_THREADS)
        return self._train(rows, {"scale_pos_weight": (len(y) - arrived) / arrived}, PAPER_TREES)
