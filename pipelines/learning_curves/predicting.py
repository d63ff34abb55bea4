"""`jobcast predict accuracy-curve`: where running jobs will end, from what was seen of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.models.registry import open_registry
from jobcast.models.registry.references import Ref
from jobcast.pipelines.learning_curves.evaluating import trained_on
from jobcast.pipelines.model_tables import made_from, of_version
from jobcast.traces.learning_curves import CurveTable, LearningCurve

MEDIAN = 0.5


def forecast_runs(
    reference: tuple[str, Ref], table: CurveTable, epochs: int | None, target: float | None, *, home: Path
) -> dict[str, Any]:
    """Final values of running jobs with 90 % intervals, and where a target is given whether and when it is reached.

    Parameters
    ----------
    table : what was seen of each job
    epochs : of a whole run, where the file does not tell them by the column `epochs`

    Raises
    ------
    ConfigError
        A run's epochs are not told, or are fewer than were seen.
    RegistryError
        The version is not there.
    """
    registry = open_registry(home)
    version = registry.resolve(*reference)
    whole = [_whole(curve, told or epochs) for curve, told in zip(table.curves, table.epochs, strict=True)]
    forecast = registry.load(version).forecast(table.curves, whole)
    answers: dict[str, Sequence[Any]] = {
        "final": forecast.final_mean,
        "final_low": forecast.final_low,
        "final_high": forecast.final_high,
    }
    if target is not None:
        answers["reach_probability"] = forecast.reach_probability(target)
        answers["reach_epoch"] = forecast.reach_epoch(target, MEDIAN)
    return {
        **of_version(version),
        "target": target,
        "curves": [
            {
                "app": curve.app,
                "batch_size": curve.batch_size,
                "seen": curve.epochs,
                "epochs": whole[i],
                "last": float(curve.metric[-1]),
                **{name: _number(values[i]) for name, values in answers.items()},
            }
            for i, curve in enumerate(table.curves)
        ],
        "overlap": trained_on(registry, version, table.curves) > 0,
        **made_from(table, table.notes),
    }


def _whole(curve: LearningCurve, epochs: int | None) -> int:
    """Epochs of a whole run."""
    run = f"{curve.app} at batch size {curve.batch_size}"
    if epochs is None:
        raise ConfigError(f"--epochs: how many epochs {run} runs in all is not told; give N, or a column epochs")
    if epochs < curve.epochs:
        raise ConfigError(f"--epochs {epochs}: {run} has reached epoch {curve.epochs} already; give the whole run's")
    return epochs


def _number(value: Any) -> float | None:
    """A figure as JSON has it; None for an epoch that never comes."""
    return float(value) if np.isfinite(value) else None
