"""WillJobsArrive: will any job arrive in a pool within the next k minutes? SIA, section 5.4.1."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import Corpus, Mask
from jobcast.models.boosters import Booster, BoosterSettings, fit_booster, read_booster
from jobcast.models.metadata import read_metadata, read_text, write_metadata
from jobcast.models.thresholds import UNINFORMED_F1, UNINFORMED_GATE, best_f1_threshold, gate_threshold

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
        self.thresholds_f1_ = np.array([best_f1 for best_f1, _ in chosen])
        self.thresholds_gate_ = np.array([gate for _, gate in chosen])
        rows = [self._training_rows(corpus, horizon) for horizon in horizons]
        self.rows_ = tuple(int(mask.sum()) for mask in rows)
        self.base_rates_ = tuple(float(corpus.arrives[mask, h].mean()) for h, mask in enumerate(rows))
        self.boosters_ = [self._fitted(corpus, mask, h) for h, mask in enumerate(rows)]
        return self

    def _thresholds(self, corpus: Corpus, horizon: int) -> tuple[float, float]:
        """Best-F1 and gate thresholds on the last part of the training time, as forecast from the first."""
        split_s = self.trained_from_s_ + FITTING_SHARE * (self.trained_until_s_ - self.trained_from_s_)
        earlier = _thinned(corpus, corpus.purged(split_s, horizon), horizon)
        later = ~corpus.until(split_s) & corpus.purged(self.trained_until_s_, horizon)
        if not earlier.any() or not later.any():
            return UNINFORMED_F1, UNINFORMED_GATE
        X, arrives = corpus.horizon_matrix(horizon, later)
        probability = self._fitted(corpus, earlier, horizon).predict_proba(X)
        return best_f1_threshold(arrives, probability), gate_threshold(arrives, probability, self.miss_share)

    def _training_rows(self, corpus: Corpus, horizon: int) -> Mask:
        rows = _thinned(corpus, corpus.purged(self.trained_until_s_, horizon), horizon)
        if not rows.any():
            until = datetime.fromtimestamp(self.trained_until_s_, UTC).isoformat()
            raise TrainingError(
                f"{self.name}: no window of {horizon_label(self.horizons_min_[horizon])} ends before {until}; "
                f"train on a longer trace or leave the horizon out"
            )
        return rows

    def _fitted(self, corpus: Corpus, rows: Mask, horizon: int) -> Booster:
        X, arrives = corpus.horizon_matrix(horizon, rows)
        return fit_booster(self.algorithm, X, arrives, self.seed, self.settings)

    def predict_proba(self, X: NDArray[Any]) -> Floats:
        """Probability that any job arrives in (t, t + k].

        Parameters
        ----------
        X : shape (n_rows, H, F), rows of `features.arrivals.arrival_features`

        Returns
        -------
        (n_rows, H)

        Raises
        ------
        RegistryError
            X has other horizons or columns than the model.
        """
        expected = (len(self.horizons_min_), len(self.feature_names_))
        if X.ndim != 3 or X.shape[1:] != expected:
            raise RegistryError(
                f"{self.name}: reads rows of shape (n, {expected[0]}, {expected[1]}), got {X.shape}; "
                f"build the features with the model's horizons {list(self.horizons_min_)} or train it again"
            )
        by_horizon = [booster.predict_proba(X[:, h]) for h, booster in enumerate(self.boosters_)]
        return np.stack(by_horizon, axis=1)

    def predict(self, X: NDArray[Any], *, gate: bool = False) -> Mask:
        """Whether jobs will arrive, (n_rows, H): from the gate's thresholds, or those with the best F1."""
        declared: Mask = self.predict_proba(X) >= (self.thresholds_gate_ if gate else self.thresholds_f1_)
        return declared

    def check_features(self, names: Sequence[str]) -> None:
        """Check that columns are those that the model was trained on, in their order.

        Raises
        ------
        RegistryError
            They are not; names the first difference.
        """
        for column, (ours, theirs) in enumerate(zip_longest(self.feature_names_, names)):
            if ours != theirs:
                raise RegistryError(
                    f"{self.name}: feature {column} is {_shown(ours)} in the model and {_shown(theirs)} in the data; "
                    f"train the model again with this version"
                )

    @property
    def feature_importances(self) -> dict[str, dict[str, float]]:
        """Gain of each feature by horizon: what its splits took off the training loss."""
        return {
            horizon_label(horizon_min): dict(zip(self.feature_names_, booster.gain.tolist(), strict=True))
            for horizon_min, booster in zip(self.horizons_min_, self.boosters_, strict=True)
        }

    def save(self, folder: Path) -> None:
        """Write `metadata.json` and a text file a horizon in its library's own format; equal models, equal bytes."""
        files = [
            f"{horizon_label(horizon_min)}.{booster.suffix}"
            for horizon_min, booster in zip(self.horizons_min_, self.boosters_, strict=True)
        ]
        told = {
            "algorithm": self.algorithm,
            "miss_share": self.miss_share,
            "seed": self.seed,
            "settings": asdict(self.settings or BoosterSettings()),
            "feature_names": list(self.feature_names_),
            "horizons_min": list(self.horizons_min_),
            "boosters": files,
            "thresholds_f1": self.thresholds_f1_.tolist(),
            "thresholds_gate": self.thresholds_gate_.tolist(),
            "trained_from_s": self.trained_from_s_,
            "trained_until_s": self.trained_until_s_,
            "pools": list(self.pools_),
            "rows": list(self.rows_),
            "base_rates": list(self.base_rates_),
        }
        write_metadata(folder, self.name, told)
        for file, booster in zip(files, self.boosters_, strict=True):
            (folder / file).write_text(booster.to_text(), encoding="utf-8", newline="")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        RegistryError
            The folder does not hold such a model. Whether its features are today's is `check_features`' to say.
        """
        told = read_metadata(folder, cls.name)
        model = cls(told["algorithm"], told["miss_share"], told["seed"], BoosterSettings(**told["settings"]))
        model.feature_names_ = tuple(told["feature_names"])
        model.horizons_min_ = tuple(told["horizons_min"])
        model.thresholds_f1_ = np.array(told["thresholds_f1"])
        model.thresholds_gate_ = np.array(told["thresholds_gate"])
        model.trained_from_s_, model.trained_until_s_ = told["trained_from_s"], told["trained_until_s"]
        model.pools_ = tuple(told["pools"])
        model.rows_, model.base_rates_ = tuple(told["rows"]), tuple(told["base_rates"])
        texts = [read_text(folder / file) for file in told["boosters"]]
        model.boosters_ = [read_booster(model.algorithm, text) for text in texts]
        return model


def _thinned(corpus: Corpus, rows: Mask, horizon: int) -> Mask:
    """Of the rows, those on one grid instant in `TRAINING_STRIDE` where the horizon is short."""
    if corpus.horizons_min[horizon] > THINNED_HORIZON_MIN:
        return rows
    instants = np.unique(corpus.tick_s, return_inverse=True)[1]
    thinned: Mask = rows & (instants % TRAINING_STRIDE == 0)
    return thinned


def _shown(name: str | None) -> str:
    return "missing" if name is None else repr(name)
