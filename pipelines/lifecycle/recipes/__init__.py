"""How the models of a trace's jobs are trained, by the question that they answer."""

from collections.abc import Mapping
from functools import partial

from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import Question
from jobcast.models.algorithms import PAPER
from jobcast.models.completion.completion_time import CompletionTime
from jobcast.models.completion.job_size import JobSize
from jobcast.models.duration_booster import RULES
from jobcast.models.evaluation.sizes import run_time_errors, size_errors
from jobcast.models.load_sliding import SlidingMax
from jobcast.models.predictor import Model
from jobcast.models.predictors import PREDICTORS, answers_of
from jobcast.models.queue_wait import QueueWait
from jobcast.pipelines.lifecycle.recipes import arrivals, durations, loads, regimes
from jobcast.pipelines.lifecycle.recipes.common import AUTO, Recipe

# Predictors of tables have no recipe: their lives train them.
RECIPES: Mapping[Question, Recipe] = {
    Question.ARRIVALS: arrivals.train_arrivals,
    Question.LOADS: loads.train_loads,
    Question.DURATIONS: durations.train_durations,
    Question.REGIMES: regimes.train_regimes,
    Question.SIZES: partial(durations.train_of_ended, errors=size_errors),
    Question.COMPLETIONS: partial(durations.train_of_ended, errors=run_time_errors),
    Question.WAITS: durations.train_waits,
}
UNTUNED = frozenset(
    {
        *regimes.ALGORITHMS,
        JobSize.algorithm,
        CompletionTime.algorithm,
        QueueWait.algorithm,
        SlidingMax.algorithm,
        *RULES,
        PAPER,
    }
)
"""Algorithms without settings to search."""


def algorithms_of(model: type[Model]) -> tuple[str, ...]:
    """The default first: whichever did best on the end of the training time, where there are several."""
    # The paper's own is offered only where there are others to hold it against.
    own = tuple(model.algorithms)
    return (AUTO, *own, PAPER) if len(own) > 1 else own


def recipe_of(predictor: str, algorithm: str | None) -> tuple[str, Recipe]:
    """Algorithm and recipe of a predictor of a trace's jobs; ConfigError lists what there is."""
    if predictor not in PREDICTORS or answers_of(predictor) not in RECIPES:
        known = (name for name in PREDICTORS if answers_of(name) in RECIPES)
        raise ConfigError(f"{predictor!r} is no predictor of a trace's jobs; choose from {', '.join(known)}")
    # An installed predictor of the same question is trained by the same recipe.
    model = PREDICTORS[predictor]
    algorithms = algorithms_of(model)
    if algorithm is not None and algorithm not in algorithms:
        raise ConfigError(f"--algorithm {algorithm}: {predictor} knows {', '.join(algorithms)}")
    return algorithm or algorithms[0], partial(RECIPES[model.answers], kind=model)
