"""How each predictor is trained, by its name."""

from collections.abc import Callable, Mapping

from jobcast.domain.errors import ConfigError
from jobcast.models.duration_booster import RULES
from jobcast.models.job_duration import JobDuration
from jobcast.models.load_sliding import SlidingMax
from jobcast.models.new_load import NewLoad
from jobcast.models.regimes import RegimePrior
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.forecast_specs import CURVES
from jobcast.pipelines.recipes import arrivals, durations, loads, regimes
from jobcast.pipelines.recipes.common import Recipe, Trained, TrainingData, TrainSettings, parse_horizons

__all__ = [
    "DATA",
    "RECIPES",
    "Recipe",
    "TrainSettings",
    "Trained",
    "TrainingData",
    "check_tune",
    "parse_horizons",
    "recipe_of",
]

RECIPES: Mapping[str, tuple[tuple[str, ...], Recipe]] = {
    WillJobsArrive.name: (arrivals.ALGORITHMS, arrivals.train_arrivals),
    NewLoad.name: (loads.ALGORITHMS, loads.train_loads),
    JobDuration.name: (durations.ALGORITHMS, durations.train_durations),
    RegimePrior.name: (regimes.ALGORITHMS, regimes.train_regimes),
}
"""Predictor -> its algorithms, the default first, and how it is trained."""
DATA: Mapping[str, Callable[..., TrainingData]] = {RegimePrior.name: regimes.regime_data}
"""Predictor -> (trace, from, until, least jobs of a pool) -> its training data, where not `TrainingData.of`."""


UNTUNED = frozenset({*regimes.ALGORITHMS, SlidingMax.algorithm, *RULES})
"""Algorithms without settings to search."""


def check_tune(predictor: str, algorithm: str | None, tune: int) -> None:
    """Raise a ConfigError for a search of what has no settings."""
    name, _ = recipe_of(predictor, algorithm)
    if tune and name in UNTUNED:
        raise ConfigError(f"--tune {tune}: {name} of {predictor} has no settings to search; leave it out")


def recipe_of(predictor: str, algorithm: str | None) -> tuple[str, Recipe]:
    """Algorithm and recipe; ConfigError lists what there is."""
    if predictor not in RECIPES:
        raise ConfigError(f"{predictor!r} is no predictor; choose from {', '.join((*RECIPES, CURVES))}")
    algorithms, recipe = RECIPES[predictor]
    if algorithm is not None and algorithm not in algorithms:
        raise ConfigError(f"--algorithm {algorithm}: {predictor} knows {', '.join(algorithms)}")
    return algorithm or algorithms[0], recipe
