"""Optuna's samplers for several objectives, asked for points of a unit cube and told their values."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
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


SAMPLERS: Mapping[str, Callable[[int, int], Any]] = MappingProxyType({"nsga2": _nsga2, "tpe": _tpe})


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
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        size, self._dimensions = first.shape
        made = SAMPLERS[sampler](size, seed)
        self._study = optuna.create_study(directions=["minimize"] * objectives, sampler=made)
        self._size = size
        self._space = {
            f"x{number}": optuna.distributions.FloatDistribution(0.0, 1.0) for number in range(self._dimensions)
        }
        for point in first:
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
