"""A search for settings of a model: trials by Optuna's TPE, the defaults first, so that it cannot end worse than they.

The study lives in memory; equal seeds give equal searches, and an interrupt leaves nothing behind.

Optuna's samplers for several objectives, asked for points of a unit cube and told their values.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError


def _nsga2(population: int, seed: int) -> Any:
    from optuna.samplers import NSGAIISampler

    return NSGAIISampler(population_size=population, seed=seed)


def _tpe(population: int, seed: int) -> Any:
    from optuna.samplers import TPESampler

    return TPESampler(n_startup_trials=population, multivariate=True, seed=seed)


SAMPLERS: Mapping[str, Callable[[int, int], Any]] = {"nsga2": _nsga2, "tpe": _tpe}


class OptunaProposer:
    """A study in memory whose trials are asked for and told in generations.

    Parameters
    ----------
    sampler : of `SAMPLERS`
    first : (n, dimensions) the first generation; the later ones are as large
    objectives : how many, all to be minimised
    seed : of all draws

    Raises ConfigError for an unknown sampler.
    """

    def __init__(self, sampler: str, first: Floats, objectives: int, seed: int) -> None:
        import optuna

        if sampler not in SAMPLERS:
            raise ConfigError(f"sampler {sampler!r} is unknown; choose from {', '.join(SAMPLERS)}")
        # Optuna would print a line a trial.
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        size, self._dimensions = first.shape
        made = SAMPLERS[sampler](size, seed)
        self._study = optuna.create_study(directions=["minimize"] * objectives, sampler=made)
        self._size = size
        self._space = {
            f"x{number}": optuna.distributions.FloatDistribution(0.0, 1.0) for number in range(self._dimensions)
        }
        for point in first:
            # The first generation is given, so that all proposers begin alike.
            self._study.enqueue_trial(dict(zip(self._space, point.tolist(), strict=True)))
        self._asked: list[optuna.Trial] = []

    def ask(self) -> Floats:
        """The next generation, (n, dimensions)."""
        self._asked = [self._study.ask(dict(self._space)) for _ in range(self._size)]
        return np.array([[trial.params[name] for name in self._space] for trial in self._asked])

    def tell(self, values: Floats) -> None:
        """Values of the generation, (n, n_objectives)."""
        for trial, value in zip(self._asked, values, strict=True):
            self._study.tell(trial, value.tolist())


WARM_UP_TRIALS = 4
"""Trials that run to their end before any is pruned against their median."""
Progress = Callable[[int, int], object]
Losses = Callable[[dict[str, Any]], Iterable[float]]
"""The loss of settings after each fold, over all folds up to it; the last one counts."""


@dataclass(frozen=True, slots=True)
class Range:
    """Where a setting is looked for, both ends included; of whole numbers where the ends are."""

    low: float
    high: float
    log: bool = True

    def suggest(self, trial: Any, name: str) -> float:
        """A value that a trial takes."""
        # Whole numbers at the ends say that the setting takes whole numbers.
        suggest = trial.suggest_int if isinstance(self.low, int) else trial.suggest_float
        value: float = suggest(name, self.low, self.high, log=self.log)
        return value


def search_settings(
    losses: Losses,
    ranges: Mapping[str, Range],
    first: Mapping[str, Any],
    trials: int,
    seed: int,
    prunes: bool = True,
    progress: Progress | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The settings of least loss, and every trial in order.

    Parameters
    ----------
    losses : of settings by name
    ranges : where each is looked for
    first : settings of the first trial
    prunes : whether a trial is not followed further where it does worse than the median of the earlier ones
    progress : called with (trials done, trials in all)

    Returns
    -------
    Settings by name; and of each trial `trial`, `state` (complete, pruned), `value` (of a pruned one that of the folds
    it saw), `folds` and its settings.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=WARM_UP_TRIALS) if prunes else optuna.pruners.NopPruner()
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="minimize", sampler=sampler, pruner=pruner)

    def value(trial: optuna.Trial) -> float:
        loss = 0.0
        for number, loss in enumerate(losses({name: one.suggest(trial, name) for name, one in ranges.items()})):
            trial.report(loss, number)
            # After the report: the median of earlier trials is of the same number of folds.
            if trial.should_prune():
                raise optuna.TrialPruned
        return loss

    def report(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if progress is not None:
            progress(trial.number + 1, trials)

    # The defaults first: the best of the search is at least as good as they.
    study.enqueue_trial(dict(first))
    study.optimize(value, n_trials=trials, callbacks=[report])
    return {name: study.best_params[name] for name in ranges}, [_row(trial, ranges) for trial in study.trials]


def _row(trial: Any, ranges: Mapping[str, Range]) -> dict[str, Any]:
    reported = trial.intermediate_values
    # A pruned trial has no value of its own; its last report stands for it.
    value = trial.value if trial.value is not None else reported[max(reported)]
    row = {"trial": trial.number, "state": trial.state.name.lower(), "value": value, "folds": len(reported)}
    return {**row, **{name: trial.params[name] for name in ranges}}
