"""Where forecasts of a job's final accuracy come from: the truth, a registered model, a draw, or nowhere."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.domain.bad_answers import CURVES, BadAnswers
from jobcast.domain.errors import ConfigError
from jobcast.domain.tasks import AccuracyForecast, Floats, Ints
from jobcast.pipelines.experiments.forecast_specs import ACCURACY_CURVE, ForecastSpec
from jobcast.pipelines.experiments.sources import Believed, registered

if TYPE_CHECKING:
    from jobcast.models.curves.accuracy_curve import AccuracyCurve

RISING = 1
"""Accuracies grow."""
UPPER_Z = 1.6448536269514722
"""Standard deviations from the mean to the upper end of a 90 % interval."""
NO_INTERVAL = -1.0
"""In place of a standard deviation where an interval's lower end is above its mean."""


def accuracy_forecast(
    spec: ForecastSpec,
    metric: Floats,
    *,
    home: Path,
    seed: int,
    tally: BadAnswers | None = None,
    job_ids: Sequence[str] = (),
    degrade: bool | None = None,
    overlaps: Callable[[Any], bool] = lambda version: False,
) -> Believed[AccuracyForecast]:
    """The source of a spec; where a registered model answers what cannot be, nothing is forecast of that job.

    Parameters
    ----------
    metric : (n_jobs, longest) the true metric by epoch, padded with NaN; of it, oracle and noisy read the last value
    home : of the registry
    seed : of draws
    tally : where bad answers are counted, by names of jobs where these are given
    degrade : whether nothing is forecast where there is no registered model
    overlaps : whether a version has seen the window; raises OverlapError where that is not allowed

    Raises ConfigError for a source that tells nothing of accuracies, RegistryError for a model that is not there.
    """
    final = last_values(metric)
    if spec.kind == "oracle":
        return Believed(lambda jobs, seen, at, epochs: (final[jobs], np.zeros(len(jobs))))
    if spec.kind == "conservative":
        return Believed()
    if spec.kind in ("random", "noisy"):
        return Believed(_drawn(final, 1.0 if spec.kind == "random" else spec.probability, seed))
    if spec.kind == "registry":
        from jobcast.models.curves.served import guarded_accuracies

        tally = BadAnswers() if tally is None else tally
        asked = registered(ACCURACY_CURVE, spec, home, tally, CURVES, degrade)
        if asked is None:
            return Believed()
        overlap = overlaps(asked.version)
        forecast = guarded_accuracies(by_model(asked.model), tally, job_ids)
        return Believed(forecast, {ACCURACY_CURVE: asked.version.version}, overlap)
    raise ConfigError(
        f"--forecasts {spec.label}: forecasts regimes, not accuracies; choose oracle, registry, conservative, random "
        "or noisy:P"
    )


def last_values(metric: Floats) -> Floats:
    """(n,) the last value of each row that is one.

    >>> last_values(np.array([[0.1, 0.5, np.nan], [0.2, 0.3, 0.4]])).tolist()
    [0.5, 0.4]
    """
    # The first number from behind.
    last = metric.shape[1] - 1 - np.argmax(~np.isnan(metric[:, ::-1]), axis=1)
    return np.asarray(metric[np.arange(len(metric)), last])


def _drawn(final: Floats, probability: float, seed: int) -> AccuracyForecast:
    """The truth, but for a share of the jobs a value drawn between what they have reached and 1; the same each time."""
    rng = np.random.default_rng([seed, len(final)])
    # Drawn for all jobs at once: a job's answer does not depend on when it is asked.
    wrong, share = rng.random(len(final)) < probability, rng.random(len(final))

    def forecast(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        reached = last_values(seen)
        # Between what is seen and 1: a forecast below what was reached would be absurd.
        drawn = reached + share[jobs] * np.maximum(1.0 - reached, 0.0)
        return np.where(wrong[jobs], drawn, final[jobs]), np.zeros(len(jobs))

    return forecast


def by_model(model: "AccuracyCurve") -> AccuracyForecast:
    """Forecasts of a fitted model of training curves; its interval's upper side tells the standard deviation."""

    def forecast(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        result = model.forecast_arrays(seen, at, epochs, np.full(len(jobs), RISING))
        # From the upper side: the lower one is cut off by what was reached.
        spread = (result.final_high - result.final_mean) / UPPER_Z
        return result.final_mean, np.where(result.final_low > result.final_mean, NO_INTERVAL, spread)

    return forecast
