"""What a search minimises: SetPreference of PCS, metrics and how they are measured over jobs. PCS, section 3.2."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from jobcast.domain.elastic import Floats
from jobcast.domain.errors import ConfigError
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import errors_pct, unfairness_pct

MEAN = "mean"
AVERAGES = (MEAN, "avg")
FORECAST = "error"
"""The metric that needs a forecast at each submission."""
PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
MOST_PERCENTILE = 100.0


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure by job, smaller is better.

    Attributes
    ----------
    title : in words, unit included
    by_job : of a run's log, (n_jobs,)
    """

    title: str
    by_job: Callable[[RunLog], Floats]


def _jct_s(log: RunLog) -> Floats:
    return log.jct_s


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "jct": Metric("JCT (s)", _jct_s),
        FORECAST: Metric("prediction error (%)", errors_pct),
        "unfairness": Metric("unfairness (%)", unfairness_pct),
    }
)
"""PCS, sections 2.2 and 5.1: performance, predictability, fairness."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric and its measure.

    Attributes
    ----------
    metric : key of `METRICS`
    percentile : over jobs, or None for the mean
    """

    metric: str
    percentile: float | None = None

    @property
    def label(self) -> str:
        """As it is written.

        >>> Objective("error", 99.0).label
        'error:p99'
        """
        return f"{self.metric}:{MEAN if self.percentile is None else f'p{self.percentile:g}'}"

    @property
    def title(self) -> str:
        """In words."""
        measure = MEAN if self.percentile is None else f"p{self.percentile:g}"
        return f"{measure} {METRICS[self.metric].title}"

    def of(self, log: RunLog) -> float:
        """Its value for a run."""
        values = METRICS[self.metric].by_job(log)
        return float(values.mean() if self.percentile is None else np.percentile(values, self.percentile))


def parse_objectives(text: str) -> tuple[Objective, ...]:
    """Objectives between commas, each metric:measure; a metric may come again with another measure.

    >>> [one.label for one in parse_objectives("jct:avg, error:p99")]
    ['jct:mean', 'error:p99']

    Raises ConfigError that says which one is wrong.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError("--objectives: names none; write for example jct:mean,error:p99")
    found = [_objective(part) for part in parts]
    twice = [one.label for at, one in enumerate(found) if one in found[:at]]
    if twice:
        raise ConfigError(f"--objectives {twice[0]}: is given twice; give it once")
    return tuple(found)


def _objective(text: str) -> Objective:
    metric, colon, measure = text.partition(":")
    if metric not in METRICS:
        raise ConfigError(f"--objectives {text}: metric {metric!r} is unknown; choose from {', '.join(METRICS)}")
    if measure in AVERAGES:
        return Objective(metric)
    matched = PERCENTILE.fullmatch(measure)
    if not colon or matched is None or not 0.0 < float(matched[1]) < MOST_PERCENTILE:
        raise ConfigError(f"--objectives {text}: measure {measure!r} is unknown; write mean, avg or pNN, such as p99")
    return Objective(metric, float(matched[1]))


def needs_forecasts(objectives: Sequence[Objective]) -> bool:
    """Whether any of them asks for completions forecast at submission."""
    return any(one.metric == FORECAST for one in objectives)


def values_of(log: RunLog, objectives: Sequence[Objective]) -> list[float]:
    """Values for a run, (n_objectives,)."""
    return [one.of(log) for one in objectives]
