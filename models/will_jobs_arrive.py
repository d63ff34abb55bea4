"""WillJobsArrive: will any job arrive in a pool within the next k minutes? SIA, section 5.4.1."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import Corpus
from jobcast.models.boosters import Booster, BoosterSettings, fit_booster, read_booster
from jobcast.models.metadata import read_metadata, read_text, write_metadata
from jobcast.models.thresholds import best_f1_threshold, gate_threshold

FITTING_SHARE = 0.7
"""Share of the training time whose model chooses thresholds on what comes after it."""
THINNED_HORIZON_MIN = 5.0
TRAINING_STRIDE = 3
"""Up to that horizon one grid instant in so many trains; 2 would fall in step with jobs every 600 s."""
Floats = NDArray[np.float64]


class WillJobsArrive:
    """One booster a horizon, one model across pools, and two thresholds for each horizon.

    Thresholds are chosen out of time but within the training data: a first model learns from the first 70 % of
    the training time and forecasts the rest; then all of it trains the model that is kept.

    Parameters
    ----------
    algorithm : "lightgbm" or "xgboost"; see `boosters.ALGORITHMS`
    miss_share : share of the windows with arrivals that the gate may miss, in [0, 1)
    seed : of the columns that each tree may look at
    settings : size and regularisation of the trees; None takes the defaults

    Attributes
    ----------
    horizons_min_ : (H,) horizons in minutes
    feature_names_ : (F,) names of the columns that it reads
    boosters_ : (H,) trained boosters
    thresholds_f1_ : (H,) probability from which on to say "jobs arrive", best F1; for reporting
    thresholds_gate_ : (H,) the largest that misses at most `miss_share` of the windows with arrivals; for a
        scheduler, which may give GPUs away below it
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    pools_ : pools that it has learnt from
    rows_, base_rates_ : (H,) training rows, and the share of windows with arrivals in them
    """

    name: ClassVar[str] = "will-jobs-arrive"

    def __init__(
        self,
        algorithm: str = "lightgbm",
        miss_share: float = 0.05,
        seed: int = 0,
        settings: BoosterSettings | None = None,
    ):
        self.algorithm = algorithm
        self.miss_share = miss_share
        self.seed = seed
        self.settings = settings

    def fit(self, corpus: Corpus, until_s: float) -> Self:
        """Train on the rows of a corpus whose windows lie before an instant.

        Parameters
        ----------
        corpus : rows of all pools; may reach past `until_s`
        until_s : seconds from the epoch; no window that reaches it is read

        Raises
        ------
        TrainingError
            A horizon has no row whose window ends before `until_s`.
        """
        seen = corpus.until(until_s)
        self.horizons_min_ = tuple(corpus.horizons_min)
        self.feature_names_ = tuple(corpus.feature_names)
        self.trained_from_s_ = float(corpus.tick_s[seen].min()) if seen.any() else until_s
        self.trained_until_s_ = float(until_s)
        self.pools_ = tuple(corpus.pools[i] for i in np.unique(corpus.pool_index[seen]))
        horizons = range(len(self.horizons_min_))
        chosen = [self._thresholds(corpus, horizon) for horizon in horizons]
        self.thresholds_f1_ = np.array([f1 for f1, _ in chosen])
        self.thresholds_gate_ = np.array([gate for _, gate in chosen])
        self.boosters_ = [self._fitted(corpus, self._training_rows(corpus, h, until_s), h) for h in horizons]
        return self

    def _thresholds(self, corpus: Corpus, horizon: int) -> tuple[float, float]:
        """Best-F1 and gate thresholds on the last part of the training time, forecast from the first."""
        split_s = self.trained_from_s_ + FITTING_SHARE * (self.trained_until_s_ - self.trained_from_s_)
        earlier = _thinned(corpus, corpus.purged(split_s, horizon), horizon)
        later = ~corpus.until(split_s) & corpus.purged(self.trained_until_s_, horizon)
        if not earlier.any():
            nothing = np.empty(0)
            return best_f1_threshold(nothing.astype(bool), nothing), gate_threshold(nothing.astype(bool), nothing, 0)
        X, arrives = corpus.horizon_matrix(horizon, later)
        probability = self._fitted_booster(corpus, earlier, horizon).predict_proba(X)
        return best_f1_threshold(arrives, probability), gate_threshold(arrives, probability, self.miss_share)

    def _training_rows(self, corpus: Corpus, horizon: int, until_s: float) -> NDArray[np.bool_]:
        rows = _thinned(corpus, corpus.purged(until_s, horizon), horizon)
        if not rows.any():
            when = datetime.fromtimestamp(until_s, UTC).isoformat()
            raise TrainingError(
                f"{self.name}: no window of {horizon_label(self.horizons_min_[horizon])} ends before {when}; "
                f"train on a longer trace or drop the horizon"
            )
        return rows
