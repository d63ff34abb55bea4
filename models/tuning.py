"""A search for an algorithm's settings of arrivals over folds in order of time."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jobcast.features.corpus import Corpus
from jobcast.models.algorithms import Settings, algorithm_named
from jobcast.models.arrival_folds import FOLDS, Learner, OutOfFold, folds_of
from jobcast.models.arrival_selection import relative_log_loss
from jobcast.models.average import AverageSettings
from jobcast.models.boosters import BoosterSettings
from jobcast.models.extra_trees import ForestSettings
from jobcast.models.logistic import LogisticSettings

WARM_UP_TRIALS = 4
"""Trials that run to their end before any is pruned against their median."""
Progress = Callable[[int, int], object]


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

    The first trial takes the defaults, so that the search cannot end worse on its folds. A trial reports after every
    fold, and is not followed further where it does worse than the median of the earlier ones. The study lives in
    memory; equal seeds give equal searches, and an interrupt leaves nothing behind.

    Parameters
    ----------
    corpus : rows of all pools; no window that reaches `until_s` is read
    from_s, until_s : training time, seconds from the epoch
    algorithm : key of `algorithms.ALGORITHMS`
    trials : at least 1
    seed : of the search (TPE) and of all that the algorithm draws
    progress : called with (trials done, trials in all)
    """
    import optuna

    default = algorithm_named(algorithm).settings()
    folds = _by_fold(corpus, from_s, until_s)
    if not folds:
        return Tuned(default, [])
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="minimize",
        sampler=optuna.samplers.TPESampler(seed=seed),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=WARM_UP_TRIALS),
    )

    def value(trial: optuna.Trial) -> float:
        learner = Learner(algorithm, seed, suggested(trial, default))
        seen: list[float] = []
        for number, horizons in enumerate(folds):
            seen += [_loss(learner, corpus, *one) for one in horizons]
            trial.report(float(np.mean(seen)), number)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(seen))

    def told(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if progress is not None:
            progress(trial.number + 1, trials)

    study.enqueue_trial(flat(default))
    study.optimize(value, n_trials=trials, callbacks=[told])
    return Tuned(
        suggested(optuna.trial.FixedTrial(study.best_params), default), [_row(trial) for trial in study.trials]
    )


def _by_fold(corpus: Corpus, from_s: float, until_s: float) -> list[list[tuple[int, Any, Any]]]:
    """For each fold, each horizon that it has with both classes among what it forecasts: (horizon, known, later)."""
    folds: list[list[tuple[int, Any, Any]]] = [[] for _ in range(FOLDS)]
    for horizon in range(len(corpus.horizons_min)):
        for number, known, later in folds_of(corpus, horizon, from_s, until_s):
            if len(np.unique(corpus.arrives[later, horizon])) > 1:
                folds[number].append((horizon, known, later))
    return [fold for fold in folds if fold]


def _loss(learner: Learner, corpus: Corpus, horizon: int, known: Any, later: Any) -> float:
    X, arrives = corpus.horizon_matrix(horizon, later)
    probability = learner.fitted(corpus, horizon, known).predict_proba(X)
    told = OutOfFold(np.flatnonzero(later), np.zeros(len(arrives), np.int64), arrives, probability)
    loss = relative_log_loss(told)
    assert loss is not None  # both classes are there
    return loss


def suggested(trial: Any, default: Settings, prefix: str = "") -> Any:
    """Settings of the kind of some others, as a trial suggests them."""
    if isinstance(default, AverageSettings):
        parts = {name: getattr(default, name) for name in asdict(default)}
        return AverageSettings(**{name: suggested(trial, part, f"{name}_") for name, part in parts.items()})
    return _RANGES[type(default)](trial, prefix)


def _booster(trial: Any, prefix: str) -> BoosterSettings:
    return BoosterSettings(
        trees=trial.suggest_int(f"{prefix}trees", 60, 400, log=True),
        leaves=trial.suggest_int(f"{prefix}leaves", 4, 24, log=True),
        learning_rate=trial.suggest_float(f"{prefix}learning_rate", 0.015, 0.1, log=True),
        min_rows_leaf=trial.suggest_int(f"{prefix}min_rows_leaf", 50, 1000, log=True),
        l2=trial.suggest_float(f"{prefix}l2", 1.0, 300.0, log=True),
        column_share=trial.suggest_float(f"{prefix}column_share", 0.2, 1.0),
    )


def _logistic(trial: Any, prefix: str) -> LogisticSettings:
    return LogisticSettings(inverse_l2=trial.suggest_float(f"{prefix}inverse_l2", 1e-4, 1.0, log=True))


def _forest(trial: Any, prefix: str) -> ForestSettings:
    return ForestSettings(
        trees=trial.suggest_int(f"{prefix}trees", 40, 150),
        min_rows_leaf=trial.suggest_int(f"{prefix}min_rows_leaf", 5, 200, log=True),
        column_share=trial.suggest_float(f"{prefix}column_share", 0.1, 1.0),
    )


_RANGES: Mapping[type, Callable[[Any, str], Settings]] = {
    BoosterSettings: _booster,
    LogisticSettings: _logistic,
    ForestSettings: _forest,
}


def flat(settings: Settings) -> dict[str, Any]:
    """Settings by the names that trials have.

    >>> flat(LogisticSettings(inverse_l2=0.5))
    {'inverse_l2': 0.5}
    """
    told: dict[str, Any] = {}
    for name, value in asdict(settings).items():
        told |= {f"{name}_{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
    return told


def _row(trial: Any) -> dict[str, Any]:
    reported = trial.intermediate_values
    value = trial.value if trial.value is not None else reported[max(reported)]
    return {
        "trial": trial.number,
        "state": trial.state.name.lower(),
        "value": value,
        "folds": len(reported),
        **trial.params,
    }
