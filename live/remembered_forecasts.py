"""Forecasts of one instant, asked once and remembered: futures ask the same again and again."""

from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import count
from typing import Any

from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.jobs import Job

QUESTIONS = frozenset(
    (
        "will_jobs_arrive", "arrival_probability", "new_load", "load_quantile", "load_quantiles",
        "duration_bin", "duration_probabilities", "duration_s",
    )
)  # fmt: skip
"""Of `domain.forecasts.ForecastSource` and `UncertainForecasts`."""

Answers = Mapping[tuple[Any, ...], Any]
"""By question, what it is about, and more of it."""
ALONE, NOTHING = nullcontext(), dict[tuple[Any, ...], Any]()


class Remembered:
    """Implements `domain.forecasts.ForecastSource`: answers stand still at the instant that the source has come to.

    Jobs are known by what they say of themselves, not by their numbers: runs that stand at several instants count the
    same jobs differently.

    Parameters
    ----------
    source : asked once each question
    asking : held while it is asked: others may ask what it rests on, which may have moved on since
    told : answers of before; see `of_jobs`
    """

    def __init__(
        self, source: ForecastSource, asking: AbstractContextManager[Any] = ALONE, told: Answers = NOTHING
    ) -> None:
        self.horizons_min = source.horizons_min
        self._source, self._asking, self._answers, self._numbers = source, asking, dict(told), count()

    def of_jobs(self, names: Container[str]) -> Answers:
        """What was told of some jobs, by id: that holds at later instants, for it is as of when they came."""
        told = list(self._answers.items())
        return {key: one for key, one in told if key[0].startswith("duration") and key[1][0] in names}

    def advance(self, now_s: float) -> None:
        """They stand still."""

    def __getattr__(self, question: str) -> Callable[..., Any]:
        if question not in QUESTIONS:
            raise AttributeError(question)

        def answer(about: Any, *more: Any) -> Any:
            key = (question, _named(about), *more)
            if key not in self._answers:
                # A number of its own: sources keep answers by it.
                about = replace(about, seq=next(self._numbers)) if isinstance(about, Job) else about
                with self._asking:
                    self._answers[key] = getattr(self._source, question)(about, *more)
            return self._answers[key]

        # Found at once from now on.
        setattr(self, question, answer)
        return answer


def _named(about: Any) -> Any:
    return (about.job_id, about.pool, about.gpus, about.user, about.tag) if isinstance(about, Job) else about
