"""Which curves a version was trained on, and figures and forecasts by curve."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError, OverlapError, TrainingError
from jobcast.models.evaluation.curves import score_curves
from jobcast.models.registry import Registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.folders import DATA_FOLDER
from jobcast.pipelines.lifecycle.learning_curves.training import apps_of, fingerprint, read_trained
from jobcast.traces.learning_curves import CurveTable, LearningCurve


def by_app(model: Any, curves: Sequence[LearningCurve], prefix: float) -> dict[str, dict[str, Any]]:
    """Figures of each application; those without a curve that can be scored are left out."""
    found = {}
    for app in apps_of(curves):
        with suppress(TrainingError):
            found[app] = score_curves(model, [curve for curve in curves if curve.app == app], prefix)
    return found


def trained_on(registry: Registry, version: ModelVersion, curves: Sequence[LearningCurve]) -> int:
    """How many of the curves a version was trained on."""
    trained = read_trained(registry.folder(version) / DATA_FOLDER / version.name)
    return sum(fingerprint(curve) in trained for curve in curves)


def refuse_trained(registry: Registry, version: ModelVersion, table: CurveTable, allowed: bool) -> bool:
    """Whether a version was trained on curves of a file; OverlapError unless that is allowed."""
    known = trained_on(registry, version, table.curves)
    if known and not allowed:
        some = f"{known} of the {len(table.curves)} curves" if known < len(table.curves) else "all curves"
        raise OverlapError(
            f"{table.path}: {version.name} version {version.version} was trained on {some} in it; "
            "leave them out, or pass --allow-overlap to score it all the same"
        )
    return known > 0


def unfinished(table: CurveTable) -> list[str]:
    """A note on runs that the file says are to go on: their last value counts as the final one."""
    short = sum(
        whole is not None and whole > curve.epochs for curve, whole in zip(table.curves, table.epochs, strict=True)
    )
    return [f"{short} curves end before their epochs; their last value was taken for the final one"] if short else []


def whole_epochs(curve: LearningCurve, epochs: int | None) -> int:
    """Epochs of a whole run."""
    run = f"{curve.app} at batch size {curve.batch_size}"
    if epochs is None:
        raise ConfigError(f"--epochs: how many epochs {run} runs in all is not told; give N, or a column epochs")
    if epochs < curve.epochs:
        raise ConfigError(f"--epochs {epochs}: {run} has reached epoch {curve.epochs} already; give the whole run's")
    return epochs


def number(value: Any) -> float | None:
    """A figure as JSON has it; None for an epoch that never comes."""
    return float(value) if np.isfinite(value) else None
