"""LightGBM over duration bins: class probabilities from the rows of `features.durations`.

Jobs come in bursts of one user that resemble each other, so that rows are far fewer than they seem: what works is
small trees, few columns a tree and splits at random places (extra trees), which all keep single bursts from being
learnt. Recent jobs weigh more, since the mix of bins drifts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.features.durations import DEPTHS, GROUPS, duration_columns, group_width
from jobcast.models.metadata import booster_of

DAY_S = 86400.0
TRAINING_THREADS = 1
"""Small trees on tens of thousands of rows: threads would wait for one another more than they would work. Fixed, since
sums of gradients depend on how rows are shared out."""
SERVING_THREADS = 1
ROWS_PER_SMALLEST_LEAF = 50
"""On little data a leaf may hold one row in so many, rather than `min_rows_leaf`."""
HALF_COUNT = 0.5
"""Added to each bin's count before shares are taken."""
MODEL = "booster.txt"
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DurationSettings:
    """Size and regularisation of the trees, chosen on Philly in October 2017 by weekly folds.

    Attributes
    ----------
    trees, leaves, learning_rate : trees a bin, leaves a tree at most
    min_rows_leaf : rows that a leaf must hold, scaled down on little data
    l2 : ridge on the leaves' values
    column_share : share of the columns that a tree may look at
    half_life_days : a job so much older weighs half
    """

    trees: int = 150
    leaves: int = 6
    learning_rate: float = 0.04
    min_rows_leaf: int = 300
    l2: float = 20.0
    column_share: float = 0.4
    half_life_days: float = 21.0


@dataclass(slots=True)
class DurationBooster:
    """Multi-class LightGBM.

    Parameters
    ----------
    n_bins : B
    settings : size and regularisation
    seed : of the columns and places that trees look at
    use_tags : whether columns of the group of the same tag are read
    """

    n_bins: int
    settings: DurationSettings = field(default_factory=DurationSettings)
    seed: int = 0
    use_tags: bool = True
    model_: Any = field(default=None, init=False)

    def fit(self, rows: Floats, bins: Ints, age_s: Floats) -> Self:
        """Train.

        Parameters
        ----------
        rows : (n_jobs, F)
        bins : (n_jobs,) duration bins
        age_s : (n_jobs,) how long before the end of the training time each job was submitted, seconds
        """
        import lightgbm

        weight = np.exp2(-age_s / (DAY_S * self.settings.half_life_days))
        data = lightgbm.Dataset(self._matrix(rows), label=bins, weight=weight, params={"verbosity": -1})
        self.model_ = lightgbm.train(self._parameters(len(rows)), data, num_boost_round=self.settings.trees)
        return self

    def _parameters(self, rows: int) -> dict[str, Any]:
        return {
            "objective": "multiclass",
            "num_class": self.n_bins,
            "num_leaves": self.settings.leaves,
            "learning_rate": self.settings.learning_rate,
            "min_data_in_leaf": max(1, min(self.settings.min_rows_leaf, rows // ROWS_PER_SMALLEST_LEAF)),
            "lambda_l2": self.settings.l2,
            "feature_fraction": self.settings.column_share,
            "extra_trees": True,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": TRAINING_THREADS,
            "verbosity": -1,
        }

    def predict_proba(self, rows: Floats) -> Floats:
        """Probabilities of the bins, (n_jobs, B)."""
        if not len(rows):
            return np.empty((0, self.n_bins))
        return np.asarray(self.model_.predict(self._matrix(rows), num_threads=SERVING_THREADS), np.float64)

    def _matrix(self, rows: Floats) -> NDArray[np.float32]:
        """Rows as the trees read them: counts as shares, float32 so that batch and live rows round alike."""
        matrix = shares_of_counts(rows, self.n_bins)
        if not self.use_tags:
            matrix[:, : group_width(self.n_bins)] = 0.0
        return matrix

    def gain(self, horizons_min: Sequence[float]) -> dict[str, float]:
        """What each column's splits took off the loss, by name."""
        gains = self.model_.feature_importance(importance_type="gain").tolist()
        return dict(zip(duration_columns(horizons_min), gains, strict=True))

    def to_text(self) -> str:
        """LightGBM's own text format."""
        return str(self.model_.model_to_string())

    @classmethod
    def from_text(cls, text: str, n_bins: int, use_tags: bool) -> Self:
        """Read what `to_text` wrote."""
        booster = cls(n_bins, use_tags=use_tags)
        booster.model_ = booster_of(text)
        return booster


def shares_of_counts(rows: Floats, n_bins: int) -> NDArray[np.float32]:
    """Rows with each group's counts made shares, (count + 1/2) / (all + B/2): few jobs say little.

    >>> rows = np.zeros((1, len(duration_columns((5,)))))
    >>> rows[0, :2] = 3, 0
    >>> shares_of_counts(rows, 2)[0, :4].tolist()
    [0.875, 0.125, 0.5, 0.5]
    """
    matrix = rows.astype(np.float32)
    width, counted = group_width(n_bins), len(DEPTHS) * n_bins
    grouped = rows[:, : len(GROUPS) * width].reshape(len(rows), len(GROUPS), width)
    counts = grouped[:, :, :counted].reshape(len(rows), len(GROUPS), len(DEPTHS), n_bins) + HALF_COUNT
    counts /= counts.sum(axis=3, keepdims=True)
    target = matrix[:, : len(GROUPS) * width].reshape(len(rows), len(GROUPS), width)
    target[:, :, :counted] = counts.reshape(len(rows), len(GROUPS), counted)
    matrix[:, : len(GROUPS) * width] = target.reshape(len(rows), len(GROUPS) * width)
    return matrix
