"""Forecasts of one instant, asked once and remembered: futures ask the same again and again."""

from collections.abc import Callable
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


class Remembered:
    """Implements `domain.forecasts.ForecastSource`: answers stand still at the instant that the source has come to.

    Jobs are known by what they say of themselves, not by their numbers: runs that stand at several instants count the
    same jobs differently.

    Parameters
    ----------
    source : asked once each question
    """

    def __init__(self, source: ForecastSource) -> None:
        self.horizons_min = source.horizons_min
        self._source, self._answers, self._numbers = source, dict[tuple[Any, ...], Any](), count()

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
                self._answers[key] = getattr(self._source, question)(about, *more)
            return self._answers[key]

        # Found at once from now on.
        setattr(self, question, answer)
        return answer


def _named(about: Any) -> Any:
    return (about.job_id, about.pool, about.gpus, about.user, about.tag) if isinstance(about, Job) else about
