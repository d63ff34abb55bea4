"""Where forecasts of a job's final accuracy come from: the truth, a registered model, a draw, or nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.domain.tasks import AccuracyForecast, Floats, Ints
from jobcast.pipelines.forecast_specs import ACCURACY_CURVE, ForecastSpec

if TYPE_CHECKING:
    from jobcast.models.curves.accuracy_curve import AccuracyCurve

RISING = 1
"""Accuracies grow."""
UPPER_Z = 1.6448536269514722
"""Standard deviations from the mean to the upper end of a 90 % interval."""


@dataclass(frozen=True, slots=True)
class ChosenAccuracy:
    """A source of forecasts, None where nothing is forecast, and the concrete versions behind it."""

    forecast: AccuracyForecast | None
    models: Mapping[str, int] = field(default_factory=dict)


def accuracy_forecast(spec: ForecastSpec, metric: Floats, *, home: Path, seed: int) -> ChosenAccuracy:
    """The source of a spec.

    Parameters
    ----------
    metric : (n_jobs, longest) the true metric by epoch, padded with NaN; of it, oracle and noisy read the last value
    home : of the registry
    seed : of draws

    Raises ConfigError for a source that tells nothing of accuracies, RegistryError for a model that is not there.
    """
    final = last_values(metric)
    if spec.kind == "oracle":
        return ChosenAccuracy(lambda jobs, seen, at, epochs: (final[jobs], np.zeros(len(jobs))))
    if spec.kind == "conservative":
        return ChosenAccuracy(None)
    if spec.kind in ("random", "noisy"):
        return ChosenAccuracy(_drawn(final, 1.0 if spec.kind == "random" else spec.probability, seed))
    if spec.kind == "registry":
        return _registered(spec, home)
    raise ConfigError(
        f"--forecasts {spec.label}: forecasts regimes, not accuracies; choose oracle, registry, conservative, random "
        "or noisy:P"
    )


def last_values(metric: Floats) -> Floats:
    """(n,) the last value of each row that is one.

    >>> last_values(np.array([[0.1, 0.5, np.nan], [0.2, 0.3, 0.4]])).tolist()
    [0.5, 0.4]
    """
    last = metric.shape[1] - 1 - np.argmax(~np.isnan(metric[:, ::-1]), axis=1)
    return np.asarray(metric[np.arange(len(metric)), last])


def _drawn(final: Floats, probability: float, seed: int) -> AccuracyForecast:
    """The truth, but for a share of the jobs a value drawn between what they have reached and 1; the same each time."""
    rng = np.random.default_rng([seed, len(final)])
    wrong, share = rng.random(len(final)) < probability, rng.random(len(final))

    def forecast(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        reached = last_values(seen)
        drawn = reached + share[jobs] * np.maximum(1.0 - reached, 0.0)
        return np.where(wrong[jobs], drawn, final[jobs]), np.zeros(len(jobs))

    return forecast


def _registered(spec: ForecastSpec, home: Path) -> ChosenAccuracy:
    from jobcast.models.registry import open_registry
    from jobcast.pipelines.sources import loaded_version

    version = open_registry(home).resolve(ACCURACY_CURVE, dict(spec.versions).get(ACCURACY_CURVE, spec.alias))
    model = loaded_version(home, ACCURACY_CURVE, version.version)
    return ChosenAccuracy(by_model(model), {ACCURACY_CURVE: version.version})


def by_model(model: "AccuracyCurve") -> AccuracyForecast:
    """Forecasts of a fitted model of training curves; its interval's upper side tells the standard deviation."""

    def forecast(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        told = model.forecast_arrays(seen, at, epochs, np.full(len(jobs), RISING))
        return told.final_mean, (told.final_high - told.final_mean) / UPPER_Z

    return forecast
