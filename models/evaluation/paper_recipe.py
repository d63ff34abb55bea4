"""What SIA says to do, as a rule to beat: XGBoost's defaults for skewed data on the features of Table 9."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.features.corpus import Corpus
from jobcast.features.feature_sets import TABLE_9

TREES = 100
"""XGBClassifier's default; its others (depth 6, learning rate 0.3, ...) are those of the library itself."""
EVEN_ODDS = 0.5
THREADS = 2
NAME = "paper_recipe"


class PaperRecipe:
    """A booster a horizon, classes weighted to balance, jobs expected from a probability of one half on.

    SIA, section 5.4.1 and footnote 3: "default hyperparameters for XGBoost v1.4.1 for skewed datasets". A leaf's
    probabilities are of the weighted classes and so too high; its PR-AUC does not mind, its ECE does.

    Parameters
    ----------
    columns : that it may look at

    Attributes
    ----------
    boosters_ : (H,) trained boosters; None where training held one class, whose share is `base_rates_`
    """

    def __init__(self, columns: Sequence[str] = TABLE_9, seed: int = 0) -> None:
        self.columns = tuple(columns)
        self.seed = seed

    def fit(self, corpus: Corpus, until_s: float) -> Self:
        """Train on all rows whose windows end before an instant, seconds from the epoch."""
        self.picked_ = [corpus.feature_names.index(name) for name in self.columns if name in corpus.feature_names]
        rows = [corpus.purged(until_s, horizon) for horizon in range(len(corpus.horizons_min))]
        pairs = [corpus.horizon_matrix(horizon, mask) for horizon, mask in enumerate(rows)]
        self.base_rates_ = [float(arrives.mean()) if len(arrives) else 0.0 for _, arrives in pairs]
        self.boosters_ = [self._booster(X[:, self.picked_], arrives) for X, arrives in pairs]
        return self

    def _booster(self, X: NDArray[Any], arrives: NDArray[np.bool_]) -> Any:
        import xgboost

        came = int(arrives.sum())
        if came in (0, len(arrives)):
            return None
        settings = {
            "objective": "binary:logistic",
            "scale_pos_weight": (len(arrives) - came) / came,
            "seed": self.seed,
            "nthread": THREADS,
            "verbosity": 0,
        }
        data = xgboost.DMatrix(X, label=arrives.astype(np.float32), nthread=THREADS)
        return xgboost.train(settings, data, num_boost_round=TREES)

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Weighted probability of arrivals, shape (n_rows, H), from rows (n_rows, H, F)."""
        picked = np.ascontiguousarray(X[:, :, self.picked_], np.float32)
        return np.stack([self._one(picked[:, h], h) for h in range(picked.shape[1])], axis=1)

    def _one(self, X: NDArray[np.float32], horizon: int) -> NDArray[np.float64]:
        booster = self.boosters_[horizon]
        if booster is None:
            return np.full(len(X), self.base_rates_[horizon])
        return np.asarray(booster.inplace_predict(np.ascontiguousarray(X)), np.float64)
