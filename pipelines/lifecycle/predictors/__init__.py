"""The lives of predictors, by the question that they answer."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import Question
from jobcast.domain.suggestions import did_you_mean
from jobcast.models.predictors import OURS, PREDICTORS, answers_of
from jobcast.pipelines.experiments.forecast_specs import check_known

# A life imports its models: those of the others stay unloaded until they are asked for.
if TYPE_CHECKING:
    from jobcast.pipelines.lifecycle.predictors.life import Life

LIVES: Mapping[Question, str] = {
    Question.ARRIVALS: "trio:Arrivals",
    Question.LOADS: "trio:Loads",
    Question.DURATIONS: "trio:Durations",
    Question.REGIMES: "regimes:Regimes",
    Question.ACCURACIES: "accuracies:Accuracies",
    Question.EPOCH_TIMES: "epoch_times:EpochTimes",
    Question.COMPLETIONS: "sizes:Completions",
    Question.SIZES: "sizes:Sizes",
    Question.WAITS: "queue_waits:QueueWaits",
    Question.GOODPUT: "goodputs:Goodputs",
    Question.TASK_ORDER: "task_order:TaskOrder",
    Question.DEVICE_ORDER: "task_order:TaskOrder",
}
"""Module of this package and class, imported when a predictor of that question is asked for."""


def life_of(name: str) -> "type[Life[Any]]":
    """The life of a predictor by its name. Raises ConfigError where there is no such predictor."""
    if name not in PREDICTORS:
        raise ConfigError(f"{name!r} is no predictor; {did_you_mean(name, PREDICTORS)}known: {', '.join(PREDICTORS)}")
    module, _, life = LIVES[answers_of(name)].partition(":")
    # Places are text so that a stage of one predictor depends on the code of its own alone; see stages.code.
    found: type[Life[Any]] = getattr(import_module(f"{__name__}.{module}"), life)
    return found


def find_predictor(name: str, algorithm: str | None = None, settings: Any = None) -> "Life[Any]":
    """A predictor by its name, not trained yet.

    Parameters
    ----------
    algorithm : one of its own; None takes the default
    settings : `recipes.common.TrainSettings`; None takes the defaults

    Raises
    ------
    ConfigError
        There is no such predictor, or it does not know the algorithm.
    """
    return life_of(name)(PREDICTORS[name], algorithm, settings)


def check_capable(command: str, name: str, elsewhere: tuple[str, ...] = ()) -> None:
    """Raise a ConfigError for a predictor that `train`, `evaluate` or `predict` can do nothing with.

    Parameters
    ----------
    elsewhere : more that the command knows, to be listed
    """
    if name not in PREDICTORS or command not in life_of(name).commands:
        # Installed predictors are listed too, but for this one, and without importing them.
        ours = [one for one in OURS if command in life_of(one).commands]
        check_known(command, name, (*ours, *(one for one in PREDICTORS if one not in OURS and one != name)), elsewhere)
