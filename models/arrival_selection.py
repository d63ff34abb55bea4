"""Which algorithm forecasts arrivals best on later weeks: the choice behind `auto`.

A search for an algorithm's settings of arrivals over folds in order of time.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import Corpus
from jobcast.models import scores
from jobcast.models.algorithms import ALGORITHMS, MEMBERS, AverageSettings, Settings, algorithm_named
from jobcast.models.arrival_folds import FOLDS, Learner, OutOfFold, Step, averaged, folds_of, out_of_fold
from jobcast.models.classifiers import BoosterSettings, ForestSettings, LogisticSettings
from jobcast.models.setting_search import Progress, Range, search_settings

FALLBACK = next(iter(ALGORITHMS))
"""Where the training time is too short for folds: the first."""
SMALLEST_LOSS = 1e-9
"""Log loss of a fold in which nothing, or everything, was bound to happen."""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Forecasts out of fold of all algorithms.

    Attributes
    ----------
    forecasts : algorithm -> its forecasts by horizon, in the order in which equals are preferred
    horizons_min : (H,) horizons in minutes
    """

    forecasts: Mapping[str, Sequence[OutOfFold]]
    horizons_min: tuple[float, ...]

    def winner(self, folds: int | None = None) -> str:
        """Least mean over horizons of the relative log loss, on the first so many folds; None: on all.

        The relative log loss of a fold is its log loss divided by that of always saying the fold's own share of
        windows with arrivals, so that long horizons, of which less can be known, do not outweigh short ones.
        """
        means = {name: self._mean_loss(parts, folds) for name, parts in self.forecasts.items()}
        known = {name: mean for name, mean in means.items() if mean is not None}
        # The first of equals, and so the order of `ALGORITHMS` decides ties.
        return min(known, key=lambda name: known[name]) if known else FALLBACK

    def _mean_loss(self, parts: Sequence[OutOfFold], folds: int | None) -> float | None:
        # Horizons without a fold of both classes say nothing of any algorithm.
        losses = [relative_log_loss(cut_to(described, folds)) for described in parts]
        return scores.mean(np.array([loss for loss in losses if loss is not None]))

    def table(self) -> list[dict[str, Any]]:
        """Figures of each algorithm by horizon, means over folds; the mean over all horizons last, the winner first."""
        rows: list[dict[str, Any]] = []
        rank: dict[str, float] = {}
        for name, parts in self.forecasts.items():
            named = zip(self.horizons_min, parts, strict=True)
            figures = {horizon_label(k): _figures(described) for k, described in named if len(described)}
            if figures:
                blocks = list(figures.values())
                figures["all"] = {key: _mean([block[key] for block in blocks]) for key in blocks[0]}
                overall = figures["all"]["relative_log_loss"]
                rank[name] = math.inf if overall is None else overall
            rows += [{"algorithm": name, "horizon": horizon, **block} for horizon, block in figures.items()]
        return sorted(rows, key=lambda row: rank[row["algorithm"]])


def select(
    corpus: Corpus,
    from_s: float,
    until_s: float,
    seed: int = 0,
    settings: Mapping[str, Settings] | None = None,
    done: Step | None = None,
) -> Selection:
    """Forecast the folds of [from, until) by every algorithm.

    Parameters
    ----------
    corpus : rows of all pools
    from_s, until_s : training time, seconds from the epoch
    seed : of all draws
    settings : algorithm -> settings other than the defaults
    done : called as each algorithm's horizon is done
    """
    chosen = dict(settings or {})
    rows: dict[str, list[OutOfFold]] = {}
    for name in ALGORITHMS:
        # Its members were just forecast on the same folds: their mean spares training them again.
        if name == "average" and averages_the_others(chosen):
            rows[name] = averaged([rows[member] for member in MEMBERS])
        else:
            rows[name] = out_of_fold(Learner(name, seed, chosen.get(name)), corpus, from_s, until_s, done)
    return Selection(rows, tuple(corpus.horizons_min))


def averages_the_others(settings: Mapping[str, Settings]) -> bool:
    """Whether the average's members are what the algorithms of their names are."""
    average = settings.get("average", AverageSettings())
    return all(
        settings.get(name, ALGORITHMS[name].settings()) == getattr(average, name.replace("-", "_")) for name in MEMBERS
    )


def cut_to(predicted: OutOfFold, folds: int | None) -> OutOfFold:
    """Forecasts of the first so many folds."""
    return predicted if folds is None else predicted.picked(predicted.fold < folds)


def relative_log_loss(predicted: OutOfFold) -> float | None:
    """Mean over folds of the log loss divided by that of the fold's share; None without a fold of both classes."""
    # A fold of one class has no entropy to divide by.
    return _mean([_log_loss(part) / _entropy(part) for part in _folds(predicted) if _entropy(part) > SMALLEST_LOSS])


def _figures(predicted: OutOfFold) -> dict[str, float | None]:
    parts = _folds(predicted)
    return {
        "relative_log_loss": relative_log_loss(predicted),
        "log_loss": _mean([_log_loss(part) for part in parts]),
        "pr_auc": _mean([scores.pr_auc(part.arrives, part.probability) for part in parts]),
        "ece": _mean([scores.ece(part.arrives, part.probability) for part in parts]),
        "folds": float(len(parts)),
        "rows": float(len(predicted)),
    }


def _folds(predicted: OutOfFold) -> list[OutOfFold]:
    return [predicted.picked(predicted.fold == number) for number in np.unique(predicted.fold)]


def _log_loss(predicted: OutOfFold) -> float:
    # Bounded: one forecast of 0 that came true would decide everything.
    of_truth = np.where(predicted.arrives, predicted.probability, 1.0 - predicted.probability)
    return float(-np.log(np.maximum(of_truth, SMALLEST_LOSS)).mean())


def _entropy(predicted: OutOfFold) -> float:
    share = np.full(len(predicted), predicted.arrives.mean())
    return _log_loss(OutOfFold(predicted.row, predicted.fold, predicted.arrives, share))


def _mean(values: Sequence[float | None]) -> float | None:
    return scores.mean(np.array([value for value in values if value is not None], np.float64))


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search found.

    Attributes
    ----------
    settings : of the least loss; the defaults where the time is too short for folds
    trials : in order, each with `trial`, `state` (complete, pruned), `value` (mean relative log loss, of a pruned one
        that of the folds it saw), `folds`, and its settings
    """

    settings: Settings
    trials: list[dict[str, Any]]


def tune_arrivals(
    corpus: Corpus,
    from_s: float,
    until_s: float,
    algorithm: str,
    trials: int,
    seed: int = 0,
    progress: Progress | None = None,
) -> Tuned:
    """Settings with the least relative log loss, mean over horizons and folds of [from, until).

    Parameters
    ----------
    corpus : rows of all pools; no window that reaches `until_s` is read
    from_s, until_s : training time, seconds from the epoch
    algorithm : key of `algorithms.ALGORITHMS`
    trials : at least 1
    seed : of the search (TPE) and of all that the algorithm draws
    progress : called with (trials done, trials in all)
    """
    default = algorithm_named(algorithm).settings()
    folds = _by_fold(corpus, from_s, until_s)
    if not folds:
        return Tuned(default, [])

    def losses(values: dict[str, Any]) -> Iterator[float]:
        learner, seen = Learner(algorithm, seed, _settings(default, values)), list[float]()
        for horizons in folds:
            # Told after each fold over all so far, so that bad trials end early.
            seen += [_loss(learner, corpus, *one) for one in horizons]
            yield float(np.mean(seen))

    best, rows = search_settings(losses, _ranges(default), flat(default), trials, seed, progress=progress)
    return Tuned(_settings(default, best), rows)


def _by_fold(corpus: Corpus, from_s: float, until_s: float) -> list[list[tuple[int, Any, Any]]]:
    """For each fold, each horizon that it has with both classes among what it forecasts: (horizon, known, later)."""
    folds: list[list[tuple[int, Any, Any]]] = [[] for _ in range(FOLDS)]
    for horizon in range(len(corpus.horizons_min)):
        for number, known, later in folds_of(corpus, horizon, from_s, until_s):
            # The relative loss divides by the fold's entropy, which one class does not have.
            if len(np.unique(corpus.arrives[later, horizon])) > 1:
                folds[number].append((horizon, known, later))
    return [fold for fold in folds if fold]


def _loss(learner: Learner, corpus: Corpus, horizon: int, known: Any, later: Any) -> float:
    X, arrives = corpus.horizon_matrix(horizon, later)
    probability = learner.fitted(corpus, horizon, known).predict_proba(X)
    result = OutOfFold(np.flatnonzero(later), np.zeros(len(arrives), np.int64), arrives, probability)
    loss = relative_log_loss(result)
    assert loss is not None  # both classes are there
    return loss


RANGES: Mapping[type, Mapping[str, Range]] = {
    BoosterSettings: {
        "trees": Range(60, 400),
        "leaves": Range(4, 24),
        "learning_rate": Range(0.015, 0.1),
        "min_rows_leaf": Range(50, 1000),
        "l2": Range(1.0, 300.0),
        "column_share": Range(0.2, 1.0, log=False),
    },
    LogisticSettings: {"inverse_l2": Range(1e-4, 1.0)},
    ForestSettings: {
        "trees": Range(40, 150, log=False),
        "min_rows_leaf": Range(5, 200),
        "column_share": Range(0.1, 1.0, log=False),
    },
}


def _ranges(default: Settings) -> dict[str, Range]:
    """Ranges by the names of `flat`."""
    if isinstance(default, AverageSettings):
        # The average's members have the ranges of their own kinds, under their names.
        parts = {name: RANGES[type(getattr(default, name))] for name in asdict(default)}
        return {f"{name}_{key}": one for name, part in parts.items() for key, one in part.items()}
    return dict(RANGES[type(default)])


def _settings(default: Settings, values: Mapping[str, Any]) -> Any:
    """Settings of the kind of some others, of values by the names of `flat`."""
    if isinstance(default, AverageSettings):
        parts = {name: getattr(default, name) for name in asdict(default)}
        own = {name: {key: values[f"{name}_{key}"] for key in RANGES[type(part)]} for name, part in parts.items()}
        return AverageSettings(**{name: _settings(part, own[name]) for name, part in parts.items()})
    return type(default)(**values)


def flat(settings: Settings) -> dict[str, Any]:
    """Settings by the names that trials have.

    >>> flat(LogisticSettings(inverse_l2=0.5))
    {'inverse_l2': 0.5}
    """
    result: dict[str, Any] = {}
    for name, value in asdict(settings).items():
        result |= {f"{name}_{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
    return result
