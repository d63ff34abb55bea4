"""What a policy asked its forecasts and was told: kept beside a run, so that its decisions can be explained."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.jobs import Job
from jobcast.simulator.log import Floats, Ints

ARRIVES, LOAD, PROBABILITY, QUANTILE = "arrives", "load", "probability", "quantile"
"""Questions about a pool and a horizon: the methods of `domain.forecasts.Forecasts` and `UncertainForecasts`."""

Question = tuple[str, str, float, float]
"""(question, pool, horizon in seconds, level of a quantile or 0)."""


class Recording:
    """Implements `domain.forecasts.ForecastSource`: passes every question on and keeps what was answered anew.

    About pools one row is kept whenever an answer differs from the last one to the same question; about jobs the first
    answer. Whatever else the source can tell is passed on as it is.

    Parameters
    ----------
    source : answers; what it answers is never changed

    Attributes
    ----------
    questions : those that were asked about pools; rows refer to them by position
    """

    def __init__(self, source: ForecastSource) -> None:
        self._source = source
        self._ask_arrives, self._ask_load = source.will_jobs_arrive, source.new_load
        self._ask_bin = source.duration_bin
        self._now_s = -inf
        self.questions: list[Question] = []
        self._known: dict[Question, int] = {}
        self._arrives: dict[tuple[str, float], bool] = {}
        self._loads: dict[tuple[str, float], float] = {}
        self._others: dict[Question, float] = {}
        self._at_s, self._question, self._answer = array("d"), array("q"), array("d")
        self._bins: dict[str, int] = {}
        self._likeliest: dict[str, int] = {}

    @property
    def horizons_min(self) -> Sequence[float]:
        """Horizons of the source, minutes."""
        return self._source.horizons_min

    def advance(self, now_s: float) -> None:
        """Move to an instant."""
        self._now_s = now_s
        self._source.advance(now_s)

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """The source's answer."""
        answer = self._ask_arrives(pool, horizon_s)
        key = (pool, horizon_s)
        if self._arrives.get(key) != answer:
            self._arrives[key] = answer
            self._keep((ARRIVES, pool, horizon_s, 0.0), float(answer))
        return answer

    def new_load(self, pool: str, horizon_s: float) -> float:
        """The source's answer, GPUs."""
        answer = self._ask_load(pool, horizon_s)
        key = (pool, horizon_s)
        if self._loads.get(key) != answer:
            self._loads[key] = answer
            self._keep((LOAD, pool, horizon_s, 0.0), answer)
        return answer

    def duration_bin(self, job: Job) -> int:
        """The source's answer."""
        answer = self._ask_bin(job)
        if job.job_id not in self._bins:
            self._bins[job.job_id] = answer
        return answer

    def duration_s(self, job: Job) -> float:
        """The source's answer, seconds."""
        return self._source.duration_s(job)

    def __getattr__(self, name: str) -> Any:
        """What only some sources can tell; uncertain answers are kept as well."""
        if name.startswith("_"):
            raise AttributeError(name)
        told = getattr(self._source, name)
        keep = _UNCERTAIN.get(name)
        if keep is None:
            return told

        def ask(*asked: Any, **named: Any) -> Any:
            answer = told(*asked, **named)
            keep(self, answer, *asked, **named)
            return answer

        self.__dict__[name] = ask
        return ask

    def _keep_probability(self, answer: float, pool: str, horizon_s: float) -> None:
        self._keep_changed((PROBABILITY, pool, horizon_s, 0.0), answer)

    def _keep_quantile(self, answer: float, pool: str, horizon_s: float, level: float) -> None:
        self._keep_changed((QUANTILE, pool, horizon_s, level), answer)

    def _keep_likeliest(self, answer: Sequence[float], job: Job) -> None:
        if job.job_id not in self._likeliest:
            self._likeliest[job.job_id] = int(np.argmax(answer))

    def _keep_changed(self, question: Question, answer: float) -> None:
        if self._others.get(question) != answer:
            self._others[question] = answer
            self._keep(question, answer)

    def _keep(self, question: Question, answer: float) -> None:
        position = self._known.get(question)
        if position is None:
            position = self._known[question] = len(self.questions)
            self.questions.append(question)
        self._at_s.append(self._now_s)
        self._question.append(position)
        self._answer.append(answer)

    def answers(self) -> tuple[Floats, Ints, Floats]:
        """Instants in seconds from the epoch, ascending; positions in `questions`; answers. (n_rows,) each.

        Whether jobs arrive is 1 or 0, loads and their quantiles are GPUs.
        """
        return (
            np.array(self._at_s, dtype=np.float64),
            np.array(self._question, dtype=np.int64),
            np.array(self._answer, dtype=np.float64),
        )

    def bins(self) -> dict[str, int]:
        """The bin forecast for each job by id, the likeliest where only probabilities were asked for."""
        return self._likeliest | self._bins


_UNCERTAIN: Mapping[str, Callable[..., None]] = {
    "arrival_probability": Recording._keep_probability,
    "load_quantile": Recording._keep_quantile,
    "duration_probabilities": Recording._keep_likeliest,
}
