"""WillJobsArrive: will any job arrive in a pool within the next k minutes? SIA, section 5.4.1.

Thresholds on probabilities of arrivals: one for reporting, one that guards the scheduler.

Pools whose arrivals run like clockwork: they are forecast too well to say anything of the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.forecasts import Question
from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import STEP_S, Corpus, Mask
from jobcast.models.algorithms import (
    ALGORITHMS,
    Settings,
    algorithm_named,
    read_classifier,
    settings_from_dict,
)
from jobcast.models.arrival_folds import Learner, OutOfFold, out_of_fold, training_rows
from jobcast.models.care import Care
from jobcast.models.classifier import Classifier
from jobcast.models.feature_spans import feature_spans
from jobcast.models.metadata import kept, read_metadata, take_up, write_metadata
from jobcast.traces.trace_stats import clockwork

UNINFORMED_F1 = 0.5
"""Where no threshold can be chosen on data: the likelier class."""
UNINFORMED_GATE = 0.0
"""Where no arrival was seen to be missed: never declare a window idle."""
HARD_PERIODS = 0.25
"""Share of the half weeks that may be harder than the gate is made for; see `lasting_gate`."""
LEAST_ARRIVALS = 20
"""Windows with arrivals that a period needs for a threshold of its own: one in twenty may be missed."""
HALF_WEEK_S = 302400.0
MONDAY_OFFSET_S = 259200.0
"""1970-01-01 was a Thursday: three days more, modulo a week, count from Monday."""


def best_f1_threshold(arrives: NDArray[np.bool_], probability: NDArray[Any]) -> float:
    """Probability from which on "jobs arrive" has the best F1; the largest of equally good ones.

    Parameters
    ----------
    arrives : shape (n_rows,)
    probability : shape (n_rows,)

    Notes
    -----
    Candidates are the probabilities themselves, so all rows at or above the threshold count as arrivals.

    Examples
    --------
    >>> best_f1_threshold(np.array([False, False, True, True]), np.array([0.1, 0.6, 0.5, 0.9]))
    0.5
    """
    hits = int(arrives.sum())
    if not hits:
        return UNINFORMED_F1
    order = np.argsort(-probability, kind="stable")
    ranked = probability[order]
    # A threshold takes all of equal probabilities, so only the last of a tie can be one.
    last_of_tie = np.append(ranked[1:] != ranked[:-1], True)
    found = np.cumsum(arrives[order])[last_of_tie]
    declared = np.flatnonzero(last_of_tie) + 1
    f1 = 2.0 * found / (declared + hits)
    # argmax takes the first of equals, which is the largest threshold.
    return float(ranked[last_of_tie][f1.argmax()])


def gate_threshold(arrives: NDArray[np.bool_], probability: NDArray[Any], miss_share: float) -> float:
    """Largest threshold that misses at most `miss_share` of the windows with arrivals.

    A window is missed when jobs arrive and its probability is below the threshold: the scheduler then gives
    GPUs away that their owners come for.

    Examples
    --------
    >>> gate_threshold(np.ones(4, bool), np.array([0.3, 0.1, 0.2, 0.4]), miss_share=0.25)
    0.2
    """
    of_arrivals = np.sort(probability[arrives])
    if not len(of_arrivals):
        return UNINFORMED_GATE
    # A trifle for rounding: .05 x 20 must allow one miss; but never all windows.
    may_miss = min(int(np.floor(miss_share * len(of_arrivals) + 1e-9)), len(of_arrivals) - 1)
    return float(of_arrivals[may_miss])


def lasting_gate(
    arrives: NDArray[np.bool_], probability: NDArray[Any], period: NDArray[Any], miss_share: float
) -> float:
    """Threshold that misses at most `miss_share` of the windows with arrivals, and does so in most periods alone.

    Of thresholds that are each chosen on one period, the lower quartile, but never more than `gate_threshold` of all
    periods together. What comes differs from what was, and volume that falls makes misses of what was safe: the
    threshold of all weeks together misses too much as soon as hard weeks come in a row.

    Parameters
    ----------
    arrives : shape (n_rows,)
    probability : shape (n_rows,)
    period : shape (n_rows,), equal numbers in equal periods (see `half_week`); those with few arrivals have no say
    miss_share : in [0, 1)

    Notes
    -----
    Chosen on October of Philly: thresholds from the past were checked on the week after, four times. Over 5, 60 and
    720 minutes the threshold of all weeks together missed 4.8, 6.0 and 5.1 % (worst week 8.5 %), this one 4.2, 5.4
    and 3.7 % (7.1 %). Periods of a day are too short to tell (3.4, 5.2, 2.8 %), and free less.

    Examples
    --------
    >>> probability, period = np.repeat([0.5, 0.3], 20), np.repeat([0, 1], 20)
    >>> lasting_gate(np.ones(40, bool), probability, period, miss_share=0.75)
    0.35
    >>> lasting_gate(np.ones(40, bool), probability, np.zeros(40), miss_share=0.75)
    0.5
    """
    # The promise over all periods is kept first; hard periods can only lower the threshold.
    together = gate_threshold(arrives, probability, miss_share)
    of_arrivals, when = probability[arrives], period[arrives]
    periods, count = np.unique(when, return_counts=True)
    alone = [
        gate_threshold(np.ones(n, np.bool_), of_arrivals[when == one], miss_share)
        for one, n in zip(periods, count, strict=True)
        if n >= LEAST_ARRIVALS
    ]
    return min(together, float(np.quantile(alone, HARD_PERIODS))) if alone else together


def half_week(tick_s: Floats) -> Floats:
    """Number of the half week of instants, shape (n_rows,): from Monday 0:00 or Thursday 12:00 UTC on.

    >>> half_week(np.array([345599.0, 345600.0, 648000.0])).tolist()  # 1970-01-04, a Sunday; 5th; 8th at noon
    [1.0, 2.0, 3.0]
    """
    return np.floor((tick_s + MONDAY_OFFSET_S) / HALF_WEEK_S)


BAND = 1.02
"""Gaps between g and this much g count as the same."""
LEAST_SHARE = 0.25
"""Share of a pool's gaps that one band holds in a clockwork; people's gaps spread over orders of magnitude."""
SINCE, GAP = "log_since_arrival_s", "log_last_gap_s"
"""Columns that tell when the last job arrived, and how long after the one before."""


def bot_pools(corpus: Corpus, seen: Mask) -> tuple[str, ...]:
    """Pools of which one narrow band holds a large share of the gaps between arrivals, by name.

    The gaps are those before each instant that follows an arrival within a step of the grid, so nothing is read but
    features known at the instants.

    Parameters
    ----------
    corpus : rows of all pools
    seen : (N,) rows that may be looked at
    """
    if not {SINCE, GAP} <= set(corpus.feature_names):
        return ()
    # Both are logarithms of one more than the seconds, hence log1p and expm1 below.
    since, gap = (corpus.feature_names.index(name) for name in (SINCE, GAP))
    # Each gap is seen at the first instant after the arrival that ends it, so it counts about once.
    fresh = seen & (corpus.X[:, 0, since] <= np.log1p(STEP_S))
    gaps_s = np.expm1(corpus.X[:, 0, gap].astype(np.float64))
    return tuple(
        pool
        for i, pool in enumerate(corpus.pools)
        if clockwork(gaps_s[fresh & (corpus.pool_index == i)], BAND).share >= LEAST_SHARE
    )


# What was fitted and is kept in `metadata.json` beside the parameters.
_OF_DATA = ("feature_names_", "horizons_min_", "pools_", "bot_pools_", "rows_", "base_rates_", "unfolded_")
KEPT = (*_OF_DATA, "trained_from_s_", "trained_until_s_")
KEPT_ARRAYS = ("thresholds_f1_", "thresholds_f1_others_", "thresholds_gate_")


class WillJobsArrive:
    """One classifier a horizon, one model across pools, and thresholds for each horizon.

    Thresholds are chosen out of time but within the training data, on forecasts of several weeks, each made by what
    was learnt from the time before it (see `arrival_folds`); then all of the training time trains what is kept.

    Parameters
    ----------
    algorithm : key of `algorithms.ALGORITHMS`
    miss_share : share of the windows with arrivals that the gate may miss, in [0, 1)
    seed : of all draws
    settings : of the algorithm; None takes its defaults
    columns : names of the features that it may read, in any order; None: all. Rows keep all columns
    threshold : probability from which on jobs are said to arrive, to schedulers too; None: chosen, see above

    Attributes
    ----------
    horizons_min_ : (H,) horizons in minutes
    feature_names_ : (F,) names of the columns of the rows that it takes
    classifiers_ : (H,) trained classifiers
    thresholds_f1_ : (H,) probability from which on to say "jobs arrive", best F1; for reporting
    thresholds_f1_others_ : (H,) the same chosen on the pools that are no bots, for reports without those
    thresholds_gate_ : (H,) below it a scheduler may give GPUs away: what keeps the missed windows with arrivals at
        `miss_share` of them, see `thresholds.lasting_gate`
    bot_pools_ : pools whose arrivals ran like clockwork in training, see `bots`
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    pools_ : pools that it has learnt from
    rows_, base_rates_ : (H,) training rows, and the share of windows with arrivals in them
    feature_spans_ : column that it may read -> least and largest value of all horizons' training rows; see
        `feature_spans`
    unfolded_ : horizons in minutes for which the training time held no fold, whose thresholds are not chosen on data
    """

    name: ClassVar[str] = "will-jobs-arrive"
    answers: ClassVar[Question] = Question.ARRIVALS
    algorithms: ClassVar[Sequence[str]] = tuple(ALGORITHMS)

    def __init__(
        self,
        algorithm: str = "lightgbm",
        miss_share: float = 0.05,
        seed: int = 0,
        settings: Settings | None = None,
        columns: Sequence[str] | None = None,
        threshold: float | None = None,
    ):
        self.algorithm = algorithm
        self.miss_share = miss_share
        self.seed = seed
        self.settings = settings
        self.columns = columns
        self.threshold = threshold

    def fit(self, corpus: Corpus, until_s: float, forecasts: Sequence[OutOfFold] | None = None) -> Self:
        """Train on the rows of a corpus whose windows lie before an instant.

        Parameters
        ----------
        corpus : rows of all pools; may reach past `until_s`
        until_s : seconds from the epoch; no window that reaches it is read
        forecasts : (H,) this algorithm's forecasts out of fold on the same corpus, where they are known already

        Raises
        ------
        TrainingError
            A horizon has no row whose window ends before `until_s`.
        RegistryError
            There is no such algorithm, the settings are another's, or `columns` names what there is not.
        """
        seen = corpus.until(until_s)
        self.horizons_min_ = tuple(corpus.horizons_min)
        self.feature_names_ = tuple(corpus.feature_names)
        self.trained_from_s_ = float(corpus.tick_s[seen].min()) if seen.any() else until_s
        self.trained_until_s_ = float(until_s)
        self.pools_ = tuple(corpus.pools[i] for i in np.unique(corpus.pool_index[seen]))
        self.bot_pools_ = bot_pools(corpus, seen)
        # Before the folds: too short a time is told before anything is trained.
        rows = [self._training_rows(corpus, horizon) for horizon in range(len(self.horizons_min_))]
        if forecasts is None:
            forecasts = out_of_fold(self.trainer, corpus, self.trained_from_s_, until_s)
        # Thresholds are of classifiers of the same kind on earlier time; those below have seen all of it.
        self._choose_thresholds(corpus, forecasts)
        self.rows_ = tuple(int(mask.sum()) for mask in rows)
        self.base_rates_ = tuple(float(corpus.arrives[mask, h].mean()) for h, mask in enumerate(rows))
        self.classifiers_ = [self.trainer.fitted(corpus, h, mask) for h, mask in enumerate(rows)]
        spans = feature_spans(self.feature_names_, (corpus.X[mask, h] for h, mask in enumerate(rows)))
        self.feature_spans_ = {
            name: span for name, span in spans.items() if self.columns is None or name in self.columns
        }
        return self

    @property
    def trainer(self) -> Learner:
        """How its classifiers are trained; once `feature_names_` are known."""
        return Learner(self.algorithm, self.seed, self.settings, self._positions())

    def _positions(self) -> tuple[int, ...] | None:
        """Of the columns that it may read, in the rows' order."""
        if self.columns is None:
            return None
        unknown = sorted(set(self.columns) - set(self.feature_names_))
        if unknown or not self.columns:
            named = ", ".join(unknown) or "none"
            raise RegistryError(f"{self.name}: columns: {named}; choose from {', '.join(self.feature_names_)}")
        # In the rows' order, whatever the order of `columns`: equal sets, equal models.
        return tuple(i for i, name in enumerate(self.feature_names_) if name in set(self.columns))

    def _choose_thresholds(self, corpus: Corpus, forecasts: Sequence[OutOfFold]) -> None:
        self.unfolded_ = tuple(
            k for k, described in zip(self.horizons_min_, forecasts, strict=True) if not len(described)
        )
        # A threshold by one constant would cut off another one, of as good as the same rows.
        forecasts = [described.ranking for described in forecasts]
        # A bot is forecast nearly perfectly and would raise the threshold for people's pools.
        bots = [i for i, pool in enumerate(corpus.pools) if pool in self.bot_pools_]
        human = [described.picked(~np.isin(corpus.pool_index[described.row], bots)) for described in forecasts]
        best = [best_f1_threshold(described.arrives, described.probability) for described in forecasts]
        others = [best_f1_threshold(described.arrives, described.probability) for described in human]
        self.thresholds_f1_ = np.array(best)
        # With bots alone there is nothing to choose by; the other threshold stands in.
        self.thresholds_f1_others_ = np.where([len(described) > 0 for described in human], others, best)
        if self.threshold is not None:
            self.thresholds_f1_ = self.thresholds_f1_others_ = np.full(len(best), self.threshold)
        # Kept for `take`, which chooses anew with other care; not saved.
        self._of_folds = [
            (described.arrives, described.probability, half_week(corpus.tick_s[described.row]))
            for described in forecasts
        ]
        self.take(Care(miss_share=self.miss_share))

    def take(self, care: Care) -> None:
        """Choose the gate's thresholds anew. Only after `fit`: what `load` reads does not hold what they come from."""
        self.miss_share = care.miss_share
        lasting = np.array([lasting_gate(*described, self.miss_share) for described in self._of_folds])
        self.thresholds_gate_ = lasting if self.threshold is None else np.full(len(lasting), self.threshold)

    def _training_rows(self, corpus: Corpus, horizon: int) -> Mask:
        rows = training_rows(corpus, horizon, self.trained_until_s_)
        if not rows.any():
            until = datetime.fromtimestamp(self.trained_until_s_, UTC).isoformat()
            raise TrainingError(
                f"{self.name}: no window of {horizon_label(self.horizons_min_[horizon])} ends before {until}; "
                f"train on a longer trace or leave the horizon out"
            )
        return rows

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
        return np.stack([self.horizon_proba(X[:, h], h) for h in range(len(self.horizons_min_))], axis=1)

    def horizon_proba(self, X: NDArray[Any], horizon: int) -> Floats:
        """Probabilities of one horizon, (n_rows,), of rows of all columns, (n_rows, F)."""
        return self.classifiers_[horizon].predict_proba(self.trainer.read(X))

    def predict(self, X: NDArray[Any], *, gate: bool = False) -> Mask:
        """Whether jobs will arrive, (n_rows, H): from the gate's thresholds, or those with the best F1."""
        return self.predict_proba(X) >= (self.thresholds_gate_ if gate else self.thresholds_f1_)

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
        """Importance of each feature that it may read by horizon, in its algorithm's own measure."""
        positions = self._positions()
        names = self.feature_names_ if positions is None else [self.feature_names_[i] for i in positions]
        return {
            horizon_label(horizon_min): dict(zip(names, classifier.gain.tolist(), strict=True))
            for horizon_min, classifier in zip(self.horizons_min_, self.classifiers_, strict=True)
        }

    def told_settings(self) -> dict[str, Any]:
        """Of its algorithm, JSON-ready."""
        return asdict(self.settings or algorithm_named(self.algorithm).settings())

    @classmethod
    def read_settings(cls, algorithm: str, saved: Mapping[str, Any]) -> Settings | None:
        """What `told_settings` told."""
        return settings_from_dict(algorithm, saved)

    @classmethod
    def read_classifier(cls, algorithm: str, folder: Path, stem: str) -> Classifier:
        """One horizon's, from the files that it wrote."""
        return read_classifier(algorithm, folder, stem)

    def save(self, folder: Path) -> None:
        """Write `metadata.json` and files a horizon in the algorithms' own formats; equal models, equal bytes."""
        result = {
            "algorithm": self.algorithm,
            "miss_share": self.miss_share,
            "seed": self.seed,
            "settings": self.told_settings(),
            "columns": None if self.columns is None else list(self.columns),
            "threshold": self.threshold,
            "feature_spans": self.feature_spans_,
            **kept(self, (*KEPT, *KEPT_ARRAYS)),
        }
        write_metadata(folder, self.name, result)
        for horizon_min, classifier in zip(self.horizons_min_, self.classifiers_, strict=True):
            for name, content in classifier.files(horizon_label(horizon_min)).items():
                (folder / name).write_bytes(content)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        RegistryError
            The folder does not hold such a model. Whether its features are today's is `check_features`' to say.
        """
        saved = read_metadata(folder, cls.name)
        algorithm = saved["algorithm"]
        # Through the class, since learners that packages bring keep settings of their own.
        settings = cls.read_settings(algorithm, saved["settings"])
        model = cls(algorithm, saved["miss_share"], saved["seed"], settings, saved["columns"], saved.get("threshold"))
        take_up(model, saved, KEPT, KEPT_ARRAYS)
        model.feature_spans_ = saved.get("feature_spans", {})  # versions of before have none
        stems = [horizon_label(horizon_min) for horizon_min in model.horizons_min_]
        model.classifiers_ = [cls.read_classifier(algorithm, folder, stem) for stem in stems]
        return model


def _shown(name: str | None) -> str:
    return "missing" if name is None else repr(name)
