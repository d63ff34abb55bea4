"""Exponential smoothing by statsforecast as rules to beat: AutoETS [1]_ and complex exponential smoothing [2]_.

A pool's arrivals, or the GPUs that they ask for, are counted by the hour, with a season of a day. Form and parameters
are chosen where the scored window begins and then anew, from the four weeks before: of AutoETS each week, and its state
is carried through every hour that is over; of CES each day, for statsforecast 2.1 carries its state wrongly where a day
is not over, so that it forecasts the day from its beginning. A forecast at t rests on whole hours that had ended by t.
Where no form fits, a series is forecast by its mean.

References
----------
.. [1] Hyndman, Koehler, Snyder and Grose, A state space framework for automatic forecasting using exponential smoothing
   methods, International Journal of Forecasting 18, 2002.
.. [2] Svetunkov, Kourentzes and Ord, Complex exponential smoothing, Naval Research Logistics 69, 2022.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import ConfigError
from jobcast.domain.history import PoolHistory
from jobcast.models.baselines import NORMAL_QUANTILE

SEASON = 24
"""Hours of a day."""
MEMORY = 28 * SEASON
"""Hours that are looked back."""
LEAST = 2 * SEASON
"""Hours without which no season is seen: their mean is the forecast."""


NO_FORM = "no model able to be fitted"
"""What statsforecast says then."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of statsforecast, after how many hours it is fitted anew, and whether its state is carried meanwhile."""

    model: str
    refit: int
    carries: bool


MODELS: Mapping[str, Kind] = {
    "auto_ets": Kind("AutoETS", 7 * SEASON, carries=True),
    "auto_ces": Kind("AutoCES", SEASON, carries=False),
}
"""By the name of the rule."""


def need_statsforecast() -> None:
    """Raise a ConfigError where statsforecast is not installed."""
    if find_spec("statsforecast") is None:
        raise ConfigError("--smoothing: statsforecast is not installed; run `pip install 'jobcast[smoothing]'`")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Smoothing:
    """A rule of (history, instants, horizon in seconds) for one evaluation; forecasts of an hour are made once.

    Attributes
    ----------
    name : of `MODELS`
    longest_s : the longest horizon that is asked about
    of_gpus : whether it tells GPUs that a load stays within with a probability of `COVERAGE`; else the probability that
        any job arrives
    """

    name: str
    longest_s: float
    of_gpus: bool
    _kept: dict[int, "_Series"] = field(default_factory=dict)

    def __call__(self, history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
        """Answers at ascending instants, shape (T,).

        Arrivals are taken as memoryless, 1 - exp(-mean); errors of several hours as independent and normal, with the
        variance of the errors one hour ahead.
        """
        ticks = np.asarray(ticks_s, np.float64)
        hours = np.floor(ticks / HOUR_S).astype(np.int64)
        mean, variance = np.empty(len(ticks)), np.empty(len(ticks))
        for hour in np.unique(hours).tolist():
            rows = hours == hour
            # By identity: histories are not hashable, and live as long as the evaluation.
            series = self._kept.setdefault(id(history), _Series(history, self.of_gpus, hour))
            ahead, hourly = series.ahead(hour, self.name, self.longest_s)
            begin = ticks[rows] / HOUR_S - hour
            # Between whole hours the sum is linear.
            total = np.concatenate([[0.0], np.cumsum(ahead)])
            at = np.arange(len(total))
            mean[rows] = np.interp(begin + horizon_s / HOUR_S, at, total) - np.interp(begin, at, total)
            variance[rows] = hourly * horizon_s / HOUR_S
        if not self.of_gpus:
            return -np.expm1(-mean)
        return np.floor(mean + NORMAL_QUANTILE * np.sqrt(variance))


class _Series:
    """Hourly counts of a pool, and what is forecast from them at each hour.

    `first` is the hour at which form and parameters are chosen for the first time.
    """

    def __init__(self, history: PoolHistory, of_gpus: bool, first: int) -> None:
        weight = history.arrival_gpus if of_gpus else np.ones(len(history.arrival_s))
        self._history, self._first = history, first
        self._arrival_s, self._total = history.arrival_s, np.concatenate([[0.0], np.cumsum(weight)])
        self._models: dict[int, Any] = {}
        self._ahead: dict[int, tuple[Floats, float]] = {}

    def counts(self, until: int, fitted_at: int) -> Floats:
        """Of the hours before one, (n,): from the first arrival on, `MEMORY` at most before `fitted_at`."""
        since = int(self._arrival_s[0] // HOUR_S) if len(self._arrival_s) else until
        edges_s = HOUR_S * np.arange(max(since, fitted_at - MEMORY), until + 1)
        return np.diff(self._total[np.searchsorted(self._arrival_s, edges_s, side="right")])

    def ahead(self, hour: int, name: str, longest_s: float) -> tuple[Floats, float]:
        """Means of the hours from one on, and the variance of an hour."""
        if hour not in self._ahead:
            steps = int(np.ceil(longest_s / HOUR_S)) + 1
            self._ahead[hour] = self._forecast(hour, name, steps)
        return self._ahead[hour]

    def _forecast(self, hour: int, name: str, steps: int) -> tuple[Floats, float]:
        kind = MODELS[name]
        # The last hour at which parameters were chosen anew.
        fitted_at = self._first + (hour - self._first) // kind.refit * kind.refit
        counts = self.counts(hour, fitted_at)
        model = self._fitted(fitted_at, kind)
        if model is None:
            level, spread = (counts.mean(), counts.var()) if len(counts) else (0.0, 0.0)
            return np.full(steps, level), float(spread)
        if kind.carries:
            result = model.forward(counts, h=steps, fitted=True)
            mean, errors = result["mean"], counts - result["fitted"]
        else:
            since = hour - fitted_at
            mean = model.predict(h=since + steps)["mean"][since:]
            errors = self.counts(fitted_at, fitted_at) - model.predict_in_sample()["fitted"]
        return np.maximum(mean, 0.0), float(np.mean(errors**2))

    def _fitted(self, hour: int, kind: Kind) -> Any:
        """What was chosen at an hour, None where the past tells too little."""
        if hour not in self._models:
            counts = self.counts(hour, hour)
            little = len(counts) < LEAST or counts.min() == counts.max()
            self._models[hour] = None if little else _fitted(kind, counts)
        return self._models[hour]


def _fitted(kind: Kind, counts: Floats) -> Any:
    """What statsforecast makes of counts, None where it finds that no form fits."""
    import statsforecast.models

    try:
        return getattr(statsforecast.models, kind.model)(season_length=SEASON).fit(counts)
    except Exception as error:  # it raises nothing more telling
        if NO_FORM not in str(error).lower():
            raise
        return None
