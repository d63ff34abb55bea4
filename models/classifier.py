"""What every algorithm of arrivals can do, behind one small protocol: probabilities from a plain matrix."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
ReadFile = Callable[[str], bytes]
"""Bytes of a saved file by its name."""
TRAINING_THREADS = 2
"""Fixed, since sums of gradients depend on how rows are shared out among threads."""
ROWS_PER_SMALLEST_LEAF = 50
"""On little data a leaf of a tree may hold one row in so many, rather than what its settings say."""
# A leaf that says 0 or 1 would else outvote any number of other members in a mean of logits.
SMALLEST_PROBABILITY = 1e-6
"""Logits are taken of probabilities no closer than this to 0 and 1."""


class Classifier(Protocol):
    """A binary classifier on plain matrices whose files hold all of it. Equal models, equal bytes."""

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Train on rows of both classes: X of shape (n_rows, n_features), NaN where missing, y of shape (n_rows,)."""

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Probabilities of the class True, shape (n_rows,)."""

    @property
    def gain(self) -> NDArray[np.float64]:
        """Importance of each column in the algorithm's own measure, >= 0, shape (n_features,)."""

    def files(self, stem: str) -> dict[str, bytes]:
        """File name -> content, every name beginning with `stem` and a dot."""

    @classmethod
    def from_files(cls, stem: str, read: ReadFile) -> Self:
        """Read what `files` gave."""


@dataclass(slots=True)
class Constant:
    """The same probability for every row: what is left to say when only one class has been seen."""

    suffix: ClassVar[str] = "constant.json"
    n_features: int = 0
    probability: float = 0.5

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Laplace's rule of succession, (hits + 1) / (rows + 2): what was never seen is not impossible.

        >>> Constant().fit(np.zeros((8, 1), np.float32), np.zeros(8, bool)).probability
        0.1
        """
        self.n_features = X.shape[1]
        # Not the plain share, which would be 0 or 1 and never be taken back.
        self.probability = float((y.sum() + 1) / (len(y) + 2))
        return self

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Probabilities; see `Classifier`."""
        return np.full(len(X), self.probability)

    @property
    def gain(self) -> NDArray[np.float64]:
        """No column matters."""
        return np.zeros(self.n_features)

    def files(self, stem: str) -> dict[str, bytes]:
        """Two numbers."""
        result = {"n_features": self.n_features, "probability": self.probability}
        return {f"{stem}.{self.suffix}": json_bytes(result)}

    @classmethod
    def from_files(cls, stem: str, read: ReadFile) -> Self:
        """Read them."""
        return cls(**json.loads(read(f"{stem}.{cls.suffix}")))


def smallest_leaf(wanted: int, rows: int, rows_per_leaf: int = ROWS_PER_SMALLEST_LEAF) -> int:
    """Rows that a leaf must hold when `rows` rows train.

    >>> [smallest_leaf(300, rows) for rows in (10, 5_000, 100_000)]
    [1, 100, 300]
    """
    return max(1, min(wanted, rows // rows_per_leaf))


def plain(X: NDArray[Any]) -> Matrix:
    """Rows as every algorithm reads them: float32, so that batch and live rows round alike."""
    # The compiled trees' signatures ask for C order; a copy is made only where it is not.
    return np.ascontiguousarray(X, dtype=np.float32)


def logit(probability: NDArray[Any]) -> NDArray[np.float64]:
    """log(p / (1 - p)), bounded near 0 and 1.

    >>> logit(np.array([0.5])).tolist()
    [0.0]
    """
    # np.clip gives the same, but is slower on the few rows of a forecast.
    kept = np.minimum(np.maximum(probability, SMALLEST_PROBABILITY), 1.0 - SMALLEST_PROBABILITY)
    # log1p keeps the digits of probabilities near 1.
    odds: NDArray[np.float64] = np.log(kept) - np.log1p(-kept)
    return odds


def from_logit(z: NDArray[Any]) -> NDArray[np.float64]:
    """1 / (1 + exp(-z)).

    >>> from_logit(np.array([0.0, -800.0])).tolist()
    [0.5, 0.0]
    """
    # exp overflows to infinity far below 0, whose inverse is the 0 that is wanted.
    with np.errstate(over="ignore", under="ignore"):
        probability: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-z))
    return probability


def json_bytes(figures: dict[str, Any]) -> bytes:
    """JSON whose floats read back to the last bit, the same bytes for the same content."""
    return (json.dumps(figures, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
