"""Models of every predictor by name: ours, and those that packages bring through `jobcast.predictors`."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, cast

from jobcast.domain.errors import RegistryError
from jobcast.domain.forecasts import Question
from jobcast.domain.plugins import WithInstalled, broken, load_point, points_of
from jobcast.models.predictor import Model

ENTRY_POINTS = "jobcast.predictors"
"""An entry point names a `Model`: a class with a question of `domain.forecasts` in `answers`."""
KIND = "predictor"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model of ours is, and as what MLflow serves it: `MODULE:NAME`, imported when first needed."""

    answers: Question
    model: str
    served: str


OURS: Mapping[str, Place] = {
    "will-jobs-arrive": Place(
        Question.ARRIVALS,
        "jobcast.models.will_jobs_arrive:WillJobsArrive",
        "jobcast.models.pyfunc:ServedWillJobsArrive",
    ),
    "new-load": Place(Question.LOADS, "jobcast.models.new_load:NewLoad", "jobcast.models.pyfunc:ServedNewLoad"),
    "job-duration": Place(
        Question.DURATIONS, "jobcast.models.job_duration:JobDuration", "jobcast.models.pyfunc:ServedJobDuration"
    ),
    "regime": Place(
        Question.REGIMES,
        "jobcast.models.regimes.prior:RegimePrior",
        "jobcast.models.regimes.guarded:ServedRegimePrior",
    ),
    "accuracy-curve": Place(
        Question.ACCURACIES,
        "jobcast.models.curves.accuracy_curve:AccuracyCurve",
        "jobcast.models.curves.accuracy_curve:ServedAccuracyCurve",
    ),
    "epoch-time": Place(
        Question.EPOCH_TIMES,
        "jobcast.models.epoch_time.epoch_time:EpochTime",
        "jobcast.models.epoch_time.epoch_time:ServedEpochTime",
    ),
    "completion-time": Place(
        Question.COMPLETIONS,
        "jobcast.models.completion.completion_time:CompletionTime",
        "jobcast.models.completion.completion_time:ServedCompletionTime",
    ),
    "job-size": Place(
        Question.SIZES,
        "jobcast.models.completion.job_size:JobSize",
        "jobcast.models.completion.job_size:ServedJobSize",
    ),
    "queue-wait": Place(
        Question.WAITS, "jobcast.models.queue_wait:QueueWait", "jobcast.models.queue_wait:ServedQueueWait"
    ),
    "goodput": Place(
        Question.GOODPUT,
        "jobcast.models.fitted_goodput:FittedGoodput",
        "jobcast.models.fitted_goodput:ServedGoodput",
    ),
    "mlf-policy": Place(
        Question.TASK_ORDER,
        "jobcast.models.scheduling.policy:MlfPolicy",
        "jobcast.models.scheduling.policy:ServedSchedulingPolicy",
    ),
    "device-rl": Place(
        Question.DEVICE_ORDER,
        "jobcast.models.scheduling.policy:DevicePolicy",
        "jobcast.models.scheduling.policy:ServedSchedulingPolicy",
    ),
}
"""Ours, in the order in which they are told; the one that answers a question where no other is named."""


def model_named(name: str) -> type[Model]:
    """A predictor's model. Raises RegistryError that tells what there is."""
    if name not in PREDICTORS:
        raise RegistryError(f"predictor {name!r} is not known; choose from {', '.join(PREDICTORS)}")
    return PREDICTORS[name]


def answers_of(name: str) -> Question:
    """The question that a predictor answers. Raises as `model_named`."""
    return OURS[name].answers if name in OURS else model_named(name).answers


def ours_for(question: Question) -> str:
    """Our predictor of a question: whoever asks it without a name means this one.

    >>> ours_for(Question.LOADS)
    'new-load'
    """
    # The first of the table, which is in the order of preference.
    return next(name for name, place in OURS.items() if place.answers == question)


def load_predictor(name: str, folder: Path) -> Any:
    """A model from its folder. Raises RegistryError where there is no such predictor, or not in the folder."""
    return model_named(name).load(folder)


def served_form(name: str) -> Any:
    """What MLflow serves a model by: its own class in `served`, else the form of our model of the same question.

    Raises as `model_named`.
    """
    # A package's class may bring its own form; ours are named in the table and imported late.
    own = None if name in OURS else getattr(model_named(name), "served", None)
    return own or resolve_name(OURS[ours_for(answers_of(name))].served)


_installed = points_of(ENTRY_POINTS)


@cache
def _installed_model(point: EntryPoint) -> type[Model]:
    """The class that an entry point names. Raises ConfigError where it cannot be used, and says why."""
    found = load_point(KIND, point)
    if not inspect.isclass(found):
        raise broken(KIND, point, f"is {found!r} and no class")
    # Versions are registered under the class's name: another one would never be found again.
    if getattr(found, "name", None) != point.name:
        raise broken(KIND, point, f"names itself {getattr(found, 'name', None)!r}")
    if getattr(found, "answers", None) not in {place.answers for place in OURS.values()}:
        asked = ", ".join(place.answers for place in OURS.values())
        raise broken(KIND, point, f"answers {getattr(found, 'answers', None)!r}, which is none of {asked}")
    lacking = [part for part in ("save", "load") if not callable(getattr(found, part, None))]
    if lacking:
        raise broken(KIND, point, f"has no {', '.join(lacking)}")
    return cast(type[Model], found)


PREDICTORS: Mapping[str, type[Model]] = WithInstalled(
    OURS, lambda name: cast(type[Model], resolve_name(OURS[name].model)), lambda: _installed(), _installed_model
)
"""Models by name, ours first."""
