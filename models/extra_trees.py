"""Extremely randomised trees, saved and served as flat arrays."""

import io
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.memory import need_memory
from jobcast.models.classifier import TRAINING_THREADS, Matrix, ReadFile, plain, smallest_leaf
from jobcast.models.metadata import REMEDY

_ARRAYS = ("root", "column", "threshold", "left", "right", "missing_left", "value")
"""Arrays in the order in which the kernel takes them."""


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
    gain_: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), init=False)

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Train; see `Classifier`."""
        from sklearn.ensemble import ExtraTreesClassifier

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

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Probabilities; see `Classifier`."""
        from jobcast.models.classifier_kernels import forest_means

        means: NDArray[np.float64] = forest_means(plain(X), *(self.arrays_[name] for name in _ARRAYS))
        return means

    @property
    def gain(self) -> NDArray[np.float64]:
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
        with ZipFile(packed) as archive:  # a few bytes may unpack to any number
            need_memory(sum(part.file_size for part in archive.infolist()), f"{stem}.{cls.suffix}", REMEDY)
        with np.load(packed, allow_pickle=False) as told:
            model.arrays_ = {name: told[name] for name in _ARRAYS}
            model.gain_ = told["gain"]
        return model


def _flat(trees: list[Any]) -> dict[str, NDArray[Any]]:
    """Nodes of all trees one after another; `left` and `right` are positions among all nodes, -1 at leaves."""
    root = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1].astype(np.int32)

    def joined(parts: list[NDArray[Any]], kind: Any) -> NDArray[Any]:
        return np.concatenate(parts).astype(kind)

    def children(parts: list[NDArray[Any]]) -> NDArray[Any]:
        return joined([np.where(part < 0, -1, part + at) for part, at in zip(parts, root, strict=True)], np.int32)

    return {
        "root": root,
        "column": joined([tree.feature for tree in trees], np.int32),
        "threshold": joined([tree.threshold for tree in trees], np.float64),
        "left": children([tree.children_left for tree in trees]),
        "right": children([tree.children_right for tree in trees]),
        "missing_left": joined([tree.missing_go_to_left for tree in trees], np.bool_),
        "value": joined([tree.value[:, 0, 1] / tree.value[:, 0].sum(axis=1) for tree in trees], np.float64),
    }
