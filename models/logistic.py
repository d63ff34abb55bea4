"""Logistic regression on robustly scaled columns, saved as JSON numbers."""

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.models.classifier import Matrix, ReadFile, from_logit, json_bytes, plain

QUARTILES_TO_DEVIATION = 1.349
"""Distance between the quartiles of a normal distribution, in standard deviations."""
MOST_ITERATIONS = 500
KNOTS = (5.0, 25.0, 50.0, 75.0, 95.0)
"""Percentiles of a column at which its line may bend."""
_ARRAYS = ("center", "scale", "knot", "weight")
"""Arrays in the order in which the kernel takes them."""
Floats = NDArray[np.float64]


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
        z = np.nan_to_num(np.arcsinh((rows - center) / scale), nan=0.0)
        knot = np.percentile(z, KNOTS, axis=0).T
        terms = np.stack([z, *(np.maximum(0.0, z - knot[:, k]) for k in range(len(KNOTS)))], axis=2)
        terms = terms.reshape(len(z), -1)
        mean, deviation = terms.mean(axis=0), terms.std(axis=0)
        deviation[deviation == 0.0] = 1.0
        model: Any = LogisticRegression(C=self.settings.inverse_l2, max_iter=MOST_ITERATIONS)
        model.fit((terms - mean) / deviation, y)
        weight = model.coef_[0] / deviation
        self.intercept_ = float(model.intercept_[0] - (weight * mean).sum())
        self.arrays_ = {"center": center, "scale": scale, "knot": np.ascontiguousarray(knot)}
        self.arrays_["weight"] = weight.reshape(len(center), -1)
        return self

    def predict_proba(self, X: Matrix) -> Floats:
        """Probabilities; see `Classifier`."""
        from jobcast.models.classifier_kernels import bent_logits

        return from_logit(bent_logits(plain(X), *(self.arrays_[name] for name in _ARRAYS), self.intercept_))

    @property
    def gain(self) -> Floats:
        """Sum of the sizes of each column's weights."""
        sizes: Floats = np.abs(self.arrays_["weight"]).sum(axis=1)
        return sizes

    def files(self, stem: str) -> dict[str, bytes]:
        """The numbers."""
        told = {name: array.tolist() for name, array in self.arrays_.items()}
        return {f"{stem}.{self.suffix}": json_bytes({**told, "intercept": self.intercept_})}

    @classmethod
    def from_files(cls, stem: str, read: ReadFile) -> Self:
        """Read the numbers."""
        told = json.loads(read(f"{stem}.{cls.suffix}"))
        model = cls()
        model.arrays_ = {name: np.array(told[name], np.float64) for name in _ARRAYS}
        model.intercept_ = told["intercept"]
        return model


def _spread(rows: Floats) -> tuple[Floats, Floats]:
    """Median and spread of each column, the spread 1 where a column says one thing only."""
    center, scale = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    for column in range(rows.shape[1]):
        known = rows[~np.isnan(rows[:, column]), column]
        if len(known):
            low, center[column], high = np.percentile(known, (25, 50, 75))
            off = np.abs(known - center[column])
            spread = (high - low) / QUARTILES_TO_DEVIATION or (np.median(off[off > 0.0]) if off.any() else 1.0)
            scale[column] = spread
    return center, scale
